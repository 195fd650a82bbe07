//! Options whose values are an enum of another crate: their names and help on the command line.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use steadyhand_config::connect::{Client, Scope};
use steadyhand_config::role::Role;

/// One of the values of an option.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice<T>(pub(super) T);

/// The values that can be chosen.
pub(super) trait Choices: Copy + Send + Sync + 'static {
    const ALL: &'static [Choice<Self>];

    /// How a value is written, and what it means.
    fn name_and_help(self) -> (&'static str, &'static str);
}

impl<T: Choices> ValueEnum for Choice<T> {
    fn value_variants<'a>() -> &'a [Choice<T>] {
        T::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = self.0.name_and_help();
        Some(PossibleValue::new(name).help(help))
    }
}

impl Choices for Role {
    const ALL: &'static [Choice<Role>] = &[
        Choice(Role::Viewer),
        Choice(Role::Caller),
        Choice(Role::Operator),
        Choice(Role::Admin),
    ];

    fn name_and_help(self) -> (&'static str, &'static str) {
        let help = match self {
            Role::Viewer => "Sees everything, runs nothing",
            Role::Caller => "Runs tools, and sees only calls of its own",
            Role::Operator => "Runs tools, sees everything, says yes or no, resets and restarts",
            Role::Admin => "Everything: keys and the configuration too",
        };
        (self.word(), help)
    }
}

impl Choices for Client {
    const ALL: &'static [Choice<Client>] = &[
        Choice(Client::ClaudeCode),
        Choice(Client::ClaudeDesktop),
        Choice(Client::Cursor),
        Choice(Client::VsCode),
        Choice(Client::Codex),
        Choice(Client::Curl),
    ];

    fn name_and_help(self) -> (&'static str, &'static str) {
        let help = match self {
            Client::VsCode => "Visual Studio Code",
            Client::Curl => "A request by hand",
            other => other.title(),
        };
        (self.word(), help)
    }
}

impl Choices for Scope {
    const ALL: &'static [Choice<Scope>] = &[Choice(Scope::Project), Choice(Scope::User)];

    fn name_and_help(self) -> (&'static str, &'static str) {
        match self {
            Scope::Project => ("project", "The one of this folder, which can be shared"),
            Scope::User => ("user", "The one of this user"),
        }
    }
}
