//! The program `steadyhand`.

/// What one thread makes for a call another one frees when it has written it down: glibc's allocator takes half as long again
/// over that, and gives less back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    steadyhand_server::cli::main()
}
