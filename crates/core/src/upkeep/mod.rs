//! Upkeep: the background work of a process with a worker that belongs to no call.
//!
//! ```text
//!  sweeper    abandons claims of dead workers, releases due retries, starts what is due
//!  expired    deletes expired rows and keys, within the sweep
//!  retention  creates partitions ahead, removes old partitions and rows
//!  here       packs past days of history
//! ```
//!
//! Every pass is bounded and may be repeated. Not here: what a scan's claims and calls need
//! (`queue`), which days are packed and how (`history::daily_pack`).

mod expired;
pub mod retention;
pub mod sweeper;

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::config::RetentionConfig;
use crate::db::clock::DatabaseTime;
use crate::history::daily_pack;
use crate::passes;
use crate::queue::Queue;

/// Starts the upkeep of a process. It ends with the queue.
pub fn start(queue: &Queue, pool: &PgPool, config: &RetentionConfig) {
    queue.spawn(|stop| sweeper::run(pool.clone(), queue.lease.clone(), stop));
    queue.spawn(|stop| retention::run(pool.clone(), config.clone(), stop));
    queue.spawn(|stop| pack_periodically(pool.clone(), config.upkeep(), stop));
}

/// Packs past days every `every`, until `stop`.
async fn pack_periodically(pool: PgPool, every: Duration, stop: CancellationToken) {
    let packing = passes::run(&stop, None, || async {
        let packed = async {
            daily_pack::pack_past_days(&pool, DatabaseTime::read(&pool).await?.now()).await
        };
        match packed.await {
            Ok(0) => {}
            Ok(packed) => tracing::debug!(packed, "packed history days"),
            Err(error) => {
                tracing::warn!(%error, "packing history days failed; the next pass continues");
            }
        }
        every
    });
    stop.run_until_cancelled(packing).await;
}
