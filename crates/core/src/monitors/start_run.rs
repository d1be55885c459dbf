//! Stores the scan of a slot, for the tick and for a manual run.

use jiff::Timestamp;
use serde_json::Value;
use sqlx::PgConnection;

use super::monthly_limit;
use super::past_dates::without_past_dates;
use super::schedule::Schedule;
use super::store::{self, LockedMonitor};
use super::validate::run_request;
use crate::commands::{CommandError, RequestContext};
use crate::config::PaceConfig;
use crate::contract::ValidationErrors;
use crate::contract::scans::Scan;
use crate::ids::{MonitorId, TenantId};
use crate::scans::plan::{earliest_today, plan, plan_blocking};
use crate::scans::submit::store_plan;

/// The monitor and the slot of a run.
pub(super) struct RunContext<'a> {
    pub(super) tenant: TenantId,
    pub(super) id: MonitorId,
    pub(super) monitor: &'a LockedMonitor,
    pub(super) schedule: &'a Schedule,
    pub(super) slot: Timestamp,
}

/// Why a slot starts no scan. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartRunError {
    /// The scan is not valid on this day.
    #[error("{0}")]
    InvalidScan(ValidationErrors),
    /// The monthly limit leaves too few requests.
    #[error("{0}")]
    MonthlyLimit(String),
    /// The tenant is at its limit of unfinished work.
    #[error("{0}")]
    TenantLimit(CommandError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Stores the scan of a slot with the key of the context, sealed for it. The caller holds the locks
/// of the tenant and the monitor.
pub(super) async fn start_run(
    conn: &mut PgConnection,
    context: RequestContext<'_>,
    pace: &PaceConfig,
    run: &RunContext<'_>,
) -> Result<Scan, StartRunError> {
    let Value::Object(scan) = &run.monitor.scan else {
        return Err(sqlx::Error::RowNotFound.into());
    };
    let request = without_past_dates(
        run_request(scan, run.schedule, run.slot),
        earliest_today(context.now),
    );
    let mut plan = match plan_blocking(plan, request, context.now).await {
        Ok(plan) => plan,
        Err(CommandError::ValidationErrors(errors)) => {
            return Err(StartRunError::InvalidScan(errors.prefix("scan")));
        }
        Err(other) => return Err(start_error(other)),
    };
    if let Some(ceiling) = run.monitor.max_requests_per_month {
        let (begin, end) = run.schedule.month(run.slot);
        let spent = store::requests_spent(conn, run.tenant, &[(run.id, begin, end)]).await?;
        let spent: i64 = spent.iter().map(|(_, spent)| spent).sum();
        let needed = monthly_limit::requests_needed(&plan);
        let left = monthly_limit::left_for_run(ceiling.into(), spent, needed)
            .map_err(StartRunError::MonthlyLimit)?;
        monthly_limit::cap_plan(&mut plan, left);
    }
    store_plan(conn, context, pace, run.tenant, &plan, Some(run.id))
        .await
        .map_err(start_error)
}

fn start_error(error: CommandError) -> StartRunError {
    match error {
        CommandError::Database(error) => StartRunError::Database(error),
        other => StartRunError::TenantLimit(other),
    }
}
