//! Trace context from callers to tools.

use std::sync::{Arc, Mutex};

use serde_json::json;
use steadyhand::{
    Call, CallContext, Event, Fallback, NoArgs, Spans, Tool, ToolError, ToolExecutor, Traceparent,
};

use crate::support::executor;

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNRECORDED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

#[test]
fn a_traceparent_is_read_as_the_standard_says() {
    for good in [
        CALLER,
        UNRECORDED,
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-the-future-will-be-like",
    ] {
        assert!(Traceparent::parse(good).is_some(), "{good}");
    }
    for bad in [
        "",
        "00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473+-00f067aa0ba902b7-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
        "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-1",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\nx: y",
    ] {
        assert_eq!(Traceparent::parse(bad), None, "{bad}");
    }
    assert_eq!(Traceparent::parse(CALLER).unwrap().to_string(), CALLER);
    assert!(!Traceparent::parse(UNRECORDED).unwrap().sampled);
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_told_the_callers_trace_and_never_nonsense() {
    let (executor, told) = listening();
    for sent in [Some(CALLER), Some(UNRECORDED), Some("x\r\ny: z"), None] {
        let mut call = Call::new("t", json!({})).no_retry();
        call.traceparent = sent.map(str::to_owned);
        executor.execute(call).await;
    }
    let expected = [
        Some(CALLER.to_owned()),
        Some(UNRECORDED.to_owned()),
        None,
        None,
    ];
    assert_eq!(*told.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_told_the_span_of_its_attempt_while_spans_are_recorded() {
    let (executor, told) = listening();
    let (spans, numbers) = recording(&executor);
    executor
        .execute(Call::new("t", json!({})).traceparent(CALLER))
        .await;
    executor.execute(Call::new("t", json!({}))).await;
    let told: Vec<Traceparent> = told
        .lock()
        .unwrap()
        .iter()
        .map(|told| Traceparent::parse(told.as_deref().unwrap()).unwrap())
        .collect();
    assert_eq!(told.len(), 8);
    // The same spans, from what the events say.
    let numbers = numbers();
    let first = spans.of_call(numbers[0], Some(CALLER));
    let second = spans.of_call(numbers[1], None);
    for attempt in 1..=4 {
        assert_eq!(told[attempt - 1], first.attempt(attempt as u32));
        assert_eq!(told[attempt + 3], second.attempt(attempt as u32));
    }
    let caller = Traceparent::parse(CALLER).unwrap();
    assert_eq!(
        (first.own.trace_id, first.parent),
        (caller.trace_id, Some(caller.span_id))
    );
    assert_eq!(second.parent, None);
    assert_ne!(second.own.trace_id, first.own.trace_id);
    let mut ids: Vec<u64> = told.iter().map(|told| told.span_id).collect();
    ids.extend([first.own.span_id, second.own.span_id, caller.span_id]);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 11, "no span shares an id");

    executor.stop_recording_spans();
    assert_eq!(told_after(&executor).await.as_deref(), Some(CALLER));
}

#[tokio::test(start_paused = true)]
async fn a_trace_that_nobody_records_passes_through_as_it_is() {
    let (executor, told) = listening();
    let _spans = recording(&executor);
    let call = Call::new("t", json!({})).traceparent(UNRECORDED);
    executor.execute(call.no_retry()).await;
    assert_eq!(*told.lock().unwrap(), [Some(UNRECORDED.to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_fallbacks_call_stands_below_the_call_it_answers_for() {
    let told: Told = Arc::default();
    let ill = listener("ill", &told).fallback(Fallback::tool("backup"));
    let backup = listener("backup", &told);
    let executor = executor([ill.no_retry(), backup.no_retry()]);
    let (spans, numbers) = recording(&executor);
    executor
        .execute(Call::new("ill", json!({})).traceparent(CALLER))
        .await;
    let told = told.lock().unwrap().clone();
    let numbers = numbers();
    let call = spans.of_call(numbers[0], Some(CALLER));
    let fallback = spans.of_call(numbers[1], Some(&call.own.to_string()));
    assert_eq!(fallback.parent, Some(call.own.span_id));
    assert_eq!(
        told,
        [call.attempt(1), fallback.attempt(1)].map(|span| Some(span.to_string()))
    );
}

type Told = Arc<Mutex<Vec<Option<String>>>>;

/// A tool that writes down the trace it is told, and fails.
fn listener(name: &str, told: &Told) -> Tool {
    let told = Arc::clone(told);
    Tool::function(name, "listens", move |context: CallContext, _: NoArgs| {
        let told = Arc::clone(&told);
        async move {
            let trace = context.traceparent().map(str::to_owned);
            told.lock().unwrap().push(trace);
            Err::<(), _>(ToolError::new("ill"))
        }
    })
}

fn listening() -> (ToolExecutor, Told) {
    let told = Told::default();
    (executor([listener("t", &told)]), told)
}

/// Records spans; gives back the numbers of the calls that the events tell of, once all have been told.
fn recording(executor: &ToolExecutor) -> (Spans, impl Fn() -> Vec<u64>) {
    let numbers: Arc<Mutex<Vec<u64>>> = Arc::default();
    let seen = Arc::clone(&numbers);
    let watch = executor.observe(move |event: &Event| {
        if let Event::Started { number, .. } = event {
            seen.lock().unwrap().push(*number);
        }
    });
    let watch = watch.unwrap();
    let spans = executor.record_spans();
    let read = move || {
        while !watch.is_up_to_date() {
            std::thread::yield_now();
        }
        numbers.lock().unwrap().clone()
    };
    (spans, read)
}

async fn told_after(executor: &ToolExecutor) -> Option<String> {
    let told = Told::default();
    executor.tools().add(listener("later", &told)).unwrap();
    let call = Call::new("later", json!({})).traceparent(CALLER);
    executor.execute(call.no_retry()).await;
    told.lock().unwrap()[0].clone()
}
