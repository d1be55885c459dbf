//! The deliverer of one process: takes what is due, tries it, puts the end on record. Any number of processes may.
//!
//! A place is one try; an endpoint has one place at most, a host [`OF_ONE_HOST`], a caller [`OF_ONE_CALLER`] and a quarter of those that
//! are free. Callers are served in turns. It looks again when something is due, when it is told
//! that something is, and every few seconds in case nobody could tell it.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::schedule::fate;
use super::send::{Ended, Message, Sender};
use super::sign::Secret;
use super::store::{self, Taken};
use crate::contract::webhooks::TryError;
use crate::db::clock::DatabaseTime;
use crate::measure;
use crate::tenants::{GrantError, Keyring, open_secrets};

/// Tries of one process at the same time.
const PLACES: u32 = 64;
/// Tries of one caller at the same time, over all processes: who has a thousand receivers that hang delays nobody else.
const OF_ONE_CALLER: i32 = 16;
/// Tries at one host at the same time, over all processes and callers.
const OF_ONE_HOST: i32 = 4;
/// The longest time between two looks.
const LOOK: Duration = Duration::from_secs(5);
/// The shortest, where what is due is locked by another process just now.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);
/// Between two tries to reach a database that is away, and how long one statement may take.
const AWAY_PAUSE: Duration = Duration::from_millis(500);
const MOVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often old deliveries are looked for, how long they are kept, and how many go at a time.
const UPKEEP: Duration = Duration::from_secs(600);
const KEPT: SignedDuration = SignedDuration::from_hours(90 * 24);
const UPKEEP_PASS: i64 = 1_000;

/// What a deliverer works with.
#[derive(Debug, Clone)]
pub struct Deps {
    /// A migrated database. Notifications take a connection on top of the pool's.
    pub pool: PgPool,
    /// Opens the secrets.
    pub ring: Arc<Keyring>,
    /// Calls the receivers.
    pub sender: Sender,
    /// How long after the longest try its process is taken for dead.
    pub lease: Duration,
}

impl Deps {
    fn whole_lease(&self) -> Duration {
        self.sender.longest() + self.lease
    }
}

/// Delivers until `stop`; then takes no more, and ends when its tries have ended and are on record: some ten seconds at most. An outage of the
/// database does not end it.
pub async fn run(deps: Deps, stop: CancellationToken) {
    let deps = Arc::new(deps);
    let (places, tries, wake) = (
        Arc::new(Semaphore::new(PLACES as usize)),
        TaskTracker::new(),
        Arc::new(Notify::new()),
    );
    // Not cancelled from outside: what was just taken would lie until its lease has run out.
    let delivering = async {
        while !stop.is_cancelled() {
            let wait = look(&deps, &places, &tries, &wake, &stop).await;
            tokio::select! {
                () = sleep(wait) => {}
                () = wake.notified() => {}
                () = stop.cancelled() => {}
            }
        }
    };
    tokio::select! {
        () = delivering => {}
        () = listen(&deps.pool, &wake) => {}
        () = upkeep(&deps.pool) => {}
    }
    tries.close();
    tries.wait().await;
}

/// Takes what is due, as far as there are places; gives how long the next look is of no use.
async fn look(
    deps: &Arc<Deps>,
    places: &Arc<Semaphore>,
    tries: &TaskTracker,
    wake: &Arc<Notify>,
    stop: &CancellationToken,
) -> Duration {
    let Some(Ok(mut free)) = stop
        .run_until_cancelled(Arc::clone(places).acquire_owned())
        .await
    else {
        return LOOK;
    };
    while let Ok(one) = Arc::clone(places).try_acquire_owned() {
        free.merge(one);
    }
    let asked_for = free.num_permits();
    let slots = i32::try_from(asked_for).unwrap_or(1);
    let taking = store::take(
        &deps.pool,
        Timestamp::now(),
        slots,
        OF_ONE_CALLER,
        OF_ONE_HOST,
        deps.whole_lease(),
    );
    let (taken, wait) = match timeout(MOVE_TIMEOUT, taking).await {
        Ok(Ok(taken)) => taken,
        Ok(Err(error)) => {
            tracing::warn!(%error, "no deliveries can be taken");
            return AWAY_PAUSE;
        }
        // What was taken all the same is found when its lease has run out.
        Err(_) => {
            tracing::warn!("no deliveries can be taken: the database does not answer");
            return AWAY_PAUSE;
        }
    };
    let got = taken.len();
    for taken in taken {
        let Some(place) = free.split(1) else { break };
        let (deps, wake) = (Arc::clone(deps), Arc::clone(wake));
        tries.spawn(async move {
            carry_out(&deps, taken, place).await;
            // Its endpoint is free again, and may have more that is due.
            wake.notify_one();
        });
    }
    if got == asked_for {
        Duration::ZERO
    } else {
        wait.unwrap_or(LOOK).clamp(SHORTEST_WAIT, LOOK)
    }
}

