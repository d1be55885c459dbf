//! The deliverer of one process: leases due deliveries, tries them and records the results. Any
//! number of processes may run one.
//!
//! Each try takes a permit. An endpoint has at most one try in flight, a host [`MAX_PER_HOST`], of
//! which one tenant has half, a tenant [`MAX_PER_TENANT`] and a quarter of the free permits. Tenants
//! are served round-robin. The deliverer polls when a delivery is due, on a notification, and every
//! few seconds in case a notification was lost.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sqlx::PgPool;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::prepare::{Means, STATEMENT_TIMEOUT, prepare};
use super::retry_schedule::{CHANNEL_PAUSED_AFTER, SWITCH_OFF_AFTER, TryOutcome, try_outcome};
use super::send::{Sender, TryResult};
use super::store::{self, EndpointKind, LeasedDelivery, MostTries};
use crate::contract::channels::ChannelKind;
use crate::contract::webhooks::TryError;
use crate::db;
use crate::metrics;
use crate::passes;
use crate::tenants::Keyring;

/// The most concurrent tries of one process.
const MAX_TRIES_IN_FLIGHT: u32 = 64;
/// The most concurrent tries of one tenant, over all processes: a tenant with a thousand hanging
/// receivers delays no other tenant.
const MAX_PER_TENANT: i32 = 16;
/// The most concurrent tries at one host, over all processes and tenants. One tenant has at most half
/// of them: its slow receivers leave the others to callers who share the host.
const MAX_PER_HOST: i32 = 4;
/// The most tries of a channel in an hour, over all processes (channels.md, rule 14).
pub const MAX_PER_CHANNEL_HOUR: i32 = 30;
const MOST_TRIES: MostTries = MostTries {
    of_tenant: MAX_PER_TENANT,
    at_host: MAX_PER_HOST,
    of_channel_in_hour: MAX_PER_CHANNEL_HOUR,
};
/// The longest time between two polls.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The shortest time between two polls: another process may hold the lock of a due delivery.
const MIN_WAIT: Duration = Duration::from_millis(10);
/// How long a message waits that this process has no server for.
const NOT_SET_UP_PAUSE: SignedDuration = SignedDuration::from_mins(1);
/// The pause after a failure of the database.
const DATABASE_RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The dependencies of a deliverer.
#[derive(Debug, Clone)]
pub struct DelivererDeps {
    /// A migrated database. Notifications take a connection outside the pool.
    pub pool: PgPool,
    /// Decrypts the secrets.
    pub ring: Arc<Keyring>,
    /// Calls the receivers.
    pub sender: Sender,
    /// How long after the longest possible try a process counts as dead.
    pub lease: Duration,
}

impl DelivererDeps {
    fn full_lease(&self) -> Duration {
        self.sender.max_duration() + self.lease
    }
}

/// Delivers until `stop`, then waits until the results of its tries are recorded: some ten seconds
/// at most, with a mail server some two minutes. A database outage does not end it.
pub async fn run(deps: DelivererDeps, stop: CancellationToken) {
    let deps = Arc::new(deps);
    let (permits, tries, wake) = (
        Arc::new(Semaphore::new(MAX_TRIES_IN_FLIGHT as usize)),
        TaskTracker::new(),
        Arc::new(Notify::new()),
    );
    // Not cancelled from outside: a delivery leased just then would wait for the lease to expire.
    let delivering = passes::run(&stop, Some(&wake), || {
        poll(&deps, &permits, &tries, &wake, &stop)
    });
    let options = (*deps.pool.connect_options()).clone();
    let listening = db::listen(options, "farescan_delivery", &stop, |_| wake.notify_one());
    tokio::join!(delivering, listening);
    tries.close();
    tries.wait().await;
}

/// Leases due deliveries and starts their tries, as permits allow. Returns the time until the next
/// poll.
async fn poll(
    deps: &Arc<DelivererDeps>,
    permits: &Arc<Semaphore>,
    tries: &TaskTracker,
    wake: &Arc<Notify>,
    stop: &CancellationToken,
) -> Duration {
    let Some(Ok(mut free)) = stop
        .run_until_cancelled(Arc::clone(permits).acquire_owned())
        .await
    else {
        return POLL_INTERVAL;
    };
    while let Ok(one) = Arc::clone(permits).try_acquire_owned() {
        free.merge(one);
    }
    let free_permits = free.num_permits();
    let slots = i32::try_from(free_permits).unwrap_or(1);
    let leasing = store::lease_due(
        &deps.pool,
        Timestamp::now(),
        slots,
        MOST_TRIES,
        deps.full_lease(),
    );
    let (deliveries, wait) = match timeout(STATEMENT_TIMEOUT, leasing).await {
        Ok(Ok(leased)) => leased,
        Ok(Err(error)) => {
            tracing::warn!(%error, "leasing deliveries failed");
            return DATABASE_RETRY_PAUSE;
        }
        // The statement may still lease deliveries: they are retried when the lease expires.
        Err(_) => {
            tracing::warn!("leasing deliveries timed out");
            return DATABASE_RETRY_PAUSE;
        }
    };
    let count = deliveries.len();
    for delivery in deliveries {
        let Some(permit) = free.split(1) else { break };
        let (deps, wake) = (Arc::clone(deps), Arc::clone(wake));
        tries.spawn(async move {
            deliver(&deps, delivery, permit).await;
            // Its endpoint is free again and may have another due delivery.
            wake.notify_one();
        });
    }
    if count == free_permits {
        Duration::ZERO
    } else {
        wait.unwrap_or(POLL_INTERVAL).clamp(MIN_WAIT, POLL_INTERVAL)
    }
}

