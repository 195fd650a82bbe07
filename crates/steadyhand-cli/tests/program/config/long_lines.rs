//! Faults far out in a long line: they are told like any other, in an excerpt around them. No input makes a command panic.

use crate::support::{Workplace, parts};

/// Just short of where drawing used to panic, just behind it, and far behind it.
const FAR: [usize; 3] = [65_400, 65_536, 300_000];

struct Told {
    code: i32,
    stderr: String,
}

fn told(workplace: &Workplace, words: &[&str]) -> Told {
    let (code, stdout, stderr) = parts(&workplace.run_words(words));
    for stream in [&stdout, &stderr] {
        assert!(!stream.contains("panicked"), "{words:?}: {stream:.500}");
        assert!(
            !stream.contains("a fault of its own"),
            "{words:?}: {stream:.500}"
        );
    }
    assert!((0..=8).contains(&code), "{words:?}: exit code {code}");
    Told { code, stderr }
}

/// Checks a configuration of one line whose fault stands at a column, counted in characters from 1.
fn check(text: &str, column: usize, quoted: &str) {
    let workplace = Workplace::with_config(text);
    for plain in [false, true] {
        let words: &[&str] = match plain {
            false => &["config", "check"],
            true => &["config", "check", "--plain"],
        };
        let Told { code, stderr } = told(&workplace, words);
        assert_eq!(code, 8, "{stderr}");
        let place = format!("line 1, column {column})");
        assert!(stderr.contains(&place), "no {place} in {stderr}");
        assert!(
            stderr.contains(&format!("steadyhand.toml:1:{column}]")),
            "{stderr}"
        );
        let ellipsis = if plain { "..." } else { "…" };
        let longest = stderr.lines().map(|line| line.chars().count()).max();
        // What cannot be seen is written as its number, which takes eight characters.
        let most = if text.contains('\u{200d}') {
            12_000
        } else {
            4_500
        };
        assert!(longest < Some(most), "a line of {longest:?} characters");
        // Cut on both sides.
        let is_excerpt = |line: &str| line.contains(quoted) && line.matches(ellipsis).count() >= 2;
        assert!(stderr.lines().any(is_excerpt), "no {quoted} in {stderr}");
    }
}

#[test]
fn a_fault_far_out_in_a_line_is_shown_in_an_excerpt_with_its_line_and_column() {
    for far in FAR {
        // A key that is no setting, between long values: once in ASCII, once in two, three and four bytes a character.
        for filler in ["x", "ü", "漢", "😀", "e\u{301}", "\u{200d}"] {
            let count = far / filler.chars().count();
            let before = format!("server = {{ listen = \"{}\", ", filler.repeat(count));
            let column = before.chars().count() + 1;
            let text = format!("{before}listne = \"{}\" }}", filler.repeat(count));
            check(&text, column, "listne");
        }
        // A value that does not fit, and is long itself.
        let before = format!(
            "defaults = {{ fallback = {{ text = \"{}\" }}, timeout = ",
            "x".repeat(far)
        );
        let text = format!("{before}\"{}\", retry = {{}} }}", "nine ".repeat(far / 5));
        check(&text, before.chars().count() + 1, "nine nine");
        // No TOML at all from there on.
        let before = format!("server = {{ listen = \"{}\", ", "x".repeat(far));
        let column = before.chars().count() + 1;
        let text = format!("{before}=== {}", "y".repeat(far));
        check(&text, column, "===");
    }
}

#[test]
fn short_lines_around_a_long_one_and_line_ends_of_windows_are_shown_as_they_are() {
    let long = format!("extra = {{ a = \"{}\", wrong = 1 }}", "x".repeat(70_000));
    let text = format!("version = 1\r\n\r\n[server]\r\nlisten = \"127.0.0.1:0\"\r\n{long}\r\n\r\n");
    let workplace = Workplace::with_config(&text);
    let Told { code, stderr } = told(&workplace, &["config", "check"]);
    assert_eq!(code, 8, "{stderr}");
    assert!(stderr.contains("steadyhand.toml:5:1]"), "{stderr}");
    assert!(stderr.contains("listen = \"127.0.0.1:0\"\n"), "{stderr}");
    assert!(!stderr.contains('\r'), "{stderr:?}");
    assert!(stderr.contains("extra = { a = "), "{stderr}");
}

#[test]
fn a_file_of_one_line_of_five_megabytes_is_told_of_in_a_few_lines() {
    let mut tables = String::from("tools = { ");
    let mut count = 0;
    while tables.len() < 5_000_000 {
        tables.push_str(&format!(
            "t{count} = {{ kind = \"mock\", mock_response = \"{}\" }}, ",
            "x".repeat(100_000)
        ));
        count += 1;
    }
    tables.push_str("last = { kind = \"bulitin\" }, a = 1, b = 2, c = 3 }");
    let workplace = Workplace::with_config(&tables);
    let Told { code, stderr } = told(&workplace, &["config", "check"]);
    assert_eq!(code, 8, "{stderr}");
    assert!(stderr.contains("bulitin"), "{stderr}");
    assert!(stderr.len() < 20_000, "{} bytes", stderr.len());
}

