//! Making the scan of a slot: the same for the tick and for a caller who runs the monitor now.

use jiff::Timestamp;
use serde_json::Value;
use sqlx::PgConnection;

use super::ceiling;
use super::order::order;
use super::passed::without_passed;
use super::schedule::Schedule;
use super::store::{self, LockedMonitor};
use crate::config::PaceConfig;
use crate::contract::Faults;
use crate::contract::scans::Scan;
use crate::ids::{MonitorId, TenantId};
use crate::scans::plan::earliest_today;
use crate::scans::submit::{place, planned};
use crate::scans::{Desk, ScanError};

/// Whose run it is, and of which slot.
pub(super) struct Start<'a> {
    pub(super) tenant: TenantId,
    pub(super) id: MonitorId,
    pub(super) monitor: &'a LockedMonitor,
    pub(super) schedule: &'a Schedule,
    pub(super) slot: Timestamp,
}

/// Why a slot makes no scan. Nothing was written then.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotStarted {
    /// Its scan cannot be, as it stands on this day.
    #[error("{0}")]
    CannotBe(Faults),
    /// The month's ceiling leaves too little.
    #[error("{0}")]
    Ceiling(String),
    /// The caller has as much underway as one may have.
    #[error("{0}")]
    TooMuch(ScanError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Stores the scan of a slot, under the monitor's lock and with its caller held, with the key of the desk sealed for it.
pub(super) async fn start(
    conn: &mut PgConnection,
    desk: Desk<'_>,
    pace: &PaceConfig,
    start: &Start<'_>,
) -> Result<Scan, NotStarted> {
    let Value::Object(scan) = &start.monitor.scan else {
        return Err(sqlx::Error::RowNotFound.into());
    };
    let order = without_passed(
        order(scan, start.schedule, start.slot),
        earliest_today(desk.now),
    );
    let mut plan = match planned(order, desk.now).await {
        Ok(plan) => plan,
        Err(ScanError::Faults(faults)) => return Err(NotStarted::CannotBe(faults.prefix("scan"))),
        Err(other) => return Err(refused(other)),
    };
    if let Some(ceiling) = start.monitor.max_requests_per_month {
        let (begin, end) = start.schedule.month(start.slot);
        let spent = store::spent(conn, start.tenant, &[(start.id, begin, end)]).await?;
        let spent: i64 = spent.iter().map(|(_, spent)| spent).sum();
        let needed = ceiling::needed(&plan);
        let left = u32::try_from(i64::from(ceiling) - spent).unwrap_or_default();
        if left < needed {
            let message = format!(
                "{spent} of `max_requests_per_month`, {ceiling}, are spent this month, and the run needs {needed}: raise it, or wait for the next month"
            );
            return Err(NotStarted::Ceiling(message));
        }
        ceiling::cap(&mut plan, left);
    }
    place(conn, desk, pace, start.tenant, &plan, Some(start.id))
        .await
        .map_err(refused)
}

fn refused(error: ScanError) -> NotStarted {
    match error {
        ScanError::Database(error) => NotStarted::Database(error),
        other => NotStarted::TooMuch(other),
    }
}
