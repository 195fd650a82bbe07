//! Scripts in `command`: a text that an interpreter runs must not hold a value of a call, which would be a part of the
//! program then.

use super::CommandSettings;
use super::arguments::Part;
use steadyhand_config::extensions::Fault;
use steadyhand_config::template::Template;

/// How an interpreter takes its script.
#[derive(Clone, Copy)]
enum Takes {
    /// After an option: one of these letters, alone or among others (`-lc`), or one of these long ones.
    After(&'static str, &'static [&'static str]),
    /// All words after a switch such as `/c`, joined.
    RestAfter(fn(&str) -> bool),
    /// All words after the first that is no option, joined: what runs on another host.
    RestAfterHost,
    /// All words, joined, unless one of these options is there.
    Rest(&'static [&'static str]),
    /// The first word that is no option.
    First,
}

/// Interpreters by the names of their programs: without a path, a version or `.exe`.
const INTERPRETERS: [(&[&str], Takes); 14] = [
    (
        &[
            "sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "ash", "yash", "fish", "csh",
            "tcsh", "nu", "xonsh", "elvish", "su", "runuser", "script", "flock", "vagrant",
        ],
        Takes::After("c", &["command", "commands", "init-command"]),
    ),
    (&["sg"], Takes::Rest(&[])),
    (
        &["python", "pypy", "ipython", "jython", "expect"],
        Takes::After("c", &[]),
    ),
    (
        &["node", "nodejs", "bun"],
        Takes::After("ep", &["eval", "print"]),
    ),
    (
        &[
            "perl",
            "ruby",
            "jruby",
            "raku",
            "lua",
            "luajit",
            "r",
            "rscript",
            "julia",
            "elixir",
            "iex",
            "groovy",
            "scala",
            "osascript",
            "ghc",
            "ghci",
            "guile",
            "clojure",
            "jshell",
        ],
        Takes::After("eE", &["eval", "print", "expression"]),
    ),
    (
        &["php"],
        Takes::After(
            "rRBE",
            &["run", "process-begin", "process-code", "process-end"],
        ),
    ),
    (&["deno"], Takes::RestAfter(|word| word == "eval")),
    (&["env"], Takes::After("S", &["split-string"])),
    (&["cmd"], Takes::RestAfter(is_switch_of_cmd)),
    (
        &["powershell", "pwsh"],
        Takes::RestAfter(is_switch_of_powershell),
    ),
    (&["adb"], Takes::RestAfter(|word| word == "shell")),
    (&["ssh", "rsh", "autossh", "mosh"], Takes::RestAfterHost),
    (&["watch", "parallel"], Takes::Rest(&["-x", "--exec"])),
    (&["awk", "gawk", "mawk", "nawk"], Takes::First),
];

/// Programs that start another one, which their words name.
const STARTERS: [&str; 40] = [
    "env",
    "busybox",
    "toybox",
    "nice",
    "ionice",
    "nohup",
    "time",
    "timeout",
    "sudo",
    "doas",
    "su",
    "runuser",
    "setsid",
    "stdbuf",
    "xargs",
    "find",
    "fd",
    "chroot",
    "unshare",
    "nsenter",
    "strace",
    "ltrace",
    "firejail",
    "bwrap",
    "flatpak-spawn",
    "systemd-run",
    "taskset",
    "chrt",
    "docker",
    "podman",
    "nerdctl",
    "kubectl",
    "oc",
    "lxc",
    "flock",
    "wsl",
    "uv",
    "uvx",
    "npx",
    "sshpass",
];

/// Options whose value is the next word, where that is not the script.
const WITH_VALUES: [&str; 17] = [
    "-o",
    "+o",
    "-O",
    "+O",
    "-r",
    "--require",
    "--import",
    "--loader",
    "-I",
    "-C",
    "-W",
    "-X",
    "-d",
    "-l",
    "--rcfile",
    "--init-file",
    "--project",
];
/// The same for ssh, as letters.
const WITH_VALUES_OF_SSH: &str = "BbcDEeFIiJLlmOopPQRSWw";

/// An element of `command`.
struct Word<'a> {
    at: String,
    text: &'a str,
}

