//! What a person can do with a scan: pause, resume, cancel, retry, delete. Each button that spends
//! or destroys says what it costs and asks once.

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::post;
use farescan_ask::question_of;
use farescan_sheets::numbers::{count, counted, requests};
use farescan_sheets::scan::ask_again;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use crate::failure::PageFailure;
use crate::form::{FormFields, SessionForm, token_field};
use crate::links;
use crate::once::{once_field, once_key, once_pair};
use crate::parts::ConfirmationPage;
use crate::session::Session;
use farescan_core::app::AppState;
use farescan_core::commands::IdempotencyKey;
use farescan_core::contract::ValidationError;
use farescan_core::contract::scans::{PauseReason, Scan, ScanStatus, StrategyProgress};
use farescan_core::ids::ScanId;
use farescan_core::scans;
use farescan_core::scans::control;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/scans/{id}/pause", post(pause))
        .route("/scans/{id}/resume", post(resume))
        .route("/scans/{id}/cancel", post(cancel))
        .route("/scans/{id}/retry", post(retry))
        .route("/scans/{id}/delete", post(delete))
}

/// The `Idempotency-Key` of a form. Each form that spends has one: without it a double click would
/// spend twice.
pub(super) fn idempotency_key(fields: &FormFields) -> Result<IdempotencyKey, PageFailure> {
    let missing = || ValidationError::missing("once", "the hidden field of the page's form");
    Ok(once_key(fields)?.ok_or_else(missing)?)
}

/// The buttons that the scan's status allows.
pub(super) fn buttons(session: &Session, scan: &Scan) -> Markup {
    let path = links::of(scan.id);
    let is_paused_by_caller = scan.status_reason == Some(PauseReason::ByCaller);
    html! {
        @if scan.status.is_ended() {
            @if scan.status != ScanStatus::Incomplete { (retry_buttons(session, scan)) }
            a class="button" href={ (path) "/compare" } { "Compare with another" }
            a class="button" href={ "/scans/new?like=" (scan.id) } { "New scan like this" }
            @if scan.monitor_id.is_none() { (watch_button(session, scan, "Watch this")) }
            (delete_button(session, &path))
        } @else {
            @if scan.monitor_id.is_none() { (watch_button(session, scan, "Watch this")) }
            @if !is_paused_by_caller && scan.status != ScanStatus::Paused {
                form method="post" action={ (path) "/pause" } {
                    (token_field(session))
                    button type="submit" { "Pause" }
                }
            }
            @if scan.status == ScanStatus::Paused { (resume_button(session, scan)) }
            (cancel_button(session, scan, &path))
        }
    }
}

/// Leads to the question in words, which takes an amount and says what a watch costs. What words cannot
/// ask is repeated as it is.
pub(crate) fn watch_button(session: &Session, scan: &Scan, label: &str) -> Markup {
    let today = || Some(session.app().now().ok()?.to_zoned(TimeZone::UTC).date());
    let strategy = scan.strategy.as_ref().map(StrategyProgress::request);
    let below = strategy.as_ref().and_then(|strategy| strategy.get("below"));
    let question =
        today().and_then(|day| question_of(scan.endpoint, &scan.request, &scan.sweep, below, day));
    let path = question.map_or_else(
        || format!("/monitors/new?like={}&{}", scan.id, once_pair()),
        |question| links::watch(&question.words()),
    );
    html! { a class="button" href=(path) { (label) } }
}

/// The button that ends a pause.
pub(crate) fn resume_button(session: &Session, scan: &Scan) -> Markup {
    let path = links::of(scan.id);
    let left = scan.items.pending;
    let needs_budget = scan.status_reason == Some(PauseReason::BudgetSpent);
    let suggested = scan.requests.spent.saturating_add(left);
    ConfirmationPage::new(&format!("{path}/resume"), "Resume", &format!("Resume {}", counted(left, "search")), html! {
            p {
                "The scan continues with " (counted(left, "search")) " to make, each one request of your plan, two after a server error."
                @if let Some(max) = scan.requests.max.filter(|_| !needs_budget) {
                    " Its limit is " (counted(max, "request")) " in all."
                }
            }
        }).fields(html! {
            (once_field())
            @if needs_budget {
                div class="field" {
                    label for={ "limit-" (scan.id) } { "New limit of requests (" (count(scan.requests.spent)) " are spent)" }
                    input id={ "limit-" (scan.id) } name="max_requests" type="number" required
                        min=(scan.requests.spent.saturating_add(1)) value=(suggested);
                }
            }
        })
    .render(session)
}

fn cancel_button(session: &Session, scan: &Scan, path: &str) -> Markup {
    let left = scan.items.pending;
    ConfirmationPage::new(&format!("{path}/cancel"), "Cancel", &format!("Cancel {}", counted(left, "search")), html! {
            p {
                (counted(left, "search")) " will not be made. This costs nothing and cannot be undone. "
                @if scan.items.running > 0 {
                    (counted(scan.items.running, "search")) " in flight " (if scan.items.running == 1 { "ends and is" } else { "end and are" }) " billed."
                }
            }
        }).destructive()
    .render(session)
}

