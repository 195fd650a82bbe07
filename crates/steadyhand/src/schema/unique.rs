//! Whether the values of a list all differ, in a time that no choice of values makes longer.
//!
//! The validator's own comparison hashes values in a way that many different ones share (`[[],[]]` and `[[[]]]`), so that
//! each is compared with each.

use std::collections::HashSet;

use serde_json::{Number, Value};

/// The lists of a schema's checks: numbers are compared by their value, objects whatever the order of their members.
/// `spend` is told of so many values, and so many bytes of text, before they are read: it may unwind.
pub(super) fn is_unique(items: &[Value], spend: impl Fn(usize, usize)) -> bool {
    spend(items.len(), 0);
    let mut seen: HashSet<Vec<u8>> = HashSet::with_capacity(items.len());
    items.iter().all(|item| {
        let mut text = Vec::new();
        write(item, &mut text, &spend);
        seen.insert(text)
    })
}

/// The value as a text that equal values share, and no others.
fn write(value: &Value, text: &mut Vec<u8>, spend: &impl Fn(usize, usize)) {
    match value {
        Value::Null => text.push(b'n'),
        Value::Bool(flag) => text.push(if *flag { b't' } else { b'f' }),
        Value::Number(number) => write_number(number, text),
        Value::String(string) => {
            spend(0, string.len());
            write_text(string, text);
        }
        Value::Array(items) => {
            spend(items.len(), 0);
            text.push(b'[');
            items.iter().for_each(|item| write(item, text, spend));
            text.push(b']');
        }
        Value::Object(members) => {
            spend(members.len(), members.keys().map(String::len).sum());
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            text.push(b'{');
            for (name, member) in members {
                write_text(name, text);
                write(member, text, spend);
            }
            text.push(b'}');
        }
    }
}

fn write_number(number: &Number, text: &mut Vec<u8>) {
    /// From here on a float is larger than every other number.
    const INTEGERS_END: f64 = 18_446_744_073_709_551_616.0;
    let integer = match (number.as_u64(), number.as_i64(), number.as_f64()) {
        (Some(positive), _, _) => Some(i128::from(positive)),
        (_, Some(integer), _) => Some(i128::from(integer)),
        (_, _, Some(float)) if float.fract() == 0.0 && float.abs() < INTEGERS_END => {
            Some(float as i128)
        }
        _ => None,
    };
    match integer {
        Some(integer) => {
            text.push(b'i');
            text.extend(integer.to_le_bytes());
        }
        None => {
            text.push(b'd');
            text.extend(number.as_f64().unwrap_or_default().to_bits().to_le_bytes());
        }
    }
}

/// Its length stands before it: no text looks like the end of another.
fn write_text(string: &str, text: &mut Vec<u8>) {
    text.push(b's');
    text.extend((string.len() as u64).to_le_bytes());
    text.extend(string.as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_unique;

    #[test]
    fn equal_values_are_found_and_no_others() {
        for (list, unique) in [
            (json!([1, 2, "1", true, null]), true),
            (json!([1, 1.0]), false),
            (json!([0, -0.0]), false),
            (
                json!([9_007_199_254_740_993_u64, 9_007_199_254_740_992_u64]),
                true,
            ),
            (json!([[[]], [], [[], []]]), true),
            (json!([[1, 2], [[1], 2], [[1, 2]]]), true),
            (json!([{"a": 1, "b": 2}, {"b": 2, "a": 1.0}]), false),
            (json!([{"a": 1}, {"b": 1}]), true),
            (json!([1e300, 1e300]), false),
        ] {
            let items = list.as_array().expect("a list");
            assert_eq!(is_unique(items, |_, _| {}), unique, "{list}");
        }
    }

    /// A check that may not go on ends at the first part that is too much, however much there is beside it.
    #[test]
    fn every_value_is_told_before_it_is_read() {
        let list = json!([[[1, 2, 3], {"ab": 4}], "xyz", 5]);
        let items = list.as_array().expect("a list");
        let told = std::cell::Cell::new((0, 0));
        let spend = |values, bytes| told.set((told.get().0 + values, told.get().1 + bytes));
        assert!(is_unique(items, spend));
        assert_eq!(told.get(), (9, 5));
    }
}