async fn deliver(deps: &DelivererDeps, leased: LeasedDelivery, _permit: OwnedSemaphorePermit) {
    let until = Instant::now() + deps.full_lease();
    let now = Timestamp::now();
    if let Some(end) = quiet_until(&leased, now).or_else(|| not_set_up_until(deps, &leased, now)) {
        // If it fails, the lease expires, and the try counts as lost.
        if let Err(error) = store::postpone(&deps.pool, &leased, end).await {
            tracing::warn!(delivery = %leased.delivery, %error, "postponing a message failed");
        }
        return;
    }
    let means = Means {
        pool: &deps.pool,
        ring: &deps.ring,
        mailer: deps.sender.mailer(),
    };
    let Some(prepared) = prepare(means, &leased, now).await else {
        return;
    };
    let mut result = deps.sender.send(prepared, now).await;
    // Receivers of channels answer with the topic or the path, which are secrets (channels.md, rule 4).
    // A mail server's reply has been read for that.
    if !matches!(
        leased.kind,
        EndpointKind::Webhook | EndpointKind::Channel(ChannelKind::Email)
    ) {
        result.response = None;
    }
    let outcome = try_outcome(
        result.answer,
        result.retry_after,
        leased.failures,
        leased.most_tries,
        rand::random(),
    );
    metrics::webhook_attempted(result.error.map_or("delivered", TryError::as_str));
    tracing::info!(
        delivery = %leased.delivery, number = leased.number, status = result.http_status,
        error = result.error.map(TryError::as_str), outcome = outcome.as_str(), "webhook delivery tried"
    );
    record_result(deps, &leased, &result, outcome, until).await;
}

/// The end of the quiet hours that a message may not be sent in: it was due before and late, or is
/// tried again. A test is sent, and so is the mail with a code.
fn quiet_until(leased: &LeasedDelivery, now: Timestamp) -> Option<Timestamp> {
    let is_asked_for = leased.is_test || leased.is_confirmation;
    let plan = leased.quiet.as_ref().filter(|_| !is_asked_for)?;
    plan.quiet_until(now)
}

/// When to look again for a process that has the server of this kind of channel: this one has none, and
/// spends no try.
fn not_set_up_until(
    deps: &DelivererDeps,
    leased: &LeasedDelivery,
    now: Timestamp,
) -> Option<Timestamp> {
    match leased.kind {
        EndpointKind::Channel(kind) if !deps.sender.is_set_up(kind) => {}
        EndpointKind::Channel(_) | EndpointKind::Webhook => return None,
    }
    tracing::warn!(delivery = %leased.delivery, "this process has no server for this kind of channel; delivery delayed");
    Some(now.saturating_add(NOT_SET_UP_PAUSE).unwrap_or(now))
}

/// Records the result of a try. Retries until the lease has expired; then another process repeats
/// the try.
async fn record_result(
    deps: &DelivererDeps,
    leased: &LeasedDelivery,
    result: &TryResult,
    outcome: TryOutcome,
    until: Instant,
) {
    let patience = match leased.kind {
        EndpointKind::Webhook => SWITCH_OFF_AFTER,
        EndpointKind::Channel(_) => CHANNEL_PAUSED_AFTER,
    };
    loop {
        match timeout(
            STATEMENT_TIMEOUT,
            store::record_try(
                &deps.pool,
                leased,
                result,
                outcome,
                patience,
                Timestamp::now(),
            ),
        )
        .await
        {
            Ok(Ok(true)) => return,
            Ok(Ok(false)) => {
                tracing::warn!(delivery = %leased.delivery, "result arrived after its lease expired; recorded for information only");
                return;
            }
            Ok(Err(error)) => {
                tracing::warn!(delivery = %leased.delivery, %error, "recording a try failed; retrying");
            }
            Err(_) => {
                tracing::warn!(delivery = %leased.delivery, "recording a try timed out; retrying");
            }
        }
        if Instant::now() >= until {
            return;
        }
        sleep(DATABASE_RETRY_PAUSE).await;
    }
}
