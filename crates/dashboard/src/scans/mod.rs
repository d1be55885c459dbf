//! The pages of scans: list, one scan, new scan, and what their forms do.

mod actions;
mod compare;
mod filters;
mod grid;
mod items;
mod list;
mod live_cost;
mod many;
mod many_buttons;
mod new;
mod new_form;
mod preview;
mod same_as;
mod show;
mod streams;
mod views;
mod watched;

use axum::Router;

use farescan_core::app::AppState;
use farescan_core::contract::Scan;
use farescan_core::ids::{Kind, ScanId, TenantId};
use farescan_core::scans;

pub(super) use self::actions::{resume_button, retry_buttons, watch_button};
pub(super) use self::items::state as item_state;
pub(super) use self::list::table;
pub(super) use self::many_buttons::{cancel_all_button, decision_buttons, dismiss_button};
pub(super) use self::new::start;
pub(super) use self::show::judge;
use super::failure::PageFailure;
use super::links;
use super::session::Session;

pub(super) const PATH: &str = "/scans";

/// The field of a scan's URL for who pressed the button again that has started it.
const ALREADY_STARTED: &str = "already_started";
/// The same with the monitor that one press has made with the scan.
const WATCHED: &str = "watched";

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .merge(list::routes())
        .merge(views::routes())
        .merge(new::routes())
        .merge(live_cost::routes())
        .merge(show::routes())
        .merge(compare::routes())
        .merge(streams::routes())
        .merge(actions::routes())
        .merge(many::routes())
}

/// The page of a scan for who pressed the button again that has started it.
pub(super) fn already_started_path(path: &str) -> String {
    links::with_query(path, ALREADY_STARTED, "true")
}

/// The caller's scan with this id.
pub(super) async fn read_own(session: &Session, id: &str) -> Result<Scan, PageFailure> {
    let (tenant, id) = session.owned(id)?;
    scan_of(session, tenant, id).await
}

/// A scan of the caller.
async fn scan_of(session: &Session, tenant: TenantId, id: ScanId) -> Result<Scan, PageFailure> {
    scans::read::scan(session.pool()?, tenant, id)
        .await?
        .ok_or_else(|| Kind::Scan.into())
}
