//! Packs past UTC days: all observations of a product in one day become one row of `observed_days`.
//! A history query over a year then reads 365 rows per product.
//!
//! `observations` stays the source of truth. Observations from `series.unpacked_since` on are read
//! from there. The trigger `mark_unpacked` resets that column when an observation is inserted or
//! deleted, and those days are packed again. Packing is idempotent and safe at any time, in any
//! number of processes.

use futures::{TryStreamExt as _, pin_mut};
use jiff::{SignedDuration, Timestamp};
use sqlx::{PgConnection, PgPool};

use super::sample::{Sample, midnight, pack};
use super::store::daily_pack::{self, PackedDay, UnpackedProduct};
use crate::db;

/// Samples per transaction, unless a single day has more. The transaction locks the product for
/// some tenths of a second.
const SAMPLES_PER_PASS: i64 = 20_000;

/// Packs all days that ended before `now`, for all products. Returns the number of packed days.
/// Skips products that another transaction locks, and logs products that fail.
///
/// # Errors
/// The connection is lost. Committed days stay packed.
pub async fn pack_past_days(pool: &PgPool, now: Timestamp) -> sqlx::Result<usize> {
    let today = midnight(now);
    let (mut packed, mut last) = (0, None);
    loop {
        let mut tx = db::begin(pool).await?;
        let Some(product) = daily_pack::next_unpacked(&mut tx, last.as_ref(), today).await? else {
            return Ok(packed);
        };
        match pack_next_days(&mut tx, &product, today).await {
            Ok(days) => {
                tx.commit().await?;
                packed += days;
            }
            Err(error) if db::is_disconnected(&error) => return Err(error),
            // The failing product sorts first in every pass and must not block the others.
            Err(error) => {
                tracing::warn!(%error, "packing the days of a product failed");
            }
        }
        last = Some(product);
    }
}

/// Packs the next days of a locked product and replaces their previous packs.
async fn pack_next_days(
    conn: &mut PgConnection,
    product: &UnpackedProduct,
    today: Timestamp,
) -> sqlx::Result<usize> {
    let (mut packed, is_all) = read(conn, product, today, SAMPLES_PER_PASS).await?;
    let until = match packed.pop() {
        Some(last) if is_all => {
            packed.push(last);
            today
        }
        None => today,
        // The last day may be incomplete: leave it to the next pass, unless it is the only one.
        Some(last) if !packed.is_empty() => last.begins_at,
        Some(only) => {
            let ends_at = only.begins_at + SignedDuration::from_hours(24);
            packed = read(conn, product, ends_at, i64::MAX).await?.0;
            ends_at
        }
    };
    daily_pack::replace(conn, product, until, &packed).await?;
    Ok(packed.len())
}

/// Reads at most `limit` samples before `until`, packed by day. The flag says whether that is all.
async fn read(
    conn: &mut PgConnection,
    product: &UnpackedProduct,
    until: Timestamp,
    limit: i64,
) -> sqlx::Result<(Vec<PackedDay>, bool)> {
    let samples = daily_pack::samples(
        conn,
        product.tenant,
        &product.series,
        product.since,
        until,
        limit,
    );
    pin_mut!(samples);
    let (mut packed, mut day, mut count) = (Vec::new(), Vec::new(), 0);
    while let Some(sample) = samples.try_next().await? {
        if day
            .first()
            .is_some_and(|first: &Sample| first.day() != sample.day())
        {
            packed.push(packed_day(&day));
            day.clear();
        }
        day.push(sample);
        count += 1;
    }
    if !day.is_empty() {
        packed.push(packed_day(&day));
    }
    Ok((packed, count < limit))
}

/// Packs the samples of one day. `samples` must not be empty.
fn packed_day(samples: &[Sample]) -> PackedDay {
    PackedDay {
        begins_at: samples[0].day(),
        samples: pack(samples),
    }
}
