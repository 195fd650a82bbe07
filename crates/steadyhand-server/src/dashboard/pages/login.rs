//! `/login`: asks for the server's token.

use maud::{Markup, html};

pub(in super::super) fn body(back: &str, problem: Option<&str>) -> Markup {
    html! {
        section.panel.login {
            h1 { "Steadyhand" }
            p { "This server wants the " code { "token" } " that is set under " code { "[server]" } ", or a key (" code { "steadyhand keys create" } ")." }
            form method="post" action="/login" {
                label for="token" { "Token or key" }
                input id="token" name="token" type="password" required autocomplete="current-password" autofocus
                    aria-invalid=[problem.map(|_| "true")] aria-describedby=[problem.map(|_| "problem")];
                @if let Some(problem) = problem { p.bad id="problem" role="alert" { (problem) } }
                input type="hidden" name="back" value=(back);
                button.primary type="submit" { "Log in" }
            }
        }
    }
}
