//! Database rows, and their conversion to the types of the API.

use jiff::civil::Date;
use jiff_sqlx::{Timestamp, ToSqlx};
use rust_decimal::Decimal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};
use sqlx::types::Json;
use uuid::Uuid;

use crate::contract::scans::{
    Attempt, AvoidedRequests, BestPrice, ConfirmedPrice, DecisionReason, FindGoal, FindProgress,
    FoundBest, Item, ItemCounts, KeyCustody, MissedQuestions, PauseReason, PriceLimit,
    RequestCounts, Scan, ScanStatus, StrategyProgress, WatchGoal, WatchProgress,
};
use crate::contract::{Endpoint, RawJson, SearchStatus};
use crate::ids::MonitorId;
use crate::scans::item_state::StoredItemState;
use crate::scans::question::store::rounded;
use crate::scans::seconds_at;
use crate::search::{StoredHeaders, decompress};

/// A row of the view `shown_scans`.
pub(super) struct ScanRow {
    pub(super) scan_id: Uuid,
    pub(super) endpoint: Endpoint,
    pub(super) request: Value,
    pub(super) sweep: Value,
    pub(super) label: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) status: ScanStatus,
    pub(super) status_reason: Option<PauseReason>,
    pub(super) total: i32,
    pub(super) ok: i32,
    pub(super) empty: i32,
    pub(super) partial: i32,
    pub(super) degraded: i32,
    pub(super) failed: i32,
    pub(super) cancelled: i32,
    pub(super) running: i64,
    pub(super) requests_spent: i32,
    pub(super) max_requests: Option<i32>,
    pub(super) best_price: Option<Decimal>,
    pub(super) best_currency: Option<String>,
    pub(super) best_item_id: Option<Uuid>,
    pub(super) seconds_per_search: Option<f64>,
    pub(super) key_held_until: Option<Timestamp>,
    pub(super) created_at: Timestamp,
    pub(super) started_at: Option<Timestamp>,
    pub(super) finished_at: Option<Timestamp>,
    pub(super) monitor_id: Option<Uuid>,
    pub(super) max_age_seconds: Option<i32>,
    pub(super) reused: i32,
    pub(super) joined: i32,
    pub(super) strategy: Option<Json<StrategyRow>>,
}

/// The columns of `scan_strategies` that the API shows; `skipped` is null until the last decision.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct StrategyRow {
    skipped: Option<u32>,
    find: Option<FindGoal>,
    max_risk: Option<f64>,
    watch: Option<WatchGoal>,
    below: Option<PriceLimit>,
    currency: String,
    known: Option<u32>,
    counted_questions: Option<u32>,
    counted_missed: Option<u32>,
    decisions: u32,
    risk: Option<f64>,
    ended_by: Option<DecisionReason>,
    best: Option<BestOfQuestion>,
}

/// The cheapest item of a question, in its currency.
#[derive(Debug, Clone, Deserialize)]
struct BestOfQuestion {
    item: Uuid,
    date: Date,
    price: Decimal,
}

/// A row of `scan_items` with its scan's endpoint; deserialised from JSON if it is part of another
/// row.
#[derive(Debug, Deserialize)]
pub(super) struct ItemRow {
    pub(super) item_id: Uuid,
    pub(super) scan_id: Uuid,
    pub(super) endpoint: Endpoint,
    pub(super) position: i32,
    pub(super) body: Value,
    pub(super) state: StoredItemState,
    pub(super) search_status: Option<SearchStatus>,
    pub(super) reason: Option<String>,
    pub(super) calls: i32,
    pub(super) requests_spent: i32,
    pub(super) results: Option<i32>,
    pub(super) best_price: Option<Decimal>,
    pub(super) currency: Option<String>,
    #[serde(deserialize_with = "time")]
    pub(super) observed_at: Option<Timestamp>,
    pub(super) latency_ms: Option<i32>,
    pub(super) error: Option<String>,
    pub(super) reused_item: Option<Uuid>,
    pub(super) reused_from: Option<Uuid>,
    #[serde(deserialize_with = "time")]
    pub(super) reused_at: Option<Timestamp>,
    pub(super) confirming: Option<Json<ConfirmingRow>>,
}

/// The price in the answer that an item keeps while it is searched once more.
#[derive(Debug, Deserialize)]
pub(super) struct ConfirmingRow {
    #[serde(rename = "kept_price")]
    price: Decimal,
    #[serde(rename = "kept_currency")]
    currency: String,
    #[serde(rename = "kept_at")]
    at: jiff::Timestamp,
}

impl From<ConfirmingRow> for ConfirmedPrice {
    fn from(row: ConfirmingRow) -> Self {
        Self {
            price: row.price.normalize(),
            currency: row.currency,
            at: row.at,
        }
    }
}

