//! `command` and `stdin` of the settings, read and compared with the arguments that the tool has.

use serde_json::Value;
use steadyhand::near_names::{COMPARED_NAMES_MAX, compared};

use super::CommandSettings;
use super::arguments::{ArgumentList, Part, Place};
use steadyhand_config::extensions::Fault;
use steadyhand_config::template::Template;

/// `command` and `stdin`, read.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) program: String,
    pub(super) arguments: ArgumentList,
    pub(super) stdin: Option<Template>,
}

impl Line {
    pub(super) fn parse(settings: &CommandSettings) -> Result<Line, Fault> {
        let wrong = |at: &str, message: &str| Fault {
            at: at.to_owned(),
            message: message.to_owned(),
            help: Some(
                "write the program first, such as [\"git\", \"log\", \"-n\", \"{count}\"]"
                    .to_owned(),
            ),
        };
        let program = match settings.command.first() {
            Some(Part::Element(text)) if !text.expose().is_empty() => text.expose(),
            Some(_) => return Err(wrong("/command/0", "is no name of a program")),
            None => return Err(wrong("/command", "is empty")),
        };
        // What runs is decided by whoever writes the configuration, never by a model.
        let fixed = Template::parse(program).map(|template| template.names().is_empty());
        if fixed != Ok(true) || program.contains('\0') {
            return Err(wrong(
                "/command/0",
                "the program itself cannot be an argument",
            ));
        }
        let stdin = settings
            .stdin
            .as_ref()
            .map(|text| Template::parse(text.expose()));
        Ok(Line {
            program: program.to_owned(),
            arguments: ArgumentList::parse(&settings.command, &settings.allow_dash)?,
            stdin: stdin.transpose().map_err(|message| Fault {
                at: "/stdin".to_owned(),
                message,
                help: None,
            })?,
        })
    }

    pub(super) fn places(&self) -> Vec<Place<'_>> {
        let mut places = self.arguments.places();
        let stdin = self.stdin.iter().flat_map(|template| template.names());
        places.extend(stdin.map(|name| Place {
            name,
            at: "/stdin",
            optional: false,
            list: false,
        }));
        places
    }

    /// Places that the schema has no argument for, and absences that would change the meaning.
    pub(super) fn faults_with(&self, schema: &Value) -> Vec<Fault> {
        let property = |name: &str| schema.get("properties").and_then(|all| all.get(name));
        let mut faults: Vec<Fault> = self
            .places()
            .iter()
            .filter(|place| property(place.name).is_none())
            .map(|place| Fault {
                at: place.at.to_owned(),
                message: format!(
                    "{{{}}} is no argument: `input` has no property of that name",
                    place.name
                ),
                help: nearest(place.name, schema).map(|near| format!("did you mean {{{near}}}?")),
            })
            .collect();
        let may_be_absent = |name: &str| {
            let required = schema.get("required").and_then(Value::as_array);
            let required =
                required.is_some_and(|names| names.iter().any(|required| required == name));
            let default = property(name).and_then(|property| property.get("default"));
            property(name).is_some() && !required && default.is_none()
        };
        faults.extend(self.arguments.ambiguous(may_be_absent));
        if let Some(stdin) = &self.stdin
            && stdin.only_place().is_none()
            && let Some(name) = stdin.names().into_iter().find(|name| may_be_absent(name))
        {
            faults.push(Fault {
                at: "/stdin".to_owned(),
                message: format!("{{{name}}} may be absent, and nothing could be written then"),
                help: Some(format!(
                    "make `{name}` required or give it a default in `input`"
                )),
            });
        }
        faults
    }
}

fn nearest<'a>(name: &str, schema: &'a Value) -> Option<&'a str> {
    let names = schema.get("properties")?.as_object()?.keys();
    let wrong = compared(name);
    names
        .take(COMPARED_NAMES_MAX)
        .map(|known| (strsim::damerau_levenshtein(&wrong, &compared(known)), known))
        .filter(|(distance, _)| *distance <= 1 + wrong.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known.as_str())
}