async fn carry_out(deps: &Deps, taken: Taken, _place: OwnedSemaphorePermit) {
    let until = Instant::now() + deps.whole_lease();
    let now = Timestamp::now();
    let ended = match secrets(deps, &taken, now).await {
        Ok(secrets) => {
            let message = Message {
                id: taken.delivery,
                url: &taken.url,
                body: &taken.body,
                secrets: &secrets,
            };
            deps.sender.send(&message, now).await
        }
        Err(()) => return,
    };
    let fate = fate(
        ended.http_status,
        ended.retry_after,
        taken.failures,
        taken.most_tries,
        rand::random(),
    );
    measure::webhook_try(ended.error.map_or("delivered", TryError::as_str));
    tracing::info!(
        delivery = %taken.delivery, number = taken.number, status = ended.http_status, error = ended.error.map(TryError::as_str),
        fate = fate.word(), "a delivery was tried"
    );
    record(deps, &taken, &ended, fate, until).await;
}

/// None: they cannot be read. `Err`: the database is away, so the try has not begun; the lease runs out.
async fn secrets(deps: &Deps, taken: &Taken, now: Timestamp) -> Result<Vec<Secret>, ()> {
    let opening = async {
        let mut conn = deps.pool.acquire().await?;
        open_secrets(&mut conn, &deps.ring, taken.tenant, &taken.secrets, now).await
    };
    match timeout(MOVE_TIMEOUT, opening).await {
        Ok(Ok(held)) => Ok(held
            .into_iter()
            .map(|held| Secret::of_bytes(held.secret))
            .collect()),
        Ok(Err(GrantError::Database(error))) => {
            tracing::warn!(%error, "a delivery waits: the database does not answer");
            Err(())
        }
        Ok(Err(error)) => {
            tracing::error!(delivery = %taken.delivery, %error, "the secret of a webhook cannot be read");
            Ok(Vec::new())
        }
        Err(_) => Err(()),
    }
}

/// Again while the database is away, until the lease has run out: then another process tries again.
async fn record(
    deps: &Deps,
    taken: &Taken,
    ended: &Ended,
    fate: super::schedule::Fate,
    until: Instant,
) {
    loop {
        match timeout(
            MOVE_TIMEOUT,
            store::end(&deps.pool, taken, ended, fate, Timestamp::now()),
        )
        .await
        {
            Ok(Ok(true)) => return,
            Ok(Ok(false)) => {
                tracing::warn!(delivery = %taken.delivery, "the end of a try came too late, and is on record as evidence only");
                return;
            }
            Ok(Err(error)) => tracing::warn!(%error, "the end of a try is not on record yet"),
            Err(_) => tracing::warn!(
                "the end of a try is not on record yet: the database does not answer"
            ),
        }
        if Instant::now() >= until {
            return;
        }
        sleep(AWAY_PAUSE).await;
    }
}

/// Wakes the deliverer when something is due, on a connection of its own.
async fn listen(pool: &PgPool, wake: &Notify) {
    let own = PgPoolOptions::new()
        .max_connections(1)
        .connect_lazy_with((*pool.connect_options()).clone());
    loop {
        if let Err(error) = listen_once(&own, wake).await {
            tracing::debug!(%error, "not listening for deliveries");
        }
        sleep(AWAY_PAUSE).await;
    }
}

async fn listen_once(pool: &PgPool, wake: &Notify) -> sqlx::Result<()> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen("farescan_delivery").await?;
    wake.notify_one();
    // None: the connection was lost, so something may have been missed.
    while listener.try_recv().await?.is_some() {
        wake.notify_one();
    }
    Ok(())
}

/// Removes what is too old, some at a time. Several processes at once do it sooner, and no harm.
async fn upkeep(pool: &PgPool) {
    loop {
        let removing = async {
            let now = DatabaseTime::read(pool).await?.now();
            store::remove_ended(
                pool,
                now.checked_sub(KEPT).unwrap_or(Timestamp::MIN),
                UPKEEP_PASS,
            )
            .await
        };
        match removing.await {
            Ok(removed) if removed == UPKEEP_PASS.unsigned_abs() => sleep(AWAY_PAUSE).await,
            Ok(_) => sleep(UPKEEP).await,
            Err(error) => {
                tracing::warn!(%error, "old deliveries were not removed; the next pass goes on");
                sleep(UPKEEP).await;
            }
        }
    }
}
