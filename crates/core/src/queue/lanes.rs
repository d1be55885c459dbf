//! Updates of lanes: calls that ended, the plan headers, and the usage of synchronous calls.
//!
//! Here: merging the updates of many calls into one for each lane (pure), and sending them. The
//! functions of `migrations/functions/lanes.sql` apply them under the lane's lock and choose the pace;
//! docs/decisions/0010 says how.
//! Synchronous calls come through [`crate::charges`].

use std::time::Duration;

use serde::Serialize;
use sqlx::types::Json;
use sqlx::{PgExecutor, PgPool};
use uuid::Uuid;

use crate::contract::Api;
use crate::db;
use crate::ids::TenantId;
pub use crate::scans::ensure_lane;
use crate::search::{PlanQuota, RateWindow};

/// The longest accepted reset: a plan's month.
const MAX_RESET_SECONDS: u32 = 31 * 24 * 3600;

/// An update of one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneUpdate {
    pub tenant: TenantId,
    pub api: Api,
    /// Calls of scans that have ended.
    pub answered: u32,
    /// Billed requests of synchronous calls.
    pub charged: u32,
    /// How long the rate limit lasts that a synchronous call met.
    pub limited: Option<Duration>,
    /// From the plan headers.
    pub plan: PlanQuota,
}

impl LaneUpdate {
    /// The update of one call of a scan that has ended.
    pub fn answered(tenant: TenantId, api: Api, plan: PlanQuota) -> Self {
        Self {
            tenant,
            api,
            answered: 1,
            charged: 0,
            limited: None,
            plan,
        }
    }

    /// Merges another update of the lane. The lowest remaining quota wins, because answers arrive
    /// in another order than the marketplace counted them.
    fn merge(&mut self, other: &Self) {
        self.answered = self.answered.saturating_add(other.answered);
        self.charged = self.charged.saturating_add(other.charged);
        self.limited = self.limited.max(other.limited);
        self.plan = least_plan(self.plan, other.plan);
    }
}

/// The one with the lowest remaining quota, and the window with the least left.
pub fn least_plan(one: PlanQuota, other: PlanQuota) -> PlanQuota {
    let window = least_window(one.window, other.window);
    let is_news =
        is_less(other.remaining, one.remaining) || one.limit.is_none() && one.remaining.is_none();
    let plan = if is_news { other } else { one };
    PlanQuota { window, ..plan }
}

fn least_window(one: Option<RateWindow>, other: Option<RateWindow>) -> Option<RateWindow> {
    match (one, other) {
        (Some(a), Some(b)) => Some(if is_less(b.remaining, a.remaining) {
            b
        } else {
            a
        }),
        _ => one.or(other),
    }
}

/// Whether `one` is known, and `other` is unknown or greater.
fn is_less(one: Option<u64>, other: Option<u64>) -> bool {
    one.is_some_and(|one| other.is_none_or(|other| one < other))
}

/// Merges updates into one for each lane.
pub fn merge_by_lane(updates: impl IntoIterator<Item = LaneUpdate>) -> Vec<LaneUpdate> {
    let mut lanes = Vec::<LaneUpdate>::new();
    for one in updates {
        match lanes
            .iter_mut()
            .find(|lane| lane.tenant == one.tenant && lane.api == one.api)
        {
            Some(lane) => lane.merge(&one),
            None => lanes.push(one),
        }
    }
    lanes
}

/// An update in the form of the SQL type `lane_update`.
#[derive(Serialize)]
struct LaneUpdateRow {
    tenant_id: Uuid,
    api: &'static str,
    answered: u32,
    charged: u32,
    limited_seconds: Option<f64>,
    plan_limit: Option<i64>,
    plan_remaining: Option<i64>,
    plan_reset_seconds: Option<u32>,
    window_limit: Option<i64>,
    window_remaining: Option<i64>,
    window_reset_seconds: Option<u32>,
}

impl From<&LaneUpdate> for LaneUpdateRow {
    fn from(update: &LaneUpdate) -> Self {
        let count = |number: Option<u64>| number.and_then(|number| i64::try_from(number).ok());
        let seconds = |number: Option<u64>| {
            number.map(|number| {
                u32::try_from(number)
                    .unwrap_or(u32::MAX)
                    .min(MAX_RESET_SECONDS)
            })
        };
        let window = update.plan.window;
        Self {
            tenant_id: update.tenant.uuid(),
            api: update.api.as_str(),
            answered: update.answered,
            charged: update.charged,
            limited_seconds: update.limited.map(|time| time.as_secs_f64()),
            plan_limit: count(update.plan.limit),
            plan_remaining: count(update.plan.remaining),
            plan_reset_seconds: seconds(update.plan.reset_seconds),
            window_limit: count(window.map(|window| window.limit)),
            window_remaining: count(window.and_then(|window| window.remaining)),
            window_reset_seconds: seconds(window.and_then(|window| window.reset_seconds)),
        }
    }
}

