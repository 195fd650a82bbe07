//! What a process and all it has started use: CPU time and memory, from /proc.

use std::fs;

/// Microseconds of CPU of a process and its descendants.
pub fn cpu_us(pid: u32) -> f64 {
    tree(pid).into_iter().map(of_threads).sum::<u64>() as f64 / 1e3
}

/// Resident memory of a process and its descendants, in KB.
pub fn rss_kb(pid: u32) -> u64 {
    tree(pid).into_iter().filter_map(rss_of).sum()
}

/// Nanoseconds, as the scheduler counts them.
fn of_threads(pid: u32) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return 0;
    };
    let of_task = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    tasks.filter_map(|task| of_task(task.ok()?)).sum()
}

fn rss_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The children of a process, those that are upstreams of the benchmark left out.
pub fn tree(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() {
        let children = format!("/proc/{0}/task/{0}/children", found[next]);
        let text = fs::read_to_string(children).unwrap_or_default();
        let pids = text.split_whitespace().filter_map(|pid| pid.parse().ok());
        found.extend(pids.filter(|pid| !is_upstream(*pid)));
        next += 1;
    }
    found
}

/// A child on stdio is the server, not the gateway.
pub fn is_upstream(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    words.first().is_some_and(|program| program.ends_with(b"/gateway")) && words.get(1) == Some(&&b"stdio"[..])
}
