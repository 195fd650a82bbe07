//! Finding the file of a program, and saying where else one is.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use steadyhand_process::{NotFound, Reason, find_command, find_command_with_home};
use tempfile::TempDir;

/// No program of any system has this name.
const NAME: &str = "steadyhand-test-npx";

/// A folder that is a home, a base and a working directory.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, name: &str, mode: u32) -> PathBuf {
        let file = self.path().join(name);
        fs::create_dir_all(file.parent().expect("a parent")).expect("its folder");
        fs::write(&file, "#!/bin/sh\n").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("its mode");
        file
    }

    fn find(&self, name: &str, path: &str) -> Result<PathBuf, NotFound> {
        let here = self.path();
        find_command_with_home(name, here, OsStr::new(path), here, Some(here))
    }
}

#[test]
fn a_name_is_found_on_path_and_a_path_below_its_base() {
    let place = Place::new();
    let file = place.file(&format!("bin/{NAME}"), 0o755);
    let bin = place.path().join("bin");
    assert_eq!(
        place.find(NAME, &format!("/nowhere:{}", bin.display())),
        Ok(file.clone())
    );
    assert_eq!(
        place.find(NAME, "bin"),
        Ok(file.clone()),
        "relative to the folder"
    );
    assert_eq!(place.find(&format!("bin/{NAME}"), ""), Ok(file.clone()));
    assert_eq!(
        place
            .find(&format!("./bin/{NAME}"), "")
            .map(|it| it.exists()),
        Ok(true)
    );
    assert_eq!(place.find(&file.display().to_string(), ""), Ok(file));
    assert!(
        find_command(
            "sh",
            Path::new("/"),
            OsStr::new("/bin:/usr/bin"),
            Path::new("/")
        )
        .is_ok()
    );
}

#[test]
fn a_program_that_path_does_not_hold_is_found_elsewhere_the_newest_first() {
    let place = Place::new();
    let expected = [
        ".nvm/versions/node/v22.14.0/bin",
        ".nvm/versions/node/v9.11.2/bin",
        ".volta/bin",
        ".asdf/shims",
        ".local/bin",
        ".cargo/bin",
        ".pyenv/shims",
        ".bun/bin",
        ".deno/bin",
    ]
    .map(|folder| place.file(&format!("{folder}/{NAME}"), 0o755));
    // Not a program, so of no help.
    place.file(&format!(".nvm/versions/node/v23.0.0/bin/{NAME}"), 0o644);
    let lost = place.find(NAME, "/nowhere:/bin").expect_err("not on PATH");
    assert_eq!(lost.reason, Reason::Missing);
    assert_eq!(lost.name, NAME);
    assert_eq!(lost.path, Some(OsString::from("/nowhere:/bin")));
    assert_eq!(lost.file, None);
    assert_eq!(lost.elsewhere, expected);
}

#[test]
fn a_program_that_is_nowhere_is_missing() {
    let place = Place::new();
    for (name, path) in [(NAME, "/bin"), (NAME, ""), ("", "/bin"), ("..", "/bin")] {
        let lost = place.find(name, path).expect_err("nowhere");
        assert_eq!(lost.reason, Reason::Missing, "{name} {path}");
        assert_eq!(lost.elsewhere, Vec::<PathBuf>::new(), "{name}");
    }
    let lost = place.find("bin/none", "/bin").expect_err("nowhere");
    let expected = NotFound {
        name: "bin/none".to_owned(),
        path: None,
        file: Some(place.path().join("bin/none")),
        elsewhere: Vec::new(),
        reason: Reason::Missing,
    };
    assert_eq!(lost, expected);
}

#[test]
fn a_file_that_cannot_be_executed_and_a_folder_are_told_apart() {
    let place = Place::new();
    let file = place.file(&format!("bin/{NAME}"), 0o644);
    for (name, path) in [(NAME, "bin"), (&format!("bin/{NAME}"), "/bin")] {
        let lost = place.find(name, path).expect_err("no program");
        assert_eq!(lost.reason, Reason::NotExecutable);
        assert_eq!(lost.file.as_deref(), Some(file.as_path()));
    }
    let lost = place.find("./bin", "/bin").expect_err("a folder");
    assert_eq!(lost.reason, Reason::IsFolder);
    // A folder on PATH with the name of a program is no program at all.
    let lost = place
        .find("bin", &place.path().display().to_string())
        .expect_err("a folder");
    assert_eq!(lost.reason, Reason::Missing);
}
