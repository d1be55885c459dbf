//! The button that stops spending: it pauses every active monitor and every scan that has not
//! ended, as `farescan pause --all` does.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use axum::{Extension, Router};
use maud::{Markup, html};

use super::pause_run::{PauseReport, PauseRuns};
use super::render;
use crate::http::AppState;
use crate::web::failure::PageFailure;
use crate::web::form::{FormFields, SessionForm};
use crate::web::parts::{ConfirmationPage, counted};
use crate::web::session::Session;

const PATH: &str = "/usage/pause-all";

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(PATH, post(pause_all))
        .layer(Extension(PauseRuns::default()))
}

pub(super) fn button(session: &Session) -> Markup {
    ConfirmationPage {
        action: PATH,
        label: "Pause everything",
        question: html! {
            p { "Pauses each active monitor and each scan that has not ended. Searches in flight end and are billed; no other search begins. Each can be resumed on its page." }
        },
        confirm: "Pause all monitors and scans",
        is_destructive: true,
        fields: html! {},
    }
    .render(session)
}

async fn pause_all(
    Extension(runs): Extension<PauseRuns>,
    form: SessionForm,
) -> Result<Response, PageFailure> {
    let session = Arc::new(form.session);
    let report = match session.tenant() {
        Some(tenant) => runs.run_or_follow(&session, tenant).await?,
        None => Arc::default(),
    };
    let fields = FormFields::default();
    render(&session, StatusCode::OK, &fields, &notice(&report)).await
}

fn notice(report: &PauseReport) -> Markup {
    html! {
        div class="notice" role="status" {
            (counted(report.monitors, "monitor")) " and " (counted(report.scans, "scan")) " paused. "
            a href="/monitors?status=paused" { "Monitors" } " and " a href="/scans?status=paused" { "scans" } " can be resumed one by one."
        }
        @if !report.failures.is_empty() || report.ended_early.is_some() {
            div class="notice bad" role="alert" {
                p {
                    @if !report.failures.is_empty() { b { (report.failures.len()) " could not be paused and may go on. " } }
                    @if let Some(reason) = report.ended_early { (reason) " The rest was not tried and may go on. " }
                    "Press the button again, or pause them on their pages."
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
