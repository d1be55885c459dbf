//! The button that stops spending: it pauses every active monitor and every scan that has not
//! ended, as `farescan pause --all` does.

use std::collections::HashSet;

use axum::Router;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use maud::{Markup, html};

use super::render;
use crate::commands::CommandError;
use crate::contract::ScanStatus;
use crate::contract::monitors::{MonitorStatus, MonitorsQuery};
use crate::contract::scans::{PauseReason, ScansQuery};
use crate::http::AppState;
use crate::ids::{MonitorId, ScanId, TenantId};
use crate::monitors;
use crate::scans;
use crate::web::failure::PageFailure;
use crate::web::form::{FormFields, SessionForm};
use crate::web::parts::{ConfirmationPage, counted};
use crate::web::session::Session;

const PATH: &str = "/usage/pause-all";
const PAGE_LIMIT: &str = "200";

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(PATH, post(pause_all))
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

/// Monitors first, so that none begins another scan.
async fn pause_all(form: SessionForm) -> Result<Response, PageFailure> {
    let session = &form.session;
    let (mut paused_monitors, mut paused_scans) = (0, 0);
    if let Some(tenant) = session.tenant() {
        for id in active_monitors(session, tenant).await? {
            let done = monitors::control::pause::pause(session.context()?, id).await;
            paused_monitors += was_paused(done)?;
        }
        // A scan may change its status between two of the lists and be in neither, so they are read
        // until there is nothing new.
        let mut tried = HashSet::new();
        loop {
            let mut new = live_scans(session, tenant).await?;
            new.retain(|id| tried.insert(*id));
            if new.is_empty() {
                break;
            }
            for id in new {
                let done = scans::control::pause::pause(session.context()?, id).await;
                paused_scans += was_paused(done)?;
            }
        }
    }
    let notice = html! {
        div class="notice" role="status" {
            (counted(paused_monitors, "monitor")) " and " (counted(paused_scans, "scan")) " paused. "
            a href="/monitors?status=paused" { "Monitors" } " and " a href="/scans?status=paused" { "scans" } " can be resumed one by one."
        }
    };
    render(session, StatusCode::OK, &FormFields::default(), &notice).await
}

/// 1 if it was paused; 0 if it has ended or gone meanwhile.
fn was_paused<T>(done: Result<T, CommandError>) -> Result<u64, PageFailure> {
    match done {
        Ok(_) => Ok(1),
        Err(CommandError::InvalidState(_) | CommandError::NoScan | CommandError::NoMonitor) => {
            Ok(0)
        }
        Err(error) => Err(error.into()),
    }
}

async fn active_monitors(
    session: &Session,
    tenant: TenantId,
) -> Result<Vec<MonitorId>, PageFailure> {
    let context = session.context()?;
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let status = MonitorStatus::Active.as_str();
        let pairs = [("status", status), ("limit", PAGE_LIMIT)];
        let cursor_pair = cursor.as_deref().map(|cursor| ("cursor", cursor));
        let query = MonitorsQuery::from_query(pairs.into_iter().chain(cursor_pair))?;
        let pool = session.pool()?;
        let page =
            monitors::read::monitors(pool, context.ring, tenant, &query, context.now).await?;
        found.extend(page.data.iter().map(|monitor| monitor.id));
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(found),
        }
    }
}

/// The scans that have not ended and that their caller has not paused.
async fn live_scans(session: &Session, tenant: TenantId) -> Result<Vec<ScanId>, PageFailure> {
    let mut found = Vec::new();
    for status in [ScanStatus::Queued, ScanStatus::Running, ScanStatus::Paused] {
        let mut cursor = None::<String>;
        loop {
            let pairs = [("status", status.as_str()), ("limit", PAGE_LIMIT)];
            let cursor_pair = cursor.as_deref().map(|cursor| ("cursor", cursor));
            let query = ScansQuery::from_query(pairs.into_iter().chain(cursor_pair))?;
            let page = scans::read::scans(session.pool()?, tenant, &query).await?;
            let live = page.data.iter();
            found.extend(
                live.filter(|scan| scan.status_reason != Some(PauseReason::ByCaller))
                    .map(|scan| scan.id),
            );
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
    }
    Ok(found)
}
