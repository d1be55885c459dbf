//! The webhook of a monitor with its last deliveries.

use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::response::Response;
use farescan_sheets::numbers;
use farescan_sheets::schedule;
use maud::{Markup, html};

use crate::deliveries;
use crate::form::current_key_field;
use crate::layout::{NavItem, page_with_status};
use crate::links;
use crate::once::once_field;
use crate::parts::{self, ConfirmationPage, Tone};
use crate::session::Session;
use farescan_core::contract::monitors::{Monitor, OffReason, ShownSecret};
use farescan_core::contract::webhooks::Delivery;

pub(super) fn card(session: &Session, monitor: &Monitor, recent: &[Delivery]) -> Markup {
    let all = parts::with_query(links::DELIVERIES, "monitor_id", &monitor.id.to_string());
    html! {
        section class="card" {
            div class="card-head" {
                h2 { "Webhook" }
                @if !recent.is_empty() { a href=(all) { "All deliveries" } }
            }
            @match &monitor.webhook {
                None => {
                    (parts::empty_state(&html! {
                        p { "No webhook: alerts are only shown here." }
                        a class="button" href={ (links::monitor(monitor.id)) "/edit" } { "Set one" }
                    }))
                }
                Some(webhook) => {
                    dl class="kv" {
                        dt { "URL" } dd { code { (webhook.url) } }
                        dt { "State" }
                        dd {
                            @match (webhook.off_at, webhook.failing_since) {
                                (Some(off), _) => {
                                    (parts::chip(Tone::Bad, "off")) " since " (parts::time(off)) ": "
                                    (match webhook.off_reason {
                                        Some(OffReason::Gone) => "the receiver answered 410",
                                        Some(OffReason::Failing) => "it failed for five days",
                                        None => "switched off",
                                    })
                                }
                                (None, Some(since)) => { (parts::chip(Tone::Warn, "failing")) " since " (parts::time(since)) }
                                (None, None) => { (parts::chip(Tone::Good, "on")) }
                            }
                        }
                        dt { "Last delivered" }
                        dd { @match webhook.delivered_at { Some(at) => { (parts::time(at)) } None => { "never" } } }
                    }
                    @if let Some(notify) = &monitor.notify {
                        p class="sub" { (schedule::notify(notify, &monitor.schedule.timezone))
                            @if let Some(held) = &monitor.held { " " (numbers::count(held.fired)) " held until " (parts::zoned(held.notify_at, &monitor.schedule.timezone)) "." }
                            @else if let Some(next) = monitor.next_digest_at { " The next digest is at " (parts::zoned(next, &monitor.schedule.timezone)) "." }
                        }
                    }
                    div class="actions" { (actions(session, monitor, webhook.off_at.is_some())) }
                    @if recent.is_empty() {
                        (parts::empty_state(&html! { p { "Nothing was sent yet. Send a test to see whether the receiver answers." } }))
                    } @else {
                        div class="scroll" tabindex="0" role="region" aria-label="Last deliveries" { (deliveries::table(recent, None)) }
                    }
                }
            }
        }
    }
}

fn actions(session: &Session, monitor: &Monitor, is_off: bool) -> Markup {
    let path = links::monitor(monitor.id);
    html! {
        @if is_off {
            (ConfirmationPage {
                action: &format!("{path}/enable-webhook"),
                label: "Switch on",
                question: html! { p { "New alerts are sent again. Failed deliveries are sent again only one by one, on their pages. This costs nothing." } },
                confirm: "Switch the webhook on",
                is_destructive: false,
                fields: html! {},
            }.render(session))
        } @else {
            (ConfirmationPage {
                action: &format!("{path}/test"),
                label: "Send a test",
                question: html! { p { "One event " code { "monitor.test" } " is sent to the URL, without retries. No search is made and nothing is billed." } },
                confirm: "Send the test",
                is_destructive: false,
                fields: once_field(),
            }.render(session))
        }
        (ConfirmationPage {
            action: &format!("{path}/rotate-secret"),
            label: "New secret",
            question: html! { p { "The new signing secret is shown once. For 24 hours each try is also signed with the old one. This costs nothing." } },
            confirm: "Make a new secret",
            is_destructive: true,
            fields: current_key_field("secret-current-key"),
        }.render(session))
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
        div class="head" { h1 { (title) } }
        (secret_notice(secret))
        p { "Next: " a href=(links::monitor(monitor.id)) { "open the monitor" } " and send a test to the webhook." }
        @if let Some(slot) = monitor.next_slot { p { "Next run: " (parts::time(slot)) "." } }
    };
    let mut response = page_with_status(status, session, title, NavItem::Monitors, body);
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(response)
}
