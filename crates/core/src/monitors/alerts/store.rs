//! Rule states and alerts in the database. Every statement filters by tenant first.

use std::borrow::Cow;
use std::io::{Read as _, Write as _};

use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx as _};
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::held::Dispatch;
use super::rule_key::RuleKey;
use super::rules;
use super::state::ScopeStates;
use crate::contract::monitors::{Alert, AlertsQuery, Rule, RuleType};
use crate::ids::{AlertId, DeliveryId, MonitorId, TenantId};
use crate::monitors::store::UnevaluatedSlot;

/// The largest states of one rule, uncompressed: 10,000 cells with 90 prices each take a fifth of
/// it.
const MAX_STATES_BYTES: u64 = 128 << 20;

/// The name and rules of a monitor.
pub(super) struct MonitorRules {
    pub(super) name: String,
    pub(super) rules: Vec<Rule>,
}

pub(super) async fn monitor_rules(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
) -> sqlx::Result<MonitorRules> {
    let row = sqlx::query!(
        r#"select name, rules as "rules: Json<Vec<Rule>>" from monitors where tenant_id = $1 and monitor_id = $2"#,
        tenant.uuid(),
        id.uuid(),
    );
    let row = row.fetch_one(conn).await?;
    Ok(MonitorRules {
        name: row.name,
        rules: row.rules.0,
    })
}

/// The compressed states of a monitor's rules.
pub(super) async fn load_states(
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
            .map_err(|_| sqlx::Error::Decode("a rule key must have 16 bytes".into()))
    };
    rows.into_iter()
        .map(|row| Ok((key(row.rule)?, row.states)))
        .collect()
}

/// Decodes the states of a rule, and shortens the long keys of older versions.
pub(super) fn decode_states(rule: &Rule, packed: &[u8]) -> serde_json::Result<ScopeStates> {
    let states = zstd::Decoder::new(packed)
        .map_err(serde_json::Error::io)?
        .take(MAX_STATES_BYTES);
    let states: ScopeStates = serde_json::from_reader(std::io::BufReader::new(states))?;
    let rule = rules::of(rule);
    let is_short = |key: &String| matches!(rule.state_key(key), Cow::Borrowed(_));
    if states.keys().all(is_short) {
        return Ok(states);
    }
    let states = states.into_iter();
    Ok(states
        .map(|(key, state)| (rule.state_key(&key).into_owned(), state))
        .collect())
}

pub(super) fn encode_states(states: &ScopeStates) -> std::io::Result<Vec<u8>> {
    let mut packed = zstd::Encoder::new(Vec::new(), 0)?;
    // Buffered: the JSON writer writes a few bytes at a time.
    let mut text = std::io::BufWriter::new(&mut packed);
    serde_json::to_writer(&mut text, states)?;
    text.flush()?;
    drop(text);
    packed.finish()
}

/// Writes the states of rules and deletes those of all other rules.
pub(super) async fn save_states(
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
    delete_states_except(conn, tenant, id, &keys).await
}

