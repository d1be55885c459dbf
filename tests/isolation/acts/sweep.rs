//! What the sweep finds of all callers, and leaves of each to itself.

use std::sync::Arc;
use std::time::Duration;

use farescan::config::{RetentionConfig, WorkerConfig};
use farescan::queue::retain::retire;
use farescan::upstream::Client;
use farescan::worker::WorkerDeps;
use jiff::Timestamp;
use serde_json::json;

use super::{id, monitors, order};
use crate::isolation::hand::Comes;
use crate::isolation::world::{Business, Seen, World};
use crate::support::app::ring;
use crate::worker::stage::Running;

/// Nobody looks at the lane again, unless it is armed: then it shows.
const UNATTENDED: &str = "update lanes set next_at = null, paused_until = '2998-01-01', pause_reason = 'rate_limited' where tenant_id = $1";

/// Old events go; those of a scan that has just ended stay.
pub async fn events(world: &mut World) -> Seen {
    world.warm().await?;
    world.order(order(2, &json!({}))).await?;
    world.finish(|_| Comes::Price(100)).await?;
    world
        .arrange(
            "update scans set finished_at = finished_at - interval '3 days' where tenant_id = $1",
        )
        .await?;
    world
        .beside("update scans set finished_at = '2999-01-01' where tenant_id = $1")
        .await?;
    let pool = world.pool.clone();
    let drop_old = async {
        let dropped: i64 =
            sqlx::query_scalar("select drop_old_events(now() - interval '1 day', 1000)")
                .fetch_one(&pool)
                .await?;
        Ok::<_, sqlx::Error>(dropped)
    };
    world
        .work_on(Business::All, "drop old events", drop_old)
        .await?;
    Ok(())
}

/// Old slots and alerts go; the newest slot of a monitor stays, whatever newer one another has.
pub async fn slots(world: &mut World) -> Seen {
    world.warm().await?;
    let made = id(&world.post("/v1/monitors", monitors::body("old")).await?)?;
    world
        .arrange(
            "insert into monitor_slots (tenant_id, monitor_id, slot, kind, outcome, decided_at) \
             select tenant_id, monitor_id, '2020-01-01', 'schedule', 'missed', '2020-01-01' from monitors where tenant_id = $1",
        )
        .await?;
    world
        .beside(
            "insert into monitor_slots (tenant_id, monitor_id, slot, kind, outcome, decided_at) \
             select tenant_id, monitor_id, '2999-01-01', 'schedule', 'missed', '2020-01-01' from monitors where tenant_id = $1",
        )
        .await?;
    let pool = world.pool.clone();
    let retiring = async {
        let config = RetentionConfig {
            answer_retention_days: 0,
            ..RetentionConfig::default()
        };
        retire(&pool, &config, Timestamp::now()).await.map(|_| ())
    };
    world.work_on(Business::All, "retention", retiring).await?;
    world.get(&format!("/v1/monitors/{made}/slots")).await?;
    Ok(())
}

/// A key that belongs to no scan of its owner's expires.
pub async fn keys(world: &mut World) -> Seen {
    world.warm().await?;
    let scan = world.order(order(2, &json!({}))).await?;
    let claims = world.claim(2).await?;
    world.begin(&claims).await?;
    world.arrange(UNATTENDED).await?;
    world
        .arrange(
            "insert into key_grants (tenant_id, grant_id, purpose, key_id, nonce, ciphertext, created_at, expires_at) \
             values ($1, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'monitor', 'test', '', '', now(), now() - interval '1 minute')",
        )
        .await?;
    world
        .beside("update scans set grant_id = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa' where tenant_id = $1 and finished_at is null")
        .await?;
    let sweeper = WorkerDeps {
        pool: world.pool.clone(),
        ring: Arc::new(ring()),
        upstream: Client::new(&world.app.upstream.config()).unwrap(),
        config: WorkerConfig {
            worker_concurrency: 1,
            ..WorkerConfig::default()
        },
    };
    let (pool, tenant) = (world.pool.clone(), world.tenant().await?);
    let sweep = async {
        let running = Running::start(sweeper);
        let held = "select count(*) from key_grants where tenant_id = $1 and purpose = 'monitor' and wiped_at is null";
        while sqlx::query_scalar::<_, i64>(held)
            .bind(tenant)
            .fetch_one(&pool)
            .await?
            > 0
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        running.stop().await;
        Ok::<_, sqlx::Error>(())
    };
    world.work_on(Business::All, "a sweep", sweep).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    Ok(())
}

/// A second phase that is another's to begin.
pub async fn phases(world: &mut World) -> Seen {
    world.warm().await?;
    world
        .order(order(
            9,
            &json!({"strategy": {"coarse_step": 4, "refine": 1}}),
        ))
        .await?;
    let claims = world.claim(9).await?;
    world.begin(&claims).await?;
    world.arrange(UNATTENDED).await?;
    world
        .beside("update scans set finished_at = now(), status = 'completed' where tenant_id = $1 and finished_at is null")
        .await?;
    world.second_phase().await?;
    Ok(())
}
