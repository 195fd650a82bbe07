//! `/login`: asks for the server's token.

use maud::{Markup, html};

use super::super::guard::Login;

pub(in super::super) fn body(back: &str, login: Login) -> Markup {
    let problem = match login {
        Login::Problem(problem) => Some(problem),
        Login::Wanted | Login::ToDecide => None,
    };
    html! {
        section.panel.login {
            h1 { "Steadyhand" }
            @if let Login::ToDecide = login {
                p { "Everybody on this machine may look at these pages. To approve a call or to accept a changed tool, log in." }
            }
            p { "Open the link that " code { "steadyhand serve" } " printed when it started, or another one from " code { "steadyhand approvals" } "." }
            p { "This server also takes the " code { "token" } " that is set under " code { "[server]" } ", or a key (" code { "steadyhand keys create" } ")." }
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