impl Word<'_> {
    /// The first argument that has a place in it.
    fn value(&self) -> Option<String> {
        let template = Template::parse(self.text).ok()?;
        template.names().first().map(|name| (*name).to_owned())
    }

    fn is_option(&self) -> bool {
        self.text.len() > 1 && self.text.starts_with(['-', '+'])
    }

    /// `bash` of `/usr/bin/bash`, `python` of `python3.12`.
    fn program(&self) -> String {
        let base = self.text.rsplit(['/', '\\']).next().unwrap_or_default();
        let base = base.to_ascii_lowercase();
        let base = base.strip_suffix(".exe").unwrap_or(&base);
        let name = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        name.to_owned()
    }
}

/// A value that stands inside of a script.
pub(super) fn fault(settings: &CommandSettings) -> Option<Fault> {
    let words = words(&settings.command);
    let starts_others = STARTERS.contains(&words.first()?.program().as_str());
    let programs = if starts_others { words.len() } else { 1 };
    for (place, word) in words.iter().take(programs).enumerate() {
        let Some(takes) = takes(&word.program()) else {
            continue;
        };
        let scripts = scripts(takes, &words[place + 1..]);
        let found = scripts
            .iter()
            .find_map(|script| Some((script, script.value()?)));
        if let Some((script, name)) = found {
            return Some(in_argument(word.text, script, &name));
        }
    }
    in_stdin(settings, &words)
}

/// An interpreter that is given no script reads one from its standard input.
fn in_stdin(settings: &CommandSettings, words: &[Word<'_>]) -> Option<Fault> {
    let (program, rest) = words.split_first()?;
    let takes = takes(&program.program())?;
    let is_given_one = !scripts(takes, rest).is_empty()
        || !matches!(takes, Takes::After(..))
        || rest
            .iter()
            .any(|word| !word.is_option() && word.text != "-");
    let template = Template::parse(settings.stdin.as_ref()?.expose()).ok()?;
    // A whole script is somebody's program, and meant to be.
    if (is_given_one && !rest.iter().any(|word| word.text == "-s"))
        || template.only_place().is_some()
    {
        return None;
    }
    let name = (*template.names().first()?).to_owned();
    Some(Fault {
        at: "/stdin".to_owned(),
        message: format!(
            "{{{name}}} stands inside a script that {} runs: its value would become a part of the script",
            program.text
        ),
        help: Some(format!(
            "give the script as an argument, and the value as one of its own: {}",
            example(&name)
        )),
    })
}

fn in_argument(program: &str, script: &Word<'_>, name: &str) -> Fault {
    let is_whole = script.text == format!("{{{name}}}");
    let help = match is_whole {
        true => format!(
            "give the value as an argument of its own: {}. A tool that is meant to run any script reads it on its standard input: command = [\"sh\"], stdin = \"{{{name}}}\"",
            example(name)
        ),
        false => format!(
            "give the value as an argument of its own: {}. On another host, write a script there that reads the value on its standard input (stdin = \"{{{name}}}\")",
            example(name)
        ),
    };
    Fault {
        at: script.at.clone(),
        message: format!(
            "{{{name}}} stands inside a script that {program} runs: its value would become a part of the script"
        ),
        help: Some(help),
    }
}

fn example(name: &str) -> String {
    format!("[\"sh\", \"-c\", \"… \\\"$1\\\"\", \"sh\", \"{{{name}}}\"]")
}

fn takes(program: &str) -> Option<Takes> {
    let mut all = INTERPRETERS.iter();
    all.find(|(names, _)| names.contains(&program))
        .map(|(_, takes)| *takes)
}

/// The words that an interpreter runs.
fn scripts<'w, 'a>(takes: Takes, rest: &'w [Word<'a>]) -> Vec<&'w Word<'a>> {
    match takes {
        Takes::After(letters, long) => after_an_option(letters, long, rest),
        Takes::RestAfter(is_switch) => {
            let mut words = rest.iter();
            match words.any(|word| is_switch(word.text)) {
                true => words.collect(),
                false => Vec::new(),
            }
        }
        Takes::RestAfterHost => after_the_host(rest),
        Takes::Rest(unless) => match rest.iter().any(|word| unless.contains(&word.text)) {
            true => Vec::new(),
            false => rest.iter().collect(),
        },
        Takes::First => {
            let has_file = rest.iter().any(|word| word.text == "-f");
            let values = ["-v", "-F"];
            let mut before = "";
            let first = rest.iter().find(|word| {
                let is_it = !word.is_option() && !values.contains(&before);
                before = word.text;
                is_it
            });
            first.filter(|_| !has_file).into_iter().collect()
        }
    }
}

