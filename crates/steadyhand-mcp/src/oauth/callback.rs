//! What comes back from a login. It is foreign: anybody on this machine can send something there.

use rmcp::transport::auth::AuthorizationCallback;
use url::Url;

/// What the answer to a login must have in it.
pub(super) struct Expected {
    state: String,
    issuer: Option<String>,
    /// The issuer says that it names itself in its answers (RFC 9207).
    names_issuer: bool,
}

impl Expected {
    pub(super) fn of(
        address: &Url,
        issuer: Option<String>,
        names_issuer: bool,
    ) -> Result<Expected, String> {
        let state = only(address, "state").filter(|state| !state.is_empty());
        Ok(Expected {
            state: state.ok_or("the login has no state to know its answer by")?,
            issuer,
            names_issuer,
        })
    }

    /// Whether this is the answer: nobody else knows the state, and each of its fields is there once. A refusal is an
    /// answer, too.
    pub(super) fn is_answer(&self, back: &str) -> bool {
        let Ok(address) = Url::parse(back) else {
            return false;
        };
        let count = |name: &str| address.query_pairs().filter(|(key, _)| key == name).count();
        let is_once = ["state", "code", "error", "iss"]
            .into_iter()
            .all(|name| count(name) <= 1);
        let has_answer = count("code") + count("error") == 1;
        let is_of_issuer = match (only(&address, "iss"), &self.issuer) {
            (Some(said), Some(issuer)) => said == *issuer,
            (Some(_), None) => false,
            (None, _) => !self.names_issuer,
        };
        let is_ours = only(&address, "state").is_some_and(|state| state == self.state);
        is_once && has_answer && is_of_issuer && is_ours
    }
}

/// What came back with the person: a code, or why there is none.
pub(super) fn read(back: &str) -> Result<AuthorizationCallback, String> {
    let address = Url::parse(back).map_err(|_| "no answer came back".to_owned())?;
    if let Some(error) = only(&address, "error") {
        let more = only(&address, "error_description").map(|more| format!(": {more}"));
        return Err(format!(
            "the login was refused: {error}{}",
            more.unwrap_or_default()
        ));
    }
    AuthorizationCallback::from_redirect_url(back).map_err(|error| error.to_string())
}

fn only(address: &Url, name: &str) -> Option<String> {
    let mut pairs = address.query_pairs();
    let pair = pairs.find(|(key, _)| key == name);
    pair.map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_a_login_is_known_by_its_state_and_its_issuer() {
        let address: Url = "https://login.example/?state=abc".parse().expect("one");
        let expected = |issuer: Option<&str>, names_issuer: bool| {
            let issuer = issuer.map(str::to_owned);
            Expected::of(&address, issuer, names_issuer).expect("a state")
        };
        let issuer = "https://login.example";
        let is = |expected: &Expected, query: &str| {
            expected.is_answer(&format!("http://127.0.0.1:1/callback?{query}"))
        };
        let plain = expected(Some(issuer), false);
        assert!(is(&plain, "code=1&state=abc"));
        assert!(is(&plain, "error=access_denied&state=abc"));
        assert!(is(
            &plain,
            "code=1&state=abc&iss=https%3A%2F%2Flogin.example"
        ));
        for forged in [
            "",
            "code=1",
            "state=abc",
            "code=1&state=",
            "code=1&state=abd",
            "code=1&state=ABC",
            "code=1&state=abc&state=abc",
            "code=1&state=abd&state=abc",
            "code=1&code=2&state=abc",
            "code=1&error=access_denied&state=abc",
            "error=access_denied",
            "error=access_denied&state=x",
            "code=1&state=abc&iss=https%3A%2F%2Fevil.example",
            "code=1&state=abc&iss=",
        ] {
            assert!(!is(&plain, forged), "{forged:?}");
        }
        let named = expected(Some(issuer), true);
        assert!(!is(&named, "code=1&state=abc"), "it names itself");
        assert!(!is(&expected(None, false), "code=1&state=abc&iss=a"));
        let without: Url = "https://login.example/".parse().expect("one");
        assert!(Expected::of(&without, None, false).is_err());
    }
}
