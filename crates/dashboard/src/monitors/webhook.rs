//! The webhook of a monitor with its last deliveries.

use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use farescan_sheets::delivery;
use farescan_sheets::sheet::Section;
use maud::{Markup, html};

use super::new_form::WHERE_TO;
use crate::form::current_key_field;
use crate::layout::{NavItem, page};
use crate::links;
use crate::once::once_field;
use crate::parts::{self, ConfirmationPage};
use crate::session::Session;
use crate::sheet;
use farescan_core::contract::monitors::{Monitor, ShownSecret};
use farescan_core::contract::webhooks::Delivery;

/// Its settings with their buttons and the last deliveries.
pub(super) fn card(
    session: &Session,
    monitor: &Monitor,
    section: &Section,
    recent: &[Delivery],
) -> Markup {
    let all = links::with_query(links::DELIVERIES, "monitor_id", &monitor.id.to_string());
    let beside = html! {
        a href=(links::CHANNELS) { "Channels" }
        @if !recent.is_empty() { a href=(all) { "All deliveries" } }
    };
    let more = html! {
        @match &monitor.webhook {
            None => {
                div class="actions" {
                    a class="button" href={ (links::monitor(monitor.id)) "/edit#" (WHERE_TO) } { "Choose channels or a webhook" }
                }
            }
            Some(webhook) => {
                div class="actions" { (actions(session, monitor, webhook.off_at.is_some())) }
                @if recent.is_empty() {
                    (parts::empty_state(&html! { p { "Nothing was sent yet. Send a test to see whether the receiver answers." } }))
                } @else { (sheet::table(&delivery::recent(recent))) }
            }
        }
    };
    sheet::section(section, &beside, &more)
}

fn actions(session: &Session, monitor: &Monitor, is_off: bool) -> Markup {
    let path = links::monitor(monitor.id);
    html! {
        @if is_off {
            (ConfirmationPage::new(&format!("{path}/enable-webhook"), "Switch on", "Switch the webhook on", html! {
                p { "New alerts are sent again. Failed deliveries are sent again only one by one, on their pages. This costs nothing." }
            }).render(session))
        } @else {
            (ConfirmationPage::new(&format!("{path}/test"), "Send a test", "Send the test", html! {
                p { "One event " code { "monitor.test" } " is sent to the URL, without retries. No search is made and nothing is billed." }
            }).fields(once_field()).render(session))
        }
        (ConfirmationPage::new(&format!("{path}/rotate-secret"), "New secret", "Make a new secret", html! {
            p { "The new signing secret is shown once. For 24 hours each try is also signed with the old one. This costs nothing." }
        }).destructive().fields(current_key_field("secret-current-key")).render(session))
    }
}

/// A secret that no later page shows.
pub(super) fn secret_notice(secret: &ShownSecret) -> Markup {
    html! {
        div class="notice warn" {
            p { b { "The signing secret of the webhook. " } "No later page shows it: copy it to the receiver." }
            pre tabindex="0" { (secret.0.as_str()) }
        }
    }
}

/// The page with the secret of a webhook that was just opened, which no later page shows and no
/// browser stores; `None` if there is none.
pub(super) fn secret_page(
    session: &Session,
    monitor: &Monitor,
    title: &str,
    status: StatusCode,
) -> Option<Response> {
    let secret = monitor.webhook_secret.as_ref()?;
    let body = html! {
        (parts::head(&html! {}, title, &html! {}, &html! {}))
        (secret_notice(secret))
        p { "Next: " a href=(links::monitor(monitor.id)) { "open the monitor" } " and send a test to the webhook." }
        @if let Some(slot) = monitor.next_slot { p { "Next run: " (parts::time(slot)) "." } }
    };
    let mut response = (status, page(session, title, NavItem::Monitors, body)).into_response();
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(response)
}
