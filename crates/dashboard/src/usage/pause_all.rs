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

use super::pause_run::{PauseOrResume, PauseReport, PauseRuns};
use super::render;
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
        .layer(Extension(PauseRuns::default()))
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
    Extension(runs): Extension<PauseRuns>,
    form: SessionForm,
) -> Result<Response, PageFailure> {
    change_all(&runs, form.session, PauseOrResume::Pause).await
}

async fn resume_all(
    Extension(runs): Extension<PauseRuns>,
    form: SessionForm,
) -> Result<Response, PageFailure> {
    change_all(&runs, form.session, PauseOrResume::Resume).await
}

async fn change_all(
    runs: &PauseRuns,
    session: Session,
    change: PauseOrResume,
) -> Result<Response, PageFailure> {
    let session = Arc::new(session);
    let report = match session.tenant() {
        Some(tenant) => runs.run_or_follow(&session, (tenant, change)).await?,
        None => Arc::default(),
    };
    let fields = FormFields::default();
    render(&session, StatusCode::OK, &fields, &notice(&report, change)).await
}

fn notice(report: &PauseReport, change: PauseOrResume) -> Markup {
    let (done, rest) = match change {
        PauseOrResume::Pause => ("paused", "may go on"),
        PauseOrResume::Resume => ("resumed", "may stay paused"),
    };
    html! {
        div class="notice" role="status" {
            (counted(report.monitors, "monitor")) " and " (counted(report.scans, "scan")) " " (done) "."
            @if change == PauseOrResume::Pause { " " (NEW_SCANS_RUN) }
        }
        @if !report.failures.is_empty() || report.ended_early.is_some() {
            div class="notice bad" role="alert" {
                p {
                    @if !report.failures.is_empty() { b { (report.failures.len()) " could not be " (done) " and " (rest) ". " } }
                    @if let Some(reason) = report.ended_early { (reason) " The rest was not tried and " (rest) ". " }
                    "Press the button again, or open their pages."
                }
                ul {
                    @for failure in &report.failures {
                        li { a href=(failure.path) { (failure.name) } ": " (failure.reason) }
                    }
                }
            }
        }
    }
}
