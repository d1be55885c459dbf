//! A running service: the parts put together, from settings to a clean end.
//!
//! Here is the order of things and nothing else: what is opened, what may be missing, what is waited for. The gateway is up before
//! the database is; the worker and the job API follow as soon as it answers.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use secrecy::ExposeSecret;
use sqlx::PgPool;
use sqlx::migrate::MigrateError;
use sqlx::postgres::PgConnectOptions;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::config::{
    AdminConfig, DatabaseConfig, HttpConfig, KeysConfig, LimitConfig, PaceConfig, UpstreamConfig,
    WebhookConfig, WorkerConfig,
};
use crate::db::clock::{Clock, DatabaseTime};
use crate::db::{self, Database, DbError};
use crate::files;
use crate::http::{self, AppState, Custody};
use crate::marketplace::{self, MarketplaceError};
use crate::measure;
use crate::monitors::alerts::MOST_TIME;
use crate::monitors::tick::{self, Ticker};
use crate::queue::charge::Charges;
use crate::queue::retain;
use crate::queue::spool::{self, SpoolError};
use crate::scans::watch::{Watch, WatchSettings};
use crate::tenants::store::{RingCheckError, check_ring};
use crate::tenants::{Keyring, KeyringError};
use crate::upstream::{Client, ConfigFault, Marketplace};
use crate::webhooks::{self, Guard, Sender};
use crate::worker::{self, WorkerDeps, WorkerError};

/// How long after a failure the database is tried again.
const DATABASE_RETRY: Duration = Duration::from_secs(2);
/// How often what was measured is folded into its buckets.
const FOLD: Duration = Duration::from_secs(5);

/// Everything that an operator may set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `None`: no listener, for a worker alone.
    pub http: Option<HttpConfig>,
    pub admin: AdminConfig,
    pub limits: LimitConfig,
    pub upstream: UpstreamConfig,
    pub database: DatabaseConfig,
    pub keys: KeysConfig,
    pub pace: PaceConfig,
    pub webhooks: WebhookConfig,
    /// `None`: no worker in this process.
    pub worker: Option<WorkerConfig>,
    /// The clock of the process; a test gives another.
    pub clock: Clock,
}

