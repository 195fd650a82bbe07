//! Small parts of OTLP's messages.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};

/// Who made these: this program.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "steadyhand".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

/// An attribute that is a text.
pub(super) fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

/// An attribute that is a number.
pub(super) fn number(key: &str, value: i64) -> KeyValue {
    attribute(key, Value::IntValue(value))
}

/// An attribute that is a number with a point.
pub(super) fn float(key: &str, value: f64) -> KeyValue {
    attribute(key, Value::DoubleValue(value))
}

/// An attribute that is so. What is not so is left out.
pub(super) fn truth(key: &str) -> KeyValue {
    attribute(key, Value::BoolValue(true))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
