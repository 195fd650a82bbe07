//! The twelve probes: what executors in the field get wrong, tried on one tool. The tool itself is not run.

use std::time::Duration;

use serde_json::{Map, Value, json};
use steadyhand::{
    AiMessage, Call, Effect, FailureCode, Message, Outcome, Policy, Status, Tool, ToolCall,
    answer_open_calls,
};

use super::stand_in::{Act, PANIC, Rig};
use super::{Probe, Verdict};

/// A hang is ended after this long, or the tool's own limit where that is shorter.
const HANG_MAX: Duration = Duration::from_millis(100);
/// How much later than its limit a hang may be answered on a busy machine.
const LATE_MAX: Duration = Duration::from_secs(3);
const TOGETHER: usize = 5;
const LOUD_BYTES: usize = 5 * 1024 * 1024;
const SECRETS: [&str; 3] = ["hunter22", "abcdef123456789", "AAAABBBBCCCC"];

/// What went wrong; `Ok(None)` is a pass, `Ok(Some(why))` says nothing about this tool.
type Found = Result<Option<String>, String>;

/// All twelve, in their order.
pub(super) async fn run(tool: &Tool, policy: &Policy, declared: Option<Value>) -> Vec<Probe> {
    let rig = match Rig::of(tool, policy, declared) {
        Ok(rig) => rig,
        Err(fault) => {
            let verdict = Verdict::Failed(fault);
            return vec![probe(3, "its schema is sound", verdict)];
        }
    };
    let schema = tool.schema();
    vec![
        probe(1, "unknown tool in a batch", verdict(unknown(&rig).await)),
        probe(2, "bad types", verdict(bad_types(&rig, schema).await)),
        probe(3, "schema violated", verdict(violated(&rig, schema).await)),
        probe(4, "malformed JSON", verdict(malformed(&rig).await)),
        probe(5, "one of three fails", verdict(one_fails(&rig).await)),
        probe(6, "panic", verdict(panics(&rig).await)),
        probe(7, "hang", verdict(hangs(&rig).await)),
        probe(8, "duplicate ids", verdict(duplicates(&rig).await)),
        probe(9, "five at once", verdict(together(&rig).await)),
        probe(10, "5 MiB of output", verdict(loud(&rig).await)),
        probe(11, "open call in a history", verdict(open_call(&rig))),
        probe(12, "secrets in an error", verdict(secrets(&rig).await)),
    ]
}

fn probe(number: u8, name: &'static str, verdict: Verdict) -> Probe {
    Probe {
        number,
        name,
        verdict,
    }
}

fn verdict(found: Found) -> Verdict {
    match found {
        Ok(None) => Verdict::Passed,
        Ok(Some(why)) => Verdict::Skipped(why),
        Err(why) => Verdict::Failed(why),
    }
}

fn ensure(is_so: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    match is_so {
        true => Ok(()),
        false => Err(otherwise()),
    }
}

/// What a call ended with, in a few words.
fn ended(outcome: &Outcome) -> String {
    match outcome.failure() {
        None => "success".to_owned(),
        Some(failure) => format!("{}: {}", failure.code, failure.message),
    }
}

fn code(outcome: &Outcome) -> Option<FailureCode> {
    outcome.failure().map(|failure| failure.code)
}

/// Arguments that fit, or why there are none.
macro_rules! fitting {
    ($rig:expr) => {
        match &$rig.fitting {
            Some(arguments) => arguments,
            None => {
                let why = "no arguments that fit its schema are known; declare some: examples = [{ … }]";
                return Ok(Some(why.to_owned()));
            }
        }
    };
}

async fn unknown(rig: &Rig) -> Found {
    let fitting = fitting!(rig);
    rig.plays(Act::Answer(json!("fine")));
    let nobody = format!("{}_no_such_tool", rig.name);
    let calls = vec![
        rig.call("a", fitting),
        Call::new(nobody, json!({})).id("b"),
        rig.call("c", fitting),
    ];
    let outcomes = rig.batch(calls).await;
    let ids: Vec<&str> = outcomes.iter().map(|it| it.call_id.as_str()).collect();
    ensure(ids == ["a", "b", "c"], || format!("answered were {ids:?}"))?;
    for place in [0, 2] {
        ensure(outcomes[place].is_success(), || {
            format!(
                "beside an unknown tool it ended with {}",
                ended(&outcomes[place])
            )
        })?;
    }
    ensure(
        code(&outcomes[1]) == Some(FailureCode::ToolNotFound),
        || format!("the unknown tool ended with {}", ended(&outcomes[1])),
    )?;
    Ok(None)
}

