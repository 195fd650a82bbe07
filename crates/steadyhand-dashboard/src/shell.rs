//! What is around every page: head, menu, foot.

use axum::http::{HeaderMap, Uri};
use axum::response::Html;
use maud::{DOCTYPE, Markup, html};

use super::{Menu, Page, assets, guard};
use steadyhand_config::role::Right;
use steadyhand_runtime::access::Identity;

const MENU: [(Menu, &str, &str, &str); 10] = [
    (Menu::Overview, "/", "Overview", "o"),
    (Menu::Calls, "/calls", "Calls", "c"),
    (Menu::Tools, "/tools", "Tools", "t"),
    (Menu::Servers, "/servers", "Servers", "s"),
    (Menu::Approvals, "/approvals", "Approvals", "a"),
    (Menu::Alerts, "/alerts", "Alerts", "l"),
    (Menu::Conversations, "/conversations", "Conversations", "v"),
    (Menu::Trends, "/trends", "Trends", "r"),
    (Menu::Audit, "/audit", "Audit", "u"),
    (Menu::Config, "/config", "Config", "f"),
];

/// The page as a browser gets it. With its address and the version of its inner part it is kept fresh.
/// The menu has the pages that `reader` may see; `None`: nobody knows who reads it.
pub(super) fn whole(
    headers: &HeaderMap,
    reader: Option<&Identity>,
    page: &Page,
    live: Option<(&Uri, &str)>,
) -> Html<String> {
    let address = live.map(|(uri, _)| uri.to_string());
    let back = address.as_deref().unwrap_or("/");
    let main = html! {
        header.top {
            a.brand href="/" { "Steadyhand" }
            nav aria-label="Main" {
                @for (menu, path, name, key) in MENU.into_iter().filter(|entry| is_for(reader, entry.0)) {
                    a href=(path) data-key=(key) aria-current=[(page.menu == menu).then_some("page")] { (name) @if menu == Menu::Approvals { (badge(page.waiting)) } }
                }
            }
            @if live.is_some() {
                span.connection data-testid="connection" data-state="none" role="status" {
                    noscript { a href=(back) { "Reload" } }
                }
            }
            (theme_form(headers, back))
            @if guard::is_logged_in(headers) {
                form method="post" action="/logout" { button.quiet type="submit" { "Log out" } }
            }
        }
        main id="main" tabindex="-1"
            data-version=[live.map(|(_, version)| version)] { (inner(page)) }
        footer {
            span { "Steadyhand " (env!("CARGO_PKG_VERSION")) }
            a href="/openapi.json" { "REST" }
            span.keys { "Keys: " kbd { "?" } }
        }
        (help(reader))
    };
    document(headers, page, main)
}

/// Whether somebody may see a page of the menu.
fn is_for(reader: Option<&Identity>, menu: Menu) -> bool {
    let right = match menu {
        Menu::Audit => Right::Administer,
        _ => return true,
    };
    reader.is_some_and(|reader| reader.may(right))
}

/// How many wait; a script keeps it right while the page is open.
fn badge(waiting: usize) -> Markup {
    html! { span.count id="waiting" hidden[waiting == 0] { (waiting) span.hidden { " waiting" } } }
}

/// Only the page, without a menu: the login.
pub(super) fn bare(headers: &HeaderMap, page: &Page) -> Html<String> {
    document(
        headers,
        page,
        html! { main.bare id="main" { (inner(page)) } },
    )
}

/// What is replaced when the page changes.
pub(super) fn inner(page: &Page) -> Markup {
    // The title is a part of it: the tab tells what the page tells.
    html! { div id="page" data-title=(title(page)) data-waiting=(page.waiting) { (page.body) } }
}

fn title(page: &Page) -> String {
    format!("{} – Steadyhand", page.title)
}

fn document(headers: &HeaderMap, page: &Page, body: Markup) -> Html<String> {
    let build = assets::build();
    let document = html! {
        (DOCTYPE)
        html lang="en" data-build=(build) data-theme=[guard::theme_of(headers)] {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title(page)) }
                link rel="icon" href=(format!("/assets/icon.svg?{build}")) type="image/svg+xml";
                link rel="stylesheet" href=(format!("/assets/app.css?{build}"));
                script src=(format!("/assets/live.js?{build}")) type="module" {}
                script src=(format!("/assets/app.js?{build}")) type="module" {}
                script src=(format!("/assets/charts.js?{build}")) type="module" {}
            }
            body {
                a.skip href="#main" { "To the content" }
                (body)
            }
        }
    };
    Html(document.into_string())
}

fn theme_form(headers: &HeaderMap, back: &str) -> Markup {
    let (next, name) = match guard::theme_of(headers) {
        None => ("dark", "Theme: system"),
        Some("dark") => ("light", "Theme: dark"),
        Some(_) => ("auto", "Theme: light"),
    };
    html! {
        form.theme method="post" action="/theme" {
            input type="hidden" name="theme" value=(next);
            input type="hidden" name="back" value=(back);
            button.quiet type="submit" { (name) }
        }
    }
}

fn help(reader: Option<&Identity>) -> Markup {
    let menu = MENU.into_iter().filter(|entry| is_for(reader, entry.0));
    let (keys, names): (Vec<&str>, Vec<&str>) = menu.map(|(_, _, name, key)| (key, name)).unzip();
    let keys = format!("g then {}", keys.join(" "));
    let pages = format!("go to {}", names.join(", "));
    let rows = [
        ("/", "search calls"),
        (keys.as_str(), pages.as_str()),
        ("j k", "next, previous row"),
        ("Enter", "open the row"),
        ("r", "replay the call"),
        ("?", "this help"),
    ];
    html! {
        dialog id="help" aria-labelledby="help-title" {
            h2 id="help-title" { "Keys" }
            dl.pairs {
                @for (keys, what) in rows {
                    dt { @for key in keys.split(' ') { @if key == "then" { " then " } @else { kbd { (key) } " " } } }
                    dd { (what) }
                }
            }
            form method="dialog" { button type="submit" { "Close" } }
        }
    }
}
