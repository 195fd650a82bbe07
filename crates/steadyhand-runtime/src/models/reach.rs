//! Whether a model can be reached, and whether its provider knows it: asked for the list of models, which costs nothing.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use steadyhand_models::{Dialect, ModelError};

use super::{dialect_of, for_client, resolved};
use steadyhand_config::check_models::table;
use steadyhand_config::{Configuration, Surroundings};

const CONNECT_MAX: Duration = Duration::from_secs(2);
const ANSWER_MAX: Duration = Duration::from_secs(8);
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Where a model is, and what it takes to ask for it.
pub struct Reach {
    pub dialect: Dialect,
    /// The name its provider knows it by.
    pub model: String,
    base: Url,
    pub key: Option<SecretString>,
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The models there are; none where the answer is not understood.
    Models(Vec<String>),
    /// A status that is no success.
    Status(u16),
    /// No connection.
    Nobody,
    /// A connection, and no answer in time or none that can be read.
    Broken(String),
}

/// A model of the configuration; none if it is a script.
pub fn reach(
    configuration: &Configuration,
    surroundings: &Surroundings,
    name: &str,
) -> Result<Option<Reach>, ModelError> {
    let Some(table) = table(&configuration.document.value["models"], name) else {
        return Ok(None);
    };
    let settings = resolved(configuration, surroundings, name, table)?;
    let Some(dialect) = dialect_of(settings.provider) else {
        return Ok(None);
    };
    let client = for_client(surroundings, dialect, &settings);
    // What is wrong with it is said in the same words as by a conversation with it.
    steadyhand_models::Client::new(client.clone())?;
    let base = client.url.as_ref().map(ExposeSecret::expose_secret);
    let base = base.unwrap_or(dialect.public_url()).parse::<Url>();
    Ok(base.ok().map(|base| Reach {
        dialect,
        model: client.model,
        base,
        key: client.key,
    }))
}

impl Reach {
    /// As it may be shown: `127.0.0.1:11434`.
    pub fn host(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        match self.base.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    pub fn url(&self) -> &str {
        self.base.as_str()
    }

    /// Asks for the list of models.
    pub async fn ask(&self) -> Answer {
        match tokio::time::timeout(ANSWER_MAX, self.asked()).await {
            Ok(answer) => answer,
            Err(_) => Answer::Broken("nothing came in time".to_owned()),
        }
    }

    async fn asked(&self) -> Answer {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = reqwest::Client::builder()
            .connect_timeout(CONNECT_MAX)
            .redirect(reqwest::redirect::Policy::none());
        if self.base.scheme() == "http" {
            // Loading the system's certificates takes a moment.
            client = client.tls_certs_only([]);
        }
        let Ok(client) = client.build() else {
            return Answer::Broken("outgoing HTTP cannot be set up".to_owned());
        };
        let (path, list, field) = self.dialect.client().model_list();
        let base = self.base.as_str().trim_end_matches('/');
        let request = client.get(format!("{base}/{path}")).headers(self.headers());
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() => return Answer::Nobody,
            Err(_) => return Answer::Broken("the connection broke".to_owned()),
        };
        let status = response.status();
        if !status.is_success() {
            return Answer::Status(status.as_u16());
        }
        let mut response = response;
        let mut body = Vec::new();
        while let Ok(Some(piece)) = response.chunk().await {
            body.extend_from_slice(&piece);
            if body.len() > ANSWER_BYTES_MAX {
                return Answer::Models(Vec::new());
            }
        }
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        let models = said[list].as_array().into_iter().flatten();
        let models = models.filter_map(|model| model[field].as_str());
        Answer::Models(models.map(str::to_owned).collect())
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Some(key) = &self.key else {
            return headers;
        };
        let client = self.dialect.client();
        let (name, value) = client.key_header(key.expose_secret());
        if let Ok(mut value) = HeaderValue::from_str(&value) {
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        for (name, value) in client.headers() {
            let name = HeaderName::from_static(name);
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers
    }
}
