//! Access to Postgres: pools, session settings, migrations, and the private server in `embedded`.
//!
//! Names no tables, apart from `partitions`: the statements are in the `store` modules, `queue` and
//! `upkeep`.
//!
//! A function that returns `sqlx::Result`, here and everywhere, fails when the database does not answer
//! or refuses the statement (`error_kind` tells these apart). Its documentation names errors where
//! there are others, or where a part of the work stays stored.

pub mod clock;
mod connect;
mod demoted_primary;
pub mod embedded;
mod error_kind;
pub mod functions;
mod listen;
pub mod partitions;
mod session_check;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sqlx::migrate::MigrateError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Postgres, SqlSafeStr as _, Transaction};

use self::connect::{
    database_address, lazy_pool, open_embedded, parse_url, replica, with_password, with_session,
};
use self::error_kind::is_refused;

pub use connect::server_address;
pub use error_kind::{
    has_sqlstate, is_cancelled, is_conflict, is_disconnected, is_library_error, is_locked,
    is_transient, is_unavailable,
};
pub use listen::{ListenEvent, listen};
pub use session_check::{SessionCheck, SessionHealth};

use crate::config::DatabaseConfig;
use embedded::{EmbeddedError, EmbeddedServer};

/// How long a request waits for a connection. Without a database, a quick 503 is better than a
/// hang.
const ACQUIRE_TIMEOUT: Duration = DatabaseConfig::ACQUIRE_TIMEOUT;

/// Lock timeout of background work.
pub const BRIEF_LOCK_WAIT: Duration = Duration::from_millis(100);

/// How long `close` waits for connections in use.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Lock timeout of the engine: what it stores has been paid for.
const ENGINE_LOCK_TIMEOUT: &str = "5s";

/// Lock timeout of requests, which hold a connection meanwhile. The caller gets 503 with
/// Retry-After.
const REQUEST_LOCK_TIMEOUT: &str = "1s";

/// The SQLSTATE of a role that may not do what the program needs.
const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// For the migrating session: no time limits, and no notice that the table of migrations exists.
const SESSION_OF_MIGRATIONS: &str = "select set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false), \
     set_config('client_min_messages', 'warning', false)";

/// The migrations in this binary.
static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations");

/// A database setup error. Never contains the URL, which may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// Invalid setting.
    #[error(
        "DATABASE_URL is not a Postgres URL ({0}); expected a form like postgres://user:password@host:5432/farescan"
    )]
    Url(#[source] sqlx::Error),
    /// Invalid setting.
    #[error(
        "FARESCAN_READ_DATABASE_URL is not a Postgres URL; expected a form like postgres://user:password@replica:5432/farescan"
    )]
    ReadUrl,
    /// The password file is unreadable.
    #[error("FARESCAN_DATABASE_PASSWORD_FILE: {path}: {source}")]
    Password {
        /// Path of the file.
        path: PathBuf,
        source: std::io::Error,
    },
    /// The embedded server failed; its message says what to do.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// Connecting failed.
    #[error("cannot connect to the database {address}: {}", cause(.source))]
    NoConnection {
        /// Database name and role, and host and port or socket.
        address: String,
        /// The last error.
        source: sqlx::Error,
    },
    /// The role cannot create tables.
    #[error(
        "the database {address} cannot be migrated: {}; the role must own the database, as with `ALTER DATABASE … OWNER TO …`",
        cause(.source)
    )]
    NotOwner {
        /// Database name and role, and host and port or socket.
        address: String,
        /// What the server refused.
        source: sqlx::Error,
    },
    /// Usually transient: try again.
    #[error("database error: {0}")]
    Database(#[from] sqlx::Error),
    /// A migration failed, or the schema belongs to another version.
    #[error("migrating the database failed: {0}")]
    Migrate(#[from] MigrateError),
}

impl DbError {
    /// Whether the database is unavailable for now, so that a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database(error)
            | Self::NoConnection { source: error, .. }
            | Self::Migrate(MigrateError::Execute(error)) => is_transient(error),
            _ => false,
        }
    }
}

/// Why this process has not prepared its database yet; `None`: it has. Until then the tables may
/// have this version and the SQL functions an older one, on which this program may work wrongly.
pub type Preparation = tokio::sync::watch::Receiver<Option<Arc<str>>>;

