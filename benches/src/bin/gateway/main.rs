//! What an MCP gateway costs between a client and a server, and what it does when the server is killed.
//!
//! `gateway upstream ADDRESS TOOLS`   a trivial MCP server over HTTP, both eras
//! `gateway stdio TOOLS`              the same on stdin and stdout
//! `gateway bare ADDRESS UPSTREAM`    a reverse proxy that looks at nothing: the floor
//! `gateway drive FILE`               measures the systems a file names, in turns, and prints JSON
//! `gateway kill FILE`                kills what is behind each of them under load, and prints JSON

mod bare;
mod client;
mod drive;
mod kill;
mod process;
mod upstream;

use serde::Deserialize;

/// One thing to measure.
#[derive(Debug, Clone, Deserialize)]
struct System {
    name: String,
    /// Where its MCP endpoint is: `127.0.0.1:1234/mcp`.
    address: String,
    path: String,
    /// The process whose tree is the gateway; none for the upstream itself.
    pid: Option<u32>,
    /// As it calls the tools `echo` and `sleep`.
    #[serde(default = "echo")]
    echo: String,
    #[serde(default)]
    modern: bool,
    /// How often less than the others it is asked, where it is too slow for as many.
    #[serde(default = "one")]
    slower: u32,
}

fn echo() -> String {
    "echo".to_owned()
}

fn one() -> u32 {
    1
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |index: usize| args.get(index).map(String::as_str).unwrap_or_default();
    match arg(0) {
        "upstream" => upstream::over_http(arg(1), arg(2).parse().unwrap_or(1)),
        "stdio" => upstream::on_stdio(arg(1).parse().unwrap_or(1)),
        "bare" => bare::run(arg(1), arg(2)),
        "drive" => drive::run(&read(arg(1))),
        "list" => drive::lists(&read(arg(1))),
        "sessions" => drive::sessions(&read(arg(1))),
        "kill" => kill::run(arg(1)),
        other => {
            eprintln!("there is no {other:?}; see the first lines of gateway/main.rs");
            std::process::exit(2);
        }
    }
}

fn read(path: &str) -> Vec<System> {
    let text = std::fs::read_to_string(path).expect("the file of systems");
    serde_json::from_str(&text).expect("a list of systems")
}
