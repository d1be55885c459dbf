//! Access to Postgres: pools, session settings, migrations, and the private server in `embedded`.
//!
//! Names no tables, apart from `partitions`: the statements are in the `store` modules, `queue` and
//! `upkeep`.

pub mod clock;
mod demoted_primary;
pub mod embedded;
pub mod functions;
pub mod partitions;
mod session_check;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use sqlx::error::DatabaseError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, Postgres, SqlSafeStr as _, Transaction,
};

pub use session_check::{SessionCheck, SessionHealth};

use crate::config::DatabaseConfig;
use embedded::{EmbeddedError, EmbeddedServer, ServerOptions};

/// How long a request waits for a connection. Without a database, a quick 503 is better than a
/// hang.
const ACQUIRE_TIMEOUT: Duration = DatabaseConfig::ACQUIRE_TIMEOUT;

/// Lock timeout of background work.
pub const BRIEF_LOCK_WAIT: Duration = Duration::from_millis(100);

/// How long `close` waits for connections in use.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The embedded server's database, and its only role.
const EMBEDDED_NAME: &str = "farescan";

/// Settings of every session, sent at connect. A URL's own `?options[…]=…` takes precedence.
const SESSION: [(&str, &str); 3] = [
    // A stalled transaction must not hold row locks: leases would expire behind it.
    ("idle_in_transaction_session_timeout", "30s"),
    ("statement_timeout", "30s"),
    // Statements are short; compiling one costs more than it saves.
    ("jit", "off"),
];

/// Lock timeout of the engine: what it stores has been paid for.
const ENGINE_LOCK_TIMEOUT: &str = "5s";

/// Lock timeout of requests, which hold a connection meanwhile. The caller gets 503 with
/// Retry-After.
const REQUEST_LOCK_TIMEOUT: &str = "1s";

/// For the migrating session: no time limits, and no notice that the table of migrations exists.
const SESSION_OF_MIGRATIONS: &str = "select set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false), \
     set_config('client_min_messages', 'warning', false)";

/// The migrations in this binary.
static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("./migrations");

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
    /// Usually transient: try again.
    #[error("database error: {0}")]
    Database(#[from] sqlx::Error),
    /// A migration failed, or the schema belongs to another version.
    #[error("migrating the database failed: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
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
    #[must_use]
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
    #[must_use]
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
/// `NoConnection`; those of [`migrate`].
pub async fn migrate_at(pool: &PgPool, options: &PgConnectOptions) -> Result<(), DbError> {
    let source = match migrate(pool).await {
        Err(DbError::Database(sqlx::Error::PoolTimedOut)) => {
            let tried =
                with_timeout(async { PgConnection::connect_with(options).await?.close().await });
            tried.await.err().unwrap_or(sqlx::Error::PoolTimedOut)
        }
        Err(DbError::Database(error)) if is_unavailable(&error) || is_refused(&error) => error,
        migrated => return migrated,
    };
    Err(DbError::NoConnection {
        address: database_address(options),
        source,
    })
}

/// Whether the server rejected the connection: unknown role or database, wrong password, no
/// privilege.
fn is_refused(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(|error| error.code())
        .unwrap_or_default();
    code.starts_with("28") || matches!(&*code, "3D000" | "42501")
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
#[must_use]
pub fn truncate_to_micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

/// Whether the database is unavailable for now, so that a retry may succeed.
pub fn is_unavailable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => {
            let is_read_only = error
                .code()
                .is_some_and(|code| code == demoted_primary::READ_ONLY);
            if is_read_only {
                demoted_primary::record_refusal();
            }
            error.code().is_some_and(|code| is_unavailable_code(&code))
                || is_library_error(error.as_ref())
        }
        _ => false,
    }
}

/// Whether waiting for a row lock timed out.
pub fn is_locked(error: &sqlx::Error) -> bool {
    has_sqlstate(error, "55P03") // lock_not_available
}

/// Whether the transaction was rolled back because of a concurrent one (deadlock, serialization
/// failure). Nothing is stored, and the database is available.
pub fn is_conflict(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|code| is_rollback_code(&code))
}

/// Whether a retry may succeed: the database is unavailable, or a concurrent transaction
/// conflicted.
pub fn is_transient(error: &sqlx::Error) -> bool {
    is_unavailable(error) || is_conflict(error)
}

/// Whether the server cannot load its own files, as after a package upgrade at run time. Only a
/// restart of the server helps; until then the error counts as an unavailable database.
pub fn is_library_error(error: &dyn DatabaseError) -> bool {
    let code = error.code().unwrap_or_default();
    let names_a_library = ["$libdir", "could not load library", "incompatible library"]
        .iter()
        .any(|text| error.message().contains(text));
    // undefined_file, duplicate_file, system_error; with a library also the loader's error codes
    matches!(&*code, "58P01" | "58P02" | "58000")
        || (matches!(&*code, "XX000" | "42501" | "22023" | "42883" | "58030") && names_a_library)
}

