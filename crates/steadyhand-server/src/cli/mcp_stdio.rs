//! `steadyhand mcp-stdio`: all tools for an MCP client that starts us.

use std::sync::Arc;

use steadyhand_mcp::serve::Gateway;

use super::error::Failed;
use super::{Interrupts, Session, written};
use crate::approvals::Desk;
use crate::behind::Behind;
use crate::runtime::Options;
use crate::serve;

pub(super) async fn run(session: &Session<'_>) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen();
    steadyhand_process::adopt_orphans();
    // Whatever there is to say goes to stderr: stdout is for messages (SPEC V11).
    let desk = Desk::unlisted();
    let adapt = |options: &mut Options| {
        options.relays = true;
        options.desk = Some(desk.clone());
    };
    let runtime = session.runtime(adapt).await?;
    desk.set_wait(serve::approval_wait(&runtime.generation().configuration));
    session.tell_problems(&runtime);
    let history = session.remember(&runtime);
    let gateway = Gateway::new(Arc::new(Behind::alone(runtime.clone())));
    let serving = gateway.serve(tokio::io::stdin(), tokio::io::stdout());
    let ended = tokio::select! {
        served = serving => served,
        _ = interrupts.next() => Ok(()),
    };
    session.stop(&runtime, &mut interrupts).await;
    written(history).await;
    ended.map_err(|error| Failed::unexpected(format!("the client cannot be reached: {error}")))
}
