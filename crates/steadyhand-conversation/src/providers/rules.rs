//! What checks and repairs must know of a provider. Each provider says it in its own folder.

use std::collections::HashMap;

use serde_json::{Map, Value};
use steadyhand::Arguments;

use super::chat::response::{self, CHOICES};
use super::extra_fields;
use super::foreign::{Given, Part, Said, SeenShape};
use super::ids;
use super::mender::Mender;
use super::names;
use super::wire::Wire;
use crate::host::Host;
use crate::options::Options;
use crate::place::Places;
use crate::problem::Log;

/// All that is to be known.
pub(crate) trait Rules: RequestRules + ResponseRules + ToolRules + ShapeRules {}

impl<T: RequestRules + ResponseRules + ToolRules + ShapeRules> Rules for T {}

/// What is taken in a request.
pub(crate) trait RequestRules: Sync {
    /// Its messages, as this host takes them.
    fn wire(&self, host: Host) -> &'static dyn Wire;

    /// Whether this host, at this domain in small letters, serves its API by the maker's own rules.
    fn is_served_by(&self, host: Host, domain: &str) -> bool;

    /// Whether calls may go without ids: results are matched by name and order then.
    fn ids_are_optional(&self) -> bool {
        false
    }

    fn takes_id(&self, id: &str) -> bool {
        !id.is_empty()
    }

    /// An id that is taken, made of one that is not.
    fn legal_id(&self, id: &str) -> String {
        ids::shortened(id)
    }

    /// An id for a call of an answer that has none, made of what the answer says.
    fn new_id(&self, of: &str) -> String {
        format!("call_{}", ids::digest(of, 24))
    }

    fn takes_name(&self, name: &str) -> bool {
        names::is_plain(name, b"_-")
    }

    /// The key of the messages in a request.
    fn messages_key(&self) -> &'static str {
        "messages"
    }

    fn model_key(&self) -> &'static str {
        "model"
    }

    /// What it says to messages that stand under another provider's key.
    fn says_to_key(&self, _found_under: &str) -> String {
        format!("{}: Field required", self.messages_key())
    }

    /// Whether a text may stand for the messages.
    fn takes_one_text(&self) -> bool {
        false
    }

    /// Whether it keeps what the request leaves out.
    fn is_stored(&self, _request: &Value) -> bool {
        false
    }

    fn says_to_no_messages(&self) -> Option<&'static str> {
        None
    }

    /// What it says to a request that names no model. None where the request need not.
    fn says_to_no_model(&self) -> Option<&'static str> {
        None
    }

    /// What it says to a field of a request that it refuses.
    fn says_to_field(&self, _key: &str) -> Option<String> {
        None
    }

    /// Checks what a model does not take in messages.
    fn check_contents(
        &self,
        _options: &Options,
        _request: &Value,
        _messages: &[Value],
        _log: &mut Log,
    ) {
    }

    /// Checks the fields that only it has.
    fn check_fields(&self, _request: &Value, _log: &mut Log) {}

    /// Mends roles that are wrong for where they stand, before each message is looked at by itself.
    fn prepare(&self, _messages: &mut [Value], _base: &str, _log: &mut Log) {}

    /// Puts messages where this host finds them, before anything else is looked at.
    fn rearrange(
        &self,
        _host: Host,
        messages: Vec<Value>,
        given: Option<Vec<Given>>,
        _base: &str,
        _log: &mut Log,
    ) -> (Vec<Value>, Option<Vec<Given>>) {
        (messages, given)
    }

    /// Mends what is there twice or has lost its neighbour, after each message was looked at by itself.
    fn settle(&self, host: Host, messages: &mut [Value], base: &str, log: &mut Log) {
        if host.is_strict() {
            extra_fields::leave_out(self, messages, base, log);
        }
    }

    /// Has the user speak first, where that must be. `origins` says which message that was given each of them was.
    fn begin(
        &self,
        _messages: &mut Vec<Value>,
        _origins: &mut Vec<usize>,
        _base: &str,
        _log: &mut Log,
    ) {
    }

    /// Mends the order of roles, when everything is in its place. `is_model` says which messages that were given were the
    /// model's.
    fn end(
        &self,
        _host: Host,
        _messages: &mut Vec<Value>,
        _origins: &mut Vec<usize>,
        _is_model: &[bool],
        _base: &str,
        _log: &mut Log,
    ) {
    }

    /// Whether what a repair has put among the messages must be looked at once more.
    fn needs_second_look(&self, _host: Host) -> bool {
        false
    }

    /// Mends what is wrong with a request around its messages.
    fn mend_request(
        &self,
        _request: &mut Value,
        _messages: &mut Vec<Value>,
        _model: Option<&str>,
        _host: Host,
        _places: Places<'_>,
        _log: &mut Log,
    ) {
    }

    /// Whether results are read by their order alone.
    fn reads_by_order(&self) -> bool {
        false
    }

    /// Whether a message of the system's may be the first.
    fn may_begin_with_system(&self) -> bool {
        true
    }

    /// What it says to a turn of the user's in which nothing is said.
    fn says_to_silence(&self, _message: usize) -> Option<String> {
        None
    }

    /// What it says to a result behind a message of this role, before it looks for its call.
    fn says_to_result_behind(&self, _role: &str) -> Option<String> {
        None
    }

    /// What it says to calls without results in the last of so many messages.
    fn says_to_open_end(&self, _count: usize) -> Option<&'static str> {
        None
    }

    /// Whether it refuses a message with these fields for this one.
    fn refuses_message_field(&self, _fields: &Map<String, Value>, _key: &str) -> bool {
        false
    }

    fn says_to_message_field(&self, _index: usize, _key: &str) -> Option<String> {
        None
    }

    /// Whether the words of a refusal, which others have beside the content, are written as the content.
    fn has_no_refusals(&self) -> bool {
        false
    }
}

