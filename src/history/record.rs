//! Keeping what was seen, in the transaction that stores the answer.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;
use sqlx::PgConnection;

use super::series::{Series, Subject};
use super::store::keep;
use crate::contract::{SearchStatus, Verdict};
use crate::ids::{ItemId, TenantId};

/// What one finished attempt saw: a price, or its absence. A degraded one leaves no price, so that gaps are visible.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Whose it is.
    pub tenant: TenantId,
    /// The item, and which of its attempts: together they make the observation one of a kind.
    pub item: ItemId,
    /// The attempt's number.
    pub number: i32,
    /// The product and its dates.
    pub subject: Subject,
    /// When the answer came.
    pub observed_at: Timestamp,
    /// The best price; `None` where there was none to see.
    pub best: Option<SeenPrice>,
    /// How many results the answer had; `None` where there was no answer.
    pub results: Option<i32>,
    /// How far the search came.
    pub status: SearchStatus,
    /// Why it came no further.
    pub reason: Option<String>,
}

/// A price as the marketplace gave it, in the series' currency and major units.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenPrice {
    /// The price of the whole journey or stay.
    pub price: Decimal,
    /// The carrier of the fare, the room or hotel of the rate.
    pub seller: Option<String>,
    /// Bottom of the historical band, where one was published.
    pub band_low: Option<Decimal>,
    /// Top of the band.
    pub band_high: Option<Decimal>,
    /// The provider's verdict.
    pub verdict: Option<Verdict>,
}

/// A product and dates of a tenant: what has one latest price.
type Place = (TenantId, [u8; 16], Date, Option<Date>);

/// Keeps a batch: the series that are new, an observation each, and the newest look and price of each product and date.
///
/// An observation that is there already (the same item and attempt) is left alone, so a batch may be stored again. Rows are written in
/// the order of their keys: two batches that meet wait for each other and never for ever.
///
/// # Errors
/// When the database does not answer, or lacks the month's partition.
pub async fn record(conn: &mut PgConnection, observations: &[Observation]) -> sqlx::Result<()> {
    if observations.is_empty() {
        return Ok(());
    }
    keep::insert_series(conn, &distinct_series(observations)).await?;
    keep::insert_observations(conn, observations).await?;
    keep::upsert_latest(conn, &newest(observations)).await
}

fn distinct_series(observations: &[Observation]) -> Vec<(TenantId, &Series)> {
    let by_key: BTreeMap<_, _> = observations
        .iter()
        .map(|seen| ((seen.tenant, seen.subject.series.key), &seen.subject.series))
        .collect();
    by_key
        .into_iter()
        .map(|((tenant, _), series)| (tenant, series))
        .collect()
}

/// What a batch has that is newest of one product and date.
#[derive(Debug, Clone, Copy)]
pub(super) struct Newest<'a> {
    /// The newest look, whatever it came to.
    pub(super) look: &'a Observation,
    /// The newest price. Only an answer is a price to go by: `ok` or `partial`.
    pub(super) price: Option<(&'a Observation, &'a SeenPrice)>,
}

/// The newest price and look of each product and date, in the order of their keys. Of two at the same time the first of the batch counts.
fn newest(observations: &[Observation]) -> Vec<Newest<'_>> {
    let mut newest = BTreeMap::<Place, Newest<'_>>::new();
    for seen in observations {
        let place = (
            seen.tenant,
            seen.subject.series.key.0,
            seen.subject.first_date,
            seen.subject.last_date,
        );
        let kept = newest.entry(place).or_insert(Newest {
            look: seen,
            price: None,
        });
        if kept.look.observed_at < seen.observed_at {
            kept.look = seen;
        }
        let answered = matches!(seen.status, SearchStatus::Ok | SearchStatus::Partial);
        if let Some(best) = seen.best.as_ref().filter(|_| answered)
            && kept
                .price
                .is_none_or(|(known, _)| known.observed_at < seen.observed_at)
        {
            kept.price = Some((seen, best));
        }
    }
    newest.into_values().collect()
}
