//! What servers send, changed at random and cut anywhere: lines, messages, events and definitions of tools.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use steadyhand_mcp::parameters::ParameterNames;
use steadyhand_mcp::wire::{Events, Line, Lines, Members, UnreadableAnswer, read_messages};
use steadyhand_mcp::{CamelCase, definition, result};

use crate::fuzzing::{changed, fuzz, pieces};

const LINE_BYTES_MAX: usize = 4096;
const EVENT_BYTES_MAX: usize = 2048;

const LINES: &[&str] = &[
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}],\"isError\":false}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32000,\"message\":\"no\",\"data\":{}}}\r\n",
    "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":0.5}},{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}]\n",
    "INFO starting {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n",
    "Content-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}",
];

const WORDS: &[&str] = &[
    "\n",
    "\r",
    "\r\n",
    "\u{feff}",
    "\u{0}",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "\"id\":1,",
    "\"id\":null,",
    "\"id\":1.5,",
    "\"id\":18446744073709551616,",
    "\"result\":",
    "\"method\":\"x\",",
    "null",
    "1e999",
    "\\ud800",
    "\u{1b}[31m",
    "data: ",
    "id: 7\n",
    "retry: 0\n",
    "event: message\n",
    ":\n",
];

#[test]
fn s01_changed_lines_of_a_server_are_messages_or_noise() {
    let inputs = (changed(LINES, WORDS), vec(any::<Index>(), 0..6));
    fuzz(500, &inputs, |(text, cuts)| {
        let mut lines = Lines::new(LINE_BYTES_MAX);
        let mut told = 0;
        for piece in pieces(text.as_bytes(), &cuts) {
            lines.buffer().extend_from_slice(piece);
            while let Some(line) = lines.next_line() {
                told += usize::from(matches!(line, Line::Message(_) | Line::Batch(_)));
            }
        }
        while let Some(line) = lines.last_line() {
            told += usize::from(matches!(line, Line::Message(_) | Line::Batch(_)));
        }
        prop_assert!(told <= text.len());
        let _ = UnreadableAnswer::look(text.as_bytes());
        if let Some(messages) = read_messages(text.as_bytes()) {
            prop_assert!(messages.len() <= text.len());
        }
        if let Ok(raw) = serde_json::from_str::<&RawValue>(&text)
            && let Some(members) = Members::of(raw)
        {
            // Half a character in a name is passed on as it came.
            let is_whole = serde_json::from_str::<Value>(&text).is_ok();
            let again = members.to_raw();
            prop_assert!(!is_whole || serde_json::from_str::<Value>(again.get()).is_ok());
        }
        Ok(())
    });
}

const STREAMS: &[&str] = &[
    "id: 1\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n",
    ": ping\n\nretry: 500\nid: 7\ndata: \n\n",
    "event: endpoint\r\ndata: /messages?session=1\r\n\r\ndata: a\rdata: b\r\r",
];

#[test]
fn s01_changed_events_are_read_the_same_however_they_are_cut() {
    let inputs = (changed(STREAMS, WORDS), vec(any::<Index>(), 0..6));
    fuzz(500, &inputs, |(text, cuts)| {
        let read = |pieces: &[&[u8]]| {
            let mut events = Events::new(EVENT_BYTES_MAX);
            let mut all = Vec::new();
            for piece in pieces {
                events.feed(piece);
                loop {
                    match events.next_event() {
                        Ok(Some(event)) => all.push(event),
                        Ok(None) => break,
                        // Where it is cut decides when a limit is noticed.
                        Err(_) => return None,
                    }
                }
            }
            Some(all)
        };
        let whole = read(&[text.as_bytes()]);
        let cut = read(&pieces(text.as_bytes(), &cuts));
        if let (Some(whole), Some(cut)) = (whole, cut) {
            prop_assert_eq!(whole, cut);
        }
        Ok(())
    });
}

const DEFINITIONS: &[&str] = &[
    r##"{"name":"get_weather","title":"Weather","description":"Tells it","inputSchema":{"type":"object","properties":{"cityName":{"type":"string","x-mcp-header":"City"},"opts":{"$ref":"#/$defs/o"}},"required":["cityName"],"$defs":{"o":{"type":"object","properties":{"maxDays":{"type":"integer"}}}}},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"}}"##,
    r##"{"name":"a","inputSchema":{"properties":{"a":{"anyOf":[{"$ref":"#/properties/a"},{"type":"array","items":{"$ref":"#"}}]}}}}"##,
];

#[test]
fn s01_changed_definitions_are_offered_or_refused_by_name() {
    fuzz(300, &changed(DEFINITIONS, WORDS), |text| {
        let Ok(raw) = serde_json::from_str::<Value>(&text) else {
            return Ok(());
        };
        match definition::read(raw, 0) {
            Ok(definition) => {
                let names =
                    ParameterNames::new(&definition.schema, &BTreeMap::new(), CamelCase::default());
                let mut arguments = json!({"city_name": "Oslo", "opts": {"max_days": 3}});
                names.before_check(&mut arguments);
                names.after_check(&mut arguments);
            }
            Err(unusable) => prop_assert!(!unusable.name.is_empty() && !unusable.reason.is_empty()),
        }
        Ok(())
    });
}

const RESULTS: &[&str] = &[
    r#"{"content":[{"type":"text","text":"ok"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"resource_link","uri":"file:///a","name":"a"}],"structuredContent":{"n":1e3},"isError":true,"_meta":{"io.steadyhand/x":1}}"#,
    r#"{"content":[{"type":"resource","resource":{"uri":"a","text":"{\"a\":18446744073709551616}"}}]}"#,
];

#[test]
fn s01_changed_results_are_outputs_or_errors() {
    fuzz(300, &changed(RESULTS, WORDS), |text| {
        let _ = result::read_raw_result(&text);
        Ok(())
    });
}
