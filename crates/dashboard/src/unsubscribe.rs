//! `/unsubscribe/{link}` ends the mails to an address, `/no-codes/{link}` the codes. Both need no session:
//! whoever has the link reads the mails (channels.md, rules 21 and 24).
//!
//! A GET shows a button and changes nothing, because scanners of mail open links. A POST is the button, or
//! a mail program's own (RFC 8058), which sends no `Origin`.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use maud::html;

use super::failure::PageFailure;
use super::layout;
use farescan_core::app::AppState;
use farescan_core::channels;
use farescan_core::commands::CommandError;
use farescan_core::webhooks::consent::{NoCodesLink, UnsubscribeLink};

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/unsubscribe/{link}", get(show).post(unsubscribe))
        .route("/no-codes/{link}", get(show_no_codes).post(forbid_codes))
}

/// A page with its title, a sentence, and the button of the form if it asks.
fn page(status: StatusCode, title: &str, sentence: &str, button: Option<&str>) -> Response {
    let body = html! {
        h1 { (title) }
        p { (sentence) }
        @if let Some(button) = button {
            form method="post" class="stack" { button class="primary" type="submit" { (button) } }
        }
    };
    layout::bare_page(status, title, body)
}

/// A page that asks, if this service has made the link.
fn question(is_link: bool, [title, sentence, button]: [&str; 3]) -> Result<Response, PageFailure> {
    is_link
        .then(|| page(StatusCode::OK, title, sentence, Some(button)))
        .ok_or_else(|| PageFailure::not_found("link"))
}

fn failure(error: CommandError) -> PageFailure {
    match error {
        CommandError::NotFound(_) => PageFailure::not_found("link"),
        error => error.into(),
    }
}

async fn show(
    State(app): State<AppState>,
    Path(link): Path<String>,
) -> Result<Response, PageFailure> {
    let is_link = UnsubscribeLink::open(&app.custody()?.ring, &link).is_some();
    let says = "No more alerts are sent to this address.";
    question(is_link, ["Stop these mails?", says, "Stop them"])
}

async fn unsubscribe(
    State(app): State<AppState>,
    Path(link): Path<String>,
) -> Result<Response, PageFailure> {
    let (pool, ring) = (&app.pools()?.writes, &app.custody()?.ring);
    let is_ended = channels::unsubscribe(pool, ring, &link, app.now()?).await;
    Ok(if is_ended.map_err(failure)? {
        let says = "This address gets no more alerts of this channel.";
        page(StatusCode::OK, "No more mails", says, None)
    } else {
        let says = "This link has ended. Use the link of the newest mail.";
        page(StatusCode::NOT_FOUND, "Nothing was changed", says, None)
    })
}

async fn show_no_codes(
    State(app): State<AppState>,
    Path(link): Path<String>,
) -> Result<Response, PageFailure> {
    let is_link = NoCodesLink::open(&app.custody()?.ring, &link).is_some();
    let says = "For a year no code is mailed to this address, whoever asks for one.";
    question(is_link, ["No more codes?", says, "No more codes"])
}

async fn forbid_codes(
    State(app): State<AppState>,
    Path(link): Path<String>,
) -> Result<Response, PageFailure> {
    let (pool, ring) = (&app.pools()?.writes, &app.custody()?.ring);
    let forbidden = channels::forbid_codes(pool, ring, &link).await;
    forbidden.map_err(failure)?;
    let says = "For a year no code is mailed to this address.";
    Ok(page(StatusCode::OK, "No more codes", says, None))
}
