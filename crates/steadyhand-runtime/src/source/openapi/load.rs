//! Gets a document: from a file with the files it refers to, or from a URL with a copy kept for bad days.

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::header::{ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use steadyhand_process::private;
use tokio::time::Instant;
use url::Url;

use super::document::{self, DOCUMENT_BYTES_MAX, Document};
use crate::net::header::{HeaderName, HeaderValue};
use crate::net::{Client, Limits, Method, Reach, Request, StatusCode};
use steadyhand_config::{NotRead, SecretText, Trust};

/// A document that takes longer counts as not there.
pub const LOAD_TIMEOUT: Duration = Duration::from_secs(30);
const FILES_MAX: usize = 256;

/// What `spec` names.
#[derive(Clone)]
pub(super) enum Spec {
    File(PathBuf),
    Url(Url),
}

/// A document's text and where it is from.
pub(super) struct Fetched {
    pub text: String,
    /// Said when it is the kept copy: why, and how old it is.
    pub cached: Option<String>,
    validators: Validators,
}

/// What a server wants to hear to say "not changed".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Validators {
    etag: Option<String>,
    last_modified: Option<String>,
}

impl Spec {
    pub(super) fn read(spec: &SecretText, folder: &Path) -> Result<Spec, String> {
        let text = spec.expose().trim();
        if text.is_empty() {
            return Err("`spec` is empty: name a file or an http(s) address".to_owned());
        }
        let scheme = text
            .split_once("://")
            .map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            None => Ok(Spec::File(folder.join(text))),
            Some("http" | "https") => {
                let url = Url::parse(text).map_err(|error| {
                    format!(
                        "`spec` is no address: {}",
                        steadyhand::plain_words::address(&error)
                    )
                })?;
                super::server::check(&url).map_err(|fault| format!("`spec` {fault}"))?;
                Ok(Spec::Url(url))
            }
            Some(other) => Err(format!(
                "`spec` begins with {other}://, and only files, http:// and https:// can be read"
            )),
        }
    }
}

impl fmt::Display for Spec {
    // What comes after the path of a URL may hold a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spec::File(path) => write!(f, "{}", path.display()),
            Spec::Url(url) => {
                write!(
                    f,
                    "{}://{}{}",
                    url.scheme(),
                    crate::net::request::site(url),
                    url.path()
                )
            }
        }
    }
}

/// Reads a file and all files it refers to. These must lie in the folder of the document or of the
/// configuration: a document must not be able to read the rest of the disk into a tool's definition.
pub(super) fn from_file(path: &Path, folder: &Path, trust: &Trust) -> Result<Document, String> {
    let mut left = DOCUMENT_BYTES_MAX;
    let text = read_text(path, &mut left, trust)?;
    let mut document = Document::read(&text, None)?;
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let main = canonical(path);
    let homes = [main.parent().map(Path::to_owned), Some(canonical(folder))];
    let mut known: Vec<PathBuf> = vec![main];
    let mut waiting: VecDeque<usize> = VecDeque::from([0]);
    while let Some(file) = waiting.pop_front() {
        for name in document.names_of_others(file) {
            let base = known[file].parent().unwrap_or(Path::new(""));
            let decoded = percent_encoding::percent_decode_str(&name).decode_utf8_lossy();
            // Not there, or not ours to read: said where something needs it.
            let Ok(other) = base.join(&*decoded).canonicalize() else {
                continue;
            };
            if !homes.iter().flatten().any(|home| other.starts_with(home)) {
                tracing::warn!(file = %other.display(), "a document refers to a file outside its own folder and the configuration's; it is not read");
                continue;
            }
            if let Some(place) = known.iter().position(|path| *path == other) {
                document.link(file, name, place);
                continue;
            }
            if known.len() == FILES_MAX {
                return Err(format!(
                    "it refers to more than {FILES_MAX} files: bundle it into one"
                ));
            }
            let text = read_text(&other, &mut left, trust)?;
            let value =
                document::parse(&text).map_err(|fault| format!("{}: {fault}", other.display()))?;
            let place = document.add_file(value);
            document.link(file, name, place);
            known.push(other);
            waiting.push_back(place);
        }
    }
    Ok(document)
}

fn read_text(path: &Path, left: &mut usize, trust: &Trust) -> Result<String, String> {
    let shown = path.display();
    let unreadable = |error: &io::Error| {
        let why = steadyhand_config::document::plain(error);
        format!("{shown} cannot be read: {why}")
    };
    let content = trust.read(path, *left as u64);
    let content = content.map_err(|why| match why {
        NotRead::Unreadable(error) => unreadable(&error),
        NotRead::NoFile => format!("{shown} is no file"),
        NotRead::TooLarge => too_large(),
        NotRead::Untrusted(file) => {
            format!("{shown} is not used: {}; {}", file.reason, file.help)
        }
    })?;
    *left -= content.len();
    String::from_utf8(content).map_err(|error| {
        unreadable(&io::Error::new(
            io::ErrorKind::InvalidData,
            error.utf8_error(),
        ))
    })
}

