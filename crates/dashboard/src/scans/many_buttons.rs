//! The buttons of many scans at once: each form names the scans that it counted. What they do: `many`.

use farescan_sheets::numbers::{count, counted, requests};
use farescan_sheets::scan::ask_again;
use maud::{Markup, html};

use crate::form::token_field;
use crate::links;
use crate::once::once_field;
use crate::parts::ConfirmationPage;
use crate::session::Session;
use farescan_core::contract::scans::Scan;
use farescan_core::ids::ScanId;
use farescan_core::scans::undecided::UndecidedScan;

pub(super) const CANCEL_PATH: &str = "/scans/cancel-all";
pub(super) const RETRY_PATH: &str = "/scans/retry-all";
pub(super) const DISMISS_PATH: &str = "/scans/dismiss-all";
/// A scan that the page counted: what came later is not changed.
pub(super) const SCAN: &str = "scan";
pub(super) const MAX_SEARCHES: &str = "max_searches";

/// The button that cancels every scan that has not ended; nothing for less than two.
pub(crate) fn cancel_all_button(session: &Session, live: &[Scan]) -> Markup {
    let left: u64 = live.iter().map(|scan| u64::from(scan.items.pending)).sum();
    let in_flight: u64 = live.iter().map(|scan| u64::from(scan.items.running)).sum();
    let scans = counted(live.len() as u64, "scan");
    let confirm = format!("Cancel {scans}");
    let question = html! {
        p { (counted(left, "search")) " of " (scans) " will not be made. This costs nothing and cannot be undone." }
        @if in_flight > 0 { p { (counted(in_flight, "search")) " in flight will be billed." } }
        p { "What was searched stays. Monitors go on." }
    };
    let button = ConfirmationPage::new(CANCEL_PATH, "Cancel all", &confirm, question)
        .destructive()
        .fields(counted_scans(live.iter().map(|scan| scan.id)));
    html! { @if live.len() > 1 { (button.render(session)) } }
}

fn counted_scans(ids: impl Iterator<Item = ScanId>) -> Markup {
    html! { @for id in ids { input type="hidden" name=(SCAN) value=(id); } }
}

/// The buttons for all incomplete scans that need a decision; nothing for less than two.
pub(crate) fn decision_buttons(session: &Session, scans: &[UndecidedScan]) -> Markup {
    let asked: Vec<_> = scans.iter().filter(|scan| scan.searches > 0).collect();
    let searches: u64 = asked.iter().map(|scan| scan.searches).sum();
    let most = searches.saturating_mul(2);
    let number = counted(asked.len() as u64, "scan");
    let question = html! {
        p { "Makes " (counted(searches, "search")) " of " (number) " again and nothing else." }
        p {
            "It costs " b { (requests(searches, most)) } " of your plan. "
            "A second request of a search is made only after a server error. Dates that have passed are skipped."
        }
    };
    let label = format!("Ask all {} again", count(asked.len() as u64));
    let confirm = ask_again(searches);
    let again = ConfirmationPage::new(RETRY_PATH, &label, &confirm, question).fields(html! {
        (once_field())
        (counted_scans(asked.iter().map(|scan| scan.id)))
        input type="hidden" name=(MAX_SEARCHES) value=(searches);
    });
    html! {
        @if scans.len() > 1 {
            @if asked.len() > 1 { (again.render(session)) }
            form method="post" action=(DISMISS_PATH) {
                (token_field(session))
                (counted_scans(scans.iter().map(|scan| scan.id)))
                button type="submit" title="Leaves these scans as they are. Nothing is deleted." { "Dismiss all " (count(scans.len() as u64)) }
            }
        }
    }
}

/// The button that leaves one scan as it is.
pub(crate) fn dismiss_button(session: &Session, scan: &Scan) -> Markup {
    html! {
        form method="post" action={ (links::of(scan.id)) "/dismiss" } {
            (token_field(session))
            button class="quiet" type="submit" title="Leaves this scan as it is. Nothing is deleted." { "Dismiss" }
        }
    }
}
