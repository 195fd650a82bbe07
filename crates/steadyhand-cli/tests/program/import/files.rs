//! Known names, the places they stand for, and lists of files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use steadyhand_config::Surroundings;
use steadyhand_config::import::{Client, Importer};
use steadyhand_config::surroundings::System;

use super::{OneEntry, lines, notes, problems};

fn at(home: &Path, current: &Path) -> Surroundings {
    Surroundings::given([], home, current, Arc::new(OneEntry))
}

#[test]
fn known_names_stand_for_the_files_of_each_system() {
    let variables = [("APPDATA", "/roaming"), ("LOCALAPPDATA", "/local")];
    for (name, system, expected) in [
        (
            "claude-desktop",
            System::Linux,
            vec!["/h/.config/Claude/claude_desktop_config.json"],
        ),
        (
            "claude-desktop",
            System::Mac,
            vec!["/h/Library/Application Support/Claude/claude_desktop_config.json"],
        ),
        (
            "claude-desktop",
            System::Windows,
            vec!["/roaming/Claude/claude_desktop_config.json"],
        ),
        (
            "claude-code",
            System::Linux,
            vec!["/h/.claude.json", "/w/.mcp.json"],
        ),
        (
            "cursor",
            System::Mac,
            vec!["/w/.cursor/mcp.json", "/h/.cursor/mcp.json"],
        ),
        (
            "vscode",
            System::Linux,
            vec!["/w/.vscode/mcp.json", "/h/.config/Code/User/mcp.json"],
        ),
        (
            "vscode",
            System::Mac,
            vec![
                "/w/.vscode/mcp.json",
                "/h/Library/Application Support/Code/User/mcp.json",
            ],
        ),
        (
            "vscode",
            System::Windows,
            vec!["/w/.vscode/mcp.json", "/roaming/Code/User/mcp.json"],
        ),
        (
            "windsurf",
            System::Windows,
            vec!["/h/.codeium/windsurf/mcp_config.json"],
        ),
        (
            "gemini",
            System::Linux,
            vec!["/w/.gemini/settings.json", "/h/.gemini/settings.json"],
        ),
        ("goose", System::Mac, vec!["/h/.config/goose/config.yaml"]),
        (
            "goose",
            System::Windows,
            vec!["/roaming/Block/goose/config/config.yaml"],
        ),
        (
            "codex",
            System::Linux,
            vec!["/w/.codex/config.toml", "/h/.codex/config.toml"],
        ),
        (
            "crush",
            System::Linux,
            vec![
                "/w/.crush.json",
                "/w/crush.json",
                "/h/.config/crush/crush.json",
            ],
        ),
        (
            "crush",
            System::Windows,
            vec!["/w/.crush.json", "/w/crush.json", "/local/crush/crush.json"],
        ),
    ] {
        let (home, current) = (Path::new("/h"), Path::new("/w"));
        let mut around = Surroundings::given(variables, home, current, Arc::new(OneEntry));
        around.system = system;
        let client = Client::by_name(name).expect(name);
        let expected: Vec<&Path> = expected.into_iter().map(Path::new).collect();
        assert_eq!(client.files(&around), expected, "{name} on {system:?}");
        for file in client.files(&around) {
            assert_eq!(Client::of_file(&file), client, "{}", file.display());
        }
    }
    let moved = [("XDG_CONFIG_HOME", "/xdg"), ("CODEX_HOME", "/codex")];
    let mut around =
        Surroundings::given(moved, Path::new("/h"), Path::new("/w"), Arc::new(OneEntry));
    around.system = System::Linux;
    assert_eq!(
        Client::Goose.files(&around),
        [Path::new("/xdg/goose/config.yaml")]
    );
    assert_eq!(
        Client::Codex.files(&around)[1],
        Path::new("/codex/config.toml")
    );
    assert_eq!(Client::by_name("emacs"), None);
}

