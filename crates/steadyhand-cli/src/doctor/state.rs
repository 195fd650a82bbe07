//! What is kept: the state folder, and the history of calls.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Patient;
use super::check::{Check, Group, State};
use crate::history_path;
use steadyhand_config::Configuration;
use steadyhand_config::document::plain;
use steadyhand_config::surroundings::{NAME_A_STATE_FOLDER, NoStateFolder};
use steadyhand_runtime::audit::AuditOptions;
use steadyhand_store::history::inspect::{self, Soundness};
use steadyhand_store::history::{ACCEPT_COMMAND, KeysOptions};

/// How long a history is looked through: half a gigabyte takes a second or two.
const HISTORY_MAX: Duration = Duration::from_secs(5);

pub(super) async fn check(patient: Patient<'_>) -> Vec<Check> {
    let session = patient.session;
    let state = session.state();
    let place = match session.global.state {
        Some(_) => None,
        None => Some(session.surroundings.find_state_folder()),
    };
    let history = path_of(patient, patient.what_is_right);
    // Disks can be slow.
    let keys = session.keys_options(session.found().as_ref().map(|found| &*found.path));
    let is_audited = patient.what_is_right.root.audit.enabled.unwrap_or(true);
    let audit = session.audit_options_of(patient.what_is_right);
    let looking = tokio::task::spawn_blocking(move || {
        let mut checks = match place {
            Some(Err(none)) => vec![no_folder(&none)],
            Some(Ok(place)) if place.is_where_we_started => {
                vec![folder(&state), where_we_started(&state), sound(&history)]
            }
            Some(Ok(_)) | None => vec![folder(&state), sound(&history)],
        };
        checks.extend(keys_in_trouble(&keys));
        if is_audited {
            checks.extend(audit_in_trouble(&audit));
        }
        checks
    });
    looking.await.unwrap_or_default()
}

fn path_of(patient: Patient<'_>, configuration: &Configuration) -> PathBuf {
    let session = patient.session;
    let settings = session.history_settings(configuration);
    history_path(
        &session.surroundings,
        &session.state(),
        configuration,
        &settings,
    )
}

fn no_folder(none: &NoStateFolder) -> Check {
    let text = none.to_string();
    Check::new(Group::State, "state.folder", "folder", State::Fix, text).next(NAME_A_STATE_FOLDER)
}

fn where_we_started(state: &Path) -> Check {
    let text = format!(
        "{} is in the folder this was started in; it is used because it is there from an earlier version",
        state.display()
    );
    Check::new(Group::State, "state.place", "folder", State::Note, text)
        .next(format!("{NAME_A_STATE_FOLDER}, and move it there"))
}

fn folder(state: &Path) -> Check {
    let check = |fares: State, text: String| {
        Check::new(Group::State, "state.folder", "folder", fares, text)
    };
    let shown = state.display();
    match may_be_written(state) {
        Ok(()) => check(State::Ok, format!("{shown} can be written")),
        Err(error) => check(
            State::Fix,
            format!("{shown} cannot be written: {}", plain(&error)),
        )
        .next("Give it to this user (chown, chmod u+rwx), or name another: --state DIR"),
    }
}

/// Whether files can be made in a folder, or the folder itself could be.
fn may_be_written(folder: &Path) -> io::Result<()> {
    let there = folder.ancestors().find(|path| path.exists());
    let there = there.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    if !there.is_dir() {
        return Err(io::Error::other(format!(
            "{} is no folder",
            there.display()
        )));
    }
    // Permissions do not say everything: a disk may be read-only or full, and root may write to what takes no files.
    let file = there.join(format!(".doctor-{}", std::process::id()));
    fs::write(&file, "x")?;
    fs::remove_file(&file)
}

fn sound(path: &Path) -> Check {
    let check = |fares: State, text: String| {
        Check::new(Group::State, "state.history", "history", fares, text)
    };
    let shown = path.display();
    let size = fs::metadata(path).map_or(0, |file| file.len());
    let size = bytesize::ByteSize(size).display().si();
    match inspect::soundness(path, inspect::Which::History, HISTORY_MAX) {
        Soundness::Absent => check(
            State::Ok,
            "none yet: it is made with the first call".to_owned(),
        ),
        Soundness::Sound => check(State::Ok, format!("{shown} is sound, {size}")),
        Soundness::Unfinished => check(
            State::Ok,
            format!("{shown}, {size}: no fault in what could be looked through in a few seconds"),
        ),
        Soundness::Broken(why) => check(State::Fix, why).next(
            "The next steadyhand serve sets it aside and begins a new one; calls go on without it",
        ),
        Soundness::Unusable(why) => check(State::Fix, format!("the history cannot be read: {why}")),
    }
}

/// The audit log is told of only where it is broken or cannot be written.
fn audit_in_trouble(audit: &AuditOptions) -> Option<Check> {
    let (text, next) = match audit.verify(1) {
        Ok(Ok(_)) => {
            let error = may_be_written(&audit.folder).err()?;
            let folder = audit.folder.display();
            (
                format!(
                    "decisions and changes cannot be written down: {folder}: {}",
                    plain(&error)
                ),
                "Give the folder to this user, or take away what is in its place",
            )
        }
        Ok(Err(broken)) => (
            format!(
                "the audit log is broken at record {}: {}",
                broken.record, broken.reason
            ),
            "Find out who changed it, and keep a copy: steadyhand audit verify says more",
        ),
        Err(error) => (
            format!(
                "the audit log in {} cannot be read: {}",
                audit.folder.display(),
                plain(&error)
            ),
            "See to the folder and its permissions",
        ),
    };
    Some(Check::new(Group::State, "state.audit", "audit", State::Fix, text).next(next))
}

/// Idempotency keys are told of only where calls that have one would be refused.
fn keys_in_trouble(options: &KeysOptions) -> Option<Check> {
    let shown = options.path().display();
    let (why, next) = match inspect::soundness_of_keys(options, HISTORY_MAX) {
        Soundness::Absent | Soundness::Sound | Soundness::Unfinished => {
            let folder = options.path().parent()?;
            let error = may_be_written(folder).err()?;
            (
                format!("{} cannot be written: {}", folder.display(), plain(&error)),
                "Make room on its disk, give the folder to this user, or take away what is in its place".to_owned(),
            )
        }
        Soundness::Broken(why) => (
            why,
            format!(
                "Which keys were used is in {shown}: put its newest copy back, or run {ACCEPT_COMMAND} once no caller repeats a call from before"
            ),
        ),
        Soundness::Unusable(why) => (
            why,
            format!("See to {shown} and its permissions, and look again; it must not be deleted"),
        ),
    };
    let text = format!("calls with an idempotency key are refused: {why}");
    Some(Check::new(Group::State, "state.keys", "keys", State::Fix, text).next(next))
}
