//! One block of a Converse message: what is mended in it by itself.

use serde_json::{Value, json};

use super::{CALL, PROVIDER, RESULT};
use crate::problem::{Code, Log};
use crate::providers::arguments;
use crate::providers::ids;
use crate::providers::wire::{At, is_legal_name, legal_name, name_fault, text};
use crate::texts::{self, as_text};

/// One block of a message.
pub(super) struct Block<'a> {
    pub(super) at: At<'a>,
    pub(super) part: usize,
    pub(super) is_model: bool,
}

impl Block<'_> {
    fn pointer(&self) -> String {
        format!("{}/content/{}", self.at.pointer(), self.part)
    }

    fn place(&self) -> String {
        format!("messages.{}.content.{}", self.at.index, self.part)
    }

    fn is_no_object(&self, place: &str) -> String {
        format!(
            "The format of the value at {place} is invalid. Provide a json object for the field and try again."
        )
    }

    /// What the service says to a field that is not as its model of the API has it; it counts from one.
    fn fails(&self, what: &str, value: &str, constraint: &str) -> String {
        format!(
            "1 validation error detected: Value '{value}' at 'messages.{}.member.content.{}.member.{what}' failed to satisfy constraint: {constraint}",
            self.at.index + 1,
            self.part + 1
        )
    }

    pub(super) fn mend(&self, block: &mut Value, log: &mut Log) {
        if !block.is_object() || block.as_object().is_some_and(serde_json::Map::is_empty) {
            return self.mend_shape(block, log);
        }
        if block.get("text").is_some() {
            return self.mend_text(block, log);
        }
        if block.get(RESULT).is_some() {
            return self.mend_result(block, log);
        }
        if block.get(CALL).is_some() {
            if self.is_model {
                return self.mend_call(block, log);
            }
            self.mend_stray_call(block, log);
        }
    }

    fn mend_shape(&self, block: &mut Value, log: &mut Log) {
        log.found(self.pointer(), Code::BadContent, "this is no block")
            .says(self.is_no_object(&self.place()))
            .fixed("it is a text now, or gone if it said nothing");
        let said = match &*block {
            Value::Object(_) | Value::Null => String::new(),
            other => as_text(other),
        };
        *block = match said.trim().is_empty() {
            true => Value::Null,
            false => json!({ "text": said }),
        };
    }

    fn mend_text(&self, block: &mut Value, log: &mut Log) {
        match block.get("text") {
            Some(Value::String(said)) if !said.trim().is_empty() => {}
            None | Some(Value::Null | Value::String(_)) => {
                log.found(self.pointer(), Code::EmptyContent, "this text is blank")
                    .says(format!(
                        "The text field in the ContentBlock object at {} is blank. Add text to the text field, and try again.",
                        self.place()
                    ))
                    .fixed("it is left out");
                *block = Value::Null;
            }
            Some(other) => {
                let said = as_text(other);
                log.found(self.pointer(), Code::BadContent, "this text is no string")
                    .says(format!(
                        "The format of the value at {}.text is invalid. Provide a json string for the field and try again.",
                        self.place()
                    ))
                    .fixed("it is written as one");
                block["text"] = json!(said);
            }
        }
    }

    fn mend_call(&self, block: &mut Value, log: &mut Log) {
        if !block[CALL].is_object() {
            block[CALL] = json!({"input": block[CALL].take()});
        }
        let call = &mut block[CALL];
        let own = match call.get("toolUseId") {
            None | Some(Value::Null) => String::new(),
            Some(own) => as_text(own),
        };
        if !call["toolUseId"].is_string() || !ids::is_legal(PROVIDER, &own) {
            let new = match own.as_str() {
                "" => ids::of_place(PROVIDER, self.at.index, self.part),
                own => ids::legal(PROVIDER, own),
            };
            log.found(
                format!("{}/{CALL}/toolUseId", self.pointer()),
                Code::BadCallId,
                format!("the call has the id {own:?}"),
            )
            .says(self.says_to_id(CALL, &own))
            .fixed(format!("its id is now {new}"));
            call["toolUseId"] = json!(new);
        }
        let name = text(call, "name").unwrap_or_default();
        if !is_legal_name(PROVIDER, name) {
            let new = match name {
                "" => texts::NO_NAME.to_owned(),
                name => legal_name(PROVIDER, name).into_owned(),
            };
            log.found(
                format!("{}/{CALL}/name", self.pointer()),
                Code::BadCallName,
                format!("the call {}", name_fault(name)),
            )
            .says(self.fails(
                "toolUse.name",
                name,
                "Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
            ))
            .fixed(format!("it is called {new}"));
            call["name"] = json!(new);
        }
        let mended = arguments::as_object(call.get("input"));
        let says = Some(self.is_no_object(&format!("{}.toolUse.input", self.place())));
        let at = || format!("{}/{CALL}/input", self.pointer());
        if let Some(fields) = call.as_object_mut() {
            arguments::mend(fields, "input", mended, at, says, log);
        }
    }

    fn says_to_id(&self, what: &str, own: &str) -> String {
        let constraint = match own.chars().count() {
            0 => "Member must have length greater than or equal to 1",
            65.. => "Member must have length less than or equal to 64",
            _ => "Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
        };
        self.fails(&format!("{what}.toolUseId"), own, constraint)
    }

    fn mend_stray_call(&self, block: &mut Value, log: &mut Log) {
        let call = &block[CALL];
        let name = text(call, "name").unwrap_or_default();
        let said = texts::stray_call(name, call.get("input").unwrap_or(&Value::Null));
        log.found(
            self.pointer(),
            Code::WrongRole,
            "a call stands in the user's turn",
        )
        .says(format!(
            "The toolUse block at {} is not allowed in a message with the role user.",
            self.place()
        ))
        .fixed("it is kept as text");
        *block = json!({ "text": said });
    }

    fn mend_result(&self, block: &mut Value, log: &mut Log) {
        if !block[RESULT].is_object() {
            block[RESULT] = json!({"content": block[RESULT].take()});
        }
        let result = &mut block[RESULT];
        let own = match result.get("toolUseId") {
            None | Some(Value::Null) => String::new(),
            Some(own) => as_text(own),
        };
        let is_taken = result["toolUseId"].is_string() && ids::is_legal(PROVIDER, &own);
        if !own.is_empty() && !is_taken {
            let new = ids::legal(PROVIDER, &own);
            log.found(
                format!("{}/{RESULT}/toolUseId", self.pointer()),
                Code::BadCallId,
                format!("the result has the id {own:?}"),
            )
            .says(self.says_to_id(RESULT, &own))
            .fixed(format!("its id is now {new}, like that of its call"));
            result["toolUseId"] = json!(new);
        }
        self.mend_status(result, log);
        self.mend_result_content(result, log);
        let is_empty = result["content"].as_array().is_none_or(Vec::is_empty);
        if is_empty && result["status"] == "error" {
            log.found(
                self.pointer(),
                Code::EmptyResult,
                "the call failed and nothing says why",
            )
            .says(format!(
                "The content field at {}.toolResult cannot be empty when status value is error.",
                self.place()
            ))
            .fixed("it says so now");
            result["content"] = json!([{"text": texts::NO_REASON}]);
        }
    }

    fn mend_status(&self, result: &mut Value, log: &mut Log) {
        let Some(status) = result.get("status").filter(|status| !status.is_null()) else {
            return;
        };
        if status == "success" || status == "error" {
            return;
        }
        let status = as_text(status);
        log.found(
            format!("{}/{RESULT}/status", self.pointer()),
            Code::BadField,
            "a status is \"success\" or \"error\"",
        )
        .says(self.fails(
            "toolResult.status",
            &status,
            "Member must satisfy enum value set: [success, error]",
        ))
        .fixed("it is not said any more");
        if let Some(fields) = result.as_object_mut() {
            fields.shift_remove("status");
        }
    }

    fn mend_result_content(&self, result: &mut Value, log: &mut Log) {
        let at = format!("{}/{RESULT}/content", self.pointer());
        let place = format!("{}.toolResult.content", self.place());
        let Some(Value::Array(parts)) = result.get_mut("content") else {
            let said = match result.get("content") {
                None | Some(Value::Null) => texts::NO_OUTPUT.to_owned(),
                Some(other) => as_text(other),
            };
            log.found(
                at,
                Code::BadContent,
                "the content of a result is a list of blocks",
            )
            .says(format!(
                "The format of the value at {place} is invalid. Provide a json array for the field and try again."
            ))
            .fixed("it is one now");
            result["content"] = json!([{ "text": said }]);
            return;
        };
        for (index, part) in parts.iter_mut().enumerate() {
            let is_odd_json = part.get("json").is_some_and(|json| !json.is_object());
            let is_odd_text = part.get("text").is_some_and(|said| !said.is_string());
            let is_block = part.as_object().is_some_and(|fields| !fields.is_empty());
            if is_block && !is_odd_json && !is_odd_text {
                continue;
            }
            let says = match is_odd_json {
                true => self.is_no_object(&format!("{place}.{index}.json")),
                false => self.is_no_object(&format!("{place}.{index}")),
            };
            log.found(
                format!("{at}/{index}"),
                Code::BadContent,
                "this is no block of a result",
            )
            .says(says)
            .fixed("it is a text now");
            let said = part.get("json").or_else(|| part.get("text"));
            let said = match said.unwrap_or(part) {
                Value::Null => String::new(),
                other => as_text(other),
            };
            *part = json!({ "text": said });
        }
    }
}
