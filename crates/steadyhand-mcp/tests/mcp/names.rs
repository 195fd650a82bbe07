//! Names of tools: valid for every provider, unique, and never moved by a neighbour.

use std::collections::HashSet;

use proptest::prelude::*;
use steadyhand_mcp::names::assign;

fn one(server: &str, tool: &str) -> String {
    assign(server, true, &[tool]).remove(0)
}

fn is_valid(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(allowed)
}

#[test]
fn v05_a_tool_is_named_after_its_server_and_itself() {
    assert_eq!(
        assign("files", true, &["read_file", "write-file"]),
        ["files__read_file", "files__write-file"]
    );
}

#[test]
fn v05_without_a_prefix_names_stay_bare() {
    assert_eq!(assign("files", false, &["read_file"]), ["read_file"]);
}

#[test]
fn v05_characters_no_provider_takes_become_underscores() {
    assert_eq!(
        one("my server", "get.weather/now"),
        "my_server__get_weather_now"
    );
    assert_eq!(one("café", "größe"), "caf___gr__e");
    assert_eq!(assign("x", false, &[""]), ["_"]);
}

#[test]
fn v05_a_long_name_is_cut_and_ends_in_a_hash_that_stays_the_same() {
    let long = "list_all_the_repositories_of_an_organisation_with_their_last_commit";
    let name = one("github", long);
    // Pinned: names are on disk and in conversations, so they must not change with a release.
    assert_eq!(
        name,
        "github__list_all_the_repositories_of_an_organisation_wi_1d4388a4"
    );
    assert!(is_valid(&name), "{name}");
    assert!(
        name.starts_with("github__list_all_the_repositories"),
        "{name}"
    );
    assert_ne!(name, one("github", &format!("{long}s")));
}

#[test]
fn v05_a_long_server_leaves_room_for_what_tells_its_tools_apart() {
    let server = "the-production-server-of-the-department-for-long-names-in-oslo";
    let (read, write) = (one(server, "read"), one(server, "write"));
    assert!(read.contains("__read_"), "{read}");
    assert!(write.contains("__write_"), "{write}");
}

#[test]
fn v05_of_two_that_clash_the_one_with_the_name_keeps_it() {
    let names = assign("s", true, &["a.b", "a_b", "a b"]);
    assert_eq!(names[1], "s__a_b");
    assert!(names[0].starts_with("s__a_b_"), "{names:?}");
    assert!(names[2].starts_with("s__a_b_"), "{names:?}");
    assert_ne!(names[0], names[2]);
    let reversed = assign("s", true, &["a b", "a_b", "a.b"]);
    assert_eq!(
        reversed,
        [&names[2], &names[1], &names[0]].map(String::as_str)
    );
}

#[test]
fn v05_a_tool_listed_twice_has_two_names() {
    let names = assign("s", true, &["t", "t", "t"]);
    assert_eq!(names[0], "s__t");
    assert_eq!(HashSet::<&String>::from_iter(&names).len(), 3);
}

#[test]
fn v05_a_tool_that_is_called_like_the_hash_of_another_does_not_move_it() {
    let hashed = assign("s", false, &["a.b", "a b"]).remove(0);
    let names = assign("s", false, &["a.b", "a b", &hashed]);
    assert_eq!(names[2], hashed);
    assert_eq!(HashSet::<&String>::from_iter(&names).len(), 3);
}

fn tools() -> impl Strategy<Value = Vec<String>> {
    // A small alphabet, so that clashes happen; long ones, so that names are cut.
    let tool = prop_oneof![
        "[ab_. é-]{0,4}",
        "[ab_.]{58,70}",
        "[a-zA-Z0-9_-]{1,20}",
        any::<String>()
    ];
    prop::collection::vec(tool, 0..12)
}

proptest! {
    #[test]
    fn v05_names_are_valid_unique_and_deterministic(
        server in "[a-z.é]{0,70}", prefix: bool, tools in tools()
    ) {
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        let names = assign(&server, prefix, &tools);
        prop_assert_eq!(names.len(), tools.len());
        for name in &names {
            prop_assert!(is_valid(name), "{}", name);
        }
        prop_assert_eq!(HashSet::<&String>::from_iter(&names).len(), names.len());
        prop_assert_eq!(assign(&server, prefix, &tools), names);
    }

    #[test]
    fn v05_a_name_depends_on_others_only_where_they_clash(
        prefix: bool, tools in tools(), turn in 0usize..12
    ) {
        let mut unlike = HashSet::new();
        let tools: Vec<&str> = tools
            .iter()
            .map(String::as_str)
            .filter(|tool| unlike.insert(*tool))
            .collect();
        let names = assign("server", prefix, &tools);
        let alone: Vec<String> = tools
            .iter()
            .map(|tool| assign("server", prefix, &[tool]).remove(0))
            .collect();
        for (index, name) in names.iter().enumerate() {
            let clashes = alone.iter().filter(|other| **other == alone[index]).count() > 1;
            prop_assert!(clashes || *name == alone[index], "{} alone is {}", name, alone[index]);
        }
        let turn = turn % tools.len().max(1);
        let mut turned = tools.clone();
        turned.rotate_left(turn);
        let mut expected = names;
        expected.rotate_left(turn);
        prop_assert_eq!(assign("server", prefix, &turned), expected);
    }
}
