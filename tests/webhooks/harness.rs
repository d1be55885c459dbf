//! A tenant with webhooks, a resolver that the test controls, and a deliverer on demand.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farescan::commands::CommandError;
use farescan::config::WebhookConfig;
use farescan::contract::monitors::Webhook;
use farescan::contract::webhooks::{DeliveryDetail, DeliveryStatus};
use farescan::ids::{DeliveryId, GrantId, MonitorId, TenantId};
use farescan::tenants;
use farescan::webhooks::{
    self, EndpointLock, Guard, LockFor, MonitorLock, Outgoing, Sender, endpoint, read, resend,
};
use jiff::Timestamp;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::WAIT_LIMIT;
use crate::support::app::{self, KEY, ring};
use crate::support::db::TestDb;
use crate::support::upstream::{Call, ScriptedServer};

/// The timeout of a try: long enough for a slow machine.
pub const TRY_TIME: Duration = Duration::from_secs(5);

/// A resolver with a list of answers per name; the last answer repeats. Counts lookups.
#[derive(Clone, Default)]
pub struct TestResolver(Arc<Mutex<HashMap<String, LookupAnswers>>>);

/// The remaining answers and the number of lookups.
type LookupAnswers = (Vec<Vec<SocketAddr>>, usize);

impl TestResolver {
    pub fn resolve_to(&self, name: &str, answers: &[&[SocketAddr]]) {
        let answers = answers.iter().map(|addresses| addresses.to_vec()).collect();
        self.0.lock().unwrap().insert(name.to_owned(), (answers, 0));
    }

    pub fn lookups(&self, name: &str) -> usize {
        self.0
            .lock()
            .unwrap()
            .get(name)
            .map_or(0, |(_, asked)| *asked)
    }
}