/// The pools, and the guard of the embedded server.
///
/// Engine, reads and writes have separate pools: requests that wait for locks cannot starve the
/// engine or other reads. [`ConnectionSplit`] divides the connections.
#[derive(Debug)]
pub struct Database {
    pool: PgPool,
    requests: RequestPools,
    replica: Option<PgPool>,
    options: PgConnectOptions,
    server: Option<Arc<Mutex<EmbeddedServer>>>,
    /// Folder of the embedded server.
    home: Option<PathBuf>,
}

/// The pools of requests.
#[derive(Debug, Clone)]
pub struct RequestPools {
    /// For reads.
    pub reads: PgPool,
    /// For writes, whose transactions may wait for row locks.
    pub writes: PgPool,
}

impl RequestPools {
    /// One pool for both.
    pub fn shared(pool: PgPool) -> Self {
        Self {
            reads: pool.clone(),
            writes: pool,
        }
    }
}

/// How a process divides its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionSplit {
    /// Claims, call starts, results, lease renewals and sweeps.
    pub engine: u32,
    /// Writing requests, monitors and webhooks.
    pub writes: u32,
    /// Reading requests.
    pub reads: u32,
}

impl ConnectionSplit {
    /// Each pool gets at least one connection, and the engine at most half, but at least two: the
    /// sweep holds one while its steps use another.
    pub fn of(config: &DatabaseConfig) -> Self {
        let engine = config
            .engine_connections
            .min(config.max_connections / 2)
            .max(2);
        let requests = config.max_connections.saturating_sub(engine).max(2);
        let writes = (requests / 3).max(1);
        Self {
            engine,
            writes,
            reads: requests - writes,
        }
    }
}

impl Database {
    /// Opens the database in `config`.
    ///
    /// Does not contact an external server (`DATABASE_URL`): the gateway must start without it. The
    /// embedded server runs, with its database created, when this returns.
    ///
    /// # Errors
    /// `Url` for an invalid setting; `Embedded` or `Database` if the embedded server cannot run.
    pub async fn open(config: &DatabaseConfig) -> Result<Self, DbError> {
        let (options, server) = match config.url() {
            Some(url) => (
                with_password(parse_url(url)?, config.database_password_file.as_deref())?,
                None,
            ),
            None => open_embedded(config).await?,
        };
        let (connections, timeout) = (ConnectionSplit::of(config), config.acquire_timeout);
        let of_requests = with_session(options.clone(), REQUEST_LOCK_TIMEOUT);
        let options = with_session(options, ENGINE_LOCK_TIMEOUT);
        let requests = RequestPools {
            reads: lazy_pool(connections.reads, of_requests.clone(), timeout),
            writes: lazy_pool(connections.writes, of_requests, timeout),
        };
        let pool = lazy_pool(connections.engine, options.clone(), timeout);
        let replica =
            replica(config)?.map(|options| lazy_pool(config.max_connections, options, timeout));
        let home = server.as_ref().map(|server| server.home().to_owned());
        Ok(Self {
            pool,
            requests,
            replica,
            options,
            server: server.map(|server| Arc::new(Mutex::new(server))),
            home,
        })
    }

    /// The pool of the replica, if configured. Its sessions are read-only.
    pub fn replica(&self) -> Option<&PgPool> {
        self.replica.as_ref()
    }

    /// The pools of requests.
    pub fn requests(&self) -> &RequestPools {
        &self.requests
    }

    /// The pool of the engine and of commands.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// For connections outside the pools that live as long as the process: leases and `LISTEN`.
    pub fn connect_options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// Whether the server is the embedded one.
    pub fn is_embedded(&self) -> bool {
        self.server.is_some()
    }

