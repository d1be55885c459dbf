//! The life of a webhook: opened, tried, given up, switched off and on, moved, closed.

use std::collections::BTreeSet;
use std::sync::Arc;

use farescan::ids::{MonitorId, TenantId};
use farescan::webhooks::{self, LockFor, MonitorLock, Sender, WebhookError, endpoint};
use jiff::Timestamp;
use serde_json::json;
use sqlx::PgConnection;

use super::id;
use crate::isolation::world::{Business, Noticed, Seen, World};
use crate::support::app::ring;
use crate::support::reply::Reply;
use crate::webhooks::post::{self, Names};

const URL: &str = "http://hooks.test/fares";

async fn locked(
    tx: &mut PgConnection,
    tenant: TenantId,
    monitor: MonitorId,
) -> Result<MonitorLock<'_>, WebhookError> {
    MonitorLock::acquire(tx, tenant, monitor, LockFor::Webhook)
        .await?
        .ok_or(WebhookError::NoEndpoint)
}

async fn open(world: &mut World, tenant: TenantId) -> Seen<MonitorId> {
    let made = world
        .post("/v1/monitors", crate::monitors::monitor())
        .await?;
    let pool = world.pool.clone();
    let monitor: MonitorId = id(&made)?
        .parse()
        .map_err(|_| Noticed("no monitor's id".to_owned()))?;
    let opening = async {
        let mut tx = farescan::db::begin(&pool).await?;
        endpoint::open(
            &mut locked(&mut tx, tenant, monitor).await?,
            &ring(),
            URL,
            Timestamp::now(),
        )
        .await?;
        tx.commit().await?;
        Ok::<_, WebhookError>(())
    };
    world.work("a webhook is opened", opening).await?;
    Ok(monitor)
}

async fn tell(world: &mut World, tenant: TenantId, monitor: MonitorId) -> Seen<String> {
    let pool = world.pool.clone();
    let telling = async {
        let mut tx = farescan::db::begin(&pool).await?;
        let mut lock = locked(&mut tx, tenant, monitor).await?;
        let id = webhooks::enqueue(
            &mut lock,
            "monitor.alerts",
            &json!({"price": 1}),
            Timestamp::now(),
        )
        .await?;
        tx.commit().await?;
        Ok::<_, WebhookError>(id)
    };
    let told = world.work("an event", telling).await?;
    Ok(told.map(|id| id.to_string()).unwrap_or_default())
}

/// Delivers until nothing of the first tenant is due, and notes what came.
async fn deliver(world: &mut World, names: &Names, tenant: TenantId) -> Seen {
    deliver_on(Business::Own, world, names, tenant).await
}