fn after_an_option<'w, 'a>(
    letters: &str,
    long: &[&str],
    rest: &'w [Word<'a>],
) -> Vec<&'w Word<'a>> {
    let mut scripts = Vec::new();
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let named = word.text.strip_prefix("--").filter(|name| !name.is_empty());
        let is_script = match named {
            Some(name) => {
                let (name, joined) = name.split_once('=').unzip();
                let name = name.unwrap_or(&word.text[2..]);
                let is_it = long.contains(&name);
                if is_it && joined.is_some() {
                    scripts.push(word);
                    continue;
                }
                is_it
            }
            None => {
                let cluster = word.text.strip_prefix('-').unwrap_or_default();
                cluster.contains(|letter| letters.contains(letter))
            }
        };
        if is_script {
            // `-c` and its script may be joined, or have other options between them.
            scripts.push(word);
            let next = words.find(|word| !word.is_option() || word.value().is_some());
            scripts.extend(next);
        } else if WITH_VALUES.contains(&word.text) {
            words.next();
        } else if !word.is_option() {
            // A file: what follows are its arguments.
            break;
        }
    }
    scripts
}

fn after_the_host<'w, 'a>(rest: &'w [Word<'a>]) -> Vec<&'w Word<'a>> {
    let mut words = rest.iter();
    let mut scripts = Vec::new();
    while let Some(word) = words.next() {
        let option = word.text.strip_prefix('-');
        match option {
            Some(option) => {
                let mut letters = option.chars();
                let is_valued = letters
                    .next()
                    .is_some_and(|letter| WITH_VALUES_OF_SSH.contains(letter));
                let value = match is_valued && letters.next().is_none() {
                    true => words.next(),
                    false => Some(word),
                };
                // `ProxyCommand`, `LocalCommand`, `Match exec`: a shell on this machine.
                let runs = |word: &&Word<'_>| {
                    let text = word.text.to_ascii_lowercase();
                    text.contains("command") || text.contains("exec")
                };
                scripts.extend(value.filter(runs));
            }
            None => {
                scripts.extend(words);
                break;
            }
        }
    }
    scripts
}

/// `/c`, `/k`, `/s/c`.
fn is_switch_of_cmd(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    word.starts_with(['/', '-']) && word.len() <= 8 && word.contains(['c', 'k', 'r'])
}

/// `-Command`, `-c`, `-EncodedCommand`, and what may be left of them.
fn is_switch_of_powershell(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let Some(name) = word
        .strip_prefix(['-', '/'])
        .filter(|name| !name.is_empty())
    else {
        return false;
    };
    let of = ["commandwithargs", "command", "encodedcommand", "cwa", "ec"];
    of.iter().any(|whole| whole.starts_with(name))
}

fn words(parts: &[Part]) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        match part {
            Part::Element(text) => words.push(Word {
                at: format!("/command/{place}"),
                text: text.expose(),
            }),
            Part::Together(texts) => {
                words.extend(texts.iter().enumerate().map(|(inner, text)| Word {
                    at: format!("/command/{place}/{inner}"),
                    text: text.expose(),
                }));
            }
        }
    }
    words
}