/// Why a service does not start, or ends before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Upstream(#[from] ConfigFault),
    #[error(transparent)]
    Database(#[from] DbError),
    #[error(transparent)]
    Keys(#[from] KeyringError),
    #[error(transparent)]
    Ring(#[from] RingCheckError),
    #[error(transparent)]
    Marketplace(#[from] MarketplaceError),
    #[error(
        "a worker opens its callers' keys, so it needs the master key: set FARESCAN_MASTER_KEY_FILE (or FARESCAN_MASTER_KEY)"
    )]
    WorkerWithoutKeys,
    #[error("cannot listen on {address}: {error}")]
    Listen {
        address: SocketAddr,
        error: std::io::Error,
    },
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("webhooks cannot be called: {0}")]
    Webhooks(#[source] reqwest::Error),
    #[error("a listener failed: {0}")]
    Serve(#[from] std::io::Error),
    #[error("a part of the service ended without being told to: {0}")]
    Part(#[from] tokio::task::JoinError),
}

/// A service that runs.
#[derive(Debug)]
pub struct Service {
    address: Option<SocketAddr>,
    database: Database,
    stop: CancellationToken,
    parts: JoinSet<Result<(), ServiceError>>,
    admin: Admin,
}

/// The admin listener. It outlives the other parts, so that health and metrics are there while they end.
#[derive(Debug)]
struct Admin {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Service {
    /// Starts one. It listens when this returns; `stop` ends it.
    ///
    /// # Errors
    /// A setting that cannot be used, an address that is taken, an embedded Postgres that cannot run, a database that belongs to another
    /// marketplace. A database of one's own that does not answer is no error: the gateway works without it.
    pub async fn start(settings: Settings, stop: CancellationToken) -> Result<Self, ServiceError> {
        // Before the first of them is opened.
        let files = files::limit();
        let upstream = Client::new(&settings.upstream)?;
        if let Some(http) = &settings.http {
            // Told now, and not after a database was made. Taken for good when there is something to answer.
            drop(bind(http.listen).await?);
        }
        let database = Database::open(&settings.database).await?;
        let ring = ring_of(&settings, &database)?;
        let worker = match settings.worker.clone() {
            Some(config) if ring.is_some() => {
                Some(with_spool(config, &settings.database, database.data_dir())?)
            }
            _ => None,
        };
        let guard = Guard::new(&settings.webhooks);
        let sender =
            Sender::new(guard).map_err(|error| ServiceError::Webhooks(error.without_url()))?;
        let checkup = database.checkup();
        let writes = database.requests().writes.clone();
        let app = state(&settings, &upstream, &database, ring.as_ref(), guard, &stop)
            .with_condition(checkup.condition());
        // Before the migrations, which may take long: a process that is at them lives.
        let admin = Admin::listen(&settings.admin, &app).await?;
        let preparation = Preparation {
            pool: database.pool().clone(),
            options: database.connect_options().clone(),
            reads: database.replica().cloned(),
            marketplace: upstream.marketplace().clone(),
            ring: ring.clone(),
            clock: settings.clock.clone(),
        };
        let clock = settings.clock;
        let prepared = preparation.tried().await?;
        let mut parts = JoinSet::new();
        let watched = stop.clone();
        parts.spawn(async move {
            checkup.run(watched).await;
            Ok(())
        });
        let address = match &settings.http {
            Some(http) => Some(listen(&mut parts, http, app, &stop).await?),
            None => None,
        };
        tell_listening(address, &admin, files, &database);
        let pool = database.pool().clone();
        let (stopped, pace) = (stop.clone(), settings.pace);
        parts.spawn(async move {
            if !prepared && !preparation.done(&stopped).await? {
                return Ok(());
            }
            let compared = stopped.child_token();
            let comparing = clock.keep_compared(&pool, &compared);
            let (Some(config), Some(ring)) = (worker, ring) else {
                comparing.await;
                return Ok(());
            };
            // They wait for callers' locks, as requests do, so they do not take the engine's connections.
            let ticker = Ticker {
                pool: writes,
                ring: Arc::clone(&ring),
                pace,
                judging: MOST_TIME,
            };
            let deps = WorkerDeps {
                pool: pool.clone(),
                ring,
                upstream,
                config,
            };
            let working = async {
                let ended = work_while_right(deps, sender, ticker, &clock, &stopped).await;
                // A worker that ended by itself ends the process.
                compared.cancel();
                ended
            };
            tokio::join!(working, comparing).0
        });
        Ok(Self {
            address,
            database,
            stop,
            parts,
            admin,
        })
    }

    /// Where the API listens; `None` for a worker alone.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Runs until it is told to stop or a part of it fails; then ends what is left, in order: calls in flight are recorded before
    /// the database is let go.
    ///
    /// # Errors
    /// The first part that failed.
    pub async fn run(mut self) -> Result<(), ServiceError> {
        let mut result = Ok(());
        while let Some(part) = self.parts.join_next().await {
            let ended = part.map_err(ServiceError::from).flatten();
            if result.is_ok() {
                result = ended;
            }
            self.stop.cancel();
        }
        self.database.close().await;
        self.admin.end().await;
        result
    }
}

/// Where everything is, in one line of the log.
fn tell_listening(address: Option<SocketAddr>, admin: &Admin, files: u64, database: &Database) {
    tracing::info!(
        address = address.map(tracing::field::display),
        docs = address.map(|address| tracing::field::display(format!("http://{address}/docs"))),
        admin = %admin.address,
        files,
        data = database.data_dir().map(|folder| tracing::field::display(folder.display())),
        "listening"
    );
}

/// What the API's handlers reach.
fn state(
    settings: &Settings,
    upstream: &Client,
    database: &Database,
    ring: Option<&Arc<Keyring>>,
    guard: Guard,
    stop: &CancellationToken,
) -> AppState {
    let requests = database.requests();
    let mut app = AppState::new(upstream.clone(), Some(requests.clone()))
        .with_engine(database.pool().clone())
        .with_limits(&settings.limits)
        .with_guard(guard)
        .with_clock(settings.clock.clone())
        .ending_with(stop.clone());
    if let Some(replica) = database.replica() {
        app = app.with_replica(replica.clone());
    }
    if let Some(ring) = ring {
        let options = database.connect_options().clone();
        let watch = Watch::start(
            requests.reads.clone(),
            options,
            WatchSettings::default(),
            stop,
        );
        let charges = Charges::start(requests.writes.clone(), Arc::clone(ring), stop);
        app = app.with_custody(Custody {
            ring: Arc::clone(ring),
            pace: settings.pace.clone(),
            watch,
            charges,
        });
    }
    app
}

impl Admin {
    async fn listen(config: &AdminConfig, app: &AppState) -> Result<Self, ServiceError> {
        let listener = match config.admin_listen {
            Some(address) => bind(address).await?,
            None => bind_default().await?,
        };
        let (address, stop) = (listener.local_addr()?, CancellationToken::new());
        let serving = http::serve_admin(listener, http::admin_router(app.clone()), stop.clone());
        let task = tokio::spawn(async move {
            tokio::select! {
                () = serving => {}
                () = fold_metrics() => {}
            }
        });
        Ok(Self {
            address,
            stop,
            task,
        })
    }

    async fn end(self) {
        self.stop.cancel();
        // Only a panic ends it otherwise, and that was logged.
        drop(self.task.await);
    }
}

/// The default address, or a free port where another process of this machine has it: nobody asked for that very port.
async fn bind_default() -> Result<TcpListener, ServiceError> {
    let wanted = AdminConfig::DEFAULT;
    match bind(wanted).await {
        Err(ServiceError::Listen { error, .. })
            if error.kind() == std::io::ErrorKind::AddrInUse =>
        {
            tracing::info!(%wanted, "another process has the admin address, so this one takes a free port");
            bind(SocketAddr::new(wanted.ip(), 0)).await
        }
        bound => bound,
    }
}

async fn fold_metrics() {
    loop {
        tokio::time::sleep(FOLD).await;
        measure::fold();
    }
}

/// The ring of a service's master keys, which a worker cannot do without; `None`: it takes no scans, which is warned of.
fn ring_of(settings: &Settings, database: &Database) -> Result<Option<Arc<Keyring>>, ServiceError> {
    let ring = keyring(&settings.keys, database.data_dir())?;
    if ring.is_none() && settings.http.is_none() {
        return Err(ServiceError::WorkerWithoutKeys);
    }
    if ring.is_none() {
        tracing::warn!(
            "there is no master key, so everything stored (scans, monitors, quotas) answers 503 key_custody_disabled: make one with \
             `farescan keys new --out master.key` and set FARESCAN_MASTER_KEY_FILE to its path"
        );
    }
    Ok(ring.map(Arc::new))
}

/// The ring of master keys: as set, or beside the embedded data. `None`: this service holds no keys, so it takes no scans.
pub(crate) fn keyring(
    config: &KeysConfig,
    data_dir: Option<&Path>,
) -> Result<Option<Keyring>, KeyringError> {
    match (&config.master_key_file, &config.master_key, data_dir) {
        (Some(file), _, _) => Keyring::read(file, config.master_key_group_readable).map(Some),
        (None, Some(text), _) => Keyring::parse(text.expose_secret()).map(Some),
        (None, None, Some(folder)) => Keyring::read_or_make(&folder.join("master.key")).map(Some),
        (None, None, None) => Ok(None),
    }
}

/// Works while the clock is right. When it is not, calls in flight end and are recorded, and the rest waits.
async fn work_while_right(
    deps: WorkerDeps,
    sender: Sender,
    ticker: Ticker,
    clock: &Clock,
    stop: &CancellationToken,
) -> Result<(), ServiceError> {
    while stop.run_until_cancelled(clock.until(true)).await.is_some() {
        let until_wrong = stop.child_token();
        let working = async {
            let ended = Box::pin(work(
                deps.clone(),
                sender.clone(),
                ticker.clone(),
                until_wrong.clone(),
            ))
            .await;
            until_wrong.cancel();
            ended
        };
        let watching = async {
            clock.until(false).await;
            until_wrong.cancel();
        };
        let (ended, _) = tokio::join!(working, until_wrong.run_until_cancelled(watching));
        ended?;
    }
    Ok(())
}

/// The worker, and beside it the tick of the monitors and the deliverer of webhooks: where the first ends, the others do.
async fn work(
    deps: WorkerDeps,
    sender: Sender,
    ticker: Ticker,
    stop: CancellationToken,
) -> Result<(), ServiceError> {
    let beside = stop.child_token();
    let post = webhooks::Deps {
        pool: ticker.pool.clone(),
        ring: Arc::clone(&deps.ring),
        sender,
        lease: deps.config.lease(),
    };
    let working = async {
        let ended = worker::run(deps, stop).await;
        beside.cancel();
        ended
    };
    let (ended, (), ()) = tokio::join!(
        working,
        tick::run(ticker, beside.clone()),
        webhooks::run(post, beside.clone())
    );
    Ok(ended?)
}

/// The worker's settings with the folder of its spool: as set, or in the data folder.
fn with_spool(
    mut config: WorkerConfig,
    database: &DatabaseConfig,
    data_dir: Option<&Path>,
) -> Result<WorkerConfig, ServiceError> {
    let folder = match (config.spool_dir, data_dir.or(database.data_dir.as_deref())) {
        (Some(folder), _) => folder,
        (None, Some(data)) => data.join("spool"),
        (None, None) => db::embedded::default_home()
            .map_err(|_| SpoolError::NoFolder)?
            .join("spool"),
    };
    spool::make_folder(&folder)?;
    config.spool_dir = Some(folder);
    Ok(config)
}

/// What is done to the database, and asked of it, before anything works on it.
struct Preparation {
    pool: PgPool,
    options: PgConnectOptions,
    reads: Option<PgPool>,
    marketplace: Marketplace,
    ring: Option<Arc<Keyring>>,
    clock: Clock,
}

impl Preparation {
    /// However long the database takes to answer; `false`: told to stop before that.
    async fn done(&self, stop: &CancellationToken) -> Result<bool, ServiceError> {
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(false),
                () = tokio::time::sleep(DATABASE_RETRY) => {}
            }
            if self.tried().await? {
                tracing::info!("the database answers");
                return Ok(true);
            }
        }
    }

    /// Once; `false`: the database is away.
    async fn tried(&self) -> Result<bool, ServiceError> {
        match self.ready().await {
            Ok(()) => Ok(true),
            Err(failure) if is_passing(&failure) => {
                tracing::warn!(%failure, "the database is away; the gateway works without it, scans wait");
                Ok(false)
            }
            Err(failure) => Err(failure),
        }
    }

    async fn ready(&self) -> Result<(), ServiceError> {
        db::migrate_at(&self.pool, &self.options).await?;
        marketplace::bind(&self.pool, &self.marketplace).await?;
        if let Some(reads) = &self.reads {
            marketplace::check_replica(reads, &self.marketplace).await?;
        }
        // Before the first answer can come: after months at rest there may be none for today.
        let made = async {
            self.clock.compare(&self.pool).await?;
            retain::make_ahead(&self.pool, DatabaseTime::read(&self.pool).await?.now()).await
        };
        made.await.map_err(DbError::from)?;
        if let Some(ring) = &self.ring {
            check_ring(&self.pool, ring).await?;
        }
        Ok(())
    }
}

/// Whether waiting can mend it: a database that is away, unlike a schema or a ring that does not fit.
fn is_passing(failure: &ServiceError) -> bool {
    match failure {
        ServiceError::Database(
            DbError::Database(error)
            | DbError::NoConnection { source: error, .. }
            | DbError::Migrate(MigrateError::Execute(error)),
        )
        | ServiceError::Ring(RingCheckError::Database(error))
        | ServiceError::Marketplace(MarketplaceError::Database(error)) => db::may_pass(error),
        _ => false,
    }
}

async fn listen(
    parts: &mut JoinSet<Result<(), ServiceError>>,
    config: &HttpConfig,
    app: AppState,
    stop: &CancellationToken,
) -> Result<SocketAddr, ServiceError> {
    let listener = bind(config.listen).await?;
    let address = listener.local_addr()?;
    parts.spawn(serve(listener, http::router(app), stop.clone()));
    Ok(address)
}

async fn bind(address: SocketAddr) -> Result<TcpListener, ServiceError> {
    TcpListener::bind(address)
        .await
        .map_err(|error| ServiceError::Listen { address, error })
}

async fn serve(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
) -> Result<(), ServiceError> {
    http::serve(listener, router, stop).await;
    Ok(())
}
