//! The programs that tables name: are they there, and are they programs at all?

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use steadyhand_process::{Reason, find_command_with_home};

use super::Surroundings;
use super::problem::Problem;

/// `command = ["node", "x.js"]` of a server as the rest of the program knows it: a program, and its arguments.
pub(crate) fn list_to_text(own: &mut Map<String, Value>) {
    let Some(Value::Array(words)) = own.get_mut("command") else {
        return;
    };
    let mut words = std::mem::take(words).into_iter();
    let program = words.next().unwrap_or_else(|| Value::String(String::new()));
    let args: Vec<Value> = words.collect();
    own.insert("command".to_owned(), program);
    if !args.is_empty() {
        own.insert("args".to_owned(), Value::Array(args));
    }
}

/// Looks for the program that a table names. One that is not there is a warning, because it may come later; arguments in
/// the place of the program are an error, because that can never work.
pub(crate) fn look(
    own: &Map<String, Value>,
    is_server: bool,
    folder: &Path,
    surroundings: &Surroundings,
) -> Option<Problem> {
    if own.get("disabled") == Some(&Value::Bool(true)) {
        return None;
    }
    let written = match own.get("command")? {
        Value::String(text) => text,
        Value::Array(parts) => parts.first()?.as_str()?,
        _ => return None,
    };
    let text = |key: &str| own.get(key).and_then(Value::as_str);
    let is_unknown = |text: &str| text.contains("${");
    if written.trim().is_empty() || is_unknown(written) || text("cwd").is_some_and(is_unknown) {
        return None;
    }
    let at_home = |path: &str| match is_server {
        true => surroundings.path(path, folder),
        false => folder.join(path),
    };
    let working_folder = text("cwd").map_or_else(|| folder.to_owned(), at_home);
    let path = search_path(own, at_home, surroundings)?;
    let home = surroundings.home.as_deref();
    let find = |program: &str| {
        let program = match is_server && program.starts_with("~/") {
            true => at_home(program).display().to_string(),
            false => program.to_owned(),
        };
        // A tool's path starts at the file's folder, a server's where it runs.
        let base = if is_server { &working_folder } else { folder };
        find_command_with_home(&program, base, &path, &working_folder, home)
    };
    let missing = find(written).err()?;
    if missing.reason == Reason::Missing
        && let Some(problem) = arguments_in_the_program(written, |word| find(word).is_ok())
    {
        return Some(problem);
    }
    // Not one program, but a place for an argument: the kind says so.
    if written.contains('{') {
        return None;
    }
    let what = match missing.reason {
        Reason::Missing if missing.path.is_some() => {
            format!("there is no program \"{written}\" on PATH")
        }
        Reason::Missing => format!("there is no program \"{written}\""),
        Reason::NotExecutable => format!("\"{written}\" may not be executed by this user"),
        Reason::IsFolder => format!("\"{written}\" is a folder"),
    };
    let help = match (missing.elsewhere.first(), missing.reason) {
        (Some(file), _) => format!("It is at {}: write that path", file.display()),
        (None, Reason::NotExecutable) => "Check its permissions (chmod +x)".to_owned(),
        (None, _) => {
            "Install it, or write its full path; everything else works without it".to_owned()
        }
    };
    Some(Problem::warning(what).help(help))
}

fn arguments_in_the_program(written: &str, is_program: impl Fn(&str) -> bool) -> Option<Problem> {
    let (first, _) = written.trim().split_once(char::is_whitespace)?;
    // A path may have spaces in it, and lead nowhere yet.
    if first.contains('/') && !is_program(first) {
        return None;
    }
    let words = shlex::split(written).unwrap_or_default();
    let list = serde_json::to_string(&words).unwrap_or_default();
    let problem = Problem::error(format!(
        "there is no program \"{written}\"; a text is one program, and is never split into words"
    ));
    Some(problem.help(format!(
        "Write a list: command = {}",
        list.replace("\",\"", "\", \"")
    )))
}

/// The folders that are searched; none if that is not known before references are replaced.
fn search_path(
    own: &Map<String, Value>,
    at_home: impl Fn(&str) -> PathBuf,
    surroundings: &Surroundings,
) -> Option<OsString> {
    let path = match own.get("env").and_then(|env| env.get("PATH")) {
        Some(path) => path.as_str()?.to_owned(),
        None => surroundings.variable("PATH").ok()?,
    };
    let added = own.get("path_add").and_then(Value::as_array);
    let added = added.into_iter().flatten().filter_map(Value::as_str);
    let added: Vec<PathBuf> = added.map(at_home).collect();
    if path.contains("${")
        || added
            .iter()
            .any(|folder| folder.to_string_lossy().contains("${"))
    {
        return None;
    }
    let folders = added.into_iter().chain(std::env::split_paths(&path));
    Some(std::env::join_paths(folders).unwrap_or_else(|_| path.clone().into()))
}
