//! A running service: it starts all parts from the settings and stops them in order.
//!
//! Here is only the order of startup and shutdown. The gateway starts before the database answers;
//! the worker and stored work follow when it does.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use secrecy::ExposeSecret;
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::api;
use crate::app::{AppState, Custody};
use crate::charges::ChargeRecorder;
use crate::config::{
    AdminConfig, ChannelConfig, DatabaseConfig, HttpConfig, MasterKeyConfig, PaceConfig,
    RateLimitConfig, UpstreamConfig, WebhookConfig, WorkerConfig,
};
use crate::dashboard;
use crate::db::clock::{Clock, DatabaseTime};
use crate::db::partitions::create_partitions_ahead;
use crate::db::{self, Database, DbError, Preparation};
use crate::marketplace::{self, MarketplaceError};
use crate::metrics;
use crate::monitors::alerts::MAX_EVALUATION_TIME;
use crate::monitors::tick::{self, Ticker};
use crate::open_files;
use crate::queue::spool::{self, SpoolError};
use crate::sandbox::DEMO_KEY;
use crate::scans::watch::{ScanWatch, WatchSettings};
use crate::search_recorder::SearchRecorder;
use crate::tenants::store::{RingCheckError, check_ring};
use crate::tenants::{Keyring, KeyringError};
use crate::upstream::{Client, Marketplace, UpstreamConfigError};
use crate::webhooks::{self, Guard, Mailer, MailerError, Relay, Sender};
use crate::worker::{self, WorkerDeps, WorkerError};

/// How long the end waits for searches that no request waits for, after the requests have ended.
const FINISH_TIMEOUT: Duration = Duration::from_secs(20);

/// The pause before the next attempt to prepare the database.
const DATABASE_RETRY: Duration = Duration::from_secs(2);
/// How often metrics upkeep runs.
const METRICS_FOLD_INTERVAL: Duration = Duration::from_secs(5);

/// The public listener: the API, and the dashboard over it.
pub fn router(app: AppState) -> Router {
    let routes = api::api_routes();
    let pages = dashboard::pages(routes.clone().with_state(app.clone()), DEMO_KEY);
    dashboard::with_error_pages(api::router(app, routes.merge(pages)))
}

/// All settings of an operator.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `None`: no listener, for a worker alone.
    pub http: Option<HttpConfig>,
    pub admin: AdminConfig,
    pub limits: RateLimitConfig,
    pub upstream: UpstreamConfig,
    pub database: DatabaseConfig,
    pub keys: MasterKeyConfig,
    pub pace: PaceConfig,
    pub webhooks: WebhookConfig,
    /// What messages to channels contain.
    pub channels: ChannelConfig,
    /// `None`: no worker in this process.
    pub worker: Option<WorkerConfig>,
    /// The clock of the process; tests use another.
    pub clock: Clock,
}

