//! Configurations, changed at random: loading one ends in a configuration or in problems with their places.

use proptest::prelude::*;
use steadyhand_cli::extensions::EXTENSIONS;
use steadyhand_config::{Configuration, Surroundings};

use crate::fuzzing::{changed, fuzz};
use crate::support::Workplace;

const FILES: &[&str] = &[
    "version = 1\n[server]\nlisten = \"127.0.0.1:7400\"\nlimits = { body = \"1MiB\" }\n[defaults]\ntimeout = \"30s\"\nretry = { attempts = 4 }\n[tools.weather]\nkind = \"http\"\nurl = \"https://example.org/{city}\"\ninput = { type = \"object\", properties = { city = { type = \"string\", pattern = \"^[a-z]+$\" } } }\n",
    "[mcp.files]\ncommand = [\"server\", \"--root\", \"${env:HOME:-/}\"]\n[mcp.far]\nurl = \"https://example.org/mcp\"\nheaders = { Authorization = \"Bearer ${env:TOKEN}\" }\n[models]\ndefault = \"a\"\na = { provider = \"ollama\", model = \"x\" }\n",
    "[tools.date]\nkind = \"command\"\ncommand = [\"date\", \"{format}\"]\n[tools.date.input.properties.format]\ntype = \"string\"\n[[alerts]]\nwhen = \"breaker_open\"\n[access.keys.a]\nrole = \"caller\"\n",
];

const WORDS: &[&str] = &[
    "\n",
    "[",
    "]",
    "[[",
    "]]",
    "=",
    "\"",
    "'",
    "'''",
    "\"\"\"",
    "#",
    "\u{feff}",
    "\u{0}",
    "\u{202e}",
    "${env:",
    "${file:/dev/null}",
    "${",
    "}",
    "{",
    "\\u",
    "\\",
    "1e999",
    "99999999999999999999",
    "-0",
    "0x",
    "nan",
    "1979-05-27T07:32:00Z",
    "\"0s\"",
    "\"999999999999h\"",
    "\"18EiB\"",
    "true",
    "tools.a.b.c.d = 1\n",
];

#[test]
fn s01_changed_configurations_are_loaded_or_refused_with_places() {
    let workplace = Workplace::new();
    let path = workplace.file("steadyhand.toml");
    fuzz(60, &changed(FILES, WORDS), |text| {
        workplace.write("steadyhand.toml", &text);
        let loaded =
            Configuration::load(Some(&path), &Surroundings::of_this_process(), &EXTENSIONS);
        let problems = match loaded {
            Ok(configuration) => configuration.warnings,
            Err(report) => report.problems,
        };
        for problem in problems {
            let told = problem.to_string();
            prop_assert!(!told.is_empty() && told.len() < 64 * 1024, "{}", told.len());
        }
        Ok(())
    });
}
