//! The button that stops spending: it pauses every active monitor and every scan that has not
//! ended, as `farescan pause --all` does. And its opposite.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use axum::{Extension, Router};
use farescan_sheets::numbers::{count, counted};
use farescan_sheets::scan::NEW_SCANS_RUN;
use maud::{Markup, html};

use super::render;
use crate::bulk::{self, BulkChange, BulkRuns};
use crate::failure::PageFailure;
use crate::form::{FormFields, SessionForm};
use crate::parts::ConfirmationPage;
use crate::session::Session;
use farescan_core::app::AppState;
use farescan_core::contract::scans::PauseReason;
use farescan_core::{monitors, scans};

const PAUSE_PATH: &str = "/usage/pause-all";
const RESUME_PATH: &str = "/usage/resume-all";

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(PAUSE_PATH, post(pause_all))
        .route(RESUME_PATH, post(resume_all))
        .layer(Extension(BulkRuns::default()))
}

/// The button that pauses everything, and, where the caller has paused something, the one that
/// resumes it.
pub(super) async fn buttons(session: &Session) -> Result<Markup, PageFailure> {
    let pause = ConfirmationPage::new(PAUSE_PATH, "Pause everything", "Pause all monitors and scans", html! {
            p id="pause-all" { "Pauses each active monitor and each scan that has not ended. Searches in flight end and are billed; no other search of them begins. " (NEW_SCANS_RUN) }
        }).destructive();
    Ok(html! { (resume_button(session).await?) (pause.render(session)) })
}

async fn resume_button(session: &Session) -> Result<Markup, PageFailure> {
    let Some(tenant) = session.tenant() else {
        return Ok(html! {});
    };
    let pool = session.pool()?;
    if !monitors::read::pauses(pool, tenant).await?.has_paused {
        return Ok(html! {});
    }
    let live = scans::read::live(pool, tenant).await?;
    let paused = live
        .iter()
        .filter(|scan| scan.status_reason == Some(PauseReason::ByCaller));
    let number = paused.clone().count() as u64;
    let left: u64 = paused.map(|scan| u64::from(scan.items.pending)).sum();
    let resume = ConfirmationPage::new(
        RESUME_PATH,
        "Resume everything",
        "Resume all monitors and scans",
        html! {
            p id="resume-all" { "Resumes each monitor and each scan that you have paused, also those that you paused alone." }
            @if number > 0 {
                p { "Left in " (counted(number, "scan")) ": " (counted(left, "search")) ", " (count(left)) " to " (counted(left.saturating_mul(2), "request")) "." }
            }
            p { "Monitors go on from their next slots; the page of each has what a month costs." }
        },
    );
    Ok(resume.render(session))
}

async fn pause_all(
    Extension(runs): Extension<BulkRuns>,
    form: SessionForm,
) -> Result<Response, PageFailure> {
    change_all(&runs, form.session, BulkChange::Pause).await
}

async fn resume_all(
    Extension(runs): Extension<BulkRuns>,
    form: SessionForm,
) -> Result<Response, PageFailure> {
    change_all(&runs, form.session, BulkChange::Resume).await
}

async fn change_all(
    runs: &BulkRuns,
    session: Session,
    change: BulkChange,
) -> Result<Response, PageFailure> {
    let session = Arc::new(session);
    let mut notice = bulk::run_for_notice(runs, &session, &change).await?;
    if change == BulkChange::Pause {
        notice = html! { (notice) p class="hint" { (NEW_SCANS_RUN) } };
    }
    render(&session, StatusCode::OK, &FormFields::default(), &notice).await
}