/// An item at a requested position, and its compressed answer.
pub(super) struct ItemWithAnswer {
    /// Whether it still matches the query.
    pub(super) matches: bool,
    pub(super) item: ItemRow,
    pub(super) answer: Option<Vec<u8>>,
}

fn time<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(Option::<jiff::Timestamp>::deserialize(json)?.map(ToSqlx::to_sqlx))
}

/// A row of `attempts`.
pub(super) struct AttemptRow {
    pub(super) attempt_id: Uuid,
    pub(super) item_id: Uuid,
    pub(super) number: i32,
    pub(super) started_at: Timestamp,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) requests_spent: i16,
    pub(super) http_status: Option<i16>,
    pub(super) search_status: Option<SearchStatus>,
    pub(super) reason: Option<String>,
    pub(super) search_headers: Option<Json<StoredHeaders>>,
    pub(super) latency_ms: Option<i32>,
    pub(super) error: Option<String>,
}

impl From<ScanRow> for Scan {
    fn from(row: ScanRow) -> Self {
        let items = row.counts();
        let ended = items.total - items.pending - items.running;
        let best = row
            .best_price
            .zip(row.best_currency)
            .zip(row.best_item_id)
            .map(|((price, currency), item)| BestPrice {
                price: price.normalize(),
                currency,
                item: item.into(),
            });
        let taken = count(row.reused) + count(row.joined);
        let strategy = row
            .strategy
            .map(|strategy| strategy_progress(strategy.0, &items, taken));
        Self {
            id: row.scan_id.into(),
            endpoint: row.endpoint,
            request: object(row.request),
            sweep: object(row.sweep),
            label: row.label,
            tags: row.tags,
            status: row.status,
            status_reason: row.status_reason,
            items,
            requests: RequestCounts {
                planned: items.total,
                spent: count(row.requests_spent),
                max: row.max_requests.map(count),
                avoided: (row.max_age_seconds.is_some() || strategy.is_some()).then(|| {
                    AvoidedRequests {
                        reused: count(row.reused),
                        joined: count(row.joined),
                        not_needed: strategy.as_ref().map_or(0, StrategyProgress::not_searched),
                    }
                }),
            },
            max_age_seconds: row.max_age_seconds.map(count),
            strategy,
            best,
            implausible: Vec::new(),
            progress: (f64::from(ended) / f64::from(items.total.max(1)) * 1e4).round() / 1e4,
            eta_seconds: eta_seconds(row.status, &items, row.seconds_per_search),
            monitor_id: row.monitor_id.map(MonitorId::from),
            key_custody: row.key_held_until.map(|until| KeyCustody {
                until: until.to_jiff(),
            }),
            created_at: row.created_at.to_jiff(),
            started_at: row.started_at.map(Timestamp::to_jiff),
            finished_at: row.finished_at.map(Timestamp::to_jiff),
        }
    }
}

impl ScanRow {
    fn counts(&self) -> ItemCounts {
        let running = u32::try_from(self.running).unwrap_or_default();
        let ended =
            self.ok + self.empty + self.partial + self.degraded + self.failed + self.cancelled;
        ItemCounts {
            total: count(self.total),
            pending: count(self.total - ended).saturating_sub(running),
            running,
            ok: count(self.ok),
            empty: count(self.empty),
            partial: count(self.partial),
            degraded: count(self.degraded),
            failed: count(self.failed),
            cancelled: count(self.cancelled),
        }
    }
}

/// Items that were cancelled before their call do not count as searched.
fn strategy_progress(row: StrategyRow, items: &ItemCounts, taken: u32) -> StrategyProgress {
    let skipped = row.skipped.unwrap_or_default();
    let ended = items.ok + items.empty + items.partial + items.degraded + items.failed;
    let searched = ended.saturating_sub(taken);
    let currency = row.currency;
    let found = row.best.map(|best| FoundBest {
        item: best.item.into(),
        date: best.date,
        price: best.price.normalize(),
        currency,
    });
    let risk = row.risk.map(rounded);
    if let Some(watch) = row.watch {
        return StrategyProgress::Watch(WatchProgress {
            watch,
            below: row.below,
            best: found,
            risk_of_miss: risk,
            stored_prices: row.known,
            searched,
            reused: taken,
            unsearched: skipped,
            decisions: row.decisions,
            ended_by: row.ended_by,
        });
    }
    let find = row.find.unwrap_or(FindGoal::Cheapest);
    let (risk_of_cheaper, risk_of_miss) = match find {
        FindGoal::Cheapest => (risk, None),
        FindGoal::Below => (None, risk),
    };
    let counted = row.counted_questions.zip(row.counted_missed);
    StrategyProgress::Find(FindProgress {
        find,
        below: row.below,
        max_risk: row.max_risk.unwrap_or_default(),
        best: found,
        risk_of_cheaper,
        risk_of_miss,
        counted: counted.map(|(questions, missed)| MissedQuestions { questions, missed }),
        stored_prices: row.known,
        searched,
        reused: taken,
        unsearched: skipped,
        decisions: row.decisions,
        ended_by: row.ended_by,
    })
}

