//! A scan in two phases: every so many dates of its range first, then those next to the cheapest.
//!
//! Here: which items belong to which phase (pure), and beginning the second one. All items are stored at submit; those that the first
//! phase leaves out are `deferred`, which counts as not ended, so the scan cannot end in between. The sweeper begins the second phase
//! (docs/decisions/0004): under the lane's lock, the items' and the scan's, in one transaction, so once, whatever dies. Not here:
//! searching (`queue`).

pub(super) mod store;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use rust_decimal::Decimal;
use sqlx::PgPool;

use super::store::Turns;
use super::submit::stride;
use crate::contract::scans::{Priority, Strategy};
use crate::db;

/// The most scans that are looked up at once, and how many times a pass does so.
const PASS: i64 = 100;
const ROUNDS: usize = 10;

/// Where the dates of a two-phase scan are, and how it goes about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwoPhase {
    /// Every so many dates first.
    pub coarse_step: usize,
    /// Next to so many of the cheapest then.
    pub refine: usize,
    /// Dates of the range.
    pub dates: usize,
    /// Items from one date to the next: the combinations of what counts faster.
    pub inner_items: usize,
    /// Items without their samples: a further sample of the same search stands so many positions later.
    pub combinations: usize,
}

/// A search of one date, and what it costs to know more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// All else that is swept.
    line: usize,
    /// Which date of the range.
    date: usize,
}

impl TwoPhase {
    /// The strategy over a range of so many dates that stands in positions like this.
    #[must_use]
    pub fn new(strategy: &Strategy, dates: usize, inner_items: usize, combinations: usize) -> Self {
        let number = |number: u16| usize::from(number);
        Self {
            coarse_step: number(strategy.coarse_step.get()),
            refine: number(strategy.refine.get()),
            dates,
            inner_items,
            combinations,
        }
    }

    fn place(&self, position: usize) -> Place {
        let search = position % self.combinations;
        let date = search / self.inner_items % self.dates;
        Place {
            line: search - date * self.inner_items,
            date,
        }
    }

    /// Whether the item at `position` is of the first phase: every `coarse_step`-th date, and the last.
    #[must_use]
    pub fn is_coarse(&self, position: usize) -> bool {
        let date = self.place(position).date;
        date.is_multiple_of(self.coarse_step) || date + 1 == self.dates
    }

    /// How many of `items` in all are searched at least, by the first phase alone, and at most: with all that can lie next to `refine`
    /// of its dates.
    #[must_use]
    pub fn searches(&self, items: usize) -> RangeInclusive<usize> {
        let coarse = (0..items)
            .filter(|position| self.is_coarse(*position))
            .count();
        let lines = items / self.dates;
        let beside = self
            .refine
            .saturating_mul(2 * (self.coarse_step - 1))
            .saturating_mul(lines);
        coarse..=items.min(coarse.saturating_add(beside))
    }

    /// Which of the `deferred` positions the second phase searches: those less than `coarse_step` dates from one of the `refine`
    /// cheapest dates of their line. `prices` are those of the first phase, by position, in one currency; of equal ones the earlier
    /// date counts as cheaper. A line without a price has nothing to go by, and is left alone.
    #[must_use]
    pub fn second_phase(&self, prices: &[(usize, Decimal)], deferred: &[usize]) -> BTreeSet<usize> {
        let mut best = BTreeMap::<Place, Decimal>::new();
        for (position, price) in prices {
            let kept = best.entry(self.place(*position)).or_insert(*price);
            *kept = (*kept).min(*price);
        }
        let mut lines = BTreeMap::<usize, Vec<(Decimal, usize)>>::new();
        for (place, price) in best {
            lines
                .entry(place.line)
                .or_default()
                .push((price, place.date));
        }
        for dates in lines.values_mut() {
            dates.sort_unstable();
            dates.truncate(self.refine);
        }
        let is_near = |position: &usize| {
            let Place { line, date } = self.place(*position);
            let cheapest = lines.get(&line);
            cheapest.is_some_and(|dates| {
                dates
                    .iter()
                    .any(|(_, cheap)| cheap.abs_diff(date) < self.coarse_step)
            })
        };
        deferred.iter().copied().filter(is_near).collect()
    }
}

/// Begins the second phase of scans whose first one has ended; gives how many.
///
/// # Errors
/// When the database does not answer; what was not begun is begun by the next pass.
pub async fn begin_due(pool: &PgPool, now: jiff::Timestamp) -> sqlx::Result<usize> {
    let (mut begun, mut last) = (0, None);
    for _ in 0..ROUNDS {
        let due = store::due(pool, last, PASS).await?;
        for scan in &due {
            match begin(pool, scan, now).await {
                Ok(()) => begun += 1,
                Err(error) if db::is_cut(&error) => return Err(error),
                Err(error) => {
                    tracing::warn!(scan = %scan.scan, %error, "a second phase was not begun; the next pass goes on with it");
                }
            }
        }
        // Those that cannot be begun now are not in the way of the others.
        last = due.last().map(|scan| (scan.tenant, scan.scan));
        if last.is_none() {
            break;
        }
    }
    Ok(begun)
}

async fn begin(pool: &PgPool, scan: &store::Due, now: jiff::Timestamp) -> sqlx::Result<()> {
    let mut tx = db::begin(pool).await?;
    db::wait_briefly(&mut tx).await?;
    let start = super::store::arm_lane(&mut tx, scan.tenant, &scan.api).await?;
    let deferred = store::lock_deferred(&mut tx, scan).await?;
    match store::lock_ready(&mut tx, scan).await? {
        None => {}
        Some(_) if deferred.is_empty() => store::forget(&mut tx, scan).await?,
        Some(ready) => {
            let positions: Vec<_> = deferred.iter().map(|(_, position)| *position).collect();
            let wanted = ready
                .phases
                .second_phase(&store::prices(&mut tx, scan).await?, &positions);
            let (wanted, skipped): (Vec<_>, Vec<_>) = deferred
                .into_iter()
                .partition(|(_, position)| wanted.contains(position));
            let stride = stride(Priority::parse(&ready.priority).unwrap_or(Priority::Interactive));
            store::begin(
                &mut tx,
                scan,
                &wanted,
                &skipped,
                &Turns { start, stride },
                now,
            )
            .await?;
        }
    }
    tx.commit().await
}
