//! Changes to a `steadyhand.toml` by commands: comments, order and format of the rest stay as they are.

use std::fmt;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// A server to be written down.
#[derive(Debug, Clone, Default)]
pub struct NewServer {
    /// Its name.
    pub name: String,
    /// Its program; empty for a server over HTTP.
    pub command: String,
    /// Its address.
    pub url: Option<String>,
    /// Headers that go with every request.
    pub headers: Vec<(String, String)>,
    /// The arguments.
    pub args: Vec<String>,
    /// The folder it runs in.
    pub cwd: Option<String>,
    /// Variables it gets.
    pub env: Vec<(String, String)>,
}

/// What `[import]` should say.
#[derive(Debug, Default)]
pub struct Imports {
    /// Files and programs that are read from now on.
    pub read: Vec<String>,
    /// Servers to leave out.
    pub skip: Vec<String>,
    /// Servers that are no longer left out.
    pub unskip: Vec<String>,
}

/// Why a text was not changed.
#[derive(Debug)]
pub enum NotChanged {
    /// It is no TOML.
    Unreadable(String),
    /// A table has this name already.
    Exists(String),
    /// There is no such table.
    Missing(String),
    /// Something else stands where a table or a list is expected.
    Unexpected(&'static str),
}

impl fmt::Display for NotChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotChanged::Unreadable(why) => write!(f, "it is no TOML: {why}"),
            NotChanged::Exists(name) => write!(f, "[mcp.{name}] is there already"),
            NotChanged::Missing(name) => write!(f, "there is no [mcp.{name}]"),
            NotChanged::Unexpected(what) => write!(f, "{what} is not what it should be"),
        }
    }
}

impl NewServer {
    /// Its table, as it will stand in the file.
    pub fn written(&self) -> String {
        let mut document = DocumentMut::new();
        put(&mut document, self);
        document.to_string().trim_start().to_owned()
    }
}

/// The text with the server at its end.
pub fn add_server(text: &str, server: &NewServer) -> Result<String, NotChanged> {
    let mut document = read(text)?;
    match document.get("mcp") {
        None => {}
        Some(mcp) => {
            let tables = mcp.as_table_like().ok_or(NotChanged::Unexpected("mcp"))?;
            if tables.contains_key(&server.name) {
                return Err(NotChanged::Exists(server.name.clone()));
            }
        }
    }
    let is_header = |item: &Item| item.as_table().is_some_and(|mcp| !mcp.is_dotted());
    if document.get("mcp").is_none_or(is_header) {
        let mut after = text.trim_end().to_owned();
        if !after.is_empty() {
            after.push_str("\n\n");
        }
        // At its end: what comes below a header of another table would belong to that.
        return Ok(after + &server.written());
    }
    // `mcp = { … }`, or `mcp.name.command = …`: beside the others.
    let mcp = document["mcp"].as_table_like_mut();
    let mcp = mcp.ok_or(NotChanged::Unexpected("mcp"))?;
    let mut table = InlineTable::new();
    for (key, item) in &table_of(server) {
        if let Some(value) = item.as_value() {
            table.insert(key, value.clone());
        }
    }
    mcp.insert(&server.name, Item::Value(Value::InlineTable(table)));
    Ok(document.to_string())
}

/// The text without the server. What was said above its own comment stays.
pub fn remove_server(text: &str, name: &str) -> Result<String, NotChanged> {
    let mut document = read(text)?;
    let missing = || NotChanged::Missing(name.to_owned());
    let mcp = document.get_mut("mcp").ok_or_else(missing)?;
    let mcp = mcp
        .as_table_like_mut()
        .ok_or(NotChanged::Unexpected("mcp"))?;
    let removed = mcp.remove(name).ok_or_else(missing)?;
    let is_empty_header = mcp.is_empty();
    if is_empty_header {
        document.remove("mcp");
    }
    if let Item::Table(table) = &removed
        && let Some(above) = above_own_comment(table)
    {
        put_before_next(&mut document, table.position(), &above);
    }
    Ok(document.to_string())
}

/// The text with other imports.
pub fn change_imports(text: &str, imports: &Imports) -> Result<String, NotChanged> {
    let mut document = read(text)?;
    let is_new = document.get("import").is_none();
    let import = document.entry("import").or_insert_with(|| {
        let mut table = Table::new();
        if !text.trim().is_empty() {
            table.decor_mut().set_prefix("\n");
        }
        Item::Table(table)
    });
    let import = import
        .as_table_like_mut()
        .ok_or(NotChanged::Unexpected("import"))?;
    extend(import, "mcp", &imports.read)?;
    extend(import, "skip", &imports.skip)?;
    if let Some(skip) = import.get_mut("skip").and_then(Item::as_array_mut) {
        skip.retain(|item| {
            let name = item.as_str().unwrap_or_default();
            !imports.unskip.iter().any(|unskip| unskip == name)
        });
        match skip.get_mut(0) {
            None => drop(import.remove("skip")),
            // What stood behind another one stands first now.
            Some(first)
                if first
                    .decor()
                    .prefix()
                    .is_some_and(|it| it.as_str() == Some(" ")) =>
            {
                first.decor_mut().set_prefix("");
            }
            Some(_) => {}
        }
    }
    let changed = document.to_string();
    // A text that ends without a line's end must not swallow the header.
    match is_new && !text.is_empty() && !text.ends_with('\n') {
        true => change_imports(&format!("{text}\n"), imports),
        false => Ok(changed),
    }
}

