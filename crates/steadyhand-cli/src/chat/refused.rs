//! A provider would not take a request: the place it names, and a copy of what was sent, for whoever finds out why.

use std::path::Path;

use serde_json::json;
use steadyhand::redact::Secrets;
use steadyhand_conversation::Provider;
use steadyhand_models::ModelError;

use crate::error::Failed;
use steadyhand_proxy::folder::Folder;
use steadyhand_proxy::study::place_in;

const FOLDER: &str = "refused";
const KEPT_MAX: usize = 20;
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// The failure as it is told; `state` is the folder for the copy, where anything may be kept.
pub(super) fn told(error: &ModelError, provider: Provider, state: Option<&Path>) -> Failed {
    let mut failed = Failed::from(error.clone());
    let Some(sent) = &error.sent else {
        return failed;
    };
    if let Some(place) = place_in(sent.body(), &error.message) {
        failed = failed
            .detail("place", json!(place))
            .evidence("place", place);
    }
    let Some(state) = state else {
        return failed;
    };
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S%.3f");
    let folder = Folder::new(state.join(FOLDER), KEPT_MAX, BYTES_MAX);
    let copy = Secrets::default().hide_in(sent.body()).to_string();
    match folder.put(&format!("{provider}-{now}.json"), copy.as_bytes()) {
        Ok(path) => {
            let path = path.display().to_string();
            let help = format!(
                "steadyhand validate {path} --provider {provider} --what request\nsays what is known here to be wrong with it"
            );
            let failed = failed.detail("request", json!(path));
            failed.evidence("request", path).help(help)
        }
        Err(error) => {
            tracing::warn!(%error, "the request cannot be kept in {}", folder.path().display());
            failed
        }
    }
}
