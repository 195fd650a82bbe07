//! Names as people write them, and the name that was probably meant.

/// `/tools/home_lights/url` as people write it: `tools.home_lights.url`.
pub fn dotted(pointer: &str) -> String {
    let steps = pointer
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"));
    let mut dotted = String::new();
    for step in steps {
        if !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit()) {
            dotted.push_str(&format!("[{step}]"));
            continue;
        }
        if !dotted.is_empty() {
            dotted.push('.');
        }
        let bare = step
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        match bare {
            true => dotted.push_str(&step),
            false => dotted.push_str(&format!("\"{step}\"")),
        }
    }
    match dotted.is_empty() {
        true => "the file".to_owned(),
        false => dotted,
    }
}

/// The name that was probably meant.
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    steadyhand::near_names::nearest_name(wrong, names)
}
