//! A process that owns groups and does what it is told on its input, for tests that kill it.
//!
//! It answers every line with one line. `start MARK SCRIPT` is answered with the number of the program; `stop`,
//! `drop` and `leave` want such a number.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::process::Stdio;
use std::time::Duration;

use steadyhand_process::{Group, adopt_orphans, settle, start};
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;

const GRACE: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(30);

fn main() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut groups = BTreeMap::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line == "end" {
            break;
        }
        let answer = obey(&runtime, &mut groups, &line)?;
        writeln!(io::stdout(), "{answer}")?;
    }
    // What is still there is killed when the runtime ends.
    let _entered = runtime.enter();
    drop(groups);
    Ok(())
}

fn obey(runtime: &Runtime, groups: &mut BTreeMap<u32, Group>, line: &str) -> io::Result<String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut take = || {
        let number = rest.parse().map_err(io::Error::other)?;
        groups.remove(&number).ok_or(io::ErrorKind::NotFound.into())
    };
    match word {
        "adopt" => adopt_orphans(),
        "start" => {
            let (mark, script) = rest.split_once(' ').unwrap_or((rest, ""));
            let (group, _) = runtime.block_on(start(|| program(mark, script)))?;
            let pid = group.pid();
            groups.insert(pid, group);
            return Ok(pid.to_string());
        }
        "stop" => {
            let group: io::Result<Group> = take();
            runtime.block_on(group?.stop(GRACE));
        }
        "stop-all" => runtime.block_on(async {
            let all = std::mem::take(groups).into_values();
            let stopping: JoinSet<()> = all.map(|group| group.stop(GRACE)).collect();
            stopping.join_all().await;
        }),
        "drop" => {
            let group: io::Result<Group> = take();
            runtime.block_on(async { drop(group) });
            runtime.block_on(settle(LONG));
        }
        "leave" => {
            let mut group: Group = take()?;
            runtime.block_on(async {
                let ended = group.ended().await;
                group.leave();
                ended
            })?;
        }
        // Waits for the end of all at once, as long as it is told.
        "idle" => {
            let limit = Duration::from_millis(rest.parse().map_err(io::Error::other)?);
            runtime.block_on(async {
                let all = std::mem::take(groups).into_values();
                let waiting = all.map(|mut group| async move {
                    let _ = timeout(limit, group.ended()).await;
                    group
                });
                let waiting: JoinSet<Group> = waiting.collect();
                let idle = waiting.join_all().await;
                groups.extend(idle.into_iter().map(|group| (group.pid(), group)));
            });
        }
        // Ends without a word to anybody.
        "vanish" => std::process::exit(0),
        _ => return Err(io::Error::other(format!("no such order: {line}"))),
    }
    Ok(word.to_owned())
}

fn program(mark: &str, script: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", script, mark])
        .env("TEST_MARK", mark)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}