fn delete_button(session: &Session, path: &str) -> Markup {
    ConfirmationPage::new(&format!("{path}/delete"), "Delete", "Delete the scan", html! {
            p { "Deletes the scan with its searches and answers. It cannot be undone." }
        }).destructive().fields(html! {
            label { input type="checkbox" name="history" value="true"; " Also delete its prices from the history" }
        })
    .render(session)
}

/// The buttons that ask again what did not complete, and what the marketplace refused; nothing if
/// there is no such search.
///
/// Each form sets a limit of requests, so that the retry cannot cost more than its button says.
pub(crate) fn retry_buttons(session: &Session, scan: &Scan) -> Markup {
    if scan.status == ScanStatus::Cancelled {
        return html! {};
    }
    let incomplete = [
        ("degraded", scan.items.degraded),
        ("partial", scan.items.partial),
    ];
    let again = html! {
        p { "Makes these searches again and nothing else." }
    };
    let refused = html! {
        p {
            "The marketplace refused these as invalid, and will again unless the cause is mended. "
            "Open one of them for its reason."
        }
    };
    html! {
        (retry_button(session, scan, "Ask again", &incomplete, &again))
        (retry_button(session, scan, "Ask again what failed", &[("failed", scan.items.failed)], &refused))
    }
}

fn retry_button(
    session: &Session,
    scan: &Scan,
    label: &str,
    results: &[(&str, u32)],
    reason: &Markup,
) -> Markup {
    let results: Vec<_> = results.iter().filter(|(_, count)| *count > 0).collect();
    let items: u32 = results.iter().map(|(_, count)| count).sum();
    if items == 0 {
        return html! {};
    }
    let most = items.saturating_mul(2);
    ConfirmationPage::new(&format!("{}/retry", links::of(scan.id)), &format!("{label}: {}", counted(items, "search")), &ask_again(items.into()), html! {
            (reason)
            p {
                "It costs " b { (requests(items, most)) } " of your plan. "
                "A second request of a search is made only after a server error. Dates that have passed are skipped."
            }
        }).fields(html! {
            (once_field())
            input type="hidden" name="max_requests" value=(scan.requests.spent.saturating_add(most));
            div class="choices" {
                @for (result, count) in &results {
                    @if results.len() > 1 {
                        label { input type="checkbox" name="search_status" value=(result) checked; (result) " " (count) }
                    } @else {
                        input type="hidden" name="search_status" value=(result);
                    }
                }
            }
        })
    .render(session)
}

async fn pause(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let (_, id) = form.session.owned::<ScanId>(&id)?;
    control::pause::pause(form.session.context()?, id).await?;
    Ok(Redirect::to(&links::of(id)).into_response())
}

async fn cancel(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let (_, id) = form.session.owned::<ScanId>(&id)?;
    scans::cancel::cancel(form.session.context()?, id).await?;
    Ok(Redirect::to(&links::of(id)).into_response())
}

async fn resume(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let (_, id) = form.session.owned::<ScanId>(&id)?;
    let mut body = Map::new();
    if let Some(max) = max_requests(&form.fields)? {
        body.insert("max_requests".to_owned(), max);
    }
    let key = idempotency_key(&form.fields)?;
    control::resume::resume(form.session.context()?, id, &body, Some(&key)).await?;
    Ok(Redirect::to(&links::of(id)).into_response())
}

async fn retry(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let (_, id) = form.session.owned::<ScanId>(&id)?;
    let statuses: Vec<_> = form.fields.all("search_status").collect();
    let mut body = Map::new();
    body.insert("search_status".to_owned(), json!(statuses));
    // Required here: without a limit the retry could cost more than the button said.
    let max = max_requests(&form.fields)?
        .ok_or_else(|| ValidationError::missing("max_requests", "the limit that the page shows"))?;
    body.insert("max_requests".to_owned(), max);
    let key = idempotency_key(&form.fields)?;
    scans::retry::retry(form.session.context()?, id, &body, Some(&key)).await?;
    Ok(Redirect::to(&links::of(id)).into_response())
}

async fn delete(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let (_, id) = form.session.owned::<ScanId>(&id)?;
    let with_history = form.fields.text("history") == Some("true");
    control::delete::delete(form.session.context()?, id, with_history).await?;
    Ok(Redirect::to(super::PATH).into_response())
}

/// A number of requests as the API takes it; the API checks its range.
fn max_requests(fields: &FormFields) -> Result<Option<Value>, PageFailure> {
    let Some(text) = fields.text("max_requests") else {
        return Ok(None);
    };
    let number: u64 = text
        .parse()
        .map_err(|_| ValidationError::new("max_requests", &text.into(), "a whole number"))?;
    Ok(Some(number.into()))
}