    /// Folder of the embedded server.
    pub fn data_dir(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// A task that checks new sessions. It must end before [`Self::close`].
    pub fn session_check(&self) -> SessionCheck {
        SessionCheck::new(self.options.clone(), self.server.clone())
    }

    /// Migrates the schema.
    ///
    /// # Errors
    /// `NoConnection` with the address and the cause; those of [`migrate`].
    pub async fn migrate(&self) -> Result<(), DbError> {
        migrate_at(&self.pool, &self.options).await
    }

    /// Opens the first connection for reads, so that the first request need not wait for it. Logs why
    /// there is none.
    pub async fn open_reads(&self) {
        let error = match self.requests.reads.acquire().await {
            Ok(_) => return,
            Err(sqlx::Error::PoolTimedOut) => cause_of_timeout(&self.options).await,
            Err(error) => error,
        };
        tracing::warn!(
            error = cause(&error),
            database = database_address(&self.options),
            "no connection for reads yet"
        );
    }

    /// Closes the pools. The last process to use the embedded server stops it.
    pub async fn close(self) {
        let closed = async {
            let RequestPools { reads, writes } = &self.requests;
            tokio::join!(self.pool.close(), reads.close(), writes.close());
            if let Some(replica) = &self.replica {
                replica.close().await;
            }
        };
        if tokio::time::timeout(CLOSE_TIMEOUT, closed).await.is_err() {
            tracing::warn!("database connections were still in use at shutdown");
        }
        if let Some(server) = self.server {
            // Dropping the guard blocks until the server has stopped.
            drop(tokio::task::spawn_blocking(move || drop(server)).await);
        }
    }
}

/// Begins a transaction, even if the caller's future is dropped meanwhile. Use it for every
/// transaction that is not nested.
///
/// sqlx 0.9.0 forgets a `BEGIN` whose future is dropped on its way (a timeout, a closed connection;
/// its issue 4385). The connection returns to the pool inside a transaction, and later statements
/// on it are never committed. So `BEGIN` runs in its own task; a transaction that nobody takes is
/// rolled back.
pub async fn begin(pool: &PgPool) -> sqlx::Result<Transaction<'static, Postgres>> {
    let pool = pool.clone();
    #[expect(clippy::disallowed_methods, reason = "this is the place for it")]
    let begun = tokio::spawn(async move { pool.begin().await });
    begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

/// As [`begin`], with another limit of each wait for a lock, without a round trip more.
pub async fn begin_with_lock_timeout(
    pool: &PgPool,
    wait: Duration,
) -> sqlx::Result<Transaction<'static, Postgres>> {
    let begin = format!("begin; set local lock_timeout = {}", wait.as_millis());
    let pool = pool.clone();
    #[expect(clippy::disallowed_methods, reason = "this is the place for it")]
    let begun = tokio::spawn(async move { pool.begin_with(AssertSqlSafe(begin)).await });
    begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

/// Begins a part of a transaction whose statements may take until `until`, and then fail. It must be
/// rolled back, which ends that limit and leaves the transaction usable.
pub async fn begin_reading(
    conn: &mut PgConnection,
    until: Instant,
) -> sqlx::Result<Transaction<'_, Postgres>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "nested: the outer transaction ends it"
    )]
    let mut part = conn.begin().await?;
    let left = until.saturating_duration_since(Instant::now());
    // 0 would be no limit.
    sqlx::query_scalar!(
        "select set_config('statement_timeout', $1, true)",
        left.as_millis().max(1).to_string()
    )
    .fetch_one(&mut *part)
    .await?;
    Ok(part)
}

/// Begins a read-only transaction with a consistent snapshot, for answers that need several
/// statements. Safe to drop, as [`begin`].
pub async fn snapshot(
    conn: PoolConnection<Postgres>,
) -> sqlx::Result<Transaction<'static, Postgres>> {
    let begin = "begin isolation level repeatable read, read only";
    #[expect(clippy::disallowed_methods, reason = "this is the place for it")]
    let begun =
        tokio::spawn(async move { Transaction::begin(conn, Some(begin.into_sql_str())).await });
    begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

/// Limits lock waits of a transaction to `BRIEF_LOCK_WAIT`: background work leaves locked rows to
/// its next pass.
pub async fn set_brief_lock_timeout(conn: &mut PgConnection) -> sqlx::Result<()> {
    let time = format!("{}ms", BRIEF_LOCK_WAIT.as_millis());
    sqlx::query("select set_config('lock_timeout', $1, true)")
        .bind(time)
        .execute(conn)
        .await?;
    Ok(())
}

/// Migrates the schema to this program's version. An advisory lock makes concurrent calls safe.
///
/// # Errors
/// `Database` without a connection (try again); `Migrate` if a migration fails or the database
/// holds an unknown one.
pub async fn migrate(pool: &PgPool) -> Result<(), DbError> {
    // Outside the pool, so that no session limit cuts a long migration or the wait for another
    // process.
    let mut connection = pool.acquire().await?.detach();
    sqlx::query(SESSION_OF_MIGRATIONS)
        .execute(&mut connection)
        .await?;
    // `run` has a generic connection, which makes this future impossible to spawn.
    MIGRATOR.run_direct(None, &mut connection, false).await?;
    functions::apply(&mut connection).await?;
    connection.close().await?;
    Ok(())
}

