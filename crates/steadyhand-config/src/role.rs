//! Roles, what each may do, and whose a call is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What someone is let in as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sees everything, runs nothing
    Viewer,
    /// Runs tools, and sees only calls of its own
    Caller,
    /// Runs tools, sees everything, says yes or no, resets and restarts
    Operator,
    /// Everything: keys and the configuration too
    Admin,
}

/// What may be done at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// What everybody may who is let in at all.
    Know,
    /// Run tools.
    Call,
    /// See what others do.
    View,
    /// Decide, reset, restart.
    Operate,
    /// Keys, the configuration.
    Administer,
}

impl Role {
    /// Every role, from the one with the fewest rights to the one with all.
    pub const ALL: [Role; 4] = [Role::Viewer, Role::Caller, Role::Operator, Role::Admin];

    /// As files and requests have it.
    pub fn word(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Caller => "caller",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    /// Whether it includes a right.
    pub fn may(self, right: Right) -> bool {
        match right {
            Right::Know => true,
            Right::Call => self != Role::Viewer,
            Right::View => self != Role::Caller,
            Right::Operate => matches!(self, Role::Operator | Role::Admin),
            Right::Administer => self == Role::Admin,
        }
    }
}

impl Right {
    /// As messages have it.
    pub fn word(self) -> &'static str {
        match self {
            Right::Know => "know",
            Right::Call => "call",
            Right::View => "view",
            Right::Operate => "operate",
            Right::Administer => "administer",
        }
    }

    /// The roles that have it, for those who do not.
    pub fn roles(self) -> String {
        let having = Role::ALL.into_iter().filter(|role| role.may(self));
        having.map(Role::word).collect::<Vec<_>>().join(", ")
    }
}

/// Whose call it is: `@ci` of `@ci/nightly`. A caller without a name of its own counts as what it says it is.
pub fn owner_of(caller: &str) -> &str {
    match caller.starts_with('@') {
        true => caller.split_once('/').map_or(caller, |(owner, _)| owner),
        false => caller,
    }
}