/// Deletes the states of all rules but these.
pub(super) async fn delete_states_except(
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

/// Inserts alerts.
pub(super) async fn insert_alerts(
    conn: &mut PgConnection,
    tenant: TenantId,
    alerts: &[Alert],
    dispatch: Dispatch,
) -> sqlx::Result<()> {
    let delivery = match dispatch {
        Dispatch::Held => None,
        Dispatch::Sent(delivery) => delivery,
    };
    let Some(first) = alerts.first() else {
        return Ok(());
    };
    let ids: Vec<_> = alerts.iter().map(|alert| alert.id.uuid()).collect();
    let types: Vec<_> = alerts.iter().map(|alert| alert.rule_type.clone()).collect();
    let documents: Vec<_> = alerts
        .iter()
        .map(serde_json::to_string)
        .collect::<Result<_, _>>()
        .map_err(|error| sqlx::Error::Encode(error.into()))?;
    sqlx::query!(
        "insert into alerts (tenant_id, alert_id, monitor_id, rule_type, fired_at, alert, is_held, delivery_id)
         select $1, x.id, $2, x.rule_type, $3, x.alert::json, $7, $8
         from unnest($4::uuid[], $5::text[], $6::text[]) as x (id, rule_type, alert)",
        tenant.uuid(),
        first.monitor_id.uuid(),
        first.fired_at.to_sqlx() as _,
        &ids,
        &types,
        &documents,
        dispatch == Dispatch::Held,
        delivery.map(DeliveryId::uuid),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether a search of the monitor was answered since the previous slot of its schedule: then the
/// run is slow, not stuck. Missed slots do not count. An item that is searched once more has
/// the answer that it keeps.
pub(super) async fn is_answered_since_slot_before(
    conn: &mut PgConnection,
    slot: &UnevaluatedSlot,
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
                 and case when i.earlier is not null then (i.earlier ->> 'kept_at')::timestamptz >= coalesce($3, '-infinity'::timestamptz)
                          else coalesce(i.reused_at, i.observed_at) >= coalesce($3, '-infinity'::timestamptz) and i.state = 'done'
                               and (i.search_status in ('ok', 'empty') or i.search_status = 'partial' and i.best_price is not null)
                     end
           ) as "is_answered!""#,
        slot.tenant.uuid(),
        slot.monitor.uuid(),
        since as _,
    )
    .fetch_one(conn)
    .await
}

/// The record of an evaluated slot.
#[derive(Debug, Clone, Default)]
pub(super) struct EvaluationRecord {
    pub(super) fired: usize,
    pub(super) stored: usize,
    pub(super) not_comparable: usize,
    /// The number of prices that no rule saw.
    pub(super) implausible: usize,
    /// How often a rule did not fire for lack of a second search.
    pub(super) unconfirmed: usize,
    /// What was not evaluated, and why.
    pub(super) failure: Option<String>,
}

impl EvaluationRecord {
    pub(super) fn add_failure(&mut self, why: String) {
        self.failure = Some(match self.failure.take() {
            Some(failure) => format!("{failure}; {why}"),
            None => why,
        });
    }

    pub(super) fn failure(why: &str) -> Self {
        Self {
            failure: Some(format!("the alert rules were not evaluated: {why}")),
            ..Self::default()
        }
    }
}

/// Records the evaluation of a slot.
pub(super) async fn record_evaluation(
    conn: &mut PgConnection,
    slot: &UnevaluatedSlot,
    record: &EvaluationRecord,
    now: Timestamp,
) -> sqlx::Result<()> {
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    sqlx::query!(
        "update monitor_slots set evaluated_at = $5, fired = $6, alerts = $7, not_comparable = $8,
                                  implausible = $9, reason = nullif(concat_ws('; ', reason, $10::text), ''), unconfirmed = $11
         where tenant_id = $1 and monitor_id = $2 and slot = $3 and kind = $4",
        slot.tenant.uuid(),
        slot.monitor.uuid(),
        slot.slot.to_sqlx() as _,
        slot.kind.as_str(),
        now.to_sqlx() as _,
        count(record.fired),
        count(record.stored),
        count(record.not_comparable),
        count(record.implausible),
        record.failure.as_deref(),
        count(record.unconfirmed),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Marks all unevaluated slots of a monitor as evaluated, without an evaluation.
pub(super) async fn skip_evaluation(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: MonitorId,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update monitor_slots set evaluated_at = $3 where tenant_id = $1 and monitor_id = $2 and evaluated_at is null",
        tenant.uuid(),
        id.uuid(),
        now.to_sqlx() as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The newest first, of some monitors or of all; `before` is the last alert of the previous page.
pub(super) async fn list_alerts(
    pool: &PgPool,
    tenant: TenantId,
    query: &AlertsQuery,
    of: Option<&[MonitorId]>,
    before: Option<(Timestamp, AlertId)>,
    limit: i64,
) -> sqlx::Result<Vec<(Timestamp, AlertId, Value)>> {
    let of: Option<Vec<_>> = of.map(|of| of.iter().map(|monitor| monitor.uuid()).collect());
    let rows = sqlx::query!(
        r#"select fired_at, alert_id, alert, delivery_id,
                  case when is_held then (select m.notify_at from monitors m where m.tenant_id = $1 and m.monitor_id = a.monitor_id) end
                      as "notify_at: SqlTimestamp"
           from alerts a
           where a.tenant_id = $1 and ($2::uuid is null or monitor_id = $2) and ($3::text is null or rule_type = $3)
             and ($4::timestamptz is null or fired_at >= $4) and ($5::timestamptz is null or fired_at < $5)
             and ($6::timestamptz is null or fired_at < $6 or fired_at = $6 and alert_id < $7)
             and ($9::uuid[] is null or monitor_id = any ($9))
           order by fired_at desc, alert_id desc limit $8"#,
        tenant.uuid(),
        query.monitor_id.map(MonitorId::uuid),
        query.r#type.map(RuleType::as_str),
        query.since.map(|since| since.to_sqlx()) as _,
        query.until.map(|until| until.to_sqlx()) as _,
        before.map(|(fired_at, _)| fired_at.to_sqlx()) as _,
        before.map(|(_, id)| id.uuid()),
        limit,
        of.as_deref(),
    );
    let rows = rows.fetch_all(pool).await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let alert = with_dispatch(row.alert, row.notify_at, row.delivery_id);
            (row.fired_at.to_jiff(), row.alert_id.into(), alert)
        })
        .collect())
}

/// An alert as recorded, with the time until which it is held or its delivery.
fn with_dispatch(
    mut alert: Value,
    notify_at: Option<SqlTimestamp>,
    delivery: Option<Uuid>,
) -> Value {
    if let Some(fields) = alert.as_object_mut() {
        let notify_at = notify_at.map(|at| ("notify_at", at.to_jiff().to_string()));
        let delivery = delivery.map(|id| ("delivery_id", DeliveryId::from(id).to_string()));
        for (name, text) in notify_at.into_iter().chain(delivery) {
            fields.insert(name.to_owned(), text.into());
        }
    }
    alert
}

pub(super) async fn find_alert(
    pool: &PgPool,
    tenant: TenantId,
    id: AlertId,
) -> sqlx::Result<Option<Value>> {
    let row = sqlx::query!(
        r#"select alert, delivery_id,
                  case when is_held then (select m.notify_at from monitors m where m.tenant_id = $1 and m.monitor_id = a.monitor_id) end
                      as "notify_at: SqlTimestamp"
           from alerts a where a.tenant_id = $1 and alert_id = $2"#,
        tenant.uuid(),
        id.uuid(),
    );
    let row = row.fetch_optional(pool).await?;
    Ok(row.map(|row| with_dispatch(row.alert, row.notify_at, row.delivery_id)))
}
