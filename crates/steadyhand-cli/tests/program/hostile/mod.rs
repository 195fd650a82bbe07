//! The hostile world: every fault we know, one tool each, in one running program, over every surface and under load.
//! `scripts/hostile-world` prints it as a table, and runs the load for minutes.

mod commands;
mod functions;
mod load;
mod peers;
mod servers;
mod surfaces;
mod web;
mod world;

use std::time::Duration;

use load::Load;
use surfaces::Surface;
use world::World;

/// How long the load runs here; the script says how long instead.
fn load_time() -> Duration {
    let seconds = std::env::var("STEADYHAND_WORLD_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(8))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r09_t01_the_hostile_world_gives_one_true_outcome_over_every_surface_and_under_load() {
    let world = World::begin().await;
    for surface in [Surface::Rest, Surface::Mcp, Surface::Stdio, Surface::Cli] {
        surfaces::ask_for_everything(&world, surface).await;
    }
    // Two tools leave a line each time they run: an error or a time limit after that is no reason to run them again.
    let acted = std::fs::read_to_string(world.served.workplace.file("acted"));
    assert_eq!(acted.expect("a line for each").lines().count(), 2 * 4);
    let load = Load::run(&world, load_time()).await;
    load.assert_all_accounted_for(&world).await;
    load.assert_memory_is_flat();
    load.print();
    world.end().await;
}
