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

async fn show(
    State(app): State<AppState>,
    Path(link): Path<String>,
) -> Result<Response, PageFailure> {
    let ring = &app.custody()?.ring;
    if UnsubscribeLink::open(ring, &link).is_none() {
        return Err(PageFailure::not_found("link"));
    }
    let page = html! {
        h1 { "Stop these mails?" }
        p { "No more alerts are sent to this address." }
        form method="post" class="stack" { button class="primary" type="submit" { "Stop them" } }
    };
    Ok(layout::bare_page(StatusCode::OK, "Stop these mails", page))
}

async fn unsubscribe(
    State(app): State<AppState>,
    Path(link): Path<String>,
) -> Result<Response, PageFailure> {
    let (pool, ring) = (&app.pools()?.writes, &app.custody()?.ring);
    match channels::unsubscribe(pool, ring, &link, app.now()?).await {
        Ok(true) => {}
        Ok(false) => {
            let page = html! {
                h1 { "Nothing was changed" }
                p { "This link has ended. Use the link of the newest mail." }
            };
            return Ok(layout::bare_page(
                StatusCode::NOT_FOUND,
                "Nothing was changed",
                page,
            ));
        }
        Err(CommandError::NotFound(_)) => {
            return Err(PageFailure::not_found("link"));
        }
        Err(error) => return Err(error.into()),
    }
    let page = html! {
        h1 { "No more mails" }
        p { "This address gets no more alerts of this channel." }
    };
    Ok(layout::bare_page(StatusCode::OK, "No more mails", page))
}

async fn show_no_codes(
    State(app): State<AppState>,
    Path(link): Path<String>,
) -> Result<Response, PageFailure> {
    let ring = &app.custody()?.ring;
    if NoCodesLink::open(ring, &link).is_none() {
        return Err(PageFailure::not_found("link"));
    }
    let page = html! {
        h1 { "No more codes?" }
        p { "For a year no code is mailed to this address, whoever asks for one." }
        form method="post" class="stack" { button class="primary" type="submit" { "No more codes" } }
    };
    Ok(layout::bare_page(StatusCode::OK, "No more codes?", page))
}

async fn forbid_codes(
    State(app): State<AppState>,
    Path(link): Path<String>,
) -> Result<Response, PageFailure> {
    let (pool, ring) = (&app.pools()?.writes, &app.custody()?.ring);
    match channels::forbid_codes(pool, ring, &link).await {
        Ok(()) => {}
        Err(CommandError::NotFound(_)) => {
            return Err(PageFailure::not_found("link"));
        }
        Err(error) => return Err(error.into()),
    }
    let page = html! {
        h1 { "No more codes" }
        p { "For a year no code is mailed to this address." }
    };
    Ok(layout::bare_page(StatusCode::OK, "No more codes", page))
}
