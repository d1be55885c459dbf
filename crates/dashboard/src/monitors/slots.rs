//! The slots of a monitor: what became of each, and the next ones.

use farescan_sheets::numbers;
use jiff::Timestamp;
use maud::{Markup, html};

use crate::parts::{self, Tone};
use farescan_core::contract::monitors::{
    Monitor, MonitorSlot, SlotConfirmation, SlotKind, SlotOutcome,
};
use farescan_core::monitors::schedule::Schedule;

/// Coming slots on the page.
const NEXT: usize = 5;
/// Searches of a confirmation that have a link.
const CONFIRMED: usize = 3;

/// What became of a slot.
pub(super) fn outcome(outcome: SlotOutcome) -> Markup {
    let (tone, text) = match outcome {
        SlotOutcome::Ran => (Tone::Good, "ran"),
        SlotOutcome::Late => (Tone::Warn, "ran late"),
        SlotOutcome::Missed => (Tone::Bad, "missed"),
        SlotOutcome::Overlap => (Tone::Warn, "skipped: overlap"),
        SlotOutcome::MonthlyCeiling => (Tone::Warn, "skipped: monthly limit"),
        SlotOutcome::Failed => (Tone::Bad, "failed"),
    };
    parts::chip(tone, text)
}

/// The slots that come next, in the zone of the schedule.
pub(super) fn coming(monitor: &Monitor, now: Timestamp) -> Markup {
    let schedule = Schedule::parse(&monitor.schedule.cron, &monitor.schedule.timezone);
    let slots: Vec<_> = match (&schedule, monitor.next_slot) {
        (Some(schedule), Some(next)) => std::iter::once(next)
            .chain(schedule.slots_after(next.max(now)))
            .take(NEXT)
            .collect(),
        _ => Vec::new(),
    };
    html! {
        section class="card" {
            h2 { "Next slots" }
            p class="sub" { code { (monitor.schedule.cron) } " in " (monitor.schedule.timezone) }
            @for warning in &monitor.schedule_warnings {
                p class="notice warn" { (warning) }
            }
            @if slots.is_empty() {
                (parts::empty_state(&html! { p { "No slot is due. A paused monitor has none; resume it to go on." } }))
            } @else {
                ol class="plain-list" { @for slot in slots { li { (parts::zoned(slot, &monitor.schedule.timezone)) } } }
            }
        }
    }
}

/// The slots that were decided, newest first.
pub(super) fn past(monitor: &Monitor, slots: &[MonitorSlot], next: Markup) -> Markup {
    html! {
        section class="card" id="slots" {
            div class="card-head" {
                h2 { "What became of each slot" }
                a href=(parts::with_query("/scans", "monitor_id", &monitor.id.to_string())) { "All scans of this monitor" }
            }
            @if slots.is_empty() {
                (parts::empty_state(&html! { p { "No slot yet. The first one is above; or run the monitor now." } }))
            } @else {
                div class="scroll" tabindex="0" role="region" aria-label="Slots" {
                    table class="rows" {
                        thead {
                            tr {
                                th scope="col" { "Slot" }
                                th scope="col" { "Outcome" }
                                th scope="col" { "Scan" }
                                th scope="col" class="num" { "Rules fired" }
                                th scope="col" { "Details" }
                            }
                        }
                        tbody { @for slot in slots { (row(monitor, slot)) } }
                    }
                }
                (next)
            }
        }
    }
}

fn row(monitor: &Monitor, slot: &MonitorSlot) -> Markup {
    html! {
        tr {
            td class="nowrap" {
                (parts::zoned(slot.slot, &monitor.schedule.timezone))
                @if slot.kind == SlotKind::Manual { " " (parts::chip(Tone::Plain, "by hand")) }
            }
            td { (outcome(slot.outcome)) }
            td { @if let Some(scan) = slot.scan_id { a href=(parts::scan_path(scan)) { "Scan" } } @else { span class="muted" { "none" } } }
            td class="num" {
                @match slot.judged {
                    Some(judged) => { (judged.fired) }
                    None => { span class="muted" { "–" } }
                }
            }
            td {
                @if let Some(reason) = &slot.reason { (reason) }
                @if let Some(judged) = slot.judged {
                    @if judged.not_comparable > 0 {
                        " " span class="muted" { (numbers::counted(judged.not_comparable, "rule")) " could not compare" }
                    }
                    @if judged.implausible > 0 {
                        " " span class="muted" { (numbers::counted(judged.implausible, "implausible price")) " left out" }
                    }
                    @if judged.unconfirmed > 0 {
                        " " span class="muted" { (numbers::counted(judged.unconfirmed, "alert")) " unconfirmed" }
                    }
                }
                @if let Some(confirmation) = &slot.confirmation { (confirmed(slot, confirmation)) }
            }
        }
    }
}

/// The prices that are searched once more, or were, with their searches.
fn confirmed(slot: &MonitorSlot, confirmation: &SlotConfirmation) -> Markup {
    let count = confirmation.items.len();
    let prices = numbers::counted(u64::try_from(count).unwrap_or(u64::MAX), "price");
    html! {
        div class="sub" {
            @if slot.judged.is_none() { "Waits for the confirmation of " } @else { "Confirmation: one more search of " }
            (prices) ":"
            @for (number, item) in (1..).zip(&confirmation.items).take(CONFIRMED) {
                " " a href=(parts::item_path(*item)) { "search " (number) }
            }
            @if count > CONFIRMED { " …" }
        }
    }
}
