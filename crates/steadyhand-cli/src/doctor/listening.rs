//! Who listens on a port of this machine, as far as the system tells.

use std::fs;

/// Processes that are looked at.
const PROCESSES_MAX: usize = 20_000;
/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// `python3 (pid 4711)`: of our own processes always, of others only for root.
pub(super) fn who(port: u16) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let texts = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok());
    let sockets: Vec<String> = texts.flat_map(|text| sockets(&text, port)).collect();
    if sockets.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten().take(PROCESSES_MAX);
    for process in processes {
        let pid = process.file_name().to_string_lossy().into_owned();
        if !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let files = fs::read_dir(process.path().join("fd"));
        let holds = files.into_iter().flatten().flatten().any(|file| {
            let link = fs::read_link(file.path()).unwrap_or_default();
            sockets
                .iter()
                .any(|socket| *socket == link.to_string_lossy())
        });
        if holds {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("{} (pid {pid})", name.trim()));
        }
    }
    None
}

/// `socket:[inode]` of everything that listens on a port.
fn sockets(table: &str, port: u16) -> Vec<String> {
    let end = format!(":{port:04X}");
    let rows = table.lines().skip(1).map(|row| row.split_whitespace());
    let found = rows.filter_map(|row| {
        let row: Vec<&str> = row.collect();
        let is_it = row.get(1)?.ends_with(&end) && *row.get(3)? == LISTEN;
        is_it.then(|| format!("socket:[{}]", row.get(9).unwrap_or(&"")))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_found_by_its_port_if_it_listens() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:1CE8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 41 1 0 100 0 0 10 0\n   1: 0100007F:1CE8 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 42 1 0 100 0 0 10 0\n";
        assert_eq!(sockets(table, 7400), ["socket:[41]"]);
        assert_eq!(sockets(table, 7401), Vec::<String>::new());
    }
}
