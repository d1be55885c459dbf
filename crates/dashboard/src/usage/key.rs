//! Moving the account to a new key: `POST /v1/account/rotate-key` as a form. No page shows a key.

use axum::Router;
use axum::http::HeaderMap;
use axum::http::header::SET_COOKIE;
use axum::response::Response;
use axum::routing::post;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::refused;
use crate::failure::{PageFailure, correctable};
use crate::form::{FormFields, SessionForm, check_current_key, current_key_field, token_field};
use crate::layout::{NavItem, page};
use crate::parts;
use crate::session::{self, Session};
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::contract::key_rotation::{KeyRotation, RotateKeyRequest};
use farescan_core::search::CallerKey;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/usage/key", post(rotate))
}

pub(super) fn form(session: &Session) -> Markup {
    html! {
        section class="card" id="key" {
            h2 { "Change the key" }
            p class="sub" { "The new key then owns everything that the old one owned: scans, prices, monitors. Running scans go on with the new key." }
            details class="fold" {
                summary { "Move this account to another marketplace key" }
                form class="stack" method="post" action="/usage/key" {
                    (token_field(session))
                    (current_key_field("current-key"))
                    div class="field" {
                        label for="new-key" { "New key" }
                        input id="new-key" name="new_key" type="password" autocomplete="off" spellcheck="false" required maxlength="512";
                        span class="hint" { "The marketplace checks it first; that may cost one request of the new key's plan. It must not own anything here yet." }
                    }
                    label { input type="checkbox" name="sure" value="yes" required; " Afterwards the old key belongs to an unknown caller. Programs that use it need the new one." }
                    button class="danger" type="submit" { "Check the new key and move to it" }
                }
            }
        }
    }
}

async fn rotate(headers: HeaderMap, form: SessionForm) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    match correctable(rotated(&session, &fields).await)? {
        Ok((rotation, key)) => {
            let cookie = session::sign_in(&headers, session.app(), key).await?;
            let mut response = done_page(&session, &rotation);
            response.headers_mut().insert(SET_COOKIE, cookie);
            Ok(response)
        }
        Err(error) => refused(&session, "The key was not changed", &error).await,
    }
}

async fn rotated(
    session: &Session,
    fields: &FormFields,
) -> Result<(KeyRotation, CallerKey), ApiError> {
    if fields.text("sure").is_none() {
        return Err(ApiError::invalid_request(
            "confirm that the old key belongs to an unknown caller afterwards",
        ));
    }
    check_current_key(session, fields)?;
    let mut body = Map::new();
    body.insert(
        "new_key".to_owned(),
        Value::from(fields.text("new_key").unwrap_or_default()),
    );
    let new_key = RotateKeyRequest::from_bytes(Value::Object(body).to_string().as_bytes())?.new_key;
    let rotation = session.app().rotate_key(session.caller(), &new_key).await?;
    Ok((rotation.into(), CallerKey::new(new_key.expose())))
}

fn done_page(session: &Session, rotation: &KeyRotation) -> Response {
    let lanes: Vec<_> = rotation
        .lanes_resumed
        .iter()
        .map(|lane| lane.as_str())
        .collect();
    let body = html! {
        (parts::head(&html! {}, "The account has a new key", &html! {}, &html! {}))
        section class="card" {
            dl class="kv" {
                dt { "Changed" } dd { (parts::time(rotation.rotated_at)) }
                dt { "Stored keys replaced" } dd { (rotation.held_keys) }
                dt { "Lanes that go on" } dd { @if lanes.is_empty() { "none had stopped" } @else { (lanes.join(", ")) } }
            }
            p { "You are signed in with the new key. Set it in your programs now." }
            p { a class="button primary" href=(super::PATH) { "Usage and limits" } }
        }
    };
    page(session, "The account has a new key", NavItem::Account, body)
}
