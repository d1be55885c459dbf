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
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::{DatabaseConfig, HttpConfig, KeysConfig, PaceConfig, UpstreamConfig, WorkerConfig};
use crate::db::{self, Database, DbError};
use crate::http::{self, AppState, Custody};
use crate::queue::spool::{self, SpoolError};
use crate::scans::watch::Watch;
use crate::tenants::store::{RingCheckError, check_ring};
use crate::tenants::{Keyring, KeyringError};
use crate::upstream::{Client, ConfigFault};
use crate::worker::{self, WorkerDeps, WorkerError};

/// How long after a failure the database is tried again.
const DATABASE_RETRY: Duration = Duration::from_secs(2);

/// Everything that an operator may set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `None`: no listener, for a worker alone.
    pub http: Option<HttpConfig>,
    pub upstream: UpstreamConfig,
    pub database: DatabaseConfig,
    pub keys: KeysConfig,
    pub pace: PaceConfig,
    /// `None`: no worker in this process.
    pub worker: Option<WorkerConfig>,
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
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
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
}

impl Service {
    /// Starts one. It listens when this returns; `stop` ends it.
    ///
    /// # Errors
    /// A setting that cannot be used, an address that is taken, an embedded Postgres that cannot run. A database of one's own that
    /// does not answer is no error: the gateway works without it.
    pub async fn start(settings: Settings, stop: CancellationToken) -> Result<Self, ServiceError> {
        let upstream = Client::new(&settings.upstream)?;
        let database = Database::open(&settings.database).await?;
        let ring = keyring(&settings.keys, database.data_dir())?;
        let ring = ring.map(Arc::new);
        let worker = match settings.worker {
            Some(config) if ring.is_some() => Some(with_spool(config, &settings.database, database.data_dir())?),
            _ => None,
        };
        let mut app = AppState::new(upstream.clone(), Some(database.pool().clone()));
        if let Some(ring) = &ring {
            let watch = Watch::start(database.connect_options().clone(), &stop);
            app = app.with_custody(Custody { ring: Arc::clone(ring), pace: settings.pace, watch });
        }
        let prepared = prepared(database.pool(), ring.as_deref()).await?;
        let mut parts = JoinSet::new();
        let address = match &settings.http {
            Some(http) => Some(listen(&mut parts, http, &app, &stop).await?),
            None => None,
        };
        let pool = database.pool().clone();
        let stopped = stop.clone();
        parts.spawn(async move {
            if !prepared && !prepare(&pool, ring.as_deref(), &stopped).await? {
                return Ok(());
            }
            match (worker, ring) {
                (Some(config), Some(ring)) => Ok(worker::run(WorkerDeps { pool, ring, upstream, config }, stopped).await?),
                _ => {
                    stopped.cancelled().await;
                    Ok(())
                }
            }
        });
        Ok(Self { address, database, stop, parts })
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
        result
    }
}

/// The ring of master keys: as set, or beside the embedded data. `None`: this service holds no keys, so it takes no scans.
fn keyring(config: &KeysConfig, data_dir: Option<&Path>) -> Result<Option<Keyring>, KeyringError> {
    match (&config.master_key_file, &config.master_key, data_dir) {
        (Some(file), _, _) => Keyring::read(file).map(Some),
        (None, Some(text), _) => Keyring::parse(text.expose_secret()).map(Some),
        (None, None, Some(folder)) => Keyring::read_or_make(&folder.join("master.key")).map(Some),
        (None, None, None) => Ok(None),
    }
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
        (None, None) => db::embedded::default_home().map_err(DbError::from)?.join("spool"),
    };
    spool::make_folder(&folder)?;
    config.spool_dir = Some(folder);
    Ok(config)
}

/// Brings the database up to date, however long it takes to answer; `false`: told to stop before that.
async fn prepare(pool: &PgPool, ring: Option<&Keyring>, stop: &CancellationToken) -> Result<bool, ServiceError> {
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(false),
            () = tokio::time::sleep(DATABASE_RETRY) => {}
        }
        if prepared(pool, ring).await? {
            tracing::info!("the database answers");
            return Ok(true);
        }
    }
}

/// Tries once; `false`: the database is away.
async fn prepared(pool: &PgPool, ring: Option<&Keyring>) -> Result<bool, ServiceError> {
    match ready(pool, ring).await {
        Ok(()) => Ok(true),
        Err(failure) if is_passing(&failure) => {
            tracing::warn!(%failure, "the database is away; the gateway works without it, scans wait");
            Ok(false)
        }
        Err(failure) => Err(failure),
    }
}

async fn ready(pool: &PgPool, ring: Option<&Keyring>) -> Result<(), ServiceError> {
    db::migrate(pool).await?;
    if let Some(ring) = ring {
        check_ring(pool, ring).await?;
    }
    Ok(())
}

/// Whether waiting can mend it: a database that is away, unlike a schema or a ring that does not fit.
fn is_passing(failure: &ServiceError) -> bool {
    match failure {
        ServiceError::Database(DbError::Database(error) | DbError::Migrate(MigrateError::Execute(error)))
        | ServiceError::Ring(RingCheckError::Database(error)) => db::is_away(error),
        _ => false,
    }
}

async fn listen(
    parts: &mut JoinSet<Result<(), ServiceError>>,
    config: &HttpConfig,
    app: &AppState,
    stop: &CancellationToken,
) -> Result<SocketAddr, ServiceError> {
    let public = bind(config.listen).await?;
    let admin = bind(config.admin_listen).await?;
    let (address, admin_address) = (public.local_addr()?, admin.local_addr()?);
    parts.spawn(serve(public, http::router(app.clone()), stop.clone()));
    parts.spawn(serve(admin, http::admin_router(app.clone()), stop.clone()));
    tracing::info!(%address, admin = %admin_address, "listening");
    Ok(address)
}

async fn bind(address: SocketAddr) -> Result<TcpListener, ServiceError> {
    TcpListener::bind(address).await.map_err(|error| ServiceError::Listen { address, error })
}

async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) -> Result<(), ServiceError> {
    http::serve(listener, router, stop).await;
    Ok(())
}
