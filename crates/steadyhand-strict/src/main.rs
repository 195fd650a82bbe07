//! `steadyhand-strict [ADDRESS]`: the strict providers as a program, for clients in any language.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program tells where it is"
)]

use std::process::ExitCode;

use steadyhand_conversation::{Provider, strict};
use steadyhand_strict::StrictProviders;

#[tokio::main]
async fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    let wanted = wanted.unwrap_or_else(|| "127.0.0.1:7499".to_owned());
    let Ok(address) = wanted.parse() else {
        eprintln!("{wanted} is no address: give one like 127.0.0.1:7499");
        return ExitCode::from(2);
    };
    let providers = match StrictProviders::listen(address).await {
        Ok(providers) => providers,
        Err(error) => {
            eprintln!("cannot listen at {address}: {error}; give another address");
            return ExitCode::FAILURE;
        }
    };
    for provider in Provider::ALL {
        if !strict::stand_in(provider).path_ends().is_empty() {
            println!("{provider:<16} {}", providers.base_url(provider));
        }
    }
    // Until it is interrupted; without a way to hear that, until it is killed.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    ExitCode::SUCCESS
}
