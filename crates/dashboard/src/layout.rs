//! The frame of every page: head, navigation, headers of the response.

use axum::http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use farescan_sheets::scan::NEW_SCANS_RUN;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::form::token_field;
use super::session::Session;
use super::{assets, links};
use farescan_core::visible_text::VisibleText;

/// A page loads only its own files, sends forms only here, and nobody frames it.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);
/// A page of the same origin that opened this one, such as `/docs`, gets no hold on it.
const OPENER: (HeaderName, HeaderValue) = (
    HeaderName::from_static("cross-origin-opener-policy"),
    HeaderValue::from_static("same-origin"),
);
/// With `no-referrer` browsers would send `Origin: null` with a form.
const REFERRER: HeaderValue = HeaderValue::from_static("same-origin");

/// What the navigation marks as the place of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NavItem {
    Home,
    Trips,
    Monitors,
    Activity,
    Scans,
    Alerts,
    Deliveries,
    Account,
    Channels,
}

/// An entry of the navigation's first row, and its pages, which a second row has if they are several.
struct NavEntry {
    name: &'static str,
    pages: &'static [(NavItem, &'static str, &'static str)],
}

const ENTRIES: [NavEntry; 4] = [
    NavEntry {
        name: "Home",
        pages: &[(NavItem::Home, "Home", links::OVERVIEW)],
    },
    NavEntry {
        name: "Trips",
        pages: &[
            (NavItem::Trips, "Routes and hotels", "/prices"),
            (NavItem::Monitors, "Monitors", links::MONITORS),
        ],
    },
    NavEntry {
        name: "Activity",
        pages: &[
            (NavItem::Activity, "All", links::ACTIVITY),
            (NavItem::Scans, "Scans", "/scans"),
            (NavItem::Alerts, "Alerts", links::ALERTS),
            (NavItem::Deliveries, "Deliveries", links::DELIVERIES),
        ],
    },
    NavEntry {
        name: "Account",
        pages: &[
            (NavItem::Account, "Usage and limits", "/usage"),
            (NavItem::Channels, "Channels", links::CHANNELS),
        ],
    },
];

impl NavEntry {
    fn has(&self, item: NavItem) -> bool {
        self.pages.iter().any(|(page, ..)| *page == item)
    }
}

/// The two rows: the entries, and the pages of the one that is open.
fn navigation(active: NavItem) -> [Markup; 2] {
    let first = html! {
        nav aria-label="Pages" {
            @for entry in &ENTRIES {
                @if let Some((_, _, path)) = entry.pages.first() {
                    a href=(path) aria-current=[entry.has(active).then_some("true")] { (entry.name) }
                }
            }
        }
    };
    let several = |entry: &&NavEntry| entry.has(active) && entry.pages.len() > 1;
    let second = html! {
        @for entry in ENTRIES.iter().filter(several) {
            nav class="second" aria-label=(entry.name) {
                @for (item, name, path) in entry.pages {
                    a href=(path) aria-current=[(*item == active).then_some("page")] { (name) }
                }
            }
        }
    };
    [first, second]
}

/// A page of a signed-in caller. `title` is the page's own; `body` begins with its `h1`. With another
/// status, such as 422 for a form that has to be corrected, it is `(status, page).into_response()`.
pub(super) fn page(session: &Session, title: &str, active: NavItem, body: Markup) -> Response {
    live_page(session, title, active, None, body)
}

/// The same of what changes by itself: without JavaScript it is read again after so many seconds.
pub(super) fn live_page(
    session: &Session,
    title: &str,
    active: NavItem,
    again_after: Option<u8>,
    body: Markup,
) -> Response {
    let [first, second] = navigation(active);
    let header = html! {
        header class="top" {
            div class="top-inner" {
                a class="brand" href=(links::OVERVIEW) { "fare" span { "scan" } }
                @if session.app().is_sandbox() {
                    span class="chip warn" title="Searches go to the sandbox: prices are invented and nothing is billed" { "Sandbox" }
                }
                (first)
                // The pages of Home have the box of questions, which finds as well.
                @if active != NavItem::Home { (find_box()) }
                a class="docs" href="/docs/" { "API" }
                form class="sign-out" method="post" action=(links::LOGOUT) {
                    (token_field(session))
                    button class="quiet" type="submit" title="Ends every session of this key, on every device" { "Sign out" }
                }
            }
            (second)
            @if session.is_all_paused() {
                p class="all-paused" { b { "All monitors and scans are paused." } " " (NEW_SCANS_RUN) " " a href=(links::RESUME_ALL) { "Resume everything" } }
            }
        }
    };
    document(StatusCode::OK, title, again_after, header, body)
}

fn find_box() -> Markup {
    html! {
        form class="find" method="get" action=(links::FIND) role="search" aria-label="Find" {
            input id="find" name="q" type="search" maxlength="500" placeholder="Find or ask  /" aria-label="Find a scan or monitor, or ask" aria-keyshortcuts="/ Control+K" autocomplete="off" autocapitalize="none" spellcheck="false";
        }
    }
}

/// A page without a session: the login page and errors.
pub(super) fn bare_page(status: StatusCode, title: &str, body: Markup) -> Response {
    let header = html! {
        header class="top" {
            div class="top-inner" { a class="brand" href=(links::OVERVIEW) { "fare" span { "scan" } } }
        }
    };
    document(
        status,
        title,
        None,
        header,
        html! { div class="card narrow" { (body) } },
    )
}

/// Where a person can go from a page that has nothing to show.
pub(super) fn ways_onward() -> Markup {
    html! {
        p class="actions" {
            a class="button primary" href=(links::OVERVIEW) { "Home" }
            a class="button" href="/prices" { "Trips" }
            a class="button" href=(links::ACTIVITY) { "Activity" }
            a class="button" href="/docs/" { "API" }
        }
    }
}

fn document(
    status: StatusCode,
    title: &str,
    again_after: Option<u8>,
    header: Markup,
    body: Markup,
) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · farescan" }
                link rel="icon" type="image/svg+xml" href=(assets::icon_path());
                link rel="stylesheet" href=(assets::style_path());
                script src=(assets::script_path()) defer {}
                // Only the head may have it.
                @if let Some(seconds) = again_after { noscript { meta http-equiv="refresh" content=(seconds); } }
            }
            body {
                a class="skip" href="#main" { "Skip to the content" }
                (header)
                main id="main" { (body) }
            }
        }
    };
    let page = PreEscaped(VisibleText::lines(page.into_string()).into_string());
    let headers = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, REFERRER),
        OPENER,
    ];
    (status, headers, page).into_response()
}
