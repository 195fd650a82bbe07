//! `steadyhand tools enable` and `disable`: whether a tool is offered, written into the configuration.

use serde_json::json;

use super::Session;
use super::error::{Exit, Failed};
use super::mcp::file::File;
use super::tools::no_such_tool;
use steadyhand_config::edit;
use steadyhand_runtime::audit::AuditEvent;
use steadyhand_runtime::runtime::SWITCH;

pub(super) async fn set(session: &Session<'_>, tool: &str, on: bool) -> Result<(), Failed> {
    let file = File::find(session)?;
    if file.is_new {
        let message = format!("there is no {} that could say it", file.shown);
        return Err(
            Failed::new(Exit::Config, "config_file", message).help("Make one: steadyhand init")
        );
    }
    // Nothing is started for it.
    let runtime = session.runtime(|options| options.only_look = true).await?;
    let Some(switch) = runtime.switch_of(tool) else {
        return Err(no_such_tool(&runtime, tool));
    };
    let name = &switch.tool;
    let keys: Vec<&str> = switch.keys.iter().map(String::as_str).collect();
    let text = edit::set_switch(&file.text, &keys, SWITCH, on).map_err(|why| {
        let message = format!("{} was not changed: {why}", file.shown);
        Failed::new(Exit::Config, "config_file", message).help(format!(
            "Write {SWITCH} = {on} into [{}] by hand",
            keys.join(".")
        ))
    })?;
    let is_changed = text != file.text;
    if is_changed {
        let action = if on { "tool.enable" } else { "tool.disable" };
        let event = AuditEvent::of_command(action, session.user()).on(name);
        let write = || file.write(session, &text).map(drop);
        session.edited(event, write).await?;
    }
    let setting = switch.setting(on);
    if session.screen.json {
        let view = json!({"tool": name, "enabled": on, "file": file.shown, "setting": setting, "changed": is_changed});
        session.screen.json(&view);
        return Ok(());
    }
    let state = if on { "on" } else { "off" };
    session.screen.answer(&match is_changed {
        true => format!("{name} is switched {state}: {} says {setting}", file.shown),
        false => format!("{name} is switched {state} already: nothing was changed"),
    });
    Ok(())
}
