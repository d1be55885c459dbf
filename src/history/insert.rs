//! Inserts observations, in the transaction that stores the answer.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;
use sqlx::PgConnection;

use super::series::{Series, Subject};
use super::store::write;
use crate::contract::{SearchStatus, Verdict};
use crate::ids::{ItemId, TenantId};

/// The result of one finished attempt: a price or the absence of one. A degraded attempt has no
/// price, so that gaps are visible.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    pub tenant: TenantId,
    /// Item and attempt number identify the observation.
    pub item: ItemId,
    /// Attempt number.
    pub number: i32,
    /// Product and dates.
    pub subject: Subject,
    /// When the answer arrived.
    pub observed_at: Timestamp,
    /// The best price, if any.
    pub best: Option<ObservedPrice>,
    /// Number of results; `None` if there was no answer.
    pub results: Option<i32>,
    /// Status of the search.
    pub status: SearchStatus,
    /// Reason of the status.
    pub reason: Option<String>,
}

/// A price as the marketplace returned it, in major units of the series' currency.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedPrice {
    /// Total price of the journey or stay.
    pub price: Decimal,
    /// Carrier of a fare; room or hotel of a rate.
    pub seller: Option<String>,
    /// Lower bound of the provider's historical price band.
    pub band_low: Option<Decimal>,
    /// Upper bound of the band.
    pub band_high: Option<Decimal>,
    /// The provider's verdict.
    pub verdict: Option<Verdict>,
}

/// Key of a row in `latest_prices`.
type LatestKey = (TenantId, [u8; 16], Date, Option<Date>);

/// Inserts a batch: new series, the observations, and the newest price and search of each product
/// and date.
///
/// Idempotent: an existing observation (same item and attempt) is left unchanged. Rows are written
/// in key order, so that concurrent batches cannot deadlock.
///
/// # Errors
/// Database errors, among them a missing partition for the month.
pub async fn insert(conn: &mut PgConnection, observations: &[Observation]) -> sqlx::Result<()> {
    if observations.is_empty() {
        return Ok(());
    }
    write::insert_series(conn, &distinct_series(observations)).await?;
    write::insert_observations(conn, observations).await?;
    write::upsert_latest(conn, &latest_updates(observations)).await
}

fn distinct_series(observations: &[Observation]) -> Vec<(TenantId, &Series)> {
    let by_key: BTreeMap<_, _> = observations
        .iter()
        .map(|observation| {
            (
                (observation.tenant, observation.subject.series.key),
                &observation.subject.series,
            )
        })
        .collect();
    by_key
        .into_iter()
        .map(|((tenant, _), series)| (tenant, series))
        .collect()
}

/// The newest data of a batch for one row of `latest_prices`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LatestUpdate<'a> {
    /// The newest observation, whatever its status.
    pub(super) observation: &'a Observation,
    /// The newest price of an `ok` or `partial` answer.
    pub(super) price: Option<(&'a Observation, &'a ObservedPrice)>,
}

/// One update per product and date, in key order. On equal times the first of the batch wins.
fn latest_updates(observations: &[Observation]) -> Vec<LatestUpdate<'_>> {
    let mut latest_updates = BTreeMap::<LatestKey, LatestUpdate<'_>>::new();
    for observation in observations {
        let key = (
            observation.tenant,
            observation.subject.series.key.0,
            observation.subject.first_date,
            observation.subject.last_date,
        );
        let latest = latest_updates.entry(key).or_insert(LatestUpdate {
            observation,
            price: None,
        });
        if latest.observation.observed_at < observation.observed_at {
            latest.observation = observation;
        }
        let answered = matches!(observation.status, SearchStatus::Ok | SearchStatus::Partial);
        if let Some(best) = observation.best.as_ref().filter(|_| answered)
            && latest
                .price
                .is_none_or(|(known, _)| known.observed_at < observation.observed_at)
        {
            latest.price = Some((observation, best));
        }
    }
    latest_updates.into_values().collect()
}
