//! Reads the caller's lane.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::PgConnection;

use super::LaneState;
use crate::contract::Api;
use crate::contract::scans::PauseReason;
use crate::ids::TenantId;

/// The caller's lane; `None`: it has none yet. The remaining requests are unknown once a new month
/// of the plan has begun.
pub(super) async fn lane(
    conn: &mut PgConnection,
    tenant: TenantId,
    api: Api,
    now: Timestamp,
) -> sqlx::Result<Option<LaneState>> {
    let row = sqlx::query!(
        r#"select extract(epoch from emission)::double precision as "seconds_per_search!", plan_limit,
                  case when paused_until > clock_timestamp() then pause_reason end as "paused: PauseReason",
                  case when plan_reset_at is null or plan_reset_at > $3 then plan_remaining end as plan_remaining
           from lanes where tenant_id = $1 and api = $2"#,
        tenant.uuid(),
        api.as_str(),
        now.to_sqlx() as _,
    )
    .fetch_optional(conn)
    .await?;
    let count = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    Ok(row.map(|row| LaneState {
        seconds_per_search: row.seconds_per_search,
        paused: row.paused,
        plan_limit: count(row.plan_limit),
        plan_remaining: count(row.plan_remaining),
    }))
}
