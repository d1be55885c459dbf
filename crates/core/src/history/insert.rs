//! Inserts observations, in the transaction that stores the answer.

use std::collections::BTreeMap;

use jiff::civil::Date;
use sqlx::PgConnection;

use super::observation::Observation;
use super::series_key::Series;
use super::store::write::{self, LatestUpdate};
use crate::contract::SearchStatus;
use crate::ids::TenantId;

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
