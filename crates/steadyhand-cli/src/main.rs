//! The program `steadyhand`.

/// A call allocates some hundred times, in one thread, and is freed in others: docs/benchmarks.md has what the system's
/// allocator costs there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    steadyhand_cli::main()
}