impl Resolve for TestResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let mut names = self.0.lock().unwrap();
        let found = names.get_mut(name.as_str()).map(|(answers, asked)| {
            *asked += 1;
            if answers.len() > 1 {
                answers.remove(0)
            } else {
                answers[0].clone()
            }
        });
        Box::pin(async move {
            let found = found.ok_or("no such name")?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

pub fn address(receiver: &ScriptedServer) -> SocketAddr {
    receiver
        .url()
        .trim_start_matches("http://")
        .parse()
        .unwrap()
}

/// The guard of tests, with the insecure setting.
pub fn guard() -> Guard {
    Guard::new(&WebhookConfig {
        webhooks_allow_insecure: true,
    })
}

pub struct WebhookTest {
    pub db: TestDb,
    pub names: TestResolver,
    pub tenant: TenantId,
}

/// A running deliverer.
pub struct RunningDeliverer {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Drop for RunningDeliverer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl RunningDeliverer {
    pub async fn stop(mut self) {
        self.stop.cancel();
        tokio::time::timeout(WAIT_LIMIT, &mut self.task)
            .await
            .expect("the deliverer ends")
            .unwrap();
    }
}

impl WebhookTest {
    pub async fn open() -> Self {
        let db = TestDb::new().await;
        let tenant = tenant(db.pool(), KEY).await;
        Self {
            db,
            names: TestResolver::default(),
            tenant,
        }
    }

    pub fn pool(&self) -> &PgPool {
        self.db.pool()
    }

    pub fn deliverer(&self) -> RunningDeliverer {
        let sender = Sender::with_resolver(guard(), Arc::new(self.names.clone()))
            .unwrap()
            .with_timeout(TRY_TIME);
        deliver(self.pool(), sender)
    }

    /// Creates a monitor with a webhook; returns its id and secret.
    pub async fn webhook(&self, url: &str) -> (MonitorId, String) {
        webhook(self.pool(), self.tenant, url).await
    }

    /// Starts a receiver with its own name, and creates a monitor that delivers to it.
    pub async fn receiver(&self, name: &str) -> (ScriptedServer, MonitorId) {
        let receiver = ScriptedServer::start().await;
        self.names.resolve_to(name, &[&[address(&receiver)]]);
        let (monitor, _) = self
            .webhook(&format!("http://{name}/fares?token=hunter2"))
            .await;
        (receiver, monitor)
    }

    pub async fn enqueue(&self, monitor: MonitorId) -> DeliveryId {
        enqueue(self.pool(), self.tenant, monitor).await
    }

    /// Resends a delivery.
    pub async fn resend(&self, id: DeliveryId) -> Result<(), CommandError> {
        let mut tx = farescan::db::begin(self.pool()).await.unwrap();
        let owner = resend::owner_of(&mut tx, self.tenant, id).await?;
        let lock = EndpointLock::acquire(&mut tx, self.tenant, owner, LockFor::Webhook).await;
        resend::resend(
            &mut lock.unwrap().expect("the owner exists"),
            id,
            Timestamp::now(),
        )
        .await?;
        tx.commit().await.unwrap();
        Ok(())
    }

    pub async fn detail(&self, id: DeliveryId) -> DeliveryDetail {
        read::detail(self.pool(), self.tenant, id)
            .await
            .unwrap()
            .unwrap()
    }

    pub async fn endpoint(&self, monitor: MonitorId) -> Option<Webhook> {
        endpoint::show(
            &mut self.pool().acquire().await.unwrap(),
            &ring(),
            self.tenant,
            monitor,
            Timestamp::now(),
        )
        .await
        .unwrap()
    }

    /// Waits until the delivery meets a condition.
    pub async fn when(
        &self,
        id: DeliveryId,
        what: &str,
        so: impl Fn(&DeliveryDetail) -> bool,
    ) -> DeliveryDetail {
        let end = tokio::time::Instant::now() + WAIT_LIMIT;
        loop {
            let seen = self.detail(id).await;
            if so(&seen) {
                return seen;
            }
            assert!(
                tokio::time::Instant::now() < end,
                "timed out waiting until {what}: {seen:#?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn ended(&self, id: DeliveryId) -> DeliveryDetail {
        self.when(id, "it has ended", |seen| {
            seen.delivery.status != DeliveryStatus::Pending
        })
        .await
    }

    /// Waits until the delivery's try with this number has ended.
    pub async fn tried(&self, id: DeliveryId, number: u32) -> DeliveryDetail {
        let is_over = |seen: &DeliveryDetail| {
            seen.tries
                .iter()
                .any(|tried| tried.number == number && tried.ended_at.is_some())
        };
        self.when(id, &format!("try {number} is over"), is_over)
            .await
    }

    /// Makes the next try due.
    pub async fn due_now(&self, id: DeliveryId) {
        let sql = "with d as (update deliveries set due_at = clock_timestamp() where delivery_id = $1 and due_at is not null returning *)
                   update webhook_endpoints w set next_at = clock_timestamp() from d
                   where w.tenant_id = d.tenant_id and w.endpoint_id = coalesce(d.channel_id, d.monitor_id) and w.taken_until is null and w.off_at is null";
        execute!(self.pool(), sql, id.uuid());
        execute!(self.pool(), "notify farescan_delivery");
    }

    /// Moves all test events a minute into the past.
    pub async fn age_tests_by_a_minute(&self) {
        let sql = "update deliveries set created_at = created_at - interval '1 min', ended_at = ended_at - interval '1 min'
                   where event_type = 'monitor.test'";
        execute!(self.pool(), sql);
    }

    /// One number from the database.
    pub async fn count(&self, sql: &'static str) -> i64 {
        value!(self.pool(), sql)
    }
}

pub fn deliver(pool: &PgPool, sender: Sender) -> RunningDeliverer {
    let deps = webhooks::DelivererDeps {
        pool: pool.clone(),
        ring: Arc::new(ring()),
        sender,
        lease: Duration::from_secs(10),
    };
    let stop = CancellationToken::new();
    RunningDeliverer {
        task: tokio::spawn(webhooks::run(deps, stop.clone())),
        stop,
    }
}

pub async fn tenant(pool: &PgPool, key: &str) -> TenantId {
    app::tenant(pool, &ring(), key).await
}

pub async fn webhook(pool: &PgPool, tenant: TenantId, url: &str) -> (MonitorId, String) {
    webhook_under(&ring(), pool, tenant, url).await
}

pub async fn webhook_under(
    ring: &tenants::Keyring,
    pool: &PgPool,
    tenant: TenantId,
    url: &str,
) -> (MonitorId, String) {
    let (monitor, grant) = (MonitorId::new(), GrantId::new());
    // A monitor without slots and without a key.
    let make = "with held as (
                    insert into key_grants (tenant_id, grant_id, purpose, key_id, nonce, ciphertext, created_at, expires_at, wiped_at)
                    values ($1, $3, 'monitor', 'none', '', '', now(), now(), now()))
                insert into monitors (tenant_id, monitor_id, name, cron, timezone, scan, api, paused, grant_id, created_at, updated_at)
                values ($1, $2, 'notified', '0 6 * * *', 'UTC', $4::json, 'flights', true, $3, now(), now())";
    let scan = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "+7d"}
    });
    execute!(
        pool,
        make,
        tenant.uuid(),
        monitor.uuid(),
        grant.uuid(),
        scan
    );
    (monitor, open_for(ring, pool, tenant, monitor, url).await)
}

/// Locks an existing monitor for a change of its webhook.
pub async fn lock(tx: &mut PgConnection, tenant: TenantId, monitor: MonitorId) -> MonitorLock<'_> {
    MonitorLock::acquire(tx, tenant, monitor, LockFor::Webhook)
        .await
        .unwrap()
        .expect("the monitor exists")
}

/// Opens the webhook of a monitor; returns its secret.
pub async fn open_for(
    ring: &tenants::Keyring,
    pool: &PgPool,
    tenant: TenantId,
    monitor: MonitorId,
    url: &str,
) -> String {
    let mut tx = farescan::db::begin(pool).await.unwrap();
    let secret = endpoint::open(
        &mut lock(&mut tx, tenant, monitor).await,
        ring,
        url,
        Timestamp::now(),
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    secret.0.to_string()
}

pub async fn enqueue(pool: &PgPool, tenant: TenantId, monitor: MonitorId) -> DeliveryId {
    let mut tx = farescan::db::begin(pool).await.unwrap();
    let data = json!({"monitor_id": monitor, "alerts": [{"type": "price_below", "price": 198.5, "note": "größer „als“ gedacht"}]});
    let id = webhooks::enqueue(
        &mut lock(&mut tx, tenant, monitor).await.endpoint(),
        &Outgoing::new("monitor.alerts"),
        &data,
        Timestamp::now(),
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    id.expect("the monitor has a webhook")
}

/// Whether a call is signed with this secret, verified by the standard's library.
pub fn is_signed(call: &Call, secret: &str) -> bool {
    let mut headers = axum::http::HeaderMap::new();
    for (name, value) in call
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("webhook-"))
    {
        headers.insert(
            axum::http::HeaderName::try_from(name).unwrap(),
            value.parse().unwrap(),
        );
    }
    standardwebhooks::Webhook::new(secret)
        .unwrap()
        .verify(&call.raw, &headers)
        .is_ok()
}
