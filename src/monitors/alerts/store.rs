//! Rules' states and alerts in the database. Every statement begins with the tenant.

use std::borrow::Cow;
use std::io::{Read as _, Write as _};

use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};

use super::identity::RuleKey;
use super::judge::Marks;
use super::state::{States, kept_under};
use crate::contract::monitors::{Alert, AlertsQuery, Rule, RuleType};
use crate::ids::{AlertId, MonitorId, TenantId};
use crate::monitors::store::Run as Slot;

/// The largest states of one rule, unpacked: 10,000 cells that each remember 90 prices take a fifth of it.
const MAX_STATES_BYTES: u64 = 128 << 20;

/// A monitor as its runs are judged.
pub(super) struct Monitor {
    pub(super) name: String,
    pub(super) rules: Vec<Rule>,
}

pub(super) async fn monitor(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
) -> sqlx::Result<Monitor> {
    let row = sqlx::query!(
        r#"select name, rules as "rules: Json<Vec<Rule>>" from monitors where tenant_id = $1 and monitor_id = $2"#,
        tenant.uuid(),
        id.uuid(),
    );
    let row = row.fetch_one(conn).await?;
    Ok(Monitor {
        name: row.name,
        rules: row.rules.0,
    })
}

/// What the rules of a monitor remember, packed.
pub(super) async fn states(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
) -> sqlx::Result<Vec<(RuleKey, Vec<u8>)>> {
    let rows = sqlx::query!(
        "select rule, states from rule_states where tenant_id = $1 and monitor_id = $2",
        tenant.uuid(),
        id.uuid(),
    );
    let rows = rows.fetch_all(conn).await?;
    let key = |rule: Vec<u8>| {
        RuleKey::try_from(rule)
            .map_err(|_| sqlx::Error::Decode("the key of a rule has 16 bytes".into()))
    };
    rows.into_iter()
        .map(|row| Ok((key(row.rule)?, row.states)))
        .collect()
}

/// The states of a rule as they were packed, also before long keys were shortened.
pub(super) fn unpacked(rule: &Rule, packed: &[u8]) -> serde_json::Result<States> {
    let states = zstd::Decoder::new(packed)
        .map_err(serde_json::Error::io)?
        .take(MAX_STATES_BYTES);
    let states: States = serde_json::from_reader(std::io::BufReader::new(states))?;
    if states
        .keys()
        .all(|key| matches!(kept_under(rule, key), Cow::Borrowed(_)))
    {
        return Ok(states);
    }
    Ok(states
        .into_iter()
        .map(|(key, state)| (kept_under(rule, &key).into_owned(), state))
        .collect())
}

pub(super) fn packed(states: &States) -> std::io::Result<Vec<u8>> {
    let mut packed = zstd::Encoder::new(Vec::new(), 0)?;
    // Buffered: what writes JSON writes a few bytes at a time.
    let mut text = std::io::BufWriter::new(&mut packed);
    serde_json::to_writer(&mut text, states)?;
    text.flush()?;
    drop(text);
    packed.finish()
}

/// Writes what rules remember now; what others remembered is forgotten.
pub(super) async fn keep_states(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    states: &[(RuleKey, Vec<u8>)],
) -> sqlx::Result<()> {
    let keys: Vec<_> = states.iter().map(|(key, _)| key.to_vec()).collect();
    let packed: Vec<_> = states.iter().map(|(_, packed)| packed.as_slice()).collect();
    sqlx::query!(
        "insert into rule_states (tenant_id, monitor_id, rule, states)
         select $1, $2, x.rule, x.states from unnest($3::bytea[], $4::bytea[]) as x (rule, states)
         on conflict (tenant_id, monitor_id, rule) do update set states = excluded.states",
        tenant.uuid(),
        id.uuid(),
        &keys,
        &packed as _,
    )
    .execute(&mut *conn)
    .await?;
    let keys: Vec<_> = states.iter().map(|(key, _)| *key).collect();
    forget_but(conn, tenant, id, &keys).await
}