/// Whether the error's connection is lost.
pub fn is_disconnected(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        // Connection exceptions, and sessions ended by the server.
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| code.starts_with("08") || code.starts_with("57P0")),
        _ => false,
    }
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

/// SQLSTATEs of a database that is unavailable for now: connection exceptions, no resources,
/// shutdown or start, system errors, read only after a failover, idle timeout, missing tables, time
/// limits. Also those that a process meets while the schema has another version: an unknown
/// function or column, a changed result type or plan.
fn is_unavailable_code(code: &str) -> bool {
    matches!(code.get(..2), Some("08" | "53" | "57" | "58"))
        || matches!(
            code,
            demoted_primary::READ_ONLY
                | "25P03"
                | "42P01"
                | "55P03"
                | "42883"
                | "42703"
                | "42P13"
                | "0A000"
        )
}

/// SQLSTATEs of a rollback because of a concurrent transaction: 40001, 40P01 and their class.
fn is_rollback_code(code: &str) -> bool {
    code.starts_with("40")
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

/// The options in a `DATABASE_URL`; `sslmode` decides about TLS.
fn parse_url(url: &SecretString) -> Result<PgConnectOptions, DbError> {
    let url = url.expose_secret().trim();
    // sqlx accepts any scheme, `mysql://` included.
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(DbError::Url(sqlx::Error::Configuration(
            "it does not begin with postgres://".into(),
        )));
    }
    let options = PgConnectOptions::from_str(url).map_err(DbError::Url)?;
    if may_be_unencrypted(&options) {
        tracing::warn!(
            "the database at {} may be used without TLS, because the URL sets no stricter `sslmode`: add \
             `?sslmode=verify-full`, or `?sslmode=disable` where nobody can listen",
            server_address(&options)
        );
    }
    Ok(options)
}

/// Whether the server, or a host in between, decides whether the connection is encrypted, without
/// consent in the URL.
fn may_be_unencrypted(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    let is_local = options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    !is_local && matches!(options.get_ssl_mode(), PgSslMode::Allow | PgSslMode::Prefer)
}

/// Host or socket folder, and port.
pub fn server_address(options: &PgConnectOptions) -> String {
    let host = options.get_socket().map_or_else(
        || options.get_host().to_owned(),
        |folder| folder.display().to_string(),
    );
    format!("{host} port {}", options.get_port())
}

/// The same with database and role.
fn database_address(options: &PgConnectOptions) -> String {
    let name = options
        .get_database()
        .unwrap_or_else(|| options.get_username());
    format!(
        "`{name}` as `{}` on {}",
        options.get_username(),
        server_address(options)
    )
}

/// A pool that connects on first use.
fn lazy_pool(connections: u32, options: PgConnectOptions, acquire_timeout: Duration) -> PgPool {
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(acquire_timeout);
    let pool = pool.before_acquire(|_, about| {
        Box::pin(std::future::ready(Ok(!demoted_primary::predates_refusal(
            about.age,
        ))))
    });
    pool.connect_lazy_with(options)
}

/// The options of the replica, if configured.
fn replica(config: &DatabaseConfig) -> Result<Option<PgConnectOptions>, DbError> {
    let Some(url) = config
        .read_url
        .as_ref()
        .filter(|url| !url.expose_secret().trim().is_empty())
    else {
        return Ok(None);
    };
    let options = parse_url(url).map_err(|_| DbError::ReadUrl)?;
    let options = with_password(options, config.database_password_file.as_deref())?;
    Ok(Some(
        with_session(options, REQUEST_LOCK_TIMEOUT)
            .options([("default_transaction_read_only", "on")]),
    ))
}

/// Sets the password from a file, without a trailing newline. It overrides one in the URL.
fn with_password(
    options: PgConnectOptions,
    file: Option<&Path>,
) -> Result<PgConnectOptions, DbError> {
    let Some(path) = file else { return Ok(options) };
    let text = std::fs::read_to_string(path).map_err(|source| DbError::Password {
        path: path.to_owned(),
        source,
    })?;
    let text = SecretString::from(text);
    Ok(options.password(text.expose_secret().trim_end_matches(['\n', '\r'])))
}

