//! What is wrong with `[models]` and `[transcriber]` beyond their shape: names that lead nowhere, what is missing.

use serde_json::Value;
use url::Url;

use super::check::Checker;
use super::document::escaped;
use super::listen::listen_address;
use super::models::{ModelSettings, Provider};
use super::problem::Problem;
use super::settings::Root;
use super::words::nearest;

/// The model that is always there.
pub const DEMO: &str = "demo";

impl Checker<'_> {
    pub(super) fn models(&mut self, root: &Root) {
        if let Some(default) = root.models.default_name() {
            self.named_model(root, default, "models.default", "/models/default");
        }
        for name in root.models.names() {
            let at = format!("/models/{}", escaped(name));
            let Ok(model) = serde_json::from_value::<ModelSettings>(root.models.0[name].clone())
            else {
                continue;
            };
            let is_provider_known = !self.is_left_out(&format!("{at}/provider"));
            let needs_model = is_provider_known && model.provider != Provider::Scripted;
            if model.model.is_none() && needs_model && !self.is_left_out(&format!("{at}/model")) {
                let problem = Problem::error(format!("models.{name} has no model"))
                    .help("Add the name its provider knows it by, such as model = \"qwen3:8b\"");
                self.put_at_key(problem, &at, "which one?");
            }
            let url = model.url.as_ref().map(super::SecretText::expose);
            if url.is_some_and(|url| !url.contains("${") && !is_http(url)) {
                // Its text is not repeated: it may hold a key.
                let problem = Problem::error(format!("models.{name}.url is no http or https URL"))
                    .help("Write one such as \"http://127.0.0.1:11434\"");
                self.put_at_value(problem, &format!("{at}/url"), "here");
            }
        }
    }

    pub(super) fn transcriber(&mut self, root: &Root) {
        let transcriber = &root.transcriber;
        if let Some(model) = &transcriber.model {
            self.named_model(root, model, "transcriber.model", "/transcriber/model");
        }
        if let Some(listen) = &transcriber.listen
            && !listen.contains("${")
            && let Err(wrong) = listen_address(listen, None)
        {
            let message = format!("transcriber.listen: {wrong}");
            let problem = Problem::error(message).help("Write one such as \"127.0.0.1:7410\"");
            self.put_at_value(problem, "/transcriber/listen", "here");
        }
        let mqtt = transcriber.mqtt.iter();
        self.section_faults(
            "/transcriber/mqtt",
            mqtt.flat_map(self.extensions.checks.mqtt),
        );
    }

    fn named_model(&mut self, root: &Root, name: &str, setting: &str, pointer: &str) {
        if name == DEMO || root.models.names().any(|known| known == name) {
            return;
        }
        let help = match nearest(name, root.models.names()) {
            Some(near) => format!("Did you mean {near}?"),
            None => format!("Define it: {name} = {{ provider = \"…\", model = \"…\" }}"),
        };
        let problem = Problem::error(format!(
            "{setting} names the model \"{name}\", which is not there"
        ));
        self.put_at_value(problem.help(help), pointer, "no such model");
    }
}

fn is_http(url: &str) -> bool {
    Url::parse(url.trim()).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// A table of models, as far as it is one.
pub fn table(models: &Value, name: &str) -> Option<Value> {
    models.get(name).filter(|table| table.is_object()).cloned()
}