/// Has all rules but these forget.
pub(super) async fn forget_but(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    keys: &[RuleKey],
) -> sqlx::Result<()> {
    let keys: Vec<_> = keys.iter().map(|key| key.to_vec()).collect();
    sqlx::query!(
        "delete from rule_states where tenant_id = $1 and monitor_id = $2 and rule <> all ($3)",
        tenant.uuid(),
        id.uuid(),
        &keys,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Puts alerts on record.
pub(super) async fn insert(
    conn: &mut PgConnection,
    tenant: TenantId,
    alerts: &[Alert],
) -> sqlx::Result<()> {
    let Some(first) = alerts.first() else {
        return Ok(());
    };
    let ids: Vec<_> = alerts.iter().map(|alert| alert.id.uuid()).collect();
    let types: Vec<_> = alerts
        .iter()
        .map(|alert| alert.rule_type.as_str().to_owned())
        .collect();
    let told: Vec<_> = alerts
        .iter()
        .map(serde_json::to_string)
        .collect::<Result<_, _>>()
        .map_err(|error| sqlx::Error::Encode(error.into()))?;
    sqlx::query!(
        "insert into alerts (tenant_id, alert_id, monitor_id, rule_type, fired_at, alert)
         select $1, x.id, $2, x.rule_type, $3, x.alert::json
         from unnest($4::uuid[], $5::text[], $6::text[]) as x (id, rule_type, alert)",
        tenant.uuid(),
        first.monitor_id.uuid(),
        first.fired_at.to_sqlx() as _,
        &ids,
        &types,
        &told,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether a search of the monitor was answered since the schedule's slot before this one: what runs then is only slow. Slots that nobody
/// was there for are none.
pub(super) async fn is_answered_since_slot_before(
    conn: &mut PgConnection,
    slot: &Slot,
) -> sqlx::Result<bool> {
    let since = sqlx::query_scalar!(
        r#"select max(slot) as "slot: SqlTimestamp" from monitor_slots
           where tenant_id = $1 and monitor_id = $2 and kind = 'schedule' and outcome <> 'missed' and slot < $3"#,
        slot.tenant.uuid(),
        slot.monitor.uuid(),
        slot.slot.to_sqlx() as _,
    );
    let since = since.fetch_one(&mut *conn).await?;
    sqlx::query_scalar!(
        r#"select exists (
               select from scans s join scan_items i on i.tenant_id = s.tenant_id and i.scan_id = s.scan_id
               where s.tenant_id = $1 and s.monitor_id = $2
                 and (s.finished_at is null or s.finished_at >= coalesce($3, '-infinity'::timestamptz))
                 and i.observed_at >= coalesce($3, '-infinity'::timestamptz) and i.state = 'done'
                 and (i.search_status in ('ok', 'empty') or i.search_status = 'partial' and i.best_price is not null)
           ) as "is_answered!""#,
        slot.tenant.uuid(),
        slot.monitor.uuid(),
        since as _,
    )
    .fetch_one(conn)
    .await
}

/// Puts on record that a slot was judged, what that came to, and what could not be judged.
pub(super) async fn mark(
    conn: &mut PgConnection,
    slot: &Slot,
    marks: &Marks,
    now: Timestamp,
) -> sqlx::Result<()> {
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    sqlx::query!(
        "update monitor_slots set judged_at = $5, fired = $6, alerts = $7, not_comparable = $8,
                                  reason = nullif(concat_ws('; ', reason, $9::text), '')
         where tenant_id = $1 and monitor_id = $2 and slot = $3 and kind = $4",
        slot.tenant.uuid(),
        slot.monitor.uuid(),
        slot.slot.to_sqlx() as _,
        slot.kind.as_str(),
        now.to_sqlx() as _,
        count(marks.fired),
        count(marks.kept),
        count(marks.not_comparable),
        marks.failure.as_deref(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Has no rule judge what a monitor runs just now.
pub(super) async fn mark_all(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update monitor_slots set judged_at = $3 where tenant_id = $1 and monitor_id = $2 and judged_at is null",
        tenant.uuid(),
        id.uuid(),
        now.to_sqlx() as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The newest first; `before` is the last of the page before.
pub(super) async fn list(
    pool: &PgPool,
    tenant: TenantId,
    query: &AlertsQuery,
    before: Option<(Timestamp, AlertId)>,
    most: i64,
) -> sqlx::Result<Vec<(Timestamp, AlertId, Value)>> {
    let rows = sqlx::query!(
        "select fired_at, alert_id, alert from alerts
           where tenant_id = $1 and ($2::uuid is null or monitor_id = $2) and ($3::text is null or rule_type = $3)
             and ($4::timestamptz is null or fired_at >= $4) and ($5::timestamptz is null or fired_at < $5)
             and ($6::timestamptz is null or fired_at < $6 or fired_at = $6 and alert_id < $7)
           order by fired_at desc, alert_id desc limit $8",
        tenant.uuid(),
        query.monitor_id.map(MonitorId::uuid),
        query.r#type.map(RuleType::as_str),
        query.since.map(|since| since.to_sqlx()) as _,
        query.until.map(|until| until.to_sqlx()) as _,
        before.map(|(fired_at, _)| fired_at.to_sqlx()) as _,
        before.map(|(_, id)| id.uuid()),
        most,
    );
    let rows = rows.fetch_all(pool).await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.fired_at.to_jiff(), row.alert_id.into(), row.alert))
        .collect())
}

pub(super) async fn one(
    pool: &PgPool,
    tenant: TenantId,
    id: AlertId,
) -> sqlx::Result<Option<Value>> {
    let alert = sqlx::query_scalar!(
        "select alert from alerts where tenant_id = $1 and alert_id = $2",
        tenant.uuid(),
        id.uuid(),
    );
    alert.fetch_optional(pool).await
}