async fn open_embedded(
    config: &DatabaseConfig,
) -> Result<(PgConnectOptions, Option<EmbeddedServer>), DbError> {
    let options = ServerOptions {
        home: match &config.data_dir {
            Some(home) => home.clone(),
            None => embedded::default_home()?,
        },
        pg_bin: config.pg_bin.clone(),
        durability: embedded::Durability::Full,
    };
    // A blocking task is not cancelled with this future, so the guard is always created and
    // dropped.
    let server = tokio::task::spawn_blocking(move || EmbeddedServer::start(&options))
        .await
        .map_err(|panic| sqlx::Error::Io(std::io::Error::other(panic)))??;
    let options = server.connect_options().database(EMBEDDED_NAME);
    ensure_database(&server, &options).await?;
    Ok((options, Some(server)))
}

/// Creates the embedded server's database if it is missing. Concurrent calls are safe.
async fn ensure_database(
    server: &EmbeddedServer,
    options: &PgConnectOptions,
) -> Result<(), sqlx::Error> {
    match options.connect().await {
        Ok(connection) => return connection.close().await,
        Err(error) if has_sqlstate(&error, "3D000") => {} // invalid_catalog_name: not made yet
        Err(error) => return Err(error),
    }
    let mut connection = server
        .connect_options()
        .database("postgres")
        .connect()
        .await?;
    match sqlx::query("create database farescan")
        .execute(&mut connection)
        .await
    {
        // duplicate_database, unique_violation: another process was first
        Err(error) if !has_sqlstate(&error, "42P04") && !has_sqlstate(&error, "23505") => {
            Err(error)
        }
        Ok(_) | Err(_) => connection.close().await,
    }
}

pub fn has_sqlstate(error: &sqlx::Error, code: &str) -> bool {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|found| found == code)
}

/// Adds the session settings that the URL does not set.
fn with_session(options: PgConnectOptions, lock_timeout: &'static str) -> PgConnectOptions {
    let own = options.get_options().unwrap_or_default().to_owned();
    let missing = SESSION
        .into_iter()
        .chain([("lock_timeout", lock_timeout)])
        .filter(|(name, _)| !own.contains(name));
    options.options(missing).application_name("farescan")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_sqlstates_are_recognized() {
        for code in [
            "08006", "53300", "57P01", "57P03", "57014", "25006", "42P01", "55P03", "58030",
            "25P03",
        ] {
            assert!(is_unavailable_code(code), "{code}");
        }
        for code in [
            "23505", "42601", "55000", "25001", "40001", "40P01", "", "5",
        ] {
            assert!(!is_unavailable_code(code), "{code}");
        }
        assert!(
            is_rollback_code("40001") && is_rollback_code("40P01") && !is_rollback_code("57P01")
        );
    }

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

    #[test]
    fn possibly_unencrypted_remote_connections_are_detected() {
        for (rest, may_be) in [
            ("db.example.com/x", true),
            ("10.0.0.7/x?sslmode=allow", true),
            ("[2001:db8::1]/x", true),
            ("db.example.com/x?sslmode=disable", false),
            ("db.example.com/x?sslmode=require", false),
            ("db.example.com/x?sslmode=verify-full", false),
            ("localhost/x", false),
            ("127.0.0.1:5433/x", false),
            ("[::1]/x", false),
            ("%2Fvar%2Frun%2Fpostgresql/x", false),
            ("localhost/x?host=/var/run/postgresql", false),
        ] {
            let options = parse_url(&format!("postgres://me@{rest}").into()).unwrap();
            assert_eq!(may_be_unencrypted(&options), may_be, "{rest}");
        }
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

    #[test]
    fn a_password_file_is_read_without_its_newline() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "pass word\n").unwrap();
        let options = || PgConnectOptions::from_str("postgres://me@localhost/x").unwrap();
        let given = with_password(options(), Some(&file)).unwrap();
        assert!(given.to_url_lossy().as_str().contains("me:pass%20word@"));
        let missing = with_password(options(), Some(&folder.path().join("none")))
            .unwrap_err()
            .to_string();
        assert!(
            missing.starts_with("FARESCAN_DATABASE_PASSWORD_FILE: ") && missing.contains("none"),
            "{missing}"
        );
    }

    #[test]
    fn session_settings_do_not_override_the_url() {
        let url = "postgres://me@localhost/x?options[statement_timeout]=5min";
        let options = with_session(
            PgConnectOptions::from_str(url).unwrap(),
            REQUEST_LOCK_TIMEOUT,
        );
        let set = options.get_options().unwrap();
        assert!(
            set.contains("statement_timeout=5min") && !set.contains("statement_timeout=30s"),
            "{set}"
        );
        assert!(
            set.contains("idle_in_transaction_session_timeout=30s") && set.contains("jit=off"),
            "{set}"
        );
        assert!(set.contains("lock_timeout=1s"), "{set}");
    }
}