/// Why a service does not start, or ends early.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Upstream(#[from] UpstreamConfigError),
    #[error(transparent)]
    Database(#[from] DbError),
    #[error(transparent)]
    Keys(#[from] KeyringError),
    #[error(transparent)]
    Ring(#[from] RingCheckError),
    #[error(transparent)]
    Marketplace(#[from] MarketplaceError),
    #[error(
        "a worker decrypts its callers' keys, so it needs the master key: set FARESCAN_MASTER_KEY_FILE (or FARESCAN_MASTER_KEY)"
    )]
    WorkerWithoutKeys,
    #[error("cannot listen on {address} ({setting}): {error}")]
    Listen {
        /// Flag and variable.
        setting: &'static str,
        address: SocketAddr,
        error: std::io::Error,
    },
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("cannot create the HTTP client of webhooks: {0}")]
    Webhooks(#[source] reqwest::Error),
    #[error(transparent)]
    Mail(#[from] MailerError),
    #[error("a listener failed: {0}")]
    Serve(#[from] std::io::Error),
    #[error("a part of the service ended unexpectedly: {0}")]
    Part(#[from] tokio::task::JoinError),
}

/// A running service.
#[derive(Debug)]
pub struct Service {
    address: Option<SocketAddr>,
    database: Database,
    ring: Option<Arc<Keyring>>,
    stop: CancellationToken,
    parts: JoinSet<Result<(), ServiceError>>,
    admin: AdminListener,
}

/// The admin listener. It ends last, so that health and metrics are available during shutdown.
#[derive(Debug)]
struct AdminListener {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Service {
    /// Starts a service. It listens when this returns; `stop` ends it.
    ///
    /// # Errors
    /// An invalid setting, an address in use, an embedded Postgres that cannot run, or a
    /// database of another marketplace. An external database that does not answer is no error: the
    /// gateway works without it.
    pub async fn start(settings: Settings, stop: CancellationToken) -> Result<Self, ServiceError> {
        let admin = bind_admin(&settings.admin).await?;
        if let Some(http) = &settings.http {
            // An address in use is reported now, not after the start of a database. The listener is
            // bound again when the service can answer: a request that waited for migrations might
            // be answered, and paid, after its client has gone.
            drop(bind_api(http.listen).await?);
        }
        Self::start_on(None, admin, settings, stop).await
    }

    /// The same with a listener of the API that nobody knows yet.
    ///
    /// # Errors
    /// Those of [`Self::start`].
    pub async fn start_with_listener(
        listener: TcpListener,
        settings: Settings,
        stop: CancellationToken,
    ) -> Result<Self, ServiceError> {
        let admin = bind_admin(&settings.admin).await?;
        Self::start_on(Some(listener), admin, settings, stop).await
    }

    async fn start_on(
        listener: Option<TcpListener>,
        admin: TcpListener,
        settings: Settings,
        stop: CancellationToken,
    ) -> Result<Self, ServiceError> {
        // Before the first file is opened.
        let files = open_files::limit();
        let upstream = Client::new(&settings.upstream)?;
        let database = Database::open(&settings.database).await?;
        let ring = worker_keyring(&settings, &database)?;
        let worker = ProcessWorker::new(&settings, &upstream, &database, ring.as_ref())?;
        let session_check = database.session_check();
        let (unprepared, preparation_state) = watch::channel(Some(Arc::from("its first try runs")));
        let mut parts = JoinSet::new();
        let app = app_state(
            &settings,
            &upstream,
            &database,
            ring.as_ref(),
            &preparation_state,
            &stop,
            &mut parts,
        )
        .with_session_health(session_check.health())
        .with_preparation(preparation_state);
        // Before the migrations, which may take long: liveness must not fail meanwhile.
        let admin = AdminListener::serve(admin, &app)?;
        let preparation = DatabasePreparation {
            pool: database.pool().clone(),
            options: database.connect_options().clone(),
            reads: database.replica().cloned(),
            marketplace: upstream.marketplace().clone(),
            ring: ring.clone(),
            clock: settings.clock.clone(),
            unprepared,
        };
        let prepared = preparation.try_once().await?;
        if prepared && settings.http.is_some() {
            database.open_reads().await;
        }
        let watched = stop.clone();
        parts.spawn(async move {
            session_check.run(watched).await;
            Ok(())
        });
        let listener = match (listener, &settings.http) {
            (None, Some(http)) => Some(bind_api(http.listen).await?),
            (listener, _) => listener,
        };
        let listener = listener.map(|listener| listen(&mut parts, listener, app, &stop));
        let address = listener.transpose()?;
        log_listening(address, &admin, files, &database);
        let pool = database.pool().clone();
        let (stopped, clock) = (stop.clone(), settings.clock);
        parts.spawn(async move {
            if !prepared && !preparation.run_until_done(&stopped).await? {
                return Ok(());
            }
            compare_clock_and_work(worker, &clock, &pool, &stopped).await
        });
        Ok(Self {
            address,
            database,
            ring,
            stop,
            parts,
            admin,
        })
    }

    /// The address of the API; `None` for a worker alone.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The database of the workers.
    pub fn pool(&self) -> &PgPool {
        self.database.pool()
    }

    /// The master keys; `None` if it has none.
    pub fn keyring(&self) -> Option<&Keyring> {
        self.ring.as_deref()
    }

    /// Runs until `stop` or until a part fails; then ends the other parts. Results of calls in
    /// flight are stored before the database closes.
    ///
    /// # Errors
    /// The first part that failed.
    pub async fn run(mut self) -> Result<(), ServiceError> {
        let mut result = Ok(());
        while let Some(part) = self.parts.join_next().await {
            let part_result = part.map_err(ServiceError::from).flatten();
            if result.is_ok() {
                result = part_result;
            }
            self.stop.cancel();
        }
        self.database.close().await;
        self.admin.end().await;
        result
    }
}

/// What sends deliveries to webhooks and channels.
fn sender(settings: &Settings) -> Result<Sender, ServiceError> {
    let mailer = Mailer::of_config(&settings.channels)?;
    let sender = Sender::new(guard(settings));
    let sender = sender.map_err(|error| ServiceError::Webhooks(error.without_url()))?;
    let relay = settings.channels.apprise_url.as_deref().map(Relay::new);
    let relay = relay.transpose();
    let relay = relay.map_err(|error| ServiceError::Webhooks(error.without_url()))?;
    Ok(sender.with_mailer(mailer).with_relay(relay))
}

/// Which receivers and kinds of channels are allowed.
fn guard(settings: &Settings) -> Guard {
    let channels = &settings.channels;
    Guard::new(&settings.webhooks)
        .with_mail(channels.smtp_url.is_some())
        .with_relay(channels.apprise_url.is_some())
}

/// Logs all addresses in one line.
fn log_listening(
    address: Option<SocketAddr>,
    admin: &AdminListener,
    files: u64,
    database: &Database,
) {
    tracing::info!(
        address = address.map(tracing::field::display),
        docs = address.map(|address| tracing::field::display(format!("http://{address}/docs"))),
        admin = %admin.address,
        files,
        data = database.data_dir().map(|folder| tracing::field::display(folder.display())),
        "listening"
    );
}

/// The dependencies of the API's handlers, and what must end before the database closes.
fn app_state(
    settings: &Settings,
    upstream: &Client,
    database: &Database,
    ring: Option<&Arc<Keyring>>,
    preparation: &Preparation,
    stop: &CancellationToken,
    parts: &mut JoinSet<Result<(), ServiceError>>,
) -> AppState {
    let requests = database.requests();
    let proxies = settings
        .http
        .as_ref()
        .map(|http| http.trusted_proxies.clone());
    let mut app = AppState::new(upstream.clone(), Some(requests.clone()))
        .with_worker_pool(database.pool().clone())
        .with_rate_limits(&settings.limits)
        .with_trusted_proxies(proxies.unwrap_or_default())
        .with_webhook_guard(guard(settings))
        .with_clock(settings.clock.clone())
        .with_stop(stop.clone());
    if let Some(replica) = database.replica() {
        app = app.with_replica(replica.clone());
    }
    if let Some(ring) = ring {
        let options = database.connect_options().clone();
        let watch = ScanWatch::start(
            requests.reads.clone(),
            options,
            WatchSettings::default(),
            stop,
        );
        let (stopped, listening_ended) = (stop.clone(), watch.listening_ended());
        parts.spawn(async move {
            stopped.cancelled().await;
            listening_ended.await;
            Ok(())
        });
        let (writes, pace) = (requests.writes.clone(), settings.pace.clone());
        let charges = ChargeRecorder::start(writes, Arc::clone(ring), pace);
        let recorder = SearchRecorder::new(
            requests.writes.clone(),
            Arc::clone(ring),
            settings.pace.clone(),
        );
        let options = database.connect_options().clone();
        let following = recorder.clone().follow_settings(options, stop.clone());
        let (stopped, mut preparation) = (stop.clone(), preparation.clone());
        parts.spawn(async move {
            // Before it there may be no table of settings.
            let prepared = async { preparation.wait_for(Option::is_none).await.is_ok() };
            if stopped.run_until_cancelled(prepared).await == Some(true) {
                following.await;
            }
            Ok(())
        });
        app = app.with_custody(Custody {
            ring: Arc::clone(ring),
            pace: settings.pace.clone(),
            watch,
            charges,
            recorder,
        });
    }
    app
}

impl AdminListener {
    fn serve(listener: TcpListener, app: &AppState) -> Result<Self, ServiceError> {
        let (address, stop) = (listener.local_addr()?, CancellationToken::new());
        let serving = api::serve_admin(listener, api::admin_router(app.clone()), stop.clone());
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
        // Its only error is a panic, which was logged.
        drop(self.task.await);
    }
}

/// The admin listener's address. The default has a free port instead if another process uses it:
/// the operator did not choose it.
async fn bind_admin(config: &AdminConfig) -> Result<TcpListener, ServiceError> {
    let setting = "--admin-listen, FARESCAN_ADMIN_LISTEN";
    if let Some(address) = config.admin_listen {
        return bind(setting, address).await;
    }
    let wanted = AdminConfig::DEFAULT;
    match bind(setting, wanted).await {
        Err(ServiceError::Listen { error, .. })
            if error.kind() == std::io::ErrorKind::AddrInUse =>
        {
            tracing::info!(%wanted, "default admin address in use; using a free port");
            bind(setting, SocketAddr::new(wanted.ip(), 0)).await
        }
        bound => bound,
    }
}

async fn fold_metrics() {
    loop {
        tokio::time::sleep(METRICS_FOLD_INTERVAL).await;
        metrics::run_upkeep();
    }
}

/// The master keys of the service. A worker alone needs them; otherwise `None` disables stored
/// work, with a warning.
fn worker_keyring(
    settings: &Settings,
    database: &Database,
) -> Result<Option<Arc<Keyring>>, ServiceError> {
    let ring = keyring(&settings.keys, database.data_dir())?;
    if ring.is_none() && settings.http.is_none() {
        return Err(ServiceError::WorkerWithoutKeys);
    }
    if ring.is_none() {
        tracing::warn!(
            "no master key: scans, monitors and quotas answer 503 key_custody_disabled; create one with \
             `farescan keys new --out master.key` and set FARESCAN_MASTER_KEY_FILE to its path"
        );
    }
    Ok(ring.map(Arc::new))
}

/// The master keys: from the settings, or beside the embedded data. `None`: this service stores no
/// keys, so it accepts no scans.
pub(crate) fn keyring(
    config: &MasterKeyConfig,
    data_dir: Option<&Path>,
) -> Result<Option<Keyring>, KeyringError> {
    match (&config.master_key_file, &config.master_key, data_dir) {
        (Some(file), _, _) => Keyring::read(file, config.master_key_group_readable).map(Some),
        (None, Some(text), _) => Keyring::parse(text.expose_secret()).map(Some),
        (None, None, Some(folder)) => Keyring::read_or_create(&folder.join("master.key")).map(Some),
        (None, None, None) => Ok(None),
    }
}

/// Compares the clock with the database's, and runs the worker while it is right.
async fn compare_clock_and_work(
    worker: Option<ProcessWorker>,
    clock: &Clock,
    pool: &PgPool,
    stop: &CancellationToken,
) -> Result<(), ServiceError> {
    let compared = stop.child_token();
    let comparing = clock.compare_periodically(pool, &compared);
    let Some(worker) = worker else {
        comparing.await;
        return Ok(());
    };
    let working = async {
        let result = worker.run_while_clock_is_right(clock, stop).await;
        // A worker that ended by itself ends the process.
        compared.cancel();
        result
    };
    tokio::join!(working, comparing).0
}

/// The worker of this process: calls of scans, ticks of monitors, deliveries.
#[derive(Clone)]
struct ProcessWorker {
    deps: WorkerDeps,
    sender: Sender,
    ticker: Ticker,
}

impl ProcessWorker {
    /// `None` without a worker in the settings or without master keys.
    fn new(
        settings: &Settings,
        upstream: &Client,
        database: &Database,
        ring: Option<&Arc<Keyring>>,
    ) -> Result<Option<Self>, ServiceError> {
        // Before the return: wrong settings of mail end a process without a worker too.
        let sender = sender(settings)?;
        let (Some(config), Some(ring)) = (settings.worker.clone(), ring) else {
            return Ok(None);
        };
        let config = with_spool_dir(config, &settings.database, database.data_dir())?;
        // Ticks and webhooks wait for callers' locks, as requests do, so they use the write pool of
        // requests.
        let ticker = Ticker {
            pool: database.requests().writes.clone(),
            ring: Arc::clone(ring),
            pace: settings.pace.clone(),
            evaluation_timeout: MAX_EVALUATION_TIME,
            public_url: settings.channels.public_url.clone(),
        };
        let deps = WorkerDeps {
            pool: database.pool().clone(),
            ring: Arc::clone(ring),
            upstream: upstream.clone(),
            config,
        };
        Ok(Some(Self {
            deps,
            sender,
            ticker,
        }))
    }

    /// Runs while the clock is right. Otherwise calls in flight end and are recorded, and other work
    /// waits.
    async fn run_while_clock_is_right(
        &self,
        clock: &Clock,
        stop: &CancellationToken,
    ) -> Result<(), ServiceError> {
        while stop
            .run_until_cancelled(clock.wait_until(true))
            .await
            .is_some()
        {
            let clock_wrong = stop.child_token();
            let working = async {
                let result = Box::pin(self.clone().run(clock_wrong.clone())).await;
                clock_wrong.cancel();
                result
            };
            let watching = async {
                clock.wait_until(false).await;
                clock_wrong.cancel();
            };
            let (result, _) = tokio::join!(working, clock_wrong.run_until_cancelled(watching));
            result?;
        }
        Ok(())
    }

    /// Runs until `stop`. When the worker ends, ticks and deliveries end too.
    async fn run(self, stop: CancellationToken) -> Result<(), ServiceError> {
        let Self {
            deps,
            sender,
            ticker,
        } = self;
        let companions_stop = stop.child_token();
        let delivery_deps = webhooks::DelivererDeps {
            pool: ticker.pool.clone(),
            ring: Arc::clone(&deps.ring),
            sender,
            lease: deps.config.lease(),
        };
        let working = async {
            let result = worker::run(deps, stop).await;
            companions_stop.cancel();
            result
        };
        let (result, (), ()) = tokio::join!(
            working,
            tick::run(ticker, companions_stop.clone()),
            webhooks::run(delivery_deps, companions_stop.clone())
        );
        Ok(result?)
    }
}

/// The worker's settings with the spool folder: from the settings, or in the data folder.
fn with_spool_dir(
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
    spool::create_folder(&folder)?;
    config.spool_dir = Some(folder);
    Ok(config)
}

/// Migrations and checks of the database before any work uses it.
struct DatabasePreparation {
    pool: PgPool,
    options: PgConnectOptions,
    reads: Option<PgPool>,
    marketplace: Marketplace,
    ring: Option<Arc<Keyring>>,
    clock: Clock,
    /// What `/readyz` says until the preparation is done.
    unprepared: watch::Sender<Option<Arc<str>>>,
}

impl DatabasePreparation {
    /// Repeats until the database answers. `false`: stopped before that.
    async fn run_until_done(&self, stop: &CancellationToken) -> Result<bool, ServiceError> {
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(false),
                () = tokio::time::sleep(DATABASE_RETRY) => {}
            }
            if self.try_once().await? {
                tracing::info!("database prepared");
                return Ok(true);
            }
        }
    }

    /// One attempt. `false`: the database is unavailable.
    async fn try_once(&self) -> Result<bool, ServiceError> {
        match self.run().await {
            Ok(()) => {
                self.unprepared.send_replace(None);
                Ok(true)
            }
            Err(failure) if is_transient(&failure) => {
                tracing::warn!(%failure, "database unavailable; searches work, scans wait");
                self.unprepared
                    .send_replace(Some(failure.to_string().into()));
                Ok(false)
            }
            Err(failure) => Err(failure),
        }
    }

    async fn run(&self) -> Result<(), ServiceError> {
        db::migrate_at(&self.pool, &self.options).await?;
        marketplace::bind(&self.pool, &self.marketplace).await?;
        if let Some(reads) = &self.reads {
            marketplace::check_replica(reads, &self.marketplace).await?;
        }
        // Before the first answer: after months of downtime there may be no partition for today.
        let made = async {
            self.clock.compare(&self.pool).await?;
            create_partitions_ahead(&self.pool, DatabaseTime::read(&self.pool).await?.now()).await
        };
        made.await.map_err(DbError::from)?;
        if let Some(ring) = &self.ring {
            check_ring(&self.pool, ring).await?;
        }
        Ok(())
    }
}

/// Whether the failure is temporary: an unavailable database, unlike a schema or keys that do not
/// match.
fn is_transient(failure: &ServiceError) -> bool {
    match failure {
        ServiceError::Database(error) => error.is_transient(),
        ServiceError::Ring(RingCheckError::Database(error))
        | ServiceError::Marketplace(MarketplaceError::Database(error)) => db::is_transient(error),
        _ => false,
    }
}

fn listen(
    parts: &mut JoinSet<Result<(), ServiceError>>,
    listener: TcpListener,
    app: AppState,
    stop: &CancellationToken,
) -> Result<SocketAddr, ServiceError> {
    let address = listener.local_addr()?;
    let serving = serve(listener, router(app.clone()), stop.clone());
    parts.spawn(async move {
        let served = serving.await;
        if timeout(FINISH_TIMEOUT, app.finish_searches())
            .await
            .is_err()
        {
            tracing::warn!(
                "searches whose clients have gone were still in flight or unstored at shutdown"
            );
        }
        served
    });
    Ok(address)
}

/// Listens at the address of the API.
pub(crate) async fn bind_api(address: SocketAddr) -> Result<TcpListener, ServiceError> {
    bind("--listen, FARESCAN_LISTEN", address).await
}

async fn bind(setting: &'static str, address: SocketAddr) -> Result<TcpListener, ServiceError> {
    TcpListener::bind(address)
        .await
        .map_err(|error| ServiceError::Listen {
            setting,
            address,
            error,
        })
}

async fn serve(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
) -> Result<(), ServiceError> {
    api::serve(listener, router, stop).await;
    Ok(())
}