async fn deliver_on(
    business: Business,
    world: &mut World,
    names: &Names,
    tenant: TenantId,
) -> Seen {
    let sender = Sender::with_names(post::guard(), Arc::new(names.clone())).unwrap();
    let (pool, before) = (world.pool.clone(), world.app.upstream.count());
    let delivering = async {
        let deliverer = post::deliver(&pool, sender);
        let due = "select count(*) from webhook_endpoints where tenant_id = $1 and (next_at <= now() or taken_until is not null)";
        while sqlx::query_scalar::<_, i64>(due)
            .bind(tenant.uuid())
            .fetch_one(&pool)
            .await?
            > 0
        {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        deliverer.stop().await;
        Ok::<_, sqlx::Error>(())
    };
    world.work_on(business, "deliveries", delivering).await?;
    let calls = world.app.upstream.calls().split_off(before);
    let came = calls
        .iter()
        .map(|call| format!("{} {} {}", call.header("webhook-id"), call.path, call.body));
    // In the order in which they were made.
    let came: BTreeSet<_> = came.collect();
    world
        .work_on(Business::Reading, "what came", async {
            Ok::<_, sqlx::Error>(came)
        })
        .await
        .map(drop)
}

pub async fn play(world: &mut World) -> Seen {
    world.warm().await?;
    let tenant = TenantId::from(world.tenant().await?);
    let names = Names::default();
    names.lead("hooks.test", &[&[post::address(&world.app.upstream)]]);
    let (monitor, other) = (open(world, tenant).await?, open(world, tenant).await?);

    world
        .app
        .upstream
        .on_any()
        .reply(Reply::status(200).body("thanks"));
    let first = tell(world, tenant, monitor).await?;
    tell(world, tenant, other).await?;
    deliver(world, &names, tenant).await?;
    world.get("/v1/deliveries").await?;
    world
        .get(&format!(
            "/v1/deliveries?monitor_id={monitor}&status=delivered"
        ))
        .await?;
    world.get(&format!("/v1/deliveries/{first}")).await?;

    world
        .app
        .upstream
        .on_any()
        .reply(Reply::status(500).body("no"));
    let second = tell(world, tenant, monitor).await?;
    deliver(world, &names, tenant).await?;
    world.get(&format!("/v1/deliveries/{second}")).await?;
    // Its process dies in the next try.
    world.arrange("update deliveries set due_at = now(), tries = tries + 1 where tenant_id = $1 and due_at is not null").await?;
    world
        .arrange(
            "insert into delivery_tries (tenant_id, delivery_id, number, started_at)
             select tenant_id, delivery_id, tries, now() from deliveries where tenant_id = $1 and due_at is not null",
        )
        .await?;
    world
        .arrange(
            "update webhook_endpoints w set taken_delivery = d.delivery_id, taken_until = now(), next_at = now()
             from deliveries d where w.tenant_id = $1 and d.tenant_id = $1 and d.monitor_id = w.monitor_id and d.due_at is not null",
        )
        .await?;
    deliver(world, &names, tenant).await?;
    world.arrange("update deliveries set failures = 7, due_at = now() where tenant_id = $1 and due_at is not null").await?;
    world
        .arrange("update webhook_endpoints set next_at = now(), failing_since = '2026-01-01' where tenant_id = $1 and next_at is not null")
        .await?;
    deliver(world, &names, tenant).await?;
    tell(world, tenant, monitor).await?;
    world
        .ask("POST", &format!("/v1/deliveries/{second}/resend"), None)
        .await?;
    world
        .ask("POST", &format!("/v1/monitors/{monitor}/test"), None)
        .await?;
    world
        .ask(
            "POST",
            &format!("/v1/monitors/{monitor}/enable-webhook"),
            None,
        )
        .await?;
    world
        .ask("POST", &format!("/v1/deliveries/{second}/resend"), None)
        .await?;
    deliver(world, &names, tenant).await?;

    ends(world, &names, tenant, [monitor, other]).await
}

/// Webhooks, deliveries and tries are another's, however alike.
pub async fn aliens(world: &mut World) -> Seen {
    world.warm().await?;
    let tenant = TenantId::from(world.tenant().await?);
    let names = Names::default();
    names.lead("hooks.test", &[&[post::address(&world.app.upstream)]]);
    let plain = id(&world
        .post("/v1/monitors", crate::monitors::monitor())
        .await?)?;
    // The twin's has a webhook.
    world
        .beside(
            "insert into webhook_endpoints (tenant_id, monitor_id, url, secret_ids, created_at) \
             select tenant_id, monitor_id, 'http://twin.test/', array[grant_id], now() from monitors where tenant_id = $1",
        )
        .await?;
    world.get(&format!("/v1/monitors/{plain}")).await?;
    world.get("/v1/monitors").await?;

    let monitor = open(world, tenant).await?;
    world
        .app
        .upstream
        .on_any()
        .reply(Reply::status(200).body("thanks"));
    let told = tell(world, tenant, monitor).await?;
    // As many of the twin's are being tried as of one caller may be, and one at this number.
    world
        .beside(
            "insert into webhook_endpoints (tenant_id, monitor_id, url, secret_ids, created_at, taken_until, taken_delivery) \
             select tenant_id, md5(n::text)::uuid, 'http://twin.test/', array[tenant_id], now(), '2999-01-01', tenant_id \
             from tenants cross join generate_series(1, 20) n where tenant_id = $1",
        )
        .await?;
    world
        .beside(
            "insert into delivery_tries (tenant_id, delivery_id, number, started_at) \
             select tenant_id, delivery_id, tries + 1, now() from deliveries where tenant_id = $1 and due_at is not null",
        )
        .await?;
    deliver_on(Business::All, world, &names, tenant).await?;
    world.get(&format!("/v1/deliveries/{told}")).await?;

    // The twin's is of a monitor that has no webhook.
    world
        .beside("update deliveries set monitor_id = tenant_id where tenant_id = $1")
        .await?;
    world
        .ask("POST", &format!("/v1/deliveries/{told}/resend"), None)
        .await?;
    deliver(world, &names, tenant).await
}

/// A receiver that wants no more, secrets that are rotated, webhooks that are moved and closed.
async fn ends(
    world: &mut World,
    names: &Names,
    tenant: TenantId,
    [monitor, other]: [MonitorId; 2],
) -> Seen {
    world.app.upstream.on_any().reply(Reply::status(410));
    let waits = tell(world, tenant, monitor).await?;
    world
        .arrange("update deliveries set due_at = due_at + interval '1 hour' where tenant_id = $1 and due_at is not null")
        .await?;
    let test = world
        .ask("POST", &format!("/v1/monitors/{monitor}/test"), None)
        .await?;
    let test = id(&test)?;
    deliver(world, names, tenant).await?;
    for delivery in [&waits, &test] {
        world.get(&format!("/v1/deliveries/{delivery}")).await?;
    }
    for _ in 0..2 {
        world
            .ask("POST", &format!("/v1/monitors/{other}/rotate-secret"), None)
            .await?;
    }
    world.arrange("update key_grants set expires_at = '2026-01-01' where tenant_id = $1 and purpose = 'webhook' and expires_at < '3000-01-01'").await?;
    world
        .ask("POST", &format!("/v1/monitors/{other}/rotate-secret"), None)
        .await?;
    let pool = world.pool.clone();
    let moving = async {
        let mut tx = farescan::db::begin(&pool).await?;
        endpoint::change_url(
            &mut locked(&mut tx, tenant, monitor).await?,
            "http://hooks.test/moved",
        )
        .await?;
        tx.commit().await?;
        Ok::<_, WebhookError>(())
    };
    world.work("a webhook is moved", moving).await?;
    let last = tell(world, tenant, other).await?;
    let pool = world.pool.clone();
    let closing = async {
        let mut tx = farescan::db::begin(&pool).await?;
        endpoint::close(&mut locked(&mut tx, tenant, other).await?, Timestamp::now()).await?;
        tx.commit().await?;
        Ok::<_, WebhookError>(())
    };
    world.work("a webhook is closed", closing).await?;
    world.get(&format!("/v1/deliveries/{last}")).await?;
    world
        .ask("POST", &format!("/v1/deliveries/{last}/resend"), None)
        .await
        .map(drop)
}
