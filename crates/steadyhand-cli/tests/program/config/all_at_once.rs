//! One pass finds every problem: no mistake hides another one (SPEC T04).

use std::collections::BTreeSet;

use steadyhand_cli::extensions::EXTENSIONS;
use steadyhand_config::{Configuration, Surroundings};

use crate::support::{Workplace, parts};

/// Each line that begins with a number and `|` is one mistake: what is wrong, and after `=>` what would be right.
const MISTAKES: &str = r#"
version = 1
[server]
1| listne = "127.0.0.1:7400" => # nothing
2| listen = "nowhere" => listen = "localhost:7400"
3| approval_wait = "0s" => approval_wait = "5m"
4| limits = { body = "0B" } => limits = { body = "1MiB" }
5| dashboard = "yes" => dashboard = true
[server.jwt]
6| issuer = "login.example.org" => issuer = "https://login.example.org"
7| audience = "tools" => audience = "https://tools.example.org/mcp"
8| algorithms = ["RS256", "HS256"] => algorithms = ["RS256"]
[defaults]
9| timeout = "0s" => timeout = "30s"
10| retry = { attempts = "4" } => retry = { attempts = 4 }
11| breaker = { window = 20, cooldown = "20s" } => breaker = { cooldown = "20s" }
12| cache = "5m" => # nothing
13| limits = { rate = 10 } => limits = { rate = "10/s" }
[models]
14| default = "nobody" => default = "a"
15| a = { provider = "olama", model = "x" } => a = { provider = "ollama", model = "x" }
16| b = { provider = "ollama" } => b = { provider = "ollama", model = "x" }
17| c = { provider = "ollama", model = "x", url = "127.0.0.1:11434" } => c = { provider = "ollama", model = "x", url = "http://127.0.0.1:11434" }
[transcriber]
18| listen = "kitchen:7410" => listen = "127.0.0.1:7410"
[transcriber.mqtt]
19| broker = "mqtts://x" => broker = "127.0.0.1:1883"
20| said = "a/#/b" => said = "a/+"
21| answer = "b/#" => answer = "b/{speaker}"
22| [proxy.anthropc] => [proxy.anthropic]
[proxy.openai]
23| upstream = "api.example" => upstream = "https://api.example"
24| first = "0s" => first = "10m"
[telemetry]
25| otlp = "collector:4318" => otlp = "http://127.0.0.1:4318"
26| headers = { "bad name" = "x" } => headers = { good = "x" }
[documents]
27| folders = [] => folders = ["."]
[import]
28| skip = "playwright" => skip = ["playwright"]
[[alerts]]
29| when = "nonsense" => when = "breaker_open"
30| notify = { webhook = "nope" } => notify = { webhook = "https://example.org/hook" }
[[alerts]]
31| when = 5 => when = "server_down"
[[alerts]]
when = "error_rate > 20% for 5m"
32| clear = "often" => clear = "10%"
33| notify = { log = "loud" } => notify = { log = "warn" }
[tools.http]
kind = "http"
34| descripton = "typo" => description = "x"
35| method = "GTE" => method = "POST"
36| url = "http//foo" => url = "http://127.0.0.1/{room}"
37| headers = { "X Y" = "1", Authorization = "Bearer {tokn}" } => headers = { Authorization = "Bearer {room}" }
input = { type = "object", properties = { room = { type = "string" } }, required = ["room"] }
38| fallback = { tool = 5, result = 1 } => fallback = { result = 1 }
[tools.builtin]
39| kind = "bulitin" => kind = "builtin"
40| use = "ehco" => use = "echo"
[tools.listing]
41| # no kind => kind = "command"
42| command = ["ls", "{folder", "{nope...}x"] => command = ["ls"]
43| ok = [] => ok = [0]
44| timeout = "soon" => timeout = "5s"
[tools.both_inputs]
kind = "command"
45| command = "ls -l" => command = "ls"
46| stdin = "{" => # nothing
stdin_json = true
47| env = { "A=B" = "x" } => env = { A = "x" }
48| [tools."two words"] => [tools.two_words]
kind = "mock"
mock_response = 1
[tools.answers]
kind = "mock"
49| answers = [{ fail = "timeuot" }, { when = { a = 1 } }] => answers = [{ fail = "timeout" }, { when = { a = 1 }, result = 1 }]
[tools.nothing]
kind = "mock"
50| descritpion = "it has no answer either" => mock_response = 1
[tools.strange]
51| kind = "nonsense" => kind = "internal"
52| deadline = 5 => deadline = "5s"
53| unknwon = 1 => # nothing
54| description = "" => description = "x"
[tools.petstore]
kind = "openapi"
spec = "petstore.json"
55| base = "petstore.example" => base = "https://petstore.example"
56| prefix = "a b" => prefix = "a_"
57| include = [""] => include = ["GET /pets"]
[tools.schema]
kind = "mock"
mock_response = 1
58| input = { type = "objekt" } => input = { type = "object" }
59| retry = { on = ["NETWORK_ERROR"] } => retry = { on = ["network"] }
[tools.circle_a]
kind = "mock"
mock_response = 1
60| fallback = { tool = "circle_b" } => fallback = { result = 1 }
[tools.circle_b]
kind = "mock"
mock_response = 1
fallback = { tool = "circle_a" }
61| timout = "1s" => timeout = "1s"
[mcp.two_ways]
command = "ls"
62| url = "http://127.0.0.1/mcp" => # nothing
63| headers = { a = "b" } => # nothing
[mcp.no_scheme]
64| url = "127.0.0.1:8000/mcp" => url = "http://127.0.0.1:8000/mcp"
65| transport = "http2" => transport = "http"
66| timeout = 30 => timeout = "30s"
[mcp.neither]
67| # no command => command = "ls"
68| start = { waits = [], timeout = "0s" } => start = { waits = ["0s"] }
[mcp.program]
69| command = "ls -a" => command = "ls"
70| each."x" = { timeout = "0s", cahce = 1 } => each."x" = { timeout = "1s" }
[mcp.list]
71| command = ["ls", 5] => command = ["ls", "-a"]
[mcp.list_and_args]
command = ["ls"]
72| args = ["-a"] => # nothing
73| pin = "always" => pin = "warn"
[mcp.not_there]
74| command = "no-such-program-anywhere" => command = "ls"
75| env = { TOKEN = "Bearer $NOPE" } => env = { TOKEN = "x" }
[mcp.number]
76| command = 5 => command = "ls"
77| prefix = "yes" => prefix = true
"#;

