//! Arguments in one spelling: the order of members and the way a number is written make no other call of it.

use serde_json::{Map, Number, Value};
use steadyhand::redact;

/// Whole numbers beyond this are not exact as floating point.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The arguments as a cassette knows them: secrets hidden, members sorted, `3.0` as `3`.
pub(super) fn of(arguments: &Value) -> String {
    sorted(&redact::value(arguments)).to_string()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            let of_name = |name: &String| (name.clone(), sorted(&fields[name]));
            Value::Object(names.into_iter().map(of_name).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Number(number) => Value::Number(whole(number)),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

fn whole(number: &Number) -> Number {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT_MAX => {
            Number::from(float as i64)
        }
        _ => number.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use serde_json::json;

    #[test]
    fn order_and_spelling_of_numbers_make_no_difference_and_secrets_do_not_show() {
        let one = of(&json!({"b": [3.0, {"y": 1, "x": 2}], "a": "text", "password": "tiger-lily"}));
        let other = of(&json!({"password": "another", "a": "text", "b": [3, {"x": 2.0, "y": 1}]}));
        assert_eq!(one, other);
        assert!(!one.contains("tiger-lily"), "{one}");
        assert_ne!(of(&json!({"a": 3.5})), of(&json!({"a": 3})));
        assert_ne!(of(&json!({"a": "3"})), of(&json!({"a": 3})));
    }
}
