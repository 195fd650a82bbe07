//! What a server says about logging in (`WWW-Authenticate`), read as RFC 9110 (11.6.1) writes it: several schemes may
//! share a field, parameters may have spaces around their equals sign, and a text in quotes may hold quotes, commas and
//! what looks like a parameter.

/// The parameters of the first challenge of the scheme Bearer, written in the plainest way: names in small letters, values
/// in quotes, nothing escaped. None if there is no such challenge, or the field is none.
pub(super) fn plain_bearer(field: &str) -> Option<String> {
    let mut rest = Rest(field);
    let mut is_bearer = false;
    let mut parameters: Option<Vec<String>> = None;
    loop {
        rest.skip(&[' ', '\t', ',']);
        if rest.0.is_empty() {
            break;
        }
        let name = rest.token()?.to_ascii_lowercase();
        if let Some(value) = rest.value() {
            // Such values are prose for people: no address and no scope has them.
            let is_plain = !value.contains(['"', '\\']);
            if let Some(parameters) = parameters.as_mut().filter(|_| is_bearer && is_plain) {
                parameters.push(format!("{name}=\"{value}\""));
            }
            continue;
        }
        // Another scheme, perhaps with the bare token that some have instead of parameters.
        if is_bearer {
            break;
        }
        is_bearer = name == "bearer";
        if is_bearer {
            parameters = Some(Vec::new());
        } else {
            rest.bare_token();
        }
    }
    let parameters = parameters?.join(", ");
    Some(format!("Bearer {parameters}").trim_end().to_owned())
}

/// What is still to be read.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn skip(&mut self, what: &[char]) {
        self.0 = self.0.trim_start_matches(what);
    }

    fn token(&mut self) -> Option<&'a str> {
        let is_end =
            |letter: char| !letter.is_ascii_alphanumeric() && !"!#$%&'*+-.^_`|~".contains(letter);
        let (token, rest) = self.0.split_at(self.0.find(is_end).unwrap_or(self.0.len()));
        self.0 = rest;
        (!token.is_empty()).then_some(token)
    }

    /// The value behind a name. None if the name is that of a scheme.
    fn value(&mut self) -> Option<String> {
        let rest = self.0.trim_start_matches([' ', '\t']).strip_prefix('=')?;
        let rest = rest.trim_start_matches([' ', '\t']);
        if rest.is_empty() || rest.starts_with(['=', ',']) {
            return None;
        }
        let Some(quoted) = rest.strip_prefix('"') else {
            let end = rest.find([' ', '\t', ',']).unwrap_or(rest.len());
            self.0 = &rest[end..];
            return Some(rest[..end].to_owned());
        };
        let mut value = String::new();
        let mut letters = quoted.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.0 = &quoted[at + 1..];
                    return Some(value);
                }
                '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
                letter => value.push(letter),
            }
        }
        // It never ends.
        self.0 = "";
        Some(value)
    }

    /// Skips what stands behind the name of a scheme in place of parameters (`Negotiate abcd==`).
    fn bare_token(&mut self) {
        let rest = self.0.trim_start_matches([' ', '\t']);
        let end = rest.find(',').unwrap_or(rest.len());
        let word = rest[..end].trim_end();
        let body = word.trim_end_matches('=');
        if !body.contains(['=', ' ', '\t', '"']) {
            self.0 = &rest[end..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::plain_bearer;

    #[test]
    fn the_challenge_about_tokens_is_read_whatever_stands_around_it() {
        let meta = "resource_metadata=\"http://a/b\"";
        let both = format!("Bearer {meta}, scope=\"a b\"");
        for field in [
            both.clone(),
            "bearer   Resource_Metadata = \"http://a/b\" ,scope= \"a b\"".to_owned(),
            format!("Basic realm=\"x, Bearer scope=z\", Bearer {meta}, scope=\"a b\""),
            format!("Negotiate abcd==, Bearer {meta}, scope=\"a b\""),
            format!("Negotiate, Bearer {meta}, scope=\"a b\", Basic realm=\"x\", scope=\"z\""),
            format!(
                "DPoP algs=\"ES256\", Bearer realm=\"say \\\"hi\\\", scope=\\\"z\\\"\", {meta}, scope=\"a b\""
            ),
            format!("Bearer ,,{meta},, scope=\"a b\","),
        ] {
            assert_eq!(plain_bearer(&field).as_deref(), Some(&*both), "{field}");
        }
        assert_eq!(
            plain_bearer("Bearer scope=a").as_deref(),
            Some("Bearer scope=\"a\"")
        );
        assert_eq!(plain_bearer("Bearer").as_deref(), Some("Bearer"));
        for none in ["", "Basic realm=\"Bearer\"", "Bearer ==", "\"Bearer\""] {
            assert_eq!(plain_bearer(none), None, "{none}");
        }
    }
}
