//! The coming slots of a monitor.

use farescan_sheets::monitor;
use jiff::Timestamp;
use maud::{Markup, html};

use crate::{parts, sheet};
use farescan_core::contract::monitors::Monitor;
use farescan_core::monitors::schedule::Schedule;

/// Coming slots on the page.
const NEXT: usize = 5;

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
    let list = html! {
        @if slots.is_empty() {
            (parts::empty_state(&html! { p { "No slot is due. A paused monitor has none; resume it to go on." } }))
        } @else {
            ol class="plain-list" { @for slot in slots { li { (parts::zoned(slot, &monitor.schedule.timezone)) } } }
        }
    };
    sheet::section(&monitor::times(monitor), &html! {}, &list)
}
