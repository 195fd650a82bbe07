//! What a request may cost: its size and depth, the time it takes to arrive, how many there are at once.

use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Request};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use steadyhand::typed_json::{self, Typed};
use steadyhand::{InexactInteger, RepeatedName, ReservedBytes, plain_words};
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use super::status::{Refused, Why};
use super::{Account, App, body_faults};
use steadyhand_runtime::admission::{CallerAccount, Limits, NotAdmitted};

/// Values in one body, counted before they are read: `0,` becomes forty times its size.
pub(super) const VALUES_MAX: usize = 1_000_000;
/// What a value takes once it is read.
const VALUE_BYTES: usize = 80;
/// As many are not worth counting exactly.
const VALUES_FEW: usize = 10_000;
/// Bodies up to this size are not worth counting.
const UNCOUNTED_BYTES: usize = 16 * 1024;

/// What a request brought. The space it takes is given back when this goes.
pub struct Sent<T> {
    pub value: T,
    pub space: ReservedBytes,
}

/// A body that an address takes.
pub trait Wanted: DeserializeOwned + ToSchema + Send {
    /// What it is, for those who sent something else: `an object: {name, args}`.
    const SHAPE: &'static str;
    /// What it looks like.
    const EXAMPLE: &'static str;
    /// How many values it may have.
    const VALUES_MAX: usize = VALUES_MAX;
    /// What a request without a body stands for, where it may have none.
    const IF_EMPTY: Option<&'static [u8]> = None;
    /// Whether a name that is there twice refuses all of it; false where each part is looked at by itself.
    const IS_ONE_THING: bool = true;
}

impl<T: Wanted> FromRequest<Arc<App>> for Sent<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Sent<T>, Refused> {
        let (mut parts, body) = request.into_parts();
        let Ok(Account(account)) = Account::from_request_parts(&mut parts, app).await;
        let mut space = app.admission.memory.of(account.id()).nothing();
        let bytes = read(body, &app.limits, BODY_SETTING, &mut space).await?;
        if bytes.len() > UNCOUNTED_BYTES {
            let values = counted(&bytes, T::VALUES_MAX)?;
            grow(&mut space, VALUE_BYTES * values)?;
        }
        let value = match T::IF_EMPTY {
            Some(instead) if bytes.is_empty() => parse(instead)?,
            _ => parse(&bytes)?,
        };
        Ok(Sent { value, space })
    }
}

/// A body as it came. The space it takes is given back when this goes.
pub struct Whole {
    pub bytes: Bytes,
    space: ReservedBytes,
}

impl Whole {
    pub async fn read(body: Body, app: &App, account: &CallerAccount) -> Result<Whole, Refused> {
        Whole::read_up_to(body, app, account, app.limits.body_bytes, BODY_SETTING).await
    }

    /// The same with another limit for its size, and where that is set.
    pub async fn read_up_to(
        body: Body,
        app: &App,
        account: &CallerAccount,
        body_bytes: usize,
        setting: &str,
    ) -> Result<Whole, Refused> {
        let limits = Limits {
            body_bytes,
            ..app.limits
        };
        let mut space = app.admission.memory.of(account.id()).nothing();
        let bytes = read(body, &limits, setting, &mut space).await?;
        Ok(Whole { bytes, space })
    }

    /// Makes room for what is read from it as JSON. False where it has more values than may be read.
    pub fn make_room(&mut self, values_max: usize) -> Result<bool, Refused> {
        if self.bytes.len() <= UNCOUNTED_BYTES {
            return Ok(true);
        }
        // Nearly always there are few even if every comma of a text is taken for one.
        let at_most = 1 + self
            .bytes
            .iter()
            .filter(|byte| matches!(byte, b',' | b'[' | b'{'))
            .count();
        let values = match at_most <= VALUES_FEW {
            true => Ok(at_most),
            false => counted(&self.bytes, values_max),
        };
        match values {
            Ok(values) => grow(&mut self.space, VALUE_BYTES * values).map(|()| true),
            Err(_) => Ok(false),
        }
    }
}

fn grow(space: &mut ReservedBytes, more: usize) -> Result<(), Refused> {
    space
        .grow(more)
        .map_err(|full| NotAdmitted::no_memory(&full).into())
}

