//! What was spent, what is left, a search that becomes a scan, and a key that passes on to another.

use std::sync::Arc;
use std::time::Duration;

use farescan::config::WorkerConfig;
use farescan::upstream::Client;
use farescan::worker::WorkerDeps;
use serde_json::json;

use super::order;
use crate::isolation::hand::Comes;
use crate::isolation::world::{Business, Seen, World};
use crate::support::app::{KEY, ring};
use crate::worker::stage::Running;

const NEW_KEY: &str = "the-next-key-0123456789";

/// Usage, quota and rotation.
pub async fn play(world: &mut World) -> Seen {
    let first = world.warm().await?;
    let second = world.order(order(3, &json!({}))).await?;
    world
        .finish(|at| [Comes::Price(200), Comes::Empty, Comes::Degraded][at % 3])
        .await?;
    world
        .ask("DELETE", &format!("/v1/scans/{first}"), None)
        .await?;
    for query in [
        "",
        "?group=day",
        "?group=endpoint",
        "?group=scan",
        "?group=scan&limit=1",
    ] {
        world.get(&format!("/v1/usage{query}")).await?;
    }
    world.order(order(3, &json!({}))).await?;
    let claims = world.claim(2).await?;
    world.begin(&claims).await?;
    world.get("/v1/quota").await?;
    world.record(&[(&claims[0], Comes::Rejected)]).await?;
    world.get("/v1/quota").await?;

    let bounds = json!({"requests_per_minute": 30, "max_in_flight": 2, "keep_in_reserve": 5});
    world.ask("PUT", "/v1/quota/flights", Some(bounds)).await?;
    world.get("/v1/quota").await?;
    world
        .ask(
            "POST",
            &format!("/v1/scans/{second}/retry"),
            Some(json!({"search_status": ["degraded"]})),
        )
        .await?;
    world
        .ask(
            "PUT",
            "/v1/quota/flights",
            Some(json!({"max_in_flight": 3})),
        )
        .await?;

    let rotate = json!({"new_key": NEW_KEY});
    world.post("/v1/account/rotate-key", rotate.clone()).await?;
    world.post("/v1/account/rotate-key", rotate).await?;
    for key in [KEY, NEW_KEY] {
        world.ask_as(key, "GET", "/v1/scans", &[], None).await?;
        world
            .ask_as(key, "GET", &format!("/v1/scans/{second}"), &[], None)
            .await?;
    }
    Ok(())
}

/// A key that passes on to another caller after an order has looked up whose it is.
pub async fn passing(world: &mut World) -> Seen {
    world.warm().await?;
    world
        .ask_while_the_key_passes_on("/v1/scans", order(2, &json!({})))
        .await?;
    Ok(())
}

/// A search that becomes a scan, made by a running worker, and asked for again.
pub async fn prefer(world: &mut World) -> Seen {
    let body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-05"});
    let later = [("prefer", "respond-async"), ("idempotency-key", "ask")];
    world
        .ask_with("POST", "/v1/flights/oneway", &later, Some(body.clone()))
        .await?;
    let worker = WorkerDeps {
        pool: world.pool.clone(),
        ring: Arc::new(ring()),
        upstream: Client::new(&world.app.upstream.config()).unwrap(),
        config: WorkerConfig {
            worker_concurrency: 1,
            ..WorkerConfig::default()
        },
    };
    let (pool, tenant) = (world.pool.clone(), world.tenant().await?);
    let work = async {
        let running = Running::start(worker);
        let open = "select count(*) from scans where tenant_id = $1 and finished_at is null";
        while sqlx::query_scalar::<_, i64>(open)
            .bind(tenant)
            .fetch_one(&pool)
            .await?
            > 0
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        running.stop().await;
        // Whether the worker came once more to an empty lane is a matter of time.
        sqlx::query("update lanes set next_at = null where tenant_id = $1")
            .bind(tenant)
            .execute(&pool)
            .await?;
        Ok::<_, sqlx::Error>(())
    };
    world.work_on(Business::All, "a worker", work).await?;
    let now = [
        ("prefer", "respond-async, wait=5"),
        ("idempotency-key", "ask"),
    ];
    world
        .ask_with("POST", "/v1/flights/oneway", &now, Some(body))
        .await
        .map(drop)
}
