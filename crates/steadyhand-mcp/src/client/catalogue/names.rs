//! Names for the tools of a server: valid for model providers, unique, and the same every time.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

/// What model providers accept.
const NAME_LENGTH_MAX: usize = 64;
/// A server's part of a name that is too long: what tells its tools apart needs room, too.
const SERVER_LENGTH_MAX: usize = 24;
/// Hex digits at the end of a name that was cut or clashes.
const HASH_LENGTH: usize = 8;

/// One name per tool, in the order of the tools: `server__tool`, or the tool's own name where `prefix`
/// is false.
///
/// A name depends on its own tool only. The one exception are clashes (`a.b` and `a_b` are both `a_b`):
/// a tool that has the name unchanged keeps it, the others get a hash of what they are really called.
pub fn assign(server: &str, prefix: bool, tools: &[&str]) -> Vec<String> {
    let server = prefix.then_some(server);
    let mut occurrences: HashMap<&str, usize> = HashMap::new();
    let wishes: Vec<Wish<'_>> = tools
        .iter()
        .map(|tool| {
            let seen = occurrences.entry(tool).or_default();
            *seen += 1;
            Wish::new(server, tool, *seen - 1)
        })
        .collect();

    let mut claims: HashMap<&str, usize> = HashMap::new();
    for wish in &wishes {
        *claims.entry(&wish.name).or_default() += 1;
    }
    let keeps = |wish: &Wish<'_>| claims[wish.name.as_str()] == 1 || wish.is_unchanged();
    let mut taken: HashSet<String> = wishes
        .iter()
        .filter(|wish| keeps(wish))
        .map(|wish| wish.name.clone())
        .collect();

    let mut names: Vec<String> = wishes.iter().map(|wish| wish.name.clone()).collect();
    let mut losers: Vec<usize> = (0..wishes.len())
        .filter(|&index| !keeps(&wishes[index]))
        .collect();
    // By name and not by place: the order a server lists its tools in must not matter.
    losers.sort_by_key(|&index| (wishes[index].tool, wishes[index].occurrence));
    for index in losers {
        names[index] = wishes[index].marked_unlike(&taken);
        taken.insert(names[index].clone());
    }
    names
}

/// The name a tool would have if it were alone.
struct Wish<'a> {
    server: Option<&'a str>,
    tool: &'a str,
    /// A server may list one tool twice.
    occurrence: usize,
    name: String,
}

impl<'a> Wish<'a> {
    fn new(server: Option<&'a str>, tool: &'a str, occurrence: usize) -> Wish<'a> {
        let mut wish = Wish {
            server,
            tool,
            occurrence,
            name: String::new(),
        };
        let whole = wish.joined(usize::MAX);
        wish.name = match whole.len() <= NAME_LENGTH_MAX {
            true => whole,
            false => wish.marked(0),
        };
        wish
    }

    /// Nothing had to be changed to make the name valid, so nobody has a better claim to it.
    fn is_unchanged(&self) -> bool {
        let own = match self.server {
            Some(server) => format!("{server}__{}", self.tool),
            None => self.tool.to_owned(),
        };
        self.occurrence == 0 && own == self.name
    }

    fn joined(&self, server_length_max: usize) -> String {
        let tool = plain(self.tool);
        match self.server {
            Some(server) => {
                let server = plain(server);
                // Only ASCII is left, so every place is the edge of a character.
                let server = &server[..server.len().min(server_length_max)];
                format!("{server}__{tool}")
            }
            None if tool.is_empty() => "_".to_owned(),
            None => tool,
        }
    }

    /// The name with a hash at its end, another one for each `salt`.
    fn marked(&self, salt: usize) -> String {
        let mut hash = Sha256::new();
        for part in [self.server.unwrap_or_default(), self.tool] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(
            [self.occurrence as u64, salt as u64]
                .map(u64::to_le_bytes)
                .concat(),
        );
        let hash: String = hash
            .finalize()
            .iter()
            .take(HASH_LENGTH / 2)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let room = NAME_LENGTH_MAX - HASH_LENGTH - 1;
        let mut name = self.joined(usize::MAX);
        if name.len() > room {
            name = self.joined(SERVER_LENGTH_MAX);
            name.truncate(room);
        }
        format!("{}_{hash}", name.trim_end_matches(['_', '-']))
    }

    fn marked_unlike(&self, taken: &HashSet<String>) -> String {
        let mut salt = 0;
        loop {
            let name = self.marked(salt);
            if !taken.contains(&name) {
                return name;
            }
            salt += 1;
        }
    }
}

/// Every character that is not allowed in a name becomes `_`.
fn plain(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect()
}

/// How the names of a server's tools begin: with all of its name, or with as much as a long name is cut to.
pub fn prefix(server: &str) -> String {
    let mut name = plain(server);
    match name.len() <= SERVER_LENGTH_MAX {
        true => name.push_str("__"),
        false => name.truncate(SERVER_LENGTH_MAX),
    }
    name
}

/// A server's name as a file's name: letters that fit, and what tells it from others that look the same.
pub(crate) fn file_name(server: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let plain: String = server.chars().filter(|c| fits(*c)).take(64).collect();
    match plain == server {
        true => plain,
        false => format!("{plain}-{}", hash(server)),
    }
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    hex[..HASH_LENGTH].to_owned()
}