#[test]
fn files_of_other_programs_in_one_long_line_are_told_of_without_a_panic() {
    let long = "x".repeat(90_000);
    let good = format!(r#""good{long}":{{"command":"true"}}"#);
    let files = [
        // What cannot be read at all, and what can with a fault in it, in each language.
        (
            "servers.json",
            format!(r#"{{"mcpServers":{{{good},"bad":{{"comand":"x","args":"y"}}}}}}"#),
        ),
        (
            "servers.json",
            format!(r#"{{"mcpServers":{{{good},"bad":{{"command":}}"#),
        ),
        (
            "servers.toml",
            format!("mcp_servers = {{ a = {{ command = \"{long}\" }}, b = {{ command = }} }}"),
        ),
        (
            "servers.yaml",
            format!("{{extensions: {{a: {{cmd: \"{long}\"}}, b: {{cmd: [}}}}}}"),
        ),
        (
            "tools.json",
            format!(
                r#"{{"tools":{{"registry":[{{"name":"a","description":"{long}"}},{{"name":5}},{{"nme":"b"}}]}}}}"#
            ),
        ),
    ];
    for (name, text) in files {
        let workplace = Workplace::new();
        workplace.write(name, &text);
        told(&workplace, &["config", "check", "-c", name]);
        told(&workplace, &["-v", "tools", "list", "-c", name]);
        told(&workplace, &["mcp", "list", "-c", name]);
        told(&workplace, &["mcp", "import", name]);
        let key = match name {
            "tools.json" => "flex_chat",
            _ => "files",
        };
        let import = format!("[import]\n{key} = [\"{name}\"]\n");
        workplace.write("steadyhand.toml", &import);
        told(&workplace, &["config", "check"]);
        told(&workplace, &["doctor"]);
    }
}

#[test]
fn documents_arguments_and_conversations_in_one_long_line_are_told_of_without_a_panic() {
    let long = "ü".repeat(90_000);
    let broken = format!(r#"{{"text":"{long}","more":]}}"#);
    let workplace = Workplace::with_config(
        "[tools.shop]\nkind = \"openapi\"\nspec = \"shop.json\"\nbase = \"http://127.0.0.1:9/\"\n[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"\n",
    );
    for document in [
        &broken,
        &format!(r#"{{"openapi":"3.0.3","info":{{"title":"{long}"}},"paths":[]}}"#),
        &format!("{{openapi: 3.0.3, info: {{title: \"{long}\"}}, paths: [}}"),
    ] {
        workplace.write("shop.json", document);
        told(&workplace, &["tools", "list"]);
        told(&workplace, &["config", "check"]);
    }
    // Names as long as a page are told of in a few lines.
    workplace.write(
        "shop.json",
        &format!(
            r#"{{"openapi":"3.0.3","info":{{}},"paths":{{"/{long}":{{"get":{{"parameters":[{{"name":"{long}","in":"qeury"}}]}}}}}}}}"#
        ),
    );
    for words in [["tools", "list"], ["config", "check"]] {
        let Told { stderr, .. } = told(&workplace, &words);
        assert!(stderr.contains("qeury") || stderr.contains("ü"), "{stderr}");
        assert!(stderr.len() < 20_000, "{} bytes", stderr.len());
    }
    workplace.write("shop.json", r#"{"openapi":"3.0.3","info":{},"paths":{}}"#);
    workplace.write("broken.json", &broken);
    workplace.write("broken.jsonl", &format!("{broken}\n{broken}\n"));
    for words in [
        ["call", "echo", "@broken.json"].as_slice(),
        &["batch", "broken.json"],
        &["batch", "broken.jsonl"],
        &["validate", "broken.json", "--provider", "openai"],
        &["repair", "broken.jsonl", "--provider", "anthropic"],
        &["-c", "broken.json", "tools", "list"],
    ] {
        let Told { code, stderr } = told(&workplace, words);
        assert_ne!(code, 0, "{words:?}: {stderr}");
    }
    // Every character of it is a fault of its own.
    let odd = "e\u{301}".repeat(70_000);
    workplace.write("odd.toml", &format!("{odd} = 1"));
    let Told { code, stderr } = told(&workplace, &["config", "check", "-c", "odd.toml"]);
    assert_eq!(code, 8);
    assert!(stderr.contains("more places"), "{stderr:.2000}");
    // Names so long that no column holds them.
    let name = "n".repeat(70_000);
    let arguments = format!("{name}=1");
    told(&workplace, &["call", "echo", &arguments]);
    told(&workplace, &["call", &name]);
    told(&workplace, &["tools", "show", &name]);
    told(&workplace, &["explain", &name]);
}
