//! Which known name was probably meant by a wrong one. Whoever writes the wrong one chooses how long it is, so what is
//! compared is bounded.

/// So many characters of a name are compared.
pub const COMPARED_CHARS_MAX: usize = 64;
/// With so many names a wrong one is compared.
pub const COMPARED_NAMES_MAX: usize = 2_000;

/// The known name that is most like the wrong one, if any is much like it. Upper and lower case are the same.
pub fn nearest_name<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = compared(wrong);
    names
        .take(COMPARED_NAMES_MAX)
        .map(|name| (strsim::jaro_winkler(&wrong, &compared(name)), name))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// What is compared of a name: its beginning, in lower case.
pub fn compared(name: &str) -> String {
    let lower = name.chars().flat_map(char::to_lowercase);
    lower.take(COMPARED_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest_name;

    #[test]
    fn s01_a_name_of_a_megabyte_is_compared_by_its_beginning() {
        let long = "weather".to_owned() + &"x".repeat(1_000_000);
        let names = std::iter::repeat_n(long.as_str(), 100_000);
        assert_eq!(nearest_name(&long, names), Some(long.as_str()));
        assert_eq!(
            nearest_name("Wether", ["weather"].into_iter()),
            Some("weather")
        );
        assert_eq!(nearest_name("stocks", ["weather"].into_iter()), None);
    }
}