/// Where a response has its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerPlace {
    /// The key of the answers, or of the one there is.
    pub(crate) key: &'static str,
    pub(crate) pointer: &'static str,
    /// The key holds a list of answers.
    pub(crate) is_list: bool,
    /// The fields by which an answer that comes by itself is known.
    pub(crate) own: [&'static str; 2],
}

/// What a response says, and where: as chat completions do, if a provider does not say otherwise.
pub(crate) trait ResponseRules: Sync {
    /// Where the answer is. None where the response is the answer.
    fn answer_place(&self) -> Option<AnswerPlace> {
        Some(CHOICES)
    }

    /// The messages of the model in a response, or in what is one itself, each with its place.
    fn said<'a>(&self, response: &'a Value) -> Vec<(String, &'a Value)> {
        let found = self.answer_place().and_then(|place| {
            let answer = response.pointer(place.pointer)?;
            Some((place.pointer.to_owned(), answer))
        });
        vec![found.unwrap_or_else(|| (String::new(), response))]
    }

    fn is_error(&self, response: &Value) -> bool {
        response.get("error").is_some_and(|error| !error.is_null())
    }

    /// Whether only a reader of its stream can look at this.
    fn is_stream(&self, _response: &Value) -> bool {
        false
    }

    /// Whether a list may be a response.
    fn may_be_list(&self) -> bool {
        false
    }

    /// Where an answer should be and there is none, and what is wrong.
    fn absent(&self, response: &Value) -> Option<(String, String)> {
        absent_at(self.answer_place()?, response, "")
    }

    /// Takes an answer that says what is wrong out of `error`, whose form is that of `error_response`. False where all of
    /// it is taken.
    fn fill(&self, _response: &mut Value, _error: &Map<String, Value>) -> bool {
        false
    }

    /// Why the model stopped, in the provider's word.
    fn stop_reason<'a>(&self, response: &'a Value) -> Option<&'a str> {
        response.pointer("/choices/0/finish_reason")?.as_str()
    }

    /// Whether it says that the model stopped to have tools run.
    fn stops_for_tools(&self, response: &Value) -> bool {
        let reason = response.pointer("/choices/0/finish_reason");
        reason.is_some_and(|reason| reason == "tool_calls")
    }

    /// Leaves out what an answer has beside the message that it is.
    fn leave_out_of_answer(&self, _fields: &mut Map<String, Value>) {}

    /// The fields of a message, and the place of its content. None where it needs none.
    fn content_place<'a>(&self, message: &'a Value) -> Option<(&'a Value, &'static str)> {
        Some((message, "/content"))
    }

    /// Whether calls stand beside the content, so that there need not be one.
    fn has_calls_beside_content(&self) -> bool {
        true
    }

    /// The parts of a message among which its calls are. None where a message is one call.
    fn parts<'a>(&self, message: &'a Value) -> Option<&'a Value> {
        Some(&message["tool_calls"])
    }

    /// The place of arguments that come as an object, which cannot show where it broke off.
    fn object_place(&self, _part: usize) -> Option<String> {
        None
    }

    /// The arguments of a call.
    fn arguments(&self, message: &Value, part: usize) -> Arguments {
        response::arguments(message, part)
    }

    /// Mends an answer where that is safe.
    fn mend(&self, mender: &mut Mender<'_>, response: &mut Value);

    /// A response whose answer says this.
    fn error_response(&self, model: &str, said: &str) -> Value {
        response::error_response(model, said)
    }

    /// Makes a result that says an error one that says this output.
    fn succeed(&self, _result: &mut Value, _text: &str) {}

    /// Names the tool in a result, where there is a place for that.
    fn name_result(&self, _result: &mut Value, _name: &str) {}

    /// A call that a model wrote as text, where calls go in `tool_calls`.
    fn native_call(&self, _id: &str, _name: &str, _arguments: &Value) -> Option<Value> {
        None
    }
}

