//! `steadyhand config set-secret`: a secret into the key store of this system, for `${keyring:steadyhand/NAME}`.

use std::io::{BufRead, IsTerminal, Read};

use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::Session;
use super::error::{Exit, Failed};
use steadyhand_config::keyring::{KeyringFault, SystemKeyring};

/// The service that our secrets are kept under.
const SERVICE: &str = "steadyhand";
/// A secret is a key or a certificate, not a book.
const BYTES_MAX: u64 = 64 * 1024;

pub(super) async fn set(session: &Session<'_>, name: &str) -> Result<(), Failed> {
    if name.is_empty() || name.contains(['/', '}', '$']) {
        let message = format!("\"{name}\" cannot be the name of a secret");
        return Err(Failed::new(Exit::Usage, "usage", message)
            .help("A word such as anthropic: it is used as ${keyring:steadyhand/anthropic}"));
    }
    let secret = read(session, name)?;
    let kept_as = name.to_owned();
    let keep = move || SystemKeyring::default().keep(SERVICE, &kept_as, secret);
    let kept = tokio::task::spawn_blocking(keep).await;
    let kept = kept.map_err(|error| Failed::unexpected(error.to_string()))?;
    kept.map_err(|fault| cannot(&fault, name))?;
    let reference = format!("${{keyring:{SERVICE}/{name}}}");
    match session.screen.json {
        true => session
            .screen
            .json(&json!({"name": name, "reference": reference})),
        false => session.screen.answer(&format!(
            "Kept. Use it in steadyhand.toml as \"{reference}\""
        )),
    }
    Ok(())
}

/// From stdin; at a terminal it is asked for, and not shown.
fn read(session: &Session<'_>, name: &str) -> Result<SecretString, Failed> {
    let stdin = std::io::stdin();
    let mut text = String::new();
    let unreadable = |error: std::io::Error| {
        let message = format!("the secret cannot be read from stdin: {error}");
        Failed::new(Exit::Usage, "usage", message)
    };
    if stdin.is_terminal() {
        if session.global.no_input {
            let message = "the secret would have to be asked for, and --no-input forbids it";
            return Err(Failed::new(Exit::Usage, "usage", message).help(format!(
                "Pipe it: printf %s \"$KEY\" | steadyhand config set-secret {name}"
            )));
        }
        session
            .screen
            .note(&format!("The secret {name} (it is not shown):"));
        let unseen = Unseen::begin();
        stdin.lock().read_line(&mut text).map_err(unreadable)?;
        drop(unseen);
    } else {
        let mut limited = stdin.lock().take(BYTES_MAX);
        limited.read_to_string(&mut text).map_err(unreadable)?;
    }
    let secret = SecretString::from(text.trim_end_matches(['\n', '\r']).to_owned());
    if secret.expose_secret().is_empty() {
        let message = "the secret is empty; nothing was kept";
        return Err(Failed::new(Exit::Usage, "usage", message).help(format!(
            "Pipe it: printf %s \"$KEY\" | steadyhand config set-secret {name}"
        )));
    }
    Ok(secret)
}

fn cannot(fault: &KeyringFault, name: &str) -> Failed {
    let why = match fault {
        KeyringFault::NoStore(why) => {
            let why = why.split(" (os error").next().unwrap_or_default();
            format!("this system has no key store that can be reached ({why})")
        }
        KeyringFault::NoAccess(why) => format!("the key store cannot be written: {why}"),
        KeyringFault::Silent(after) => {
            format!(
                "the key store did not answer within {}",
                humantime::format_duration(*after)
            )
        }
        KeyringFault::NoEntry => "the key store does not take it".to_owned(),
        KeyringFault::Unusable(why) => why.clone(),
    };
    Failed::new(Exit::SignIn, "no_key_store", format!("{name} was not kept: {why}")).help(
        "Unlock or start it; or keep the secret in a file (${file:/run/secrets/NAME}) or a variable (${env:NAME})",
    )
}

/// While it lives, nothing that is typed is shown.
struct Unseen {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

impl Unseen {
    fn begin() -> Unseen {
        #[cfg(unix)]
        {
            use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
            let before = tcgetattr(std::io::stdin()).ok();
            if let Some(before) = &before {
                let mut quiet = before.clone();
                quiet.local_modes.remove(LocalModes::ECHO);
                let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet);
            }
            Unseen { before }
        }
        #[cfg(not(unix))]
        Unseen {}
    }
}

#[cfg(unix)]
impl Drop for Unseen {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
