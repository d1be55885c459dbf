//! What the buttons of many scans do (`many_buttons`): cancel all that have not ended, ask all incomplete
//! ones again, or leave those as they are.

use std::sync::Arc;

use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::post;
use axum::{Extension, Router};

use super::actions::idempotency_key;
use super::filters::ListFilters;
use super::list;
use super::many_buttons::{CANCEL_PATH, DISMISS_PATH, MAX_SEARCHES, RETRY_PATH, SCAN};
use crate::bulk::{self, AskAgain, BulkChange, BulkRuns};
use crate::failure::PageFailure;
use crate::form::{FormFields, SessionForm};
use crate::links;
use crate::session::Session;
use farescan_core::app::AppState;
use farescan_core::contract::ValidationError;
use farescan_core::ids::ScanId;
use farescan_core::scans::undecided;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(CANCEL_PATH, post(cancel_all))
        .route(RETRY_PATH, post(retry_all))
        .route(DISMISS_PATH, post(dismiss_all))
        .route("/scans/{id}/dismiss", post(dismiss))
        .layer(Extension(BulkRuns::default()))
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