/// The text with a switch set, in the table that these keys lead to.
pub fn set_switch(text: &str, keys: &[&str], switch: &str, on: bool) -> Result<String, NotChanged> {
    let mut document = read(text)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for key in keys {
        let item = table.entry(key).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        table = item
            .as_table_like_mut()
            .ok_or(NotChanged::Unexpected("a table on the way"))?;
    }
    match table.get_mut(switch).and_then(Item::as_value_mut) {
        // What is said about it behind it stays.
        Some(there) => {
            let decor = there.decor().clone();
            *there = Value::from(on);
            *there.decor_mut() = decor;
        }
        None => drop(table.insert(switch, toml_edit::value(on))),
    }
    Ok(document.to_string())
}

fn read(text: &str) -> Result<DocumentMut, NotChanged> {
    text.parse()
        .map_err(|error: toml_edit::TomlError| NotChanged::Unreadable(error.message().to_owned()))
}

fn put(document: &mut DocumentMut, server: &NewServer) {
    let mut mcp = Table::new();
    mcp.set_implicit(true);
    mcp.insert(&server.name, Item::Table(table_of(server)));
    document.insert("mcp", Item::Table(mcp));
}

fn table_of(server: &NewServer) -> Table {
    let mut table = Table::new();
    if let Some(url) = &server.url {
        table.insert("url", toml_edit::value(url));
    } else {
        table.insert("command", toml_edit::value(&server.command));
    }
    if !server.args.is_empty() {
        table.insert(
            "args",
            toml_edit::value(server.args.iter().collect::<Array>()),
        );
    }
    if let Some(cwd) = &server.cwd {
        table.insert("cwd", toml_edit::value(cwd));
    }
    for (key, pairs) in [("env", &server.env), ("headers", &server.headers)] {
        if !pairs.is_empty() {
            let pairs: InlineTable = pairs.iter().map(|(name, value)| (name, value)).collect();
            table.insert(key, toml_edit::value(pairs));
        }
    }
    table
}

/// Adds what is not there yet, in the manner of what is.
fn extend(
    table: &mut dyn TableLike,
    key: &'static str,
    items: &[String],
) -> Result<(), NotChanged> {
    if items.is_empty() {
        return Ok(());
    }
    let list = table
        .entry(key)
        .or_insert_with(|| toml_edit::value(Array::new()));
    let list = list.as_array_mut().ok_or(NotChanged::Unexpected(key))?;
    for item in items {
        let is_it = |there: &Value| there.as_str() == Some(item);
        if list.iter().any(is_it) {
            continue;
        }
        let prefix = list
            .iter()
            .last()
            .and_then(|last| last.decor().prefix()?.as_str().map(str::to_owned));
        let mut value = Value::from(item);
        match prefix.filter(|prefix| prefix.contains('\n')) {
            Some(own_line) => {
                value.decor_mut().set_prefix(own_line);
                list.push_formatted(value);
            }
            None => list.push(value),
        }
    }
    Ok(())
}

/// What stands above a table and is not about it: everything before the last empty line.
fn above_own_comment(table: &Table) -> Option<String> {
    let prefix = table.decor().prefix()?.as_str()?;
    let (above, _) = prefix.rsplit_once("\n\n")?;
    (!above.trim().is_empty()).then(|| format!("{}\n", above.trim_end()))
}

/// Puts a comment before the table that comes next in the file, or at its end.
fn put_before_next(document: &mut DocumentMut, after: Option<isize>, comment: &str) {
    let mut path = Vec::new();
    let next = next_table(document.as_table(), after.unwrap_or(0), &mut path);
    let Some((_, keys)) = next else {
        let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing(format!("{comment}{trailing}"));
        return;
    };
    let mut table = document.as_table_mut();
    for key in &keys {
        match table.get_mut(key) {
            Some(Item::Table(inner)) => table = inner,
            _ => return,
        }
    }
    let before = table.decor().prefix().and_then(|prefix| prefix.as_str());
    let before = before.unwrap_or_default();
    let gap = if before.starts_with('\n') { "" } else { "\n" };
    let prefix = format!("{comment}{gap}{before}");
    table.decor_mut().set_prefix(prefix);
}

/// The table with a header that follows a place, and the way to it.
fn next_table(table: &Table, after: isize, path: &mut Vec<String>) -> Option<(isize, Vec<String>)> {
    let mut next: Option<(isize, Vec<String>)> = None;
    for (key, item) in table {
        let Item::Table(inner) = item else {
            continue;
        };
        path.push(key.to_owned());
        let own = inner
            .position()
            .filter(|position| *position > after && !inner.is_implicit() && !inner.is_dotted())
            .map(|position| (position, path.clone()));
        let found = [own, next_table(inner, after, path)].into_iter().flatten();
        next = found.chain(next).min();
        path.pop();
    }
    next
}