async fn refused(rig: &Rig, call: Call, names: Option<&str>) -> Result<(), String> {
    rig.plays(Act::Answer(json!("fine")));
    let outcome = rig.executor.execute(call).await;
    let Some(failure) = outcome.failure() else {
        return Err("it was run".to_owned());
    };
    ensure(
        failure.code == FailureCode::ValidationError && failure.effect == Effect::None,
        || format!("it ended with {}", ended(&outcome)),
    )?;
    ensure(rig.starts() == 0, || "the tool was started".to_owned())?;
    let text = outcome.message().content.text().into_owned();
    match names {
        Some(name) if !text.contains(name) => {
            Err(format!("the message does not name {name}: {text}"))
        }
        _ => Ok(()),
    }
}

async fn bad_types(rig: &Rig, schema: &Value) -> Found {
    let properties = schema.get("properties").and_then(Value::as_object);
    let typed = properties
        .into_iter()
        .flatten()
        .find_map(|(name, property)| {
            let wrong = match property.get("type")?.as_str()? {
                "string" => json!({"not": "a text"}),
                "integer" | "number" | "boolean" | "array" | "object" => json!("not of this type"),
                _ => return None,
            };
            Some((name, wrong))
        });
    let Some((name, wrong)) = typed else {
        return Ok(Some("its schema gives no argument a type".to_owned()));
    };
    let mut arguments = as_object(rig.fitting.as_ref());
    arguments.insert(name.clone(), wrong);
    let call = rig.call("bad-types", &Value::Object(arguments));
    refused(rig, call, Some(name)).await.map(|()| None)
}

async fn violated(rig: &Rig, schema: &Value) -> Found {
    let sound = jsonschema::validator_for(schema).map_err(|error| error.to_string())?;
    let candidates = violations(schema, &as_object(rig.fitting.as_ref()));
    // Only what an independent check says is a violation counts as one.
    let Some(arguments) = candidates.into_iter().find(|it| !sound.is_valid(it)) else {
        return Ok(Some(
            "its schema has no enum, limit or required argument that could be violated".to_owned(),
        ));
    };
    let call = rig.call("violated", &arguments);
    refused(rig, call, None).await.map(|()| None)
}

