//! Faults in the settings: all of them, each with its place, before anything is opened.

use std::path::Path;

use serde_json::{Value, json};
use steadyhand_runtime::source::openapi::OpenapiSettings;
use steadyhand_runtime::source::{KINDS, Kind, Settings};

use super::context;

fn kind() -> &'static Kind {
    KINDS
        .iter()
        .find(|kind| kind.settings.name == "openapi")
        .expect("the kind is known")
}

fn faults(settings: Value) -> Vec<String> {
    let faults = (kind().settings.check)(&settings).into_iter();
    faults
        .map(|fault| format!("{}: {}", fault.at, fault.message))
        .collect()
}

#[test]
fn every_fault_in_the_settings_is_named_with_its_place() {
    assert_eq!(
        faults(json!({
            "spec": "gopher://shop.example/doc", "base": "shop.example", "prefix": "pet ", "include": [""],
            "auth": { "bearer": "a", "header": "X-Key" }, "headers": { "X Key": "a", "X-Key": "a\r\nb: c" },
        })),
        [
            "/prefix: a prefix has letters, digits, _ and -, and at most 32 of them",
            "/include/0: an empty pattern means nothing",
            "/spec: `spec` begins with gopher://, and only files, http:// and https:// can be read",
            "/base: this is no address: it must begin with a scheme such as https://",
            "/headers/X Key: \"X Key\" is no name of a header",
            "/headers/X-Key: its value holds a line break or another character that a header cannot carry",
            "/auth: this says no way, or more than one way, to authenticate",
        ]
    );
    assert_eq!(
        faults(json!({ "spec": "a.yaml", "base": "https://me:hunter2@shop.example" })),
        ["/base: this address holds a user name or password; those belong into `auth`"]
    );
    assert_eq!(
        faults(json!({ "spec": " " })),
        ["/spec: `spec` is empty: name a file or an http(s) address"]
    );
}

#[test]
fn one_way_to_authenticate_is_fine_and_two_are_not() {
    let faults_of = |auth: Value| faults(json!({ "spec": "a.yaml", "auth": auth })).len();
    for good in [
        json!({ "header": "X-Key", "value": "a" }),
        json!({ "query": "key", "value": "a" }),
        json!({ "bearer": "a" }),
        json!({ "basic": { "user": "a", "password": "b" } }),
    ] {
        assert_eq!(faults_of(good.clone()), 0, "{good}");
    }
    for bad in [
        json!({}),
        json!({ "header": "X-Key" }),
        json!({ "value": "a" }),
        json!({ "header": "X-Key", "query": "key", "value": "a" }),
        json!({ "bearer": "a", "value": "b" }),
        json!({ "bearer": "line\nbreak" }),
        json!({ "basic": { "user": "a:b", "password": "c" } }),
        json!({ "token": "a" }),
    ] {
        assert_eq!(faults_of(bad.clone()), 1, "{bad}");
    }
}

#[test]
fn no_secret_is_shown_by_the_settings_or_their_faults() {
    let settings = json!({
        "spec": "https://docs.example/doc?token=hunter2", "base": "https://shop.example/?k=hunter2",
        "auth": { "basic": { "user": "hunter2", "password": "hunter2" } }, "headers": { "X-Key": "hunter2" },
    });
    let read: OpenapiSettings = serde_json::from_value(settings).unwrap();
    assert!(!format!("{read:?}").contains("hunter2"));
    assert_eq!(read.check(), []);
    assert!(read.build("shop", &context(Path::new("/nowhere"))).is_ok());
    let wrong = json!({ "spec": "a", "base": "hunter2", "headers": { "X-Key": "hunter2\n" } });
    assert!(!format!("{:?}", (kind().settings.check)(&wrong)).contains("hunter2"));
}

#[test]
fn the_schema_of_the_settings_describes_every_key() {
    let schema = (kind().settings.schema)(&mut schemars::SchemaGenerator::default());
    let properties = schema.get("properties").and_then(Value::as_object).unwrap();
    let keys: Vec<&String> = properties.keys().collect();
    assert_eq!(
        keys,
        [
            "spec", "base", "include", "exclude", "prefix", "auth", "headers"
        ]
    );
    assert!(
        properties
            .values()
            .all(|key| key["description"].is_string())
    );
}
