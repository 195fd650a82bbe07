//! The program `steadyhand`.

fn main() -> std::process::ExitCode {
    steadyhand_server::cli::main()
}
