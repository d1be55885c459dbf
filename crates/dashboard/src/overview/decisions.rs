//! What needs a decision: each with its reason, what it costs, and the button that mends it.

use farescan_sheets::numbers::counted;
use farescan_sheets::{delivery, scan, trip};
use maud::{Markup, html};

use crate::links;
use crate::parts::{self, ConfirmationPage, Tone, chip};
use crate::session::Session;
use crate::{channels, deliveries as delivery_pages, scans as scan_pages};
use farescan_core::contract::channels::{Channel, ChannelStatus};
use farescan_core::contract::monitors::{Monitor, MonitorPause, SlotOutcome};
use farescan_core::contract::scans::{PauseReason, Scan};
use farescan_core::contract::webhooks::Delivery;
use farescan_core::scans::undecided::{MAX_LISTED, UndecidedScan};

/// The most of each kind that are shown.
pub(super) const MOST: u16 = 10;

/// What the caller has to decide about.
#[derive(Default)]
pub(super) struct Decisions {
    /// All of them.
    pub(super) paused: Vec<Scan>,
    /// The newest ones.
    pub(super) incomplete: Vec<Scan>,
    /// Empty if there is one or none.
    pub(super) all_incomplete: Vec<UndecidedScan>,
    pub(super) has_more_incomplete: bool,
    pub(super) monitors: Vec<Monitor>,
    /// The number of all failing monitors.
    pub(super) all_monitors: usize,
    pub(super) channels: Vec<Channel>,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) has_more_deliveries: bool,
}

/// Why a monitor fails, and whether its webhook is the cause. `monitors::read::failing` finds those
/// that do.
fn failure(monitor: &Monitor) -> Option<(&'static str, bool)> {
    let paused = match monitor.status_reason {
        Some(MonitorPause::KeyRejected) => Some(
            "The marketplace does not know its key. Resume it with the key that you signed in with.",
        ),
        Some(MonitorPause::NotSubscribed) => Some(
            "Its key has no subscription to the API. Subscribe on the marketplace, then resume it.",
        ),
        Some(MonitorPause::ByCaller) => return None,
        None => None,
    };
    let is_off = |monitor: &Monitor| {
        let webhook = monitor.webhook.as_ref();
        webhook.is_some_and(|webhook| webhook.off_at.is_some())
    };
    let slot = || match monitor.last_slot.as_ref()?.outcome {
        SlotOutcome::Failed => Some("Its last run could not start. Its page has the reason."),
        SlotOutcome::MonthlyCeiling => Some(
            "Its last run was skipped: the monthly limit is reached. Change the limit, or wait for the next month.",
        ),
        _ => None,
    };
    paused
        .or_else(slot)
        .map(|reason| (reason, false))
        .or_else(|| is_off(monitor).then_some(("Its webhook is off: alerts reach nobody.", true)))
}

impl Decisions {
    pub(super) fn count(&self) -> usize {
        self.paused.len()
            + self.incomplete.len().max(self.all_incomplete.len())
            + self.all_monitors
            + self.channels.len()
            + self.deliveries.len()
    }

    /// Whether there are more than [`Self::count`].
    pub(super) fn has_more(&self) -> bool {
        self.all_incomplete.len() >= usize::from(MAX_LISTED) || self.has_more_deliveries
    }

    /// The list; nothing if there is nothing to decide.
    pub(super) fn section(&self, session: &Session) -> Markup {
        html! {
            @if self.count() > 0 {
                section class="card" {
                    div class="card-head" {
                        h2 { "Needs a decision" }
                        div class="actions" { (scan_pages::decision_buttons(session, &self.all_incomplete)) }
                    }
                    ul class="todo" {
                        @let most = usize::from(MOST);
                        @for scan in self.paused.iter().take(most) { (paused(session, scan)) }
                        (rest(self.paused.len().saturating_sub(most), "paused scan", "/scans?status=paused"))
                        @for scan in &self.incomplete { (incomplete(session, scan)) }
                        @if self.has_more_incomplete { (more("More incomplete scans", "/scans?status=incomplete")) }
                        @for monitor in &self.monitors { (failing(session, monitor)) }
                        (rest(self.all_monitors.saturating_sub(self.monitors.len()), "failing monitor", links::MONITORS))
                        @for channel in self.channels.iter().take(most) { (failing_channel(session, channel)) }
                        (rest(self.channels.len().saturating_sub(most), "failing channel", links::CHANNELS))
                        @for delivery in &self.deliveries { (given_up(session, delivery)) }
                        @if self.has_more_deliveries {
                            (more("More failed deliveries", &links::with_query(links::DELIVERIES, "status", "failed")))
                        }
                    }
                }
            }
        }
    }
}

