//! MCP servers in the files of other programs on this machine: which there are, and where. Those files are only read.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{Session, value};
use steadyhand_config::Surroundings;
use steadyhand_config::import::{Client, Imported, ImportedServer, Importer, Transport};

/// Beside the known programs: the file that several of them share.
const SHARED_FILE: &str = ".mcp.json";

/// One place to look, and what is there.
pub(super) struct Found {
    /// As `[import] mcp` names it.
    pub(super) source: String,
    pub(super) imported: Imported,
}

impl Found {
    /// As people name the place: `Claude Desktop`, or the file.
    pub(super) fn place(&self) -> String {
        match Client::by_name(&self.source) {
            Some(client) => client.to_string(),
            None => self.source.clone(),
        }
    }
}

/// Every place where another program may have servers, as far as there are some. Paths are relative to `folder`.
pub(super) fn everywhere(surroundings: &Surroundings, folder: &Path) -> Vec<Found> {
    let mut sources: Vec<String> = Client::KNOWN.map(|(name, _)| name.to_owned()).into();
    if folder.join(SHARED_FILE).is_file() {
        sources.insert(0, SHARED_FILE.to_owned());
    }
    let mut seen: Vec<(PathBuf, String)> = Vec::new();
    let mut found = Vec::new();
    for source in sources {
        let importer = Importer::new(surroundings.clone());
        let mut imported = importer
            .read_all(&[source.as_str()], &[], folder)
            .without_ourselves();
        // `.mcp.json` is Claude Code's, too.
        imported.servers.retain(|server| {
            let place = (server.origin.file.clone(), server.name.clone());
            let is_new = !seen.contains(&place);
            seen.push(place);
            is_new
        });
        if !imported.servers.is_empty() || !imported.problems.is_empty() {
            found.push(Found { source, imported });
        }
    }
    found
}

/// `3 MCP servers in .mcp.json and Claude Desktop`; none where there is no server.
pub(super) fn summary(found: &[Found]) -> Option<String> {
    let with_servers = found.iter().filter(|one| !one.imported.servers.is_empty());
    let places: Vec<String> = with_servers.map(Found::place).collect();
    let servers = found.iter().flat_map(|one| &one.imported.servers);
    // A name that two programs have is one server here.
    let names: HashSet<&str> = servers.map(|server| server.name.as_str()).collect();
    let count = value::counted(names.len(), "MCP server");
    Some(format!("{count} in {}", in_words(&places)?))
}

/// What could not be read of those files, and what to do about it.
pub(super) fn tell_problems(session: &Session<'_>, found: &[Found]) {
    for problem in found.iter().flat_map(|one| &one.imported.problems) {
        let place = session.surroundings.shown(&problem.file);
        session.screen.note(&format!(
            "{}:{}: {}; {}",
            place.display(),
            problem.line,
            problem.message,
            problem.help
        ));
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn in_words(names: &[String]) -> Option<String> {
    let (last, others) = names.split_last()?;
    Some(match others {
        [] => last.clone(),
        others => format!("{} and {last}", others.join(", ")),
    })
}

/// What is started or asked, as it may be shown.
pub(super) fn command(server: &ImportedServer) -> String {
    match &server.transport {
        Transport::Stdio { command, args, .. } => {
            let words = [command].into_iter().chain(args);
            let words: Vec<String> = words.map(|word| word.shown().to_owned()).collect();
            words.join(" ")
        }
        Transport::Http { url, .. } | Transport::Sse { url, .. } => url.shown().to_owned(),
    }
}
