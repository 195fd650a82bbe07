//! `steadyhand explain CODE`: what an error means and what to do about it, without a network.

use clap::Args;

use super::codes;
use super::error::{Exit, Failed};
use super::screen::Screen;

#[derive(Args)]
pub(super) struct ExplainArgs {
    /// The code of the error (-v and --json show it); without one: all there are
    code: Option<String>,
}

pub(super) fn run(screen: &Screen, args: &ExplainArgs) -> Result<(), Failed> {
    let Some(code) = &args.code else {
        list(screen);
        return Ok(());
    };
    let page = codes::find(code).ok_or_else(|| unknown(code))?;
    match screen.json {
        true => screen.json(&page.to_json()),
        false => screen.answer(&page.to_markdown()),
    }
    Ok(())
}

fn list(screen: &Screen) {
    if screen.json {
        let pages: Vec<_> = codes::all().map(codes::Page::to_json).collect();
        screen.json(&pages);
        return;
    }
    let width = codes::all().map(|page| page.code.len()).max().unwrap_or(0);
    let lines = codes::all().map(|page| format!("{:width$}  {}\n", page.code, page.gist()));
    screen.answer(&lines.collect::<String>());
}

fn unknown(code: &str) -> Failed {
    let help = match codes::nearest(code) {
        None => "steadyhand explain lists all of them".to_owned(),
        Some(near) => format!("Is it {near}? steadyhand explain lists all of them"),
    };
    Failed::new(
        Exit::Usage,
        "no_such_code",
        format!("no error has the code {code}"),
    )
    .help(help)
}
