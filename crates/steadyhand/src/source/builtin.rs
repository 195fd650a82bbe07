//! Tools that ship with the engine (SPEC F10, F12): an echo, UUIDs, date and time in any zone.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::clock;
use crate::tool::Tool;
use crate::tool_error::{Category, ToolError};

/// All builtin tools, by their own names.
pub fn all() -> Vec<Tool> {
    let mut tools: Vec<Tool> = TOOLS.values().cloned().collect();
    tools.sort_by(|a, b| a.name().cmp(b.name()));
    tools
}

/// One builtin tool by its own name.
pub fn find(name: &str) -> Option<Tool> {
    TOOLS.get(name).cloned()
}

static TOOLS: LazyLock<HashMap<&'static str, Tool>> = LazyLock::new(|| {
    let tools = [
        (
            "echo",
            Tool::with_schema(
                "echo",
                "Gives back the arguments it was called with",
                json!({"type": "object"}),
                echo,
            ),
        ),
        (
            "uuid",
            Tool::function("uuid", "Makes new UUIDs", uuid).not_safe_to_repeat(),
        ),
        (
            "datetime",
            Tool::function(
                "datetime",
                "Tells the date and time in a time zone, now or at a given moment",
                datetime,
            ),
        ),
    ];
    tools
        .into_iter()
        .map(|(name, tool)| (name, tool.of_kind("builtin")))
        .collect()
});

async fn echo(args: Value) -> Result<Value, ToolError> {
    Ok(json!({ "echo": args }))
}

/// How many, and of which kind.
#[derive(Debug, Deserialize, JsonSchema)]
struct UuidArgs {
    /// How many to make
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000))]
    count: u32,
    /// v4 is random; v7 sorts by the time it was made
    #[serde(default)]
    version: UuidVersion,
}

#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum UuidVersion {
    #[default]
    V4,
    V7,
}

fn one() -> u32 {
    1
}

async fn uuid(args: UuidArgs) -> Result<Value, ToolError> {
    let make = || match args.version {
        UuidVersion::V4 => uuid::Uuid::new_v4(),
        UuidVersion::V7 => uuid::Uuid::now_v7(),
    };
    let uuids: Vec<String> = (0..args.count).map(|_| make().to_string()).collect();
    Ok(match uuids.as_slice() {
        [only] => json!({ "uuid": only }),
        _ => json!({ "uuids": uuids }),
    })
}

/// Where, and when if not now.
#[derive(Debug, Deserialize, JsonSchema)]
struct DatetimeArgs {
    /// IANA name of the time zone, such as Europe/Oslo
    #[serde(default = "utc")]
    #[schemars(example = "Europe/Oslo")]
    timezone: String,
    /// The moment in RFC 3339, such as 2026-01-31T12:00:00Z; now if left out
    at: Option<String>,
    /// Seconds to add to the moment; negative ones lead into the past
    #[serde(default)]
    #[schemars(range(min = -100_000_000_000i64, max = 100_000_000_000i64))]
    add_seconds: i64,
}

fn utc() -> String {
    "UTC".to_owned()
}

async fn datetime(args: DatetimeArgs) -> Result<Value, ToolError> {
    let zone = TimeZone::get(&args.timezone).map_err(|_| {
        invalid(format!(
            "there is no time zone '{}'; use an IANA name such as Europe/Oslo",
            args.timezone
        ))
    })?;
    let moment = match &args.at {
        None => Timestamp::from_millisecond(clock::wall_ms() as i64)?,
        Some(text) => text.parse::<Timestamp>().map_err(|error| {
            invalid(format!(
                "'{text}' is no RFC 3339 moment such as 2026-01-31T12:00:00Z: {error}"
            ))
        })?,
    };
    let moment = moment
        .checked_add(SignedDuration::from_secs(args.add_seconds))
        .map_err(|_| invalid("the moment lies outside the calendar".to_owned()))?;
    let local: Zoned = moment.to_zoned(zone);
    Ok(json!({
        "datetime": local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        "date": local.strftime("%Y-%m-%d").to_string(),
        "time": local.strftime("%H:%M:%S").to_string(),
        "weekday": local.strftime("%A").to_string(),
        "timezone": args.timezone,
        "offset": local.strftime("%:z").to_string(),
        "abbreviation": local.strftime("%Z").to_string(),
        "unix": moment.as_second(),
    }))
}

fn invalid(message: String) -> ToolError {
    ToolError::of(
        Category::Validation,
        format!("Invalid parameters: {message}"),
    )
}