/// Arguments that probably break a rule of the schema.
fn violations(schema: &Value, fitting: &Map<String, Value>) -> Vec<Value> {
    let mut candidates = Vec::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let mut with = |value: Value| {
            let mut arguments = fitting.clone();
            arguments.insert(name.clone(), value);
            candidates.push(Value::Object(arguments));
        };
        let limit = |key: &str| property.get(key).and_then(Value::as_f64);
        if property.get("enum").is_some() || property.get("const").is_some() {
            with(json!("no such choice, by steadyhand verify"));
        }
        if let Some(least) = limit("minimum").or(limit("exclusiveMinimum")) {
            with(json!((least - 1.0).floor() as i64));
        }
        if let Some(most) = limit("maximum").or(limit("exclusiveMaximum")) {
            with(json!((most + 1.0).ceil() as i64));
        }
        if limit("minLength").is_some_and(|least| least >= 1.0) {
            with(json!(""));
        }
        if property.get("pattern").is_some() {
            with(json!("\u{1}"));
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    if let Some(first) = required.and_then(|names| names.first()?.as_str()) {
        let mut arguments = fitting.clone();
        arguments.shift_remove(first);
        candidates.push(Value::Object(arguments));
    }
    candidates
}

fn as_object(arguments: Option<&Value>) -> Map<String, Value> {
    let fields = arguments.and_then(Value::as_object);
    fields.cloned().unwrap_or_default()
}

async fn malformed(rig: &Rig) -> Found {
    for text in [
        "{\"a\": 1, \"b\": \"unfin",
        "{\"a\": 1,}",
        "one of them please",
        "[1, 2]",
    ] {
        let call = Call::new(&rig.name, text).id("malformed").no_retry();
        let broken = refused(rig, call, None).await;
        broken.map_err(|why| format!("{why} (arguments: {text})"))?;
    }
    Ok(None)
}

async fn one_fails(rig: &Rig) -> Found {
    let fitting = fitting!(rig);
    rig.plays(Act::FailFor(
        "b",
        "it broke, by steadyhand verify".to_owned(),
    ));
    let calls = ["a", "b", "c"].map(|id| rig.call(id, fitting)).to_vec();
    let outcomes = rig.batch(calls).await;
    let went: Vec<Status> = outcomes.iter().map(Outcome::status).collect();
    ensure(
        went == [Status::Success, Status::Error, Status::Success],
        || format!("of three calls, of which one fails, these ended so: {went:?}"),
    )?;
    Ok(None)
}

async fn panics(rig: &Rig) -> Found {
    let fitting = fitting!(rig);
    rig.plays(Act::PanicFor("a"));
    let outcomes = rig
        .batch(vec![rig.call("a", fitting), rig.call("b", fitting)])
        .await;
    let said = outcomes[0]
        .failure()
        .map(|failure| failure.message.as_str());
    ensure(
        code(&outcomes[0]) == Some(FailureCode::ToolExecutionError)
            && said.is_some_and(|said| said.contains(PANIC)),
        || format!("a panic ended with {}", ended(&outcomes[0])),
    )?;
    ensure(outcomes[1].is_success(), || {
        format!("the call beside a panic ended with {}", ended(&outcomes[1]))
    })?;
    Ok(None)
}

async fn hangs(rig: &Rig) -> Found {
    let fitting = fitting!(rig);
    rig.plays(Act::Hang);
    let limit = rig.policy.timeout.min(HANG_MAX);
    let call = rig.call("hang", fitting).timeout(limit);
    let outcome = rig.executor.execute(call).await;
    ensure(outcome.status() == Status::Timeout, || {
        format!("a hang ended with {}", ended(&outcome))
    })?;
    let effect = outcome.failure().map(|failure| failure.effect);
    ensure(effect == Some(Effect::Unknown), || {
        format!("a hang has effect {effect:?}, though it may have acted")
    })?;
    let late = outcome.execution_time.saturating_sub(limit);
    ensure(late <= LATE_MAX, || {
        format!("a hang was answered {late:?} after its limit")
    })?;
    Ok(None)
}

async fn duplicates(rig: &Rig) -> Found {
    let fitting = fitting!(rig);
    rig.plays(Act::Answer(json!("fine")));
    let calls = vec![rig.call("same", fitting); 3];
    let outcomes = rig.batch(calls).await;
    let answered = outcomes.iter().filter(|it| it.is_success()).count();
    ensure(answered == 3 && rig.starts() == 3, || {
        format!(
            "of three calls of one id {answered} were answered, {} run",
            rig.starts()
        )
    })?;
    Ok(None)
}

async fn together(rig: &Rig) -> Found {
    let fitting = fitting!(rig);
    let limit = &rig.policy.limit;
    let count = TOGETHER.min(limit.concurrent);
    if count < 2 {
        return Ok(Some(
            "it runs one call at a time, as it is configured".to_owned(),
        ));
    }
    rig.plays(Act::Meet(count));
    let calls = (0..count).map(|_| rig.call("together", fitting)).collect();
    let outcomes = rig.batch(calls).await;
    let met = outcomes.iter().filter(|it| it.is_success()).count();
    ensure(met == count, || {
        format!("of {count} calls only {met} ran at the same time")
    })?;
    Ok(None)
}

async fn loud(rig: &Rig) -> Found {
    let fitting = fitting!(rig);
    let limit = rig.policy.output_bytes_max;
    if limit >= LOUD_BYTES {
        return Ok(Some(format!(
            "its answers may have {limit} bytes, as it is configured"
        )));
    }
    rig.plays(Act::Answer(json!("ä".repeat(LOUD_BYTES / 2))));
    let outcome = rig.executor.execute(rig.call("loud", fitting)).await;
    let text = outcome.message().content.text().into_owned();
    let is_said = outcome
        .output()
        .is_some_and(|output| output.cut().is_some());
    ensure(text.len() <= limit && is_said, || {
        format!(
            "an answer of {LOUD_BYTES} bytes came as {} bytes, cut: {is_said}",
            text.len()
        )
    })?;
    Ok(None)
}

fn open_call(rig: &Rig) -> Found {
    let asked = as_object(rig.fitting.as_ref());
    let history = vec![
        Message::human("Please"),
        AiMessage::calling("", vec![ToolCall::with_id("open", &rig.name, asked)]).into(),
        Message::human("Are you still there?"),
    ];
    let (mended, placeholders) = answer_open_calls(history);
    ensure(placeholders.len() == 1 && mended.len() == 4, || {
        format!("a call without a result got {} results", placeholders.len())
    })?;
    Ok(None)
}

async fn secrets(rig: &Rig) -> Found {
    let fitting = fitting!(rig);
    let words = "401 for https://bob:hunter22@host/ with Bearer abcdef123456789 and key sk-ant-api03-AAAABBBBCCCC";
    rig.plays(Act::FailFor("leak", words.to_owned()));
    let outcome = rig.executor.execute(rig.call("leak", fitting)).await;
    let views = [
        serde_json::to_string(&outcome.structured()),
        serde_json::to_string(&outcome.flat()),
        serde_json::to_string(&outcome.message()),
    ];
    for view in views {
        let view = view.map_err(|error| error.to_string())?;
        let told = SECRETS.iter().find(|secret| view.contains(**secret));
        ensure(told.is_none(), || {
            "a secret of an error's text is told to callers".to_owned()
        })?;
    }
    Ok(None)
}