/// The whole body, within its size and its time.
async fn read(
    mut body: Body,
    limits: &Limits,
    setting: &str,
    space: &mut ReservedBytes,
) -> Result<Bytes, Refused> {
    // Before a client that asks whether to go on (Expect: 100-continue) is told to.
    if body.size_hint().lower() > limits.body_bytes as u64 {
        return Err(too_large(limits, setting));
    }
    let until = Instant::now() + limits.patience;
    let mut whole = Bytes::new();
    let mut pieces: Vec<u8> = Vec::new();
    loop {
        let frame = match timeout_at(until, body.frame()).await {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => return Err(broken(&error)),
            Err(_) => return Err(too_slow(limits)),
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if space.bytes() + data.len() > limits.body_bytes {
            return Err(too_large(limits, setting));
        }
        grow(space, data.len())?;
        // Nearly always there is one piece, and it is used as it is.
        if whole.is_empty() && pieces.is_empty() {
            whole = data;
            continue;
        }
        if pieces.is_empty() {
            pieces.extend_from_slice(&whole);
        }
        pieces.extend_from_slice(&data);
    }
    Ok(match pieces.is_empty() {
        true => whole,
        false => pieces.into(),
    })
}

/// Where the largest body is set.
const BODY_SETTING: &str = "limits = { body = \"…\" } under [server]";

fn too_large(limits: &Limits, setting: &str) -> Refused {
    let limit = bytesize::ByteSize(limits.body_bytes as u64).display().iec();
    Refused::new(
        Why::TooLarge,
        format!("the body is larger than {limit}"),
        format!("Send less, or raise {setting}"),
    )
    .with("limit_bytes", json!(limits.body_bytes))
}

fn too_slow(limits: &Limits) -> Refused {
    let patience = humantime::format_duration(limits.patience);
    Refused::new(
        Why::TooSlow,
        format!("the body did not arrive within {patience}"),
        "Send it faster, or raise limits = { patience = \"…\" } under [server]",
    )
}

fn broken(error: &axum::Error) -> Refused {
    tracing::debug!(%error, "a body broke off");
    Refused::new(
        Why::BadRequest,
        "the body broke off",
        "Send it again; its length must be what content-length says",
    )
}

/// How many values a body has, if it is not too many: what opens and what separates, outside of texts.
fn counted(bytes: &[u8], values_max: usize) -> Result<usize, Refused> {
    let mut count = 1;
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => count += 1,
            _ => {}
        }
    }
    if count <= values_max {
        return Ok(count);
    }
    let refused = Refused::new(
        Why::TooLarge,
        format!("the body has {count} values, and may have {values_max}"),
        "Send it in parts",
    );
    Err(refused.with("limit_values", json!(values_max)))
}

/// Reads JSON; what is wrong with it is told with its place.
fn parse<T: Wanted>(bytes: &[u8]) -> Result<T, Refused> {
    let read = typed_json::from_slice(bytes).map_err(|error| explained::<T>(bytes, &error))?;
    if T::IS_ONE_THING
        && let Some(repeated) = RepeatedName::first_in_bytes(bytes)
    {
        let help = "Send one value for each name. Nothing was run";
        return Err(Refused::new(Why::BadRequest, repeated.message(), help)
            .with("at", json!(repeated.pointer())));
    }
    let inexact = std::str::from_utf8(bytes)
        .ok()
        .and_then(InexactInteger::first_in);
    match inexact {
        None => Ok(read),
        Some(inexact) => Err(Refused::new(
            Why::BadRequest,
            match inexact.at.is_empty() {
                true => format!("the body: {}", inexact.message()),
                false => format!("{}: {}", inexact.at, inexact.message()),
            },
            "Put it in quotes. Nothing was run",
        )
        .with("at", json!(inexact.at))),
    }
}

fn explained<T: Wanted>(bytes: &[u8], error: &serde_json::Error) -> Refused {
    let help = format!("Send {}, for example {}", T::SHAPE, T::EXAMPLE);
    if bytes.is_empty() {
        return Refused::new(Why::BadRequest, "the body is empty", help);
    }
    let refused = |message: String, error: &serde_json::Error| {
        Refused::new(Why::BadRequest, message, help)
            .with("line", json!(error.line()))
            .with("column", json!(error.column()))
    };
    if !error.is_data() {
        return refused(not_json(error), error);
    }
    // The first value that does not fit ended the reading: what follows it may be no JSON at all.
    match serde_json::from_slice::<Value>(bytes) {
        Err(broken) => refused(not_json(&broken), &broken),
        Ok(value) => {
            let fault = body_faults::of::<T>(&value);
            refused(fault.unwrap_or_else(|| misfit::<T>(bytes)), error)
        }
    }
}

fn not_json(error: &serde_json::Error) -> String {
    format!("the body is no JSON: {}", plain_words::json(error))
}

/// What no schema can say: a field that is there twice, too many of something. Read again, slowly, for its place.
fn misfit<T: Wanted>(bytes: &[u8]) -> String {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let placed = serde_path_to_error::deserialize::<_, T>(Typed(&mut reader)).err();
    let words = placed.map(|placed| {
        let path = placed.path().to_string();
        let fault = plain_words::misfit(placed.inner());
        match path.as_str() {
            "." => format!("the body does not fit: {fault}"),
            _ => format!("{path} does not fit: {fault}"),
        }
    });
    words.unwrap_or_else(|| "the body does not fit".to_owned())
}
