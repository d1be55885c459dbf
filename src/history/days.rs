//! Days that have passed, packed: what was seen of a product in a day of UTC becomes one row (`observed_days`), so that a year costs 365.
//!
//! Observations stay what is true. `series.unpacked_since` says from which day on they are to be read; whoever puts one in or takes one out
//! sets it back (the trigger `unpack_days`), and the days from there on are packed again. So packing may happen at any time, in any
//! process, twice or never: it changes what a question costs and nothing else.

use std::time::Duration;

use futures::{TryStreamExt as _, pin_mut};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use sqlx::{PgConnection, PgPool};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::look::{Look, pack};
use super::store::days::{self, PackedDay, Unpacked};
use crate::db;
use crate::db::clock::DatabaseTime;

/// Looks of one transaction, unless a day alone has more: some tenths of a second, in which nobody else can put in what he saw of the product.
const PASS: i64 = 20_000;

/// Packs what can be packed, again and again, until `stop`.
pub async fn keep_packed(pool: PgPool, every: Duration, stop: CancellationToken) {
    let packing = async {
        loop {
            let packed = async { pack_passed(&pool, DatabaseTime::read(&pool).await?.now()).await };
            match packed.await {
                Ok(0) => {}
                Ok(packed) => tracing::debug!(packed, "days of the history were packed"),
                Err(error) => {
                    tracing::warn!(%error, "days of the history were not all packed; the next pass goes on")
                }
            }
            sleep(every).await;
        }
    };
    stop.run_until_cancelled(packing).await;
}

/// Packs all days that are over at `now`, of all products; gives how many. A product that somebody is just writing to is left for later, and
/// so is one that cannot be packed, with a line in the log.
///
/// # Errors
/// When the database does not answer; what is done stays done.
pub async fn pack_passed(pool: &PgPool, now: Timestamp) -> sqlx::Result<usize> {
    let today = midnight(now);
    let (mut packed, mut last) = (0, None);
    loop {
        let mut tx = db::begin(pool).await?;
        let Some(product) = days::next_unpacked(&mut tx, last.as_ref(), today).await? else {
            return Ok(packed);
        };
        match pack_some(&mut tx, &product, today).await {
            Ok(days) => {
                tx.commit().await?;
                packed += days;
            }
            Err(error) if db::is_cut(&error) => return Err(error),
            // It comes first again in every pass: whoever comes after it must not wait for that.
            Err(error) => {
                tracing::warn!(%error, "the days of a product cannot be packed; they are read as they are")
            }
        }
        last = Some(product);
    }
}

/// Packs the next days of a product, which is locked. What was packed of them before is no longer true.
async fn pack_some(
    conn: &mut PgConnection,
    product: &Unpacked,
    today: Timestamp,
) -> sqlx::Result<usize> {
    let (mut packed, is_all) = read(conn, product, today, PASS).await?;
    let until = match packed.pop() {
        Some(last) if is_all => {
            packed.push(last);
            today
        }
        None => today,
        // The last day may have been cut off: it is for the next pass, unless it is all that this one has.
        Some(last) if !packed.is_empty() => last.begins_at,
        Some(only) => {
            let ends_at = only.begins_at + SignedDuration::from_hours(24);
            packed = read(conn, product, ends_at, i64::MAX).await?.0;
            ends_at
        }
    };
    days::replace(conn, product, until, &packed).await?;
    Ok(packed.len())
}

/// The days of a product up to `until`, packed, of at most `most` looks; and whether that is all.
async fn read(
    conn: &mut PgConnection,
    product: &Unpacked,
    until: Timestamp,
    most: i64,
) -> sqlx::Result<(Vec<PackedDay>, bool)> {
    let looks = days::looks(
        conn,
        product.tenant,
        &product.series,
        product.since,
        until,
        most,
    );
    pin_mut!(looks);
    let (mut packed, mut day, mut count) = (Vec::new(), Vec::new(), 0);
    while let Some(look) = looks.try_next().await? {
        if day
            .first()
            .is_some_and(|first: &Look| first.day() != look.day())
        {
            packed.push(packed_day(&day));
            day.clear();
        }
        day.push(look);
        count += 1;
    }
    if !day.is_empty() {
        packed.push(packed_day(&day));
    }
    Ok((packed, count < most))
}

/// Of looks of one day, at least one.
fn packed_day(looks: &[Look]) -> PackedDay {
    PackedDay {
        begins_at: looks[0].day(),
        looks: pack(looks),
    }
}

/// When the day of a time began, in UTC.
pub(super) fn midnight(time: Timestamp) -> Timestamp {
    time.to_zoned(TimeZone::UTC)
        .start_of_day()
        .map_or(time, |day| day.timestamp())
}