/// Updates lanes, each at most once; returns how many of them had waited for a call to end. A lane
/// that the update would not change is not locked; one that does not exist is ignored.
pub async fn update(conn: impl PgExecutor<'_>, updates: &[LaneUpdate]) -> sqlx::Result<i64> {
    let rows: Vec<_> = updates.iter().map(LaneUpdateRow::from).collect();
    sqlx::query_scalar!(r#"select update_lanes($1) as "freed!""#, Json(rows) as _)
        .fetch_one(conn)
        .await
}

/// As [`update`], in a transaction of its own that waits only briefly for each lane.
///
/// # Errors
/// When a lane stays locked or the database does not answer; then nothing is updated.
pub(super) async fn update_briefly(pool: &PgPool, updates: &[LaneUpdate]) -> sqlx::Result<i64> {
    let rows: Vec<_> = updates.iter().map(LaneUpdateRow::from).collect();
    sqlx::query_scalar!(
        r#"select update_lanes($1) as "freed!" from (select set_config('lock_timeout', $2, true)) brief"#,
        Json(rows) as _,
        db::BRIEF_LOCK_WAIT.as_millis().to_string(),
    )
    .fetch_one(pool)
    .await
}

/// What a record's transaction needs of a lane, in the form that the SQL function reads.
#[derive(Serialize)]
struct RecordedLaneRow {
    #[serde(flatten)]
    update: LaneUpdateRow,
    to_lock: bool,
}

/// Stores what is left of plans near their end, as the first statement of the
/// transaction that records the calls: a claim must never miss a call that no longer counts as in
/// flight (engine.md, rule 46). `is_locked` names the lanes that the record will lock.
pub async fn store_plans_near_end(
    conn: impl PgExecutor<'_>,
    updates: &[LaneUpdate],
    is_locked: impl Fn(&LaneUpdate) -> bool,
) -> sqlx::Result<()> {
    let rows: Vec<_> = updates
        .iter()
        .map(|update| RecordedLaneRow {
            update: update.into(),
            to_lock: is_locked(update),
        })
        .collect();
    sqlx::query!(
        r#"select store_plans_near_end($1) as "done!: ()""#,
        Json(rows) as _
    )
    .execute(conn)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(remaining: u64) -> RateWindow {
        RateWindow {
            limit: 150,
            remaining: Some(remaining),
            reset_seconds: Some(60),
        }
    }

    fn plan(remaining: u64, window: impl Into<Option<RateWindow>>) -> PlanQuota {
        PlanQuota {
            limit: Some(2_500),
            remaining: Some(remaining),
            reset_seconds: Some(9),
            window: window.into(),
        }
    }

    #[test]
    fn news_of_one_lane_is_one_and_the_least_that_was_left_counts() {
        let (one, two) = (TenantId::new(), TenantId::new());
        let seen = merge_by_lane([
            LaneUpdate::answered(one, Api::Flights, plan(9, window(70))),
            LaneUpdate::answered(two, Api::Flights, PlanQuota::default()),
            LaneUpdate::answered(one, Api::Flights, plan(7, window(80))),
            LaneUpdate::answered(one, Api::Hotels, plan(1, None)),
            LaneUpdate {
                limited: Some(Duration::from_secs(3)),
                ..LaneUpdate::answered(one, Api::Flights, plan(8, None))
            },
            LaneUpdate {
                answered: 0,
                charged: 2,
                ..LaneUpdate::answered(two, Api::Flights, plan(5, window(6)))
            },
        ]);
        let first = LaneUpdate {
            answered: 3,
            limited: Some(Duration::from_secs(3)),
            ..LaneUpdate::answered(one, Api::Flights, plan(7, window(70)))
        };
        let second = LaneUpdate {
            charged: 2,
            ..LaneUpdate::answered(two, Api::Flights, plan(5, window(6)))
        };
        assert_eq!(
            seen,
            [
                first,
                second,
                LaneUpdate::answered(one, Api::Hotels, plan(1, None))
            ]
        );
    }
}