/// The file with these mistakes mended.
fn file(mended: &dyn Fn(usize) -> bool) -> String {
    let mut text = String::new();
    for line in MISTAKES.lines() {
        let marked = line.split_once("| ");
        let marked = marked.and_then(|(number, rest)| Some((number.parse().ok()?, rest)));
        let line = match marked {
            Some((number, rest)) => {
                let (wrong, right) = rest.split_once(" => ").expect("what would be right");
                if mended(number) { right } else { wrong }
            }
            None => line,
        };
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// What is wrong with the file, each with its line.
fn problems(workplace: &Workplace, mended: &dyn Fn(usize) -> bool) -> BTreeSet<String> {
    workplace.write("steadyhand.toml", &file(mended));
    let path = workplace.file("steadyhand.toml");
    match Configuration::load(Some(&path), &Surroundings::of_this_process(), &EXTENSIONS) {
        Ok(configuration) => configuration.warnings,
        Err(report) => report.problems,
    }
    .iter()
    .map(|problem| {
        let told = problem.to_json();
        format!("line {}: {problem}", told["line"])
    })
    .collect()
}

#[test]
fn t04_no_mistake_hides_another_one() {
    let workplace = Workplace::new();
    workplace.write("petstore.json", "{}");
    let numbers = MISTAKES
        .lines()
        .filter(|line| line.contains(" => "))
        .count();
    let all = problems(&workplace, &|_| false);
    assert!(all.len() >= numbers, "{} of {numbers}: {all:#?}", all.len());
    let none = problems(&workplace, &|_| true);
    assert_eq!(none, BTreeSet::new());
    // Each mistake has a problem of its own: where only that one is left, it is found.
    for number in 1..=numbers {
        let found = problems(&workplace, &|other| other != number);
        assert!(!found.is_empty(), "mistake {number} is not found");
        let new: Vec<_> = found.difference(&all).collect();
        assert!(new.is_empty(), "only mistake {number} is left: {new:#?}");
    }
    // Whatever is mended, nothing appears that was not told at first.
    let mut seed = 1_u64;
    for number in 1..=numbers {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let some = |other: usize| other == number || (seed >> (other % 61)) & 1 == 1;
        for mended in [&|other| other == number, &some as &dyn Fn(usize) -> bool] {
            let found = problems(&workplace, mended);
            let new: Vec<_> = found.difference(&all).collect();
            assert!(new.is_empty(), "after mending {number}: {new:#?}");
        }
    }
}

#[test]
fn t04_what_shows_only_when_tools_are_loaded_is_told_beside_the_errors() {
    let workplace = Workplace::with_config(
        r#"
[server]
listne = "127.0.0.1:7400"
token = "${env:NOBODY_SET_THE_TOKEN}"
[models]
a = { provider = "ollama", model = "x", key = "${evn:TYPO}" }
[tools.a]
kind = "openapi"
spec = "missing.yaml"
[tools.b]
kind = "http"
url = "http://127.0.0.1/${env:NOBODY_SET_THIS}"
"#,
    );
    let (code, stdout, stderr) = parts(&workplace.run("config check"));
    assert_eq!((code, stdout.as_str()), (8, ""), "{stderr}");
    for part in [
        "server.listne",
        "missing.yaml",
        "NOBODY_SET_THIS",
        "NOBODY_SET_THE_TOKEN",
        "there is no kind of reference 'evn'",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn t04_settings_that_did_nothing_are_refused_by_name_and_line() {
    let workplace = Workplace::with_config(
        "[tools.a]\nkind = \"mock\"\nmock_response = 1\ncache = \"5m\"\nbreaker = { window = 20, rate = \"50%\" }\n",
    );
    let (code, _, stderr) = parts(&workplace.run("config check --plain"));
    assert_eq!(code, 8);
    assert!(stderr.starts_with("Error: 3 problems"), "{stderr}");
    for (setting, line) in [
        ("tools.a.cache", ":4:"),
        ("tools.a.breaker.window", ":5:"),
        ("tools.a.breaker.rate", ":5:"),
    ] {
        let told = format!("{setting} is not available in this version");
        assert!(stderr.contains(&told), "{told}: {stderr}");
        assert!(stderr.contains(line), "{line}: {stderr}");
    }
    assert!(!stderr.contains("not active yet"), "{stderr}");
}

#[test]
fn t04_alerts_are_not_said_to_be_inactive() {
    let workplace = Workplace::with_config(
        "[[alerts]]\nwhen = \"breaker_open\"\nnotify = { log = \"warn\" }\n",
    );
    let (code, stdout, stderr) = parts(&workplace.run("config check"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("is right"), "{stdout}");
    assert_eq!(stderr, "");
}

#[test]
fn t04_a_program_that_is_not_there_is_a_warning_and_arguments_in_its_place_are_an_error() {
    let workplace = Workplace::with_config(
        "[mcp.a]\ncommand = \"no-such-program-anywhere\"\n[tools.b]\nkind = \"command\"\ncommand = [\"no-such-tool-anywhere\"]\n",
    );
    let (code, stdout, stderr) = parts(&workplace.run("config check"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("2 warnings"), "{stdout}{stderr}");
    for part in [
        "mcp.a.command",
        "no-such-program-anywhere",
        "tools.b.command",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    let workplace = Workplace::with_config("[mcp.a]\ncommand = \"ls -l 'my folder'\"\n");
    let (code, _, stderr) = parts(&workplace.run("config check"));
    assert_eq!(code, 8, "{stderr}");
    assert!(
        stderr.contains(r#"Write a list: command = ["ls", "-l", "my folder"]"#),
        "{stderr}"
    );
}

#[test]
fn a_program_whose_name_has_a_space_is_one_program() {
    use std::os::unix::fs::PermissionsExt;
    let workplace = Workplace::with_config(
        "[tools.greet]\nkind = \"command\"\ncommand = \"./say hello\"\n[tools.quiet]\nkind = \"command\"\ncommand = \"true\"\n",
    );
    workplace.write("say hello", "#!/bin/sh\necho hello\n");
    let program = workplace.file("say hello");
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).expect("mode");
    let (code, _, stderr) = parts(&workplace.run("config check"));
    assert_eq!(code, 0, "{stderr}");
    let (code, stdout, stderr) = parts(&workplace.run("call greet"));
    assert_eq!((code, stdout.as_str()), (0, "hello\n"), "{stderr}");
    let (code, _, stderr) = parts(&workplace.run("call quiet"));
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn t04_a_variable_of_a_shell_is_a_warning_that_says_what_to_write() {
    let workplace = Workplace::with_config(
        r#"
[mcp.a]
url = "http://127.0.0.1:9/mcp"
headers = { Authorization = "Bearer $NOPE" }
start = { when = "first-call" }
[tools.b]
kind = "http"
url = "http://127.0.0.1:9/"
query = { key = "$api_key" }
description = "costs $USD 5"
[tools.c]
kind = "command"
command = ["sh", "-c", "echo $HOME"]
"#,
    );
    let checked = workplace.json("config check --json");
    let warnings = checked["warnings"].as_array().expect("warnings");
    let helps: Vec<&str> = warnings
        .iter()
        .filter_map(|it| it["help"].as_str())
        .collect();
    assert_eq!(
        helps,
        [
            "Write ${env:NOPE} for the value of the variable",
            "Write ${env:api_key} for the value of the variable",
        ],
        "{checked}"
    );
}

#[test]
fn a_number_without_its_unit_is_told_the_unit_it_needs() {
    let workplace = Workplace::with_config(
        "[defaults]\ntimeout = 30\nlimits = { rate = 10, result = 4096 }\n[server]\nlisten = 7400\n",
    );
    let (code, _, stderr) = parts(&workplace.run("config check --json"));
    assert_eq!(code, 8);
    let report: serde_json::Value = serde_json::from_str(&stderr).expect("one line of JSON");
    let problems = report["error"]["problems"].as_array().expect("problems");
    let helps: BTreeSet<&str> = problems
        .iter()
        .filter_map(|it| it["help"].as_str())
        .collect();
    let expected = [
        "Write it in quotes, with its unit: \"10/s\"",
        "Write it in quotes, with its unit: \"30s\"",
        "Write it in quotes, with its unit: \"4096B\"",
        "Write it in quotes: \"7400\"",
    ];
    assert_eq!(helps, BTreeSet::from(expected));
}