/// The seconds that the lane needs for the remaining items; unknown while the scan is paused or has
/// ended.
fn eta_seconds(
    status: ScanStatus,
    items: &ItemCounts,
    seconds_per_search: Option<f64>,
) -> Option<u64> {
    let moving = matches!(status, ScanStatus::Queued | ScanStatus::Running);
    Some(seconds_at(
        items.pending + items.running,
        seconds_per_search.filter(|_| moving)?,
    ))
}

impl From<ItemRow> for Item {
    fn from(row: ItemRow) -> Self {
        Self {
            id: row.item_id.into(),
            scan_id: row.scan_id.into(),
            position: count(row.position),
            search: in_field_order(row.endpoint, row.body),
            state: row.state.into(),
            search_status: row.search_status,
            reason: row.reason,
            attempts: count(row.calls),
            requests_spent: count(row.requests_spent),
            results: row.results.map(count),
            best_price: row.best_price.map(|price| price.normalize()),
            currency: row.currency,
            observed_at: row.observed_at.map(Timestamp::to_jiff),
            latency_ms: row.latency_ms.map(count),
            error: row.error,
            reused_item: row.reused_item.map(Into::into),
            reused_from: row.reused_from.map(Into::into),
            age_seconds: row
                .reused_at
                .zip(row.observed_at)
                .map(|(reused, observed)| age_seconds(reused.to_jiff(), observed.to_jiff())),
            confirming: row.confirming.map(|Json(price)| price.into()),
            history_verdict: None,
            answer: None,
        }
    }
}

/// Whole seconds from an answer to its reuse; 0 if the clocks of two processes disagree.
fn age_seconds(reused: jiff::Timestamp, observed: jiff::Timestamp) -> u64 {
    u64::try_from(reused.duration_since(observed).as_secs()).unwrap_or(0)
}

/// Fails for an answer that cannot be decompressed.
impl TryFrom<ItemWithAnswer> for Item {
    type Error = sqlx::Error;

    fn try_from(found: ItemWithAnswer) -> sqlx::Result<Self> {
        let answer = found
            .answer
            .as_deref()
            .map(decompress_single_line)
            .transpose()?;
        Ok(Self {
            answer,
            ..found.item.into()
        })
    }
}

impl From<AttemptRow> for Attempt {
    fn from(row: AttemptRow) -> Self {
        let headers = row.search_headers.map(|Json(headers)| headers);
        Self {
            id: row.attempt_id.into(),
            item_id: row.item_id.into(),
            number: count(row.number),
            started_at: row.started_at.to_jiff(),
            ended_at: row.ended_at.map(Timestamp::to_jiff),
            requests_spent: count(row.requests_spent.into()),
            http_status: row
                .http_status
                .and_then(|status| u16::try_from(status).ok()),
            search_status: row.search_status,
            reason: row.reason,
            search_headers: headers
                .map(|headers| headers.to_pairs().into_iter().collect())
                .unwrap_or_default(),
            latency_ms: row.latency_ms.map(count),
            error: row.error,
        }
    }
}

/// The tables hold no count below 0.
fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

/// Parses a stored answer.
pub(in crate::scans) fn decompress_json<T: DeserializeOwned>(packed: &[u8]) -> sqlx::Result<T> {
    serde_json::from_slice(&decompress_bytes(packed)?)
        .map_err(|error| sqlx::Error::Decode(error.into()))
}

/// Like [`decompress_json`], without line breaks: an item is one line of an export.
fn decompress_single_line(packed: &[u8]) -> sqlx::Result<RawJson> {
    let answer: Value = decompress_json(packed)?;
    to_raw_value(&answer)
        .map(RawJson::from)
        .map_err(|error| sqlx::Error::Encode(error.into()))
}

/// The text of a stored answer.
pub(in crate::scans) fn decompress_bytes(packed: &[u8]) -> sqlx::Result<Vec<u8>> {
    decompress(packed).map_err(|error| sqlx::Error::Decode(error.into()))
}

fn object(stored: Value) -> Map<String, Value> {
    match stored {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Sorts a body into the order of the field table; `jsonb` does not preserve an order.
fn in_field_order(endpoint: Endpoint, stored: Value) -> Map<String, Value> {
    let mut stored = object(stored);
    endpoint
        .fields()
        .iter()
        .filter_map(|field| stored.remove_entry(field.name))
        .collect()
}