/// A line for those that are not shown.
fn rest(number: usize, what: &str, path: &str) -> Markup {
    html! {
        @if number > 0 { (more(&counted(number as u64, &format!("more {what}")), path)) }
    }
}

fn more(text: &str, path: &str) -> Markup {
    html! { li { a href=(path) { (text) } } }
}

/// A line with what happened at the left and its buttons at the right.
fn line(what: &Markup, buttons: &Markup) -> Markup {
    html! {
        li class="todo-line" {
            div { (what) }
            div class="actions" { (buttons) }
        }
    }
}

fn scan_link(scan: &Scan) -> Markup {
    let title = trip::title(scan.endpoint, &scan.request, &scan.sweep);
    html! { a href=(links::of(scan.id)) { (scan.label.as_deref().unwrap_or(&title)) } }
}

fn paused(session: &Session, scan: &Scan) -> Markup {
    let reason = scan.status_reason;
    let has_limits = reason == Some(PauseReason::ReserveReached);
    let has_key = reason == Some(PauseReason::KeyRejected);
    line(
        &html! {
            (scan_link(scan)) " " (chip(Tone::Warn, "paused"))
            div class="sub" {
                @if let Some(reason) = reason { (scan::pause(reason)) " " }
                "Left: " (counted(scan.items.pending, "search")) "."
            }
        },
        &html! {
            @if has_limits { a class="button" href="/usage" { "Change the reserve" } }
            @if has_key { a class="button" href="/usage" { "Change the key" } }
            (scan_pages::resume_button(session, scan))
        },
    )
}

fn incomplete(session: &Session, scan: &Scan) -> Markup {
    line(
        &html! {
            (scan_link(scan)) " " (chip(Tone::Warn, "incomplete"))
            div class="sub" {
                @if let Some(notice) = scan::notice(scan) { (notice.lead) " " }
                (parts::time(scan.created_at))
            }
        },
        &html! { (scan_pages::retry_buttons(session, scan)) (scan_pages::dismiss_button(session, scan)) },
    )
}

fn failing(session: &Session, monitor: &Monitor) -> Markup {
    let Some((reason, is_webhook)) = failure(monitor) else {
        return html! {};
    };
    let path = links::monitor(monitor.id);
    line(
        &html! {
            a href=(path) { (monitor.name) } " " (chip(Tone::Bad, "failing"))
            div class="sub" { (reason) }
        },
        &html! {
            @if is_webhook {
                (ConfirmationPage::new(&format!("{path}/enable-webhook"), "Switch on", "Switch the webhook on", html! {
                    p { "New alerts are sent again. This costs nothing." }
                }).render(session))
            } @else {
                a class="button" href=(path) { "Open the monitor" }
            }
        },
    )
}

fn failing_channel(session: &Session, channel: &Channel) -> Markup {
    let is_active = channel.status == ChannelStatus::Active;
    line(
        &html! {
            a href=(links::CHANNELS) { (channel.name) } " " (chip(Tone::Bad, if is_active { "failing" } else { "paused" }))
            div class="sub" {
                "Messages to " (channel.name) " have failed"
                @if let Some(since) = channel.failing_since { " since " (parts::time(since)) }
                @if is_active { ": test it or remove it." } @else { ", and it is paused: resume it or remove it." }
            }
        },
        &html! {
            @if is_active { (channels::test_form(session, channel)) }
            a class="button" href=(links::CHANNELS) { "Open the channels" }
        },
    )
}

fn given_up(session: &Session, of: &Delivery) -> Markup {
    line(
        &html! {
            a href=(links::delivery(of.id)) { (delivery::event(&of.event_type)) } " " (chip(Tone::Bad, "given up"))
            div class="sub" {
                @if let Some(reason) = of.reason { (delivery::reason(reason)) ", " }
                (parts::time(of.created_at))
                @if let Some(id) = of.monitor_id { " · " a href=(links::monitor(id)) { "its monitor" } }
            }
        },
        &delivery_pages::send_again(session, of),
    )
}
