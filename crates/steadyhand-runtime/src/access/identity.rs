//! Someone who was let in: by what, as what, and with which limits.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pace::Pace;
use super::tools::Tools;
use steadyhand_config::role::{Right, Role, owner_of};

/// Someone who was let in.
pub struct Identity {
    /// `@name`; none where nobody was asked for one. Nobody else can have it: names that callers give themselves do
    /// not begin like that.
    pub name: Option<Arc<str>>,
    pub by: By,
    pub role: Role,
    pub tools: Tools,
    pub pace: Option<Arc<Pace>>,
}

/// What let someone in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The server asks for nothing.
    Nothing,
    /// The token of the configuration.
    Token,
    /// A command on this machine.
    Local,
    /// An API key.
    Key,
    /// A token of an issuer.
    Jwt,
}

impl By {
    pub fn word(self) -> &'static str {
        match self {
            By::Nothing => "nothing",
            By::Token => "token",
            By::Local => "local",
            By::Key => "key",
            By::Jwt => "jwt",
        }
    }
}

impl Identity {
    /// One that may do nothing but know.
    pub fn nobody() -> Identity {
        Identity {
            role: Role::Caller,
            name: Some("@".into()),
            ..Identity::unlimited(By::Nothing)
        }
    }

    /// One that may do everything, and has no name.
    pub fn unlimited(by: By) -> Identity {
        Identity {
            name: None,
            by,
            role: Role::Admin,
            tools: Tools::default(),
            pace: None,
        }
    }

    pub fn may(&self, right: Right) -> bool {
        self.role.may(right)
    }

    /// Whether it may make decisions that loosen something: approve a call, accept a changed tool, make a key. A server
    /// that asks nobody for credentials lets everybody in, the programs that it started itself included.
    pub fn may_decide(&self) -> bool {
        self.by != By::Nothing
    }

    /// Whose calls it may see: none means everybody's.
    pub fn sees_only(&self) -> Option<&Arc<str>> {
        match self.may(Right::View) {
            true => None,
            false => self.name.as_ref(),
        }
    }

    /// Whether it may see a call with this caller.
    pub fn sees(&self, caller: Option<&str>) -> bool {
        let is_own = |own: &Arc<str>| caller.is_some_and(|caller| owner_of(caller) == &**own);
        self.sees_only().is_none_or(is_own)
    }

    /// Whether it may end a call with this caller.
    pub fn may_end(&self, caller: &str) -> bool {
        let is_own = |own: &Arc<str>| owner_of(caller) == &**own;
        self.may(Right::Operate) || self.name.as_ref().is_some_and(is_own)
    }

    pub fn view(&self) -> Value {
        let rights = [
            Right::Know,
            Right::Call,
            Right::View,
            Right::Operate,
            Right::Administer,
        ];
        let rights = rights.into_iter().filter(|right| self.may(*right));
        json!({
            "name": self.name.as_deref().map(|name| name.trim_start_matches('@')),
            "by": self.by.word(),
            "role": self.role.word(),
            "rights": rights.map(Right::word).collect::<Vec<_>>(),
            "tools": self.tools,
            "rate": self.pace.as_ref().map(|pace| pace.rate.to_string()),
        })
    }
}
