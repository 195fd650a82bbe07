//! What is wrong with `[proxy]` beyond its shape: providers nobody knows, addresses that are none.

use super::check::Checker;
use super::document::escaped;
use super::problem::Problem;
use super::proxy::{PROXIES, is_base};
use super::settings::Root;
use super::text::SecretText;
use super::words::nearest;

impl Checker<'_> {
    pub(super) fn proxies(&mut self, root: &Root) {
        for (name, proxy) in &root.proxy {
            let at = format!("/proxy/{}", escaped(name));
            if !PROXIES.contains(&name.as_str()) {
                let help = match nearest(name, PROXIES.into_iter()) {
                    Some(near) => format!("Did you mean {near}?"),
                    None => format!("There are {}", PROXIES.join(", ")),
                };
                let problem = Problem::error(format!("there is no provider \"{name}\" to proxy"));
                self.put_at_key(problem.help(help), &at, "no such provider");
            }
            let upstream = proxy.upstream.as_ref().map(SecretText::expose);
            if upstream.is_some_and(|url| !url.contains("${") && !is_base(url)) {
                // Its text is not repeated: it may hold a key.
                let message = format!("proxy.{name}.upstream is no http or https URL");
                let problem = Problem::error(message).help(
                    "Write one such as \"https://api.example.com\", without a user or a query",
                );
                self.put_at_value(problem, &format!("{at}/upstream"), "here");
            }
        }
    }
}