fn too_large() -> String {
    format!(
        "it is larger than {} MiB, with all its files",
        DOCUMENT_BYTES_MAX / 1024 / 1024
    )
}

/// The copy of a downloaded document.
pub(super) struct Copy {
    path: PathBuf,
}

impl Copy {
    pub(super) fn of(url: &Url, state: &Path) -> Copy {
        let digest = Sha256::digest(url.as_str());
        let name: String = digest
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Copy {
            path: state.join("openapi").join(name),
        }
    }

    /// The first line holds what the server wants to hear again, the rest is the document.
    fn read(&self) -> Option<(Validators, String)> {
        let bytes = private::read(&self.path, DOCUMENT_BYTES_MAX as u64 + 4096).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (first, rest) = text.split_once('\n')?;
        Some((serde_json::from_str(first).ok()?, rest.to_owned()))
    }

    fn age(&self) -> String {
        let modified = fs::metadata(&self.path).and_then(|meta| meta.modified());
        let time = modified
            .ok()
            .and_then(|time| jiff::Timestamp::try_from(time).ok());
        match time {
            Some(time) => format!("the copy of {}", time.strftime("%Y-%m-%d %H:%M UTC")),
            None => "the copy kept from before".to_owned(),
        }
    }

    /// Keeps a document that was found to be readable.
    pub(super) fn keep(&self, fetched: &Fetched) -> io::Result<()> {
        if self
            .read()
            .is_some_and(|(kept, text)| kept == fetched.validators && text == fetched.text)
        {
            return Ok(());
        }
        let first = serde_json::to_string(&fetched.validators)?;
        // Written beside and moved: a reader finds the old copy or the new one, never half of one.
        let beside = self
            .path
            .with_extension(uuid::Uuid::new_v4().simple().to_string());
        let text = format!("{first}\n{}", fetched.text);
        private::replace(&self.path, &beside, text.as_bytes())
    }

    /// The kept document in place of one that could not be had.
    pub(super) fn instead(&self, why: &str) -> Option<Fetched> {
        let (validators, text) = self.read()?;
        Some(Fetched {
            text,
            cached: Some(format!("{why}; {} is used", self.age())),
            validators,
        })
    }
}

/// Downloads a document, or takes the copy if nothing has changed or the download fails.
pub(super) async fn from_url(
    url: &Url,
    copy: &Copy,
    http: &Client,
    reach: &Reach,
) -> Result<Fetched, String> {
    let kept = copy.read();
    match download(
        url,
        kept.as_ref().map(|(validators, _)| validators),
        http,
        reach,
    )
    .await
    {
        Ok(Some(fetched)) => Ok(fetched),
        Ok(None) => match kept {
            Some((validators, text)) => Ok(Fetched {
                text,
                cached: None,
                validators,
            }),
            None => {
                Err("the server says it has not changed, but there is no copy of it".to_owned())
            }
        },
        Err(fault) => copy
            .instead(&format!("the document cannot be had now ({fault})"))
            .ok_or(fault),
    }
}

/// The document, or none if the server says that the copy is still right.
async fn download(
    url: &Url,
    kept: Option<&Validators>,
    http: &Client,
    reach: &Reach,
) -> Result<Option<Fetched>, String> {
    let mut request = Request::new(Method::GET, url.clone());
    let mut say = |name: HeaderName, text: Option<&String>| {
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
            request.headers.insert(name, value);
        }
    };
    say(IF_NONE_MATCH, kept.and_then(|kept| kept.etag.as_ref()));
    say(
        IF_MODIFIED_SINCE,
        kept.and_then(|kept| kept.last_modified.as_ref()),
    );
    let limits = Limits {
        until: Instant::now() + LOAD_TIMEOUT,
        response_bytes_max: DOCUMENT_BYTES_MAX,
    };
    let sent = http.send(request, limits, reach).await;
    let response = sent.map_err(|error| error.message().to_owned())?;
    if response.status == StatusCode::NOT_MODIFIED && kept.is_some() {
        return Ok(None);
    }
    let response = response
        .success()
        .map_err(|error| error.message().to_owned())?;
    if response.truncated {
        return Err(too_large());
    }
    let text_of = |name: HeaderName| {
        let value = response.headers.get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let validators = Validators {
        etag: text_of(ETAG),
        last_modified: text_of(LAST_MODIFIED),
    };
    Ok(Some(Fetched {
        text: response.text(),
        cached: None,
        validators,
    }))
}
