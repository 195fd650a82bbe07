//! Values as people read them: columns for objects and tables, text as it is, JSON for the rest.

use std::time::Duration;

use serde_json::{Map, Value};

use super::screen::Screen;

/// A result: an object as names and values, a list of objects as a table, a text as it is.
pub(super) fn shown(screen: &Screen, value: &Value) -> String {
    match value {
        Value::String(text) => screen.content(text),
        Value::Null => String::new(),
        Value::Object(fields) if !fields.is_empty() => columns(
            screen,
            fields
                .iter()
                .map(|(name, field)| vec![name.clone(), cell(field)])
                .collect(),
        ),
        Value::Array(items) if is_table(items) => table(screen, items),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

/// A name that is wider stands out of its column.
const COLUMN_WIDTH_MAX: usize = 60;

/// How wide a column is: as its widest cell, within reason. (Formatting panics beyond 16 bits.)
pub(super) fn column_width(cells: impl Iterator<Item = usize>) -> usize {
    cells.max().unwrap_or(0).min(COLUMN_WIDTH_MAX)
}

/// Rows with their columns under each other; separated by tabs where nobody looks.
pub(super) fn columns(screen: &Screen, rows: Vec<Vec<String>>) -> String {
    if !screen.stdout_is_terminal {
        let rows = rows.iter().map(|row| screen.foreign(&row.join("\t")));
        return rows.collect::<Vec<_>>().join("\n");
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    for row in rows {
        table.add_row(row.iter().map(|cell| screen.foreign(cell)));
    }
    let lines = table
        .lines()
        .map(|line| line.trim_end().trim_start_matches(' ').to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

fn is_table(items: &[Value]) -> bool {
    !items.is_empty()
        && items
            .iter()
            .all(|item| item.as_object().is_some_and(|fields| !fields.is_empty()))
}

fn table(screen: &Screen, items: &[Value]) -> String {
    let mut names: Vec<&String> = Vec::new();
    let objects: Vec<&Map<String, Value>> = items.iter().filter_map(Value::as_object).collect();
    for name in objects.iter().flat_map(|fields| fields.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut rows = vec![names.iter().map(|name| (*name).clone()).collect::<Vec<_>>()];
    for fields in objects {
        rows.push(
            names
                .iter()
                .map(|name| fields.get(*name).map_or(String::new(), cell))
                .collect(),
        );
    }
    columns(screen, rows)
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

/// `1 tool`, `2 tools`
pub(super) fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// `312 ms`, `1.9 s`
pub(super) fn duration(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1000.0;
    match ms {
        ms if ms < 1.0 => format!("{ms:.2} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms if ms < 60_000.0 => format!("{:.1} s", ms / 1000.0),
        _ => humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string(),
    }
}

/// A call as it would be typed.
pub(super) fn as_command(tool: &str, args: &Value) -> String {
    let mut words = vec!["steadyhand call".to_owned(), tool.to_owned()];
    for (name, value) in args.as_object().into_iter().flatten() {
        words.push(match value {
            Value::String(text) => quoted(&format!("{name}={text}")),
            Value::Number(_) | Value::Bool(_) => format!("{name}={value}"),
            Value::Null | Value::Array(_) | Value::Object(_) => quoted(&format!("{name}:={value}")),
        });
    }
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
