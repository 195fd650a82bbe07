//! `steadyhand mcp-stdio`: all tools for an MCP client that starts us.

use std::sync::Arc;

use clap::Args;
use steadyhand_mcp::serve::Gateway;

use super::error::Failed;
use super::rehearsal::RehearsalArgs;
use super::{Interrupts, Session, written};
use steadyhand_runtime::approvals::Desk;
use steadyhand_runtime::runtime::Options;
use steadyhand_server::behind::Behind;

#[derive(Args)]
pub(super) struct McpStdioArgs {
    #[command(flatten)]
    rehearsal: RehearsalArgs,
}

pub(super) async fn run(session: &Session<'_>, args: &McpStdioArgs) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen();
    let rehearsal = args.rehearsal.read(session)?;
    steadyhand_process::adopt_orphans();
    // Whatever there is to say goes to stderr: stdout is for messages (SPEC V11).
    let desk = Desk::unlisted();
    let adapt = |options: &mut Options| {
        options.relays = true;
        options.desk = Some(desk.clone());
        rehearsal.apply(options);
    };
    let runtime = session.runtime(adapt).await?;
    let generation = runtime.generation();
    let configuration = &generation.configuration;
    desk.set_wait(configuration.approval_wait());
    desk.set_by_caller(
        configuration
            .root
            .server
            .approval_by_caller
            .unwrap_or(false),
    );
    session.log_as(&runtime.generation().configuration);
    session.tell_problems(&runtime);
    let history = session.remember(&runtime);
    let generation = runtime.generation();
    let audit = session.audit_approvals(&desk, &generation.configuration, history.clone());
    let take = rehearsal.begin(session, &runtime)?;
    let gateway = Gateway::new(Arc::new(Behind::alone(runtime.clone())));
    let serving = gateway.serve(tokio::io::stdin(), tokio::io::stdout());
    let ended = tokio::select! {
        served = serving => served,
        _ = interrupts.next() => Ok(()),
    };
    session.stop(&runtime, &mut interrupts).await;
    take.end(session).await;
    audit.flush().await;
    written(session, history).await;
    ended.map_err(|error| Failed::unexpected(format!("the client cannot be reached: {error}")))
}
