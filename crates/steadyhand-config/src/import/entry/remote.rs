//! A server on the network: its URL and headers.

use super::{Entry, Named, Refused};
use crate::foreign::Node;
use crate::import::server::Transport;
use crate::import::text::ImportedText;
use crate::secret::{keep_secret, names_a_secret};

type Headers = Vec<(String, ImportedText)>;

impl Entry<'_> {
    pub(super) fn remote(
        &mut self,
        node: &Node,
        named: Option<Named>,
        key: &str,
        url: &Node,
    ) -> Result<Transport, Refused> {
        let written = self.required_text(key, url)?;
        let url = self.text(key, &[], &written);
        self.keep_secrets_of_query(url.expose());
        let headers = self.headers(node)?;
        let streams = key == "httpUrl" || named == Some(Named::Http);
        Ok(match named {
            Some(Named::Sse) if key != "httpUrl" => Transport::Sse { url, headers },
            _ => Transport::Http {
                or_sse: !streams,
                url,
                headers,
            },
        })
    }

    fn headers(&mut self, node: &Node) -> Result<Headers, Refused> {
        let mut headers = Headers::new();
        for key in ["headers", "http_headers"] {
            for field in self.table(node, key)? {
                let place = format!("{key}.{}", field.name);
                let written = self.required_text(&place, &field.node)?;
                let value = self.text(&place, &[&field.name], &written);
                headers.push((field.name.clone(), value));
            }
        }
        for field in self.table(node, "env_http_headers")? {
            let place = format!("env_http_headers.{}", field.name);
            let variable = self.required_text(&place, &field.node)?;
            match self.variable(&variable) {
                Some(value) => headers.push((field.name.clone(), value)),
                None => self.must_be_set(&place, &variable),
            }
        }
        if let Some(variable) = node.get("bearer_token_env_var") {
            let place = "bearer_token_env_var";
            let variable = self.required_text(place, variable)?;
            match self.expander.surroundings.variable(&variable) {
                Ok(token) => {
                    keep_secret(&mut self.secrets, &token);
                    let shown = format!("Bearer ${{{variable}}}");
                    let value = ImportedText::new(shown, &format!("Bearer {token}"));
                    headers.push(("Authorization".to_owned(), value));
                }
                Err(_) => self.must_be_set(place, &variable),
            }
        }
        Ok(headers)
    }

    /// `?api_key=…`: the value alone may turn up elsewhere.
    fn keep_secrets_of_query(&mut self, url: &str) {
        let Some((_, query)) = url.split_once('?') else {
            return;
        };
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            if names_a_secret(name) {
                keep_secret(&mut self.secrets, value);
            }
        }
    }
}