/// Migrates; reports address and cause if there is no connection. The pool alone reports only a
/// timeout, because it retries refused connections.
///
/// # Errors
/// `NoConnection`, `NotOwner`; those of [`migrate`].
pub async fn migrate_at(pool: &PgPool, options: &PgConnectOptions) -> Result<(), DbError> {
    let source = match migrate(pool).await {
        Err(
            DbError::Database(source)
            | DbError::Migrate(
                MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _),
            ),
        ) if has_sqlstate(&source, INSUFFICIENT_PRIVILEGE) => {
            return Err(DbError::NotOwner {
                address: database_address(options),
                source,
            });
        }
        Err(DbError::Database(sqlx::Error::PoolTimedOut)) => cause_of_timeout(options).await,
        Err(DbError::Database(error)) if is_unavailable(&error) || is_refused(&error) => error,
        migrated => return migrated,
    };
    Err(DbError::NoConnection {
        address: database_address(options),
        source,
    })
}

/// Why a pool has no connection: it retries what is refused, and then says only that it timed out.
async fn cause_of_timeout(options: &PgConnectOptions) -> sqlx::Error {
    let tried = with_timeout(async { PgConnection::connect_with(options).await?.close().await });
    tried.await.err().unwrap_or(sqlx::Error::PoolTimedOut)
}

/// The cause in one line, without the server's source locations.
fn cause(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        sqlx::Error::Io(error) => error.to_string(),
        sqlx::Error::PoolTimedOut => format!("no answer within {} s", ACQUIRE_TIMEOUT.as_secs()),
        error => error.to_string(),
    }
}

/// Truncates a time to microseconds, as the database stores it. Truncate once, where the time is
/// read: Postgres rounds times sent as text, sqlx truncates times sent as numbers, and both must be
/// equal.
pub fn truncate_to_micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

/// Limits a query on a new connection; a timeout counts as a missing connection.
///
/// # Errors
/// Those of `query`; [`sqlx::Error::PoolTimedOut`] after `ACQUIRE_TIMEOUT`.
pub async fn with_timeout<T>(query: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    tokio::time::timeout(ACQUIRE_TIMEOUT, query)
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

/// Whether the schema has this program's version. Changes nothing.
pub async fn is_migrated(pool: &PgPool) -> Result<bool, sqlx::Error> {
    let newest = MIGRATOR.iter().map(|migration| migration.version).max();
    let applied = sqlx::query_scalar(
        "select exists (select from _sqlx_migrations where version = $1 and success)",
    );
    match applied.bind(newest).fetch_one(pool).await {
        Err(error) if has_sqlstate(&error, "42P01") => Ok(false), // undefined_table: never migrated
        applied => applied,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> DatabaseConfig {
        DatabaseConfig {
            url: Some(url.into()),
            ..DatabaseConfig::default()
        }
    }

    #[test]
    fn connections_are_split_completely_and_no_pool_is_empty() {
        for max_connections in 4..=90 {
            for engine_connections in 1..=90 {
                let config = DatabaseConfig {
                    max_connections,
                    engine_connections,
                    ..DatabaseConfig::default()
                };
                let ConnectionSplit {
                    engine,
                    writes,
                    reads,
                } = ConnectionSplit::of(&config);
                assert_eq!(engine + writes + reads, max_connections, "{config:?}");
                assert!(engine >= 2 && writes >= 1 && reads >= writes, "{config:?}");
            }
        }
        let usual = ConnectionSplit::of(&DatabaseConfig::default());
        assert_eq!(
            usual,
            ConnectionSplit {
                engine: 8,
                writes: 4,
                reads: 8
            }
        );
    }

    #[tokio::test]
    async fn opening_an_external_server_does_not_contact_it() {
        let database = Database::open(&config(
            "postgres://nobody@127.0.0.1:1/none?sslmode=disable",
        ))
        .await
        .unwrap();
        assert!(!database.is_embedded());
        assert_eq!(database.data_dir(), None);
        assert!(matches!(
            migrate(database.pool()).await,
            Err(DbError::Database(_))
        ));
        database.close().await;
    }

    #[tokio::test]
    async fn an_invalid_url_is_reported_without_its_password() {
        for url in [
            "mysql://me:hunter2@localhost/x",
            "postgres://me:hunter2@host:port/x",
            "hunter2",
        ] {
            let error = Database::open(&config(url)).await.unwrap_err();
            assert!(matches!(error, DbError::Url(_)), "{error:?}");
            assert!(error.to_string().contains("DATABASE_URL"));
            assert!(
                !format!("{error} {error:?}").contains("hunter2"),
                "{error:?}"
            );
        }
    }
}
