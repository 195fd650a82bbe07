//! What the provider proxy costs between a client and a provider: CPU of a valid conversation of 50 KB, the time to the
//! first token, the memory of a stream.
//!
//! `proxy bare ADDRESS UPSTREAM`   a reverse proxy that looks at nothing: the floor
//! `proxy upstream ADDRESS`        a provider that answers at once, whole or streamed
//! `proxy drive STEADYHAND`        starts both and the program, measures them in turns, prints tables

#[path = "../gateway/bare.rs"]
mod bare;
mod conversation;
mod drive;
#[path = "../gateway/process.rs"]
mod process;
mod systems;
mod upstream;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |index: usize| args.get(index).map(String::as_str).unwrap_or_default();
    match arg(0) {
        "bare" => bare::run(arg(1), arg(2)),
        "upstream" => upstream::run(arg(1)),
        "drive" => drive::run(arg(1)),
        other => {
            eprintln!("there is no {other:?}; see the first lines of proxy/main.rs");
            std::process::exit(2);
        }
    }
}