#[test]
fn the_order_of_the_list_decides_who_keeps_a_name() {
    let home = tempfile::tempdir().expect("a folder");
    let work = tempfile::tempdir().expect("a folder");
    let write = |path: &Path, text: &str| {
        fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write(
        &work.path().join(".mcp.json"),
        r#"{"mcpServers": {"shared": {"command": "portable"}, "playwright": {"command": "p"}}}"#,
    );
    write(
        &work.path().join(".cursor/mcp.json"),
        r#"{"mcpServers": {"shared": {"command": "cursor"}, "here": {"command": "${workspaceFolderBasename}"}}}"#,
    );
    write(
        &home.path().join(".cursor/mcp.json"),
        r#"{"mcpServers": {"here": {"command": "user"}, "user": {"command": "${workspaceFolder}"}}}"#,
    );
    let importer = Importer::new(at(home.path(), work.path()));
    let wanted = [".mcp.json", "cursor", ".mcp.json"];
    let imported = importer.read_all(&wanted, &["playwright"], work.path());
    let name = work.path().file_name().expect("a name").to_string_lossy();
    assert_eq!(
        lines(&imported),
        [
            "shared: stdio portable []".to_owned(),
            format!("here: stdio {name} []"),
            format!("user: stdio {} []", work.path().display()),
        ]
    );
    let losers: Vec<String> = imported
        .not_used
        .iter()
        .map(|loser| {
            let file = loser.origin.file.display();
            format!("{} {file} {}", loser.name, loser.used.file.display())
        })
        .collect();
    let project = work.path().join(".cursor/mcp.json");
    assert_eq!(
        losers,
        [
            format!(
                "shared {} {}",
                project.display(),
                work.path().join(".mcp.json").display()
            ),
            format!(
                "here {} {}",
                home.path().join(".cursor/mcp.json").display(),
                project.display()
            ),
        ]
    );
}

#[test]
fn claude_code_s_own_order_is_kept() {
    let home = tempfile::tempdir().expect("a folder");
    let work = tempfile::tempdir().expect("a folder");
    let project = work.path().to_string_lossy();
    let user = serde_json::json!({
        "mcpServers": {"a": {"command": "user"}, "b": {"command": "user"}, "c": {"command": "user"}},
        "projects": {project: {"mcpServers": {"a": {"command": "local"}}}},
    });
    fs::write(home.path().join(".claude.json"), user.to_string()).expect("a file");
    let shared = r#"{"mcpServers": {"a": {"command": "shared"}, "b": {"command": "shared"}}}"#;
    fs::write(work.path().join(".mcp.json"), shared).expect("a file");
    let importer = Importer::new(at(home.path(), work.path()));
    let imported = importer.read_all(&["claude-code"], &[], work.path());
    assert_eq!(
        lines(&imported),
        [
            "a: stdio local []",
            "b: stdio shared []",
            "c: stdio user []"
        ]
    );
    assert_eq!(imported.not_used.len(), 3);
}

#[test]
fn a_path_that_is_not_there_is_a_problem_and_a_program_that_is_not_there_a_remark() {
    let folder = tempfile::tempdir().expect("a folder");
    let importer = Importer::new(at(folder.path(), folder.path()));
    let imported = importer.read_all(&["windsurf", "missing.json", "."], &[], folder.path());
    let notes = notes(&imported);
    assert_eq!(notes.len(), 1);
    assert!(notes[0].contains("windsurf: no such file: "), "{notes:?}");
    assert!(notes[0].contains("mcp_config.json"), "{notes:?}");
    let problems = problems(&imported);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].starts_with("1:1 cannot be read"),
        "{problems:?}"
    );
    assert_eq!(problems[1], "1:1 is no file");
    assert!(imported.problems[0].file.ends_with("missing.json"));
}

#[test]
fn a_file_too_large_or_not_text_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let importer = Importer::new(at(folder.path(), folder.path()));
    for (name, content, expected) in [
        (
            "large.json",
            vec![b' '; 8 * 1024 * 1024 + 1],
            "1:1 is larger than 8 MiB",
        ),
        (
            "binary.json",
            vec![0xff, 0xfe, 0x00],
            "1:1 is not valid UTF-8",
        ),
    ] {
        fs::write(folder.path().join(name), content).expect("a file");
        let imported = importer.read(&folder.path().join(name));
        assert_eq!(problems(&imported), [expected]);
    }
}

#[test]
fn files_are_read_and_never_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(".mcp.json");
    let text =
        r#"{ "mcpServers" : {"a": {"command": "c", "env": {"K": "${TOKEN}"}}} } // as it is"#;
    fs::write(&file, text).expect("a file");
    let before = fs::metadata(&file)
        .and_then(|data| data.modified())
        .expect("a time");
    Importer::new(at(folder.path(), folder.path())).read(&file);
    assert_eq!(fs::read_to_string(&file).expect("still there"), text);
    let after = fs::metadata(&file)
        .and_then(|data| data.modified())
        .expect("a time");
    assert_eq!(before, after);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}
