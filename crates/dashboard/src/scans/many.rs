//! What a person can do with many scans at once: cancel all that have not ended, ask all incomplete ones
//! again, or leave those as they are.

use std::sync::Arc;

use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::post;
use axum::{Extension, Router};
use farescan_sheets::numbers::{count, counted, requests};
use farescan_sheets::scan::ask_again;
use maud::{Markup, html};

use super::actions::idempotency_key;
use super::filters::ListFilters;
use super::list;
use crate::bulk::{self, AskAgain, BulkChange, BulkRuns};
use crate::failure::PageFailure;
use crate::form::{FormFields, SessionForm, token_field};
use crate::links;
use crate::once::once_field;
use crate::parts::ConfirmationPage;
use crate::session::Session;
use farescan_core::app::AppState;
use farescan_core::contract::ValidationError;
use farescan_core::contract::scans::Scan;
use farescan_core::ids::ScanId;
use farescan_core::scans::undecided::{self, UndecidedScan};

const CANCEL_PATH: &str = "/scans/cancel-all";
const RETRY_PATH: &str = "/scans/retry-all";
const DISMISS_PATH: &str = "/scans/dismiss-all";
/// A scan that the page counted: what came later is not changed.
const SCAN: &str = "scan";
const MAX_SEARCHES: &str = "max_searches";

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(CANCEL_PATH, post(cancel_all))
        .route(RETRY_PATH, post(retry_all))
        .route(DISMISS_PATH, post(dismiss_all))
        .route("/scans/{id}/dismiss", post(dismiss))
        .layer(Extension(BulkRuns::default()))
}

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

async fn cancel_all(
    Extension(runs): Extension<BulkRuns>,
    form: SessionForm,
) -> Result<Response, PageFailure> {
    let change = BulkChange::Cancel(read_scans(&form.fields)?);
    change_all(&runs, form.session, &change).await
}

async fn retry_all(
    Extension(runs): Extension<BulkRuns>,
    form: SessionForm,
) -> Result<Response, PageFailure> {
    // Required: without a limit the retries could cost more than the button said.
    let text = required(&form.fields, MAX_SEARCHES)?;
    let max_searches = text
        .parse()
        .map_err(|_| ValidationError::new(MAX_SEARCHES, &text.into(), "a whole number"))?;
    let change = BulkChange::AskAgain(AskAgain {
        scans: read_scans(&form.fields)?,
        max_searches,
        once: idempotency_key(&form.fields)?,
    });
    change_all(&runs, form.session, &change).await
}

async fn change_all(
    runs: &BulkRuns,
    session: Session,
    change: &BulkChange,
) -> Result<Response, PageFailure> {
    let session = Arc::new(session);
    let notice = bulk::run_for_notice(runs, &session, change).await?;
    let filters = ListFilters::read(&FormFields::default())?;
    list::render(&session, &filters, &notice).await
}

async fn dismiss_all(form: SessionForm) -> Result<Response, PageFailure> {
    let scans = read_scans(&form.fields)?;
    if let Some(tenant) = form.session.tenant() {
        let now = form.session.app().now()?;
        undecided::dismiss(form.session.pool()?, tenant, &scans, now).await?;
    }
    Ok(Redirect::to(links::OVERVIEW).into_response())
}

async fn dismiss(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let (tenant, id) = form.session.owned::<ScanId>(&id)?;
    let now = form.session.app().now()?;
    undecided::dismiss(form.session.pool()?, tenant, &[id], now).await?;
    Ok(Redirect::to(links::OVERVIEW).into_response())
}

fn read_scans(fields: &FormFields) -> Result<Vec<ScanId>, PageFailure> {
    required(fields, SCAN)?;
    let read = fields.all(SCAN).map(|text| {
        let wrong = |_| ValidationError::new(SCAN, &text.into(), "the id of a scan");
        Ok(text.parse().map_err(wrong)?)
    });
    read.collect()
}

fn required<'a>(fields: &'a FormFields, name: &'static str) -> Result<&'a str, PageFailure> {
    let missing = || ValidationError::missing(name, "the hidden field of the page's form");
    Ok(fields.text(name).ok_or_else(missing)?)
}