/// Where an answer should be and there is none: an empty list, or nothing at all.
pub(crate) fn absent_at(
    place: AnswerPlace,
    response: &Value,
    reason: &str,
) -> Option<(String, String)> {
    let AnswerPlace {
        key, pointer, own, ..
    } = place;
    let is_message =
        response.get(key).is_none() && own.iter().any(|key| response.get(key).is_some());
    if !response.is_object() || is_message || response.pointer(pointer).is_some() {
        return None;
    }
    let has_one = response.pointer(&format!("/{key}/0")).is_some();
    let (at, what) = match (place.is_list, has_one) {
        (false, _) => (pointer.to_owned(), "no message of the model"),
        (true, false) => (format!("/{key}"), "no answer of the model"),
        (true, true) => (
            pointer.to_owned(),
            "no answer of the model in its first place",
        ),
    };
    Some((at, format!("the response has {what}{reason}")))
}

/// Tools, as they are written and as they are read.
pub(crate) trait ToolRules: Sync {
    /// How many are taken.
    fn tools_max(&self) -> usize {
        usize::MAX
    }

    /// The name that a definition of ours has there.
    fn tool_name<'a>(&self, tool: &'a Value) -> &'a str {
        super::wire::text(tool, "name").unwrap_or_default()
    }

    /// A schema in the words that it reads.
    fn dialect(&self, schema: Value) -> Result<Value, String>;

    fn definition(&self, tool: &Value, name: &str, description: &str, schema: Value) -> Value;

    /// What goes into a request's `tools`.
    fn bundle(&self, definitions: Vec<Value>) -> Vec<Value> {
        definitions
    }

    /// The tools of a request.
    fn tools_in<'a>(&self, request: &'a Value) -> Option<&'a Value> {
        request.get("tools")
    }

    /// Whether one tool may come without a list around it.
    fn takes_one_tool(&self) -> bool {
        false
    }

    fn says_to_tools_that_are_no_list(&self) -> Option<&'static str> {
        None
    }

    fn check_tools(&self, tools: &[Value], log: &mut Log);
}

/// Messages in another provider's shape.
pub(crate) trait ShapeRules: Sync {
    /// The shapes that it reads.
    fn reads(&self) -> &'static [&'static str];

    /// The messages that say this. `names` has the tools of calls by their ids.
    fn write(&self, said: Said, names: &HashMap<String, String>) -> Vec<Value>;

    /// A part that is neither a call nor a result.
    fn block(&self, part: Part, is_model: bool) -> Option<Value>;

    fn says_to_shape(&self, seen: &SeenShape<'_>) -> Option<String>;

    /// Whether a message has parts, which are Google's.
    fn has_parts(&self) -> bool {
        false
    }

    /// Whether parts that are words only are mended where they are.
    fn reads_words_of_parts(&self) -> bool {
        false
    }

    /// Whether a result must say its call, so that one that does not is Ollama's.
    fn results_say_their_call(&self) -> bool {
        false
    }

    /// Whether nothing in its messages has a type.
    fn has_no_types(&self) -> bool {
        false
    }
}
