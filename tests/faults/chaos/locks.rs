//! Another database client that locks rows for a while, such as a report, a manual statement or a
//! dump.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

/// Locks random rows of one table for a while, repeatedly; returns how often.
pub async fn hold_random_rows(pool: PgPool, seed: u64, stop: CancellationToken) -> usize {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut done = 0;
    while !stop.is_cancelled() {
        let lock = match rng.random_range(0..6) {
            0 => "select from lanes order by random() limit 1 for update skip locked",
            1 | 2 => {
                "select from scan_items where state in ('claimed', 'calling', 'pending') order by random() limit 3 for update skip locked"
            }
            _ => {
                "select from scans s where finished_at is null and total < 10000 order by random() limit 1 for update skip locked"
            }
        };
        let mut tx = farescan::db::begin(&pool).await.unwrap();
        if sqlx::query(lock).execute(&mut *tx).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(rng.random_range(100..1_500))).await;
            done += 1;
        }
        tx.rollback().await.ok();
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..400))).await;
    }
    done
}
