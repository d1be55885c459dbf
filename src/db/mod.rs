//! The way to Postgres: the pool, its session settings, the migrations, and the private server of `embedded`.
//!
//! No table is named here. Statements over farescan's tables stand in the `store.rs` files and in `queue`.

pub mod clock;
mod condition;
pub mod embedded;
mod standby;

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
use sqlx::{ConnectOptions, Connection, PgConnection, Postgres, SqlSafeStr as _, Transaction};

pub use condition::{Checkup, Condition};

use crate::config::DatabaseConfig;
use embedded::{EmbeddedError, Server, ServerOptions};

/// How long a request waits for a connection: a caller had better read 503 than hang while the database is away.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long work in the background waits for a lock.
const BRIEF_LOCK_WAIT: Duration = Duration::from_millis(100);

/// How long `close` waits for borrowed connections to come home before it goes on without them.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The database of the embedded server, and its only role.
const EMBEDDED_NAME: &str = "farescan";

/// Settings of every session, sent at connect. A URL that sets one of them itself (`?options[…]=…`) is left its word.
const SESSION: [(&str, &str); 3] = [
    // A transaction that its process forgot must not hold row locks: leases would starve behind it.
    ("idle_in_transaction_session_timeout", "30s"),
    ("statement_timeout", "30s"),
    // Our statements are short; compiling one costs more than it saves.
    ("jit", "off"),
];

/// How long the engine waits for a row lock. What it has to store is paid for.
const ENGINE_LOCK_TIMEOUT: &str = "5s";

/// How long a request waits for a row lock while it keeps a connection from others. It is answered 503 then, with Retry-After.
const REQUEST_LOCK_TIMEOUT: &str = "1s";

/// Of the session that migrates: no time limits, and no notice at each start that the table of migrations is there already.
const SESSION_OF_MIGRATIONS: &str = "select set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false), \
     set_config('client_min_messages', 'warning', false)";

/// The migrations that this program was built with.
static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("./migrations");

/// What went wrong on the way to the database. Never holds the URL, which may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// Mend the setting.
    #[error(
        "DATABASE_URL is not a Postgres URL ({0}); it reads like postgres://user:password@host:5432/farescan"
    )]
    Url(#[source] sqlx::Error),
    /// Mend the setting.
    #[error(
        "FARESCAN_READ_DATABASE_URL is not a Postgres URL; it reads like postgres://user:password@replica:5432/farescan"
    )]
    ReadUrl,
    /// The file with the database's password.
    #[error("FARESCAN_DATABASE_PASSWORD_FILE: {path}: {source}")]
    Password {
        /// Where it was looked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Its text says what mends it.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// There is no connection; where there should be one, and what became of the last try.
    #[error("no connection to the database {place}: {}", cause(.source))]
    NoConnection {
        /// Its name and role, its host and port or its socket.
        place: String,
        /// What the system or the server said.
        source: sqlx::Error,
    },
    /// Usually passes by itself: try again.
    #[error("the database does not answer as it should: {0}")]
    Database(#[from] sqlx::Error),
    /// The schema is not what this program was built for.
    #[error("the database could not be migrated: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
}

/// The pools and, when nobody else runs the server, the guard that keeps it running.
///
/// There are three, so that none can take the connections of another: callers who wait for a lock neither stop the engine nor the reads of
/// other callers. [`Connections`] says how many each has.
#[derive(Debug)]
pub struct Database {
    pool: PgPool,
    requests: RequestPools,
    replica: Option<PgPool>,
    options: PgConnectOptions,
    server: Option<Arc<Mutex<Server>>>,
    /// The folder of the embedded server.
    home: Option<PathBuf>,
}

/// The pools of requests.
#[derive(Debug, Clone)]
pub struct RequestPools {
    /// What only reads.
    pub reads: PgPool,
    /// What changes something: its transactions wait for row locks.
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

/// How the connections of a process are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// Claims, begins, records, renews and sweeps.
    pub engine: u32,
    /// Requests that change something, monitors and webhooks.
    pub writes: u32,
    /// Requests that read.
    pub reads: u32,
}

impl Connections {
    /// The division of what is set. Each part has one at least, and the engine no more than half.
    #[must_use]
    pub fn of(config: &DatabaseConfig) -> Self {
        let engine = config
            .engine_connections
            .min(config.max_connections / 2)
            .max(1);
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
    /// Opens what the settings name.
    ///
    /// A server of one's own (`DATABASE_URL`) is not contacted here: the gateway has to start and to answer while it
    /// is down. The embedded one is running, with its database made, when this returns.
    ///
    /// # Errors
    /// `Url` for a setting that is no Postgres URL; `Embedded` or `Database` when the embedded server cannot run.
    pub async fn open(config: &DatabaseConfig) -> Result<Self, DbError> {
        let (options, server) = match config.url() {
            Some(url) => (
                with_password(external(url)?, config.database_password_file.as_deref())?,
                None,
            ),
            None => open_embedded(config).await?,
        };
        let connections = Connections::of(config);
        let of_requests = with_session(options.clone(), REQUEST_LOCK_TIMEOUT);
        let options = with_session(options, ENGINE_LOCK_TIMEOUT);
        let requests = RequestPools {
            reads: lazy_pool(connections.reads, of_requests.clone()),
            writes: lazy_pool(connections.writes, of_requests),
        };
        let pool = lazy_pool(connections.engine, options.clone());
        let replica = replica(config)?.map(|options| lazy_pool(config.max_connections, options));
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

    /// The pool of the replica, where there is one. Its sessions cannot write, whatever it is.
    pub fn replica(&self) -> Option<&PgPool> {
        self.replica.as_ref()
    }

    /// The pools of requests. Cheap to clone.
    pub fn requests(&self) -> &RequestPools {
        &self.requests
    }

    /// The engine's pool, and that of commands. Cheap to clone.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// For connections outside the pool, which live as long as the process: leases and `LISTEN`.
    pub fn connect_options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// Whether the server is the program's own.
    pub fn is_embedded(&self) -> bool {
        self.server.is_some()
    }

    /// The folder of the embedded server.
    pub fn data_dir(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Looks whether new sessions can work. To be run, and to have ended before this is closed.
    pub fn checkup(&self) -> Checkup {
        Checkup::new(self.options.clone(), self.server.clone())
    }

    /// Brings the schema up to date; where there is no connection it says where it was looked for and why there is none.
    ///
    /// # Errors
    /// `NoConnection`; those of [`migrate`].
    pub async fn migrate(&self) -> Result<(), DbError> {
        migrate_at(&self.pool, &self.options).await
    }

    /// Gives the connections back and, as the last process that uses it, stops the embedded server.
    pub async fn close(self) {
        let closed = async {
            let RequestPools { reads, writes } = &self.requests;
            tokio::join!(self.pool.close(), reads.close(), writes.close());
            if let Some(replica) = &self.replica {
                replica.close().await;
            }
        };
        if tokio::time::timeout(CLOSE_TIMEOUT, closed).await.is_err() {
            tracing::warn!("some database connections were still in use at the end");
        }
        if let Some(server) = self.server {
            // Dropping the guard waits for the server's shutdown, which would stall this thread's other tasks.
            drop(tokio::task::spawn_blocking(move || drop(server)).await);
        }
    }
}

/// Begins a transaction, whole or not at all, whatever becomes of the future that waits for it.
///
/// The only way to begin one outside another. sqlx 0.9.0 forgets a `BEGIN` whose future was dropped while it was on its way (a time limit
/// was met, a client hung up; its issue 4385): the connection went back to the pool inside a transaction that nobody knew of, and what was
/// done on it next was never committed. So `BEGIN` is waited for in a task of its own, which nobody drops; a transaction that nobody takes
/// from it is rolled back.
///
/// # Errors
/// When there is no connection, or the database does not answer.
pub async fn begin(pool: &PgPool) -> sqlx::Result<Transaction<'static, Postgres>> {
    let pool = pool.clone();
    #[expect(clippy::disallowed_methods, reason = "this is the place for it")]
    let begun = tokio::spawn(async move { pool.begin().await });
    begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

/// Begins a transaction that sees all of one moment and changes nothing, on a connection that is there already: what takes several statements
/// to answer must not be put together from two states. Whole or not at all, as [`begin`].
///
/// # Errors
/// When the database does not answer.
pub async fn snapshot(
    conn: PoolConnection<Postgres>,
) -> sqlx::Result<Transaction<'static, Postgres>> {
    let begin = "begin isolation level repeatable read, read only";
    #[expect(clippy::disallowed_methods, reason = "this is the place for it")]
    let begun =
        tokio::spawn(async move { Transaction::begin(conn, Some(begin.into_sql_str())).await });
    begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

/// Has a transaction wait for a lock no longer than `BRIEF_LOCK_WAIT`: what nobody waits for leaves busy rows to its next pass, and does
/// not hold up the rest.
///
/// # Errors
/// When the database does not answer.
pub async fn wait_briefly(conn: &mut PgConnection) -> sqlx::Result<()> {
    let time = format!("{}ms", BRIEF_LOCK_WAIT.as_millis());
    sqlx::query("select set_config('lock_timeout', $1, true)")
        .bind(time)
        .execute(conn)
        .await?;
    Ok(())
}

/// Brings the schema up to this program's version, under the migrations' advisory lock: any number of processes may
/// come at once, one of them does the work.
///
/// # Errors
/// `Database` while there is no connection (try again), `Migrate` when a migration fails or the database holds one
/// that this program does not know.
pub async fn migrate(pool: &PgPool) -> Result<(), DbError> {
    // A connection of its own, because the session's limits would cut a long migration, or the wait for another
    // process that is at it.
    let mut connection = pool.acquire().await?.detach();
    sqlx::query(SESSION_OF_MIGRATIONS)
        .execute(&mut connection)
        .await?;
    // Not `run`: its generic connection keeps this future from being spawned.
    MIGRATOR.run_direct(None, &mut connection, false).await?;
    connection.close().await?;
    Ok(())
}

/// The same, with the place and the cause where there is no connection. The pool alone only says that it waited, because it tries again after
/// a refusal.
///
/// # Errors
/// `NoConnection`; those of [`migrate`].
pub async fn migrate_at(pool: &PgPool, options: &PgConnectOptions) -> Result<(), DbError> {
    let source = match migrate(pool).await {
        Err(DbError::Database(sqlx::Error::PoolTimedOut)) => {
            let tried = in_time(async { PgConnection::connect_with(options).await?.close().await });
            tried.await.err().unwrap_or(sqlx::Error::PoolTimedOut)
        }
        Err(DbError::Database(error)) if is_away(&error) || is_refused(&error) => error,
        migrated => return migrated,
    };
    Err(DbError::NoConnection {
        place: named_place(options),
        source,
    })
}

/// Whether the server let nobody in: no such role, password, right or database.
fn is_refused(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(|error| error.code())
        .unwrap_or_default();
    code.starts_with("28") || matches!(&*code, "3D000" | "42501")
}

/// The cause in one line: what the server or the system said, without the lines of source that the server names.
fn cause(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        sqlx::Error::Io(error) => error.to_string(),
        sqlx::Error::PoolTimedOut => format!("no answer within {} s", ACQUIRE_TIMEOUT.as_secs()),
        error => error.to_string(),
    }
}

/// A time as the database keeps it: in microseconds, cut. To be cut once, where the time is taken: of one that goes as text the database
/// rounds the rest, of one that goes as a number sqlx cuts it, and one moment would be two.
#[must_use]
pub fn kept_time(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

/// Whether an error says that the database cannot serve now but may soon, unlike one that asking again would meet again.
pub fn is_away(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => {
            let is_read_only = error.code().is_some_and(|code| code == standby::READ_ONLY);
            if is_read_only {
                standby::refused();
            }
            error.code().is_some_and(|code| passes(&code)) || is_damage(error.as_ref())
        }
        _ => false,
    }
}

/// Whether an error says that a row lock was waited for in vain: somebody else is at work on the same rows.
pub fn is_locked(error: &sqlx::Error) -> bool {
    has_code(error, "55P03") // lock_not_available
}

/// Whether an error says that a transaction was rolled back because of another (a deadlock, a serialisation failure): nothing of it is
/// stored, and the database serves.
pub fn is_conflict(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|code| rolled_back(&code))
}

/// Whether the same may succeed later: the database is away, or the transaction met another.
pub fn may_pass(error: &sqlx::Error) -> bool {
    is_away(error) || is_conflict(error)
}

/// Whether an error says that the server cannot load its own files, as after a package upgrade while it runs. Waiting does not mend it, but a
/// restart of the server does: what is to be stored is kept until then, as for a database that is away.
pub fn is_damage(error: &dyn DatabaseError) -> bool {
    let code = error.code().unwrap_or_default();
    let names_a_library = ["$libdir", "could not load library", "incompatible library"]
        .iter()
        .any(|text| error.message().contains(text));
    // undefined_file, duplicate_file, system_error; with a library also what the loader's error came out as
    matches!(&*code, "58P01" | "58P02" | "58000")
        || (matches!(&*code, "XX000" | "42501" | "22023" | "42883" | "58030") && names_a_library)
}

/// Whether an error says that its connection is gone, whatever becomes of others.
pub fn is_cut(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        // Connection exceptions, and sessions that were told to end.
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| code.starts_with("08") || code.starts_with("57P0")),
        _ => false,
    }
}

/// The answer of a connection that was not tried before; no answer is as if there were no connection.
///
/// # Errors
/// Those of `asking`, and [`sqlx::Error::PoolTimedOut`] after as long as a request waits for a connection.
pub async fn in_time<T>(asking: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    tokio::time::timeout(ACQUIRE_TIMEOUT, asking)
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

/// SQLSTATEs of a database that cannot serve now but may soon: connection exceptions, no resources, shutting down or starting up,
/// trouble outside it, read only while a standby takes over, a session that idled too long, tables that are not made yet, a time limit met;
/// and what a process of an older or newer version meets while the schema is another's: a function, a column or a form of its result that
/// is not there, a plan that it changed.
fn passes(code: &str) -> bool {
    matches!(code.get(..2), Some("08" | "53" | "57" | "58"))
        || matches!(
            code,
            standby::READ_ONLY
                | "25P03"
                | "42P01"
                | "55P03"
                | "42883"
                | "42703"
                | "42P13"
                | "0A000"
        )
}

/// SQLSTATEs of a transaction that was rolled back because of another: 40001, 40P01 and their class.
fn rolled_back(code: &str) -> bool {
    code.starts_with("40")
}

/// Whether the schema is at this program's version. Asks the database, changes nothing.
///
/// # Errors
/// There is no connection, or the database does not answer.
pub async fn is_migrated(pool: &PgPool) -> Result<bool, sqlx::Error> {
    let newest = MIGRATOR.iter().map(|migration| migration.version).max();
    let applied = sqlx::query_scalar(
        "select exists (select from _sqlx_migrations where version = $1 and success)",
    );
    match applied.bind(newest).fetch_one(pool).await {
        Err(error) if has_code(&error, "42P01") => Ok(false), // undefined_table: never migrated
        applied => applied,
    }
}

/// The options that a `DATABASE_URL` stands for; TLS as its `sslmode` says.
fn external(url: &SecretString) -> Result<PgConnectOptions, DbError> {
    let url = url.expose_secret().trim();
    // Any scheme would be taken for Postgres otherwise, `mysql://` included.
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(DbError::Url(sqlx::Error::Configuration(
            "it does not begin with postgres://".into(),
        )));
    }
    let options = PgConnectOptions::from_str(url).map_err(DbError::Url)?;
    if may_be_in_clear(&options) {
        tracing::warn!(
            "the database at {} may be spoken to without TLS, because sslmode is `prefer` unless the URL says otherwise: add \
             `?sslmode=verify-full`, or `?sslmode=disable` where nobody can listen",
            place(&options)
        );
    }
    Ok(options)
}

/// Whether it depends on the server, or on who stands in between, that what is sent to another machine is encrypted, and nobody has said that
/// this is meant.
fn may_be_in_clear(options: &PgConnectOptions) -> bool {
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

/// Where a database is, in words.
pub fn place(options: &PgConnectOptions) -> String {
    let host = options.get_socket().map_or_else(
        || options.get_host().to_owned(),
        |folder| folder.display().to_string(),
    );
    format!("{host} port {}", options.get_port())
}

/// The same with the database and the role.
fn named_place(options: &PgConnectOptions) -> String {
    let name = options
        .get_database()
        .unwrap_or_else(|| options.get_username());
    format!(
        "`{name}` as `{}` on {}",
        options.get_username(),
        place(options)
    )
}

/// Connects when it is used.
fn lazy_pool(connections: u32, options: PgConnectOptions) -> PgPool {
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT);
    let pool = pool.before_acquire(|_, about| {
        Box::pin(std::future::ready(Ok(!standby::may_lead_there(about.age))))
    });
    pool.connect_lazy_with(options)
}

/// How to reach the replica, if one is set.
fn replica(config: &DatabaseConfig) -> Result<Option<PgConnectOptions>, DbError> {
    let Some(url) = config
        .read_url
        .as_ref()
        .filter(|url| !url.expose_secret().trim().is_empty())
    else {
        return Ok(None);
    };
    let options = external(url).map_err(|_| DbError::ReadUrl)?;
    let options = with_password(options, config.database_password_file.as_deref())?;
    Ok(Some(
        with_session(options, REQUEST_LOCK_TIMEOUT)
            .options([("default_transaction_read_only", "on")]),
    ))
}

/// Adds the password of a file, whose last line may end. It wins over one in the URL.
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
) -> Result<(PgConnectOptions, Option<Server>), DbError> {
    let options = ServerOptions {
        home: match &config.data_dir {
            Some(home) => home.clone(),
            None => embedded::default_home()?,
        },
        pg_bin: config.pg_bin.clone(),
        durability: embedded::Durability::Full,
    };
    // Blocking and not cancelled with this future: the guard comes into being, and is dropped, whole.
    let server = tokio::task::spawn_blocking(move || Server::start(&options))
        .await
        .map_err(|panic| sqlx::Error::Io(std::io::Error::other(panic)))??;
    let options = server.connect_options().database(EMBEDDED_NAME);
    ensure_database(&server, &options).await?;
    Ok((options, Some(server)))
}

/// Makes the embedded server's database unless it is there. Several processes may come at once.
async fn ensure_database(server: &Server, options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    match options.connect().await {
        Ok(connection) => return connection.close().await,
        Err(error) if has_code(&error, "3D000") => {} // invalid_catalog_name: not made yet
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
        Err(error) if !has_code(&error, "42P04") && !has_code(&error, "23505") => Err(error),
        Ok(_) | Err(_) => connection.close().await,
    }
}

/// Whether an error has this SQLSTATE.
pub fn has_code(error: &sqlx::Error, code: &str) -> bool {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|found| found == code)
}

/// Adds the session settings that the options don't hold yet.
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
    fn which_states_of_a_database_pass() {
        for code in [
            "08006", "53300", "57P01", "57P03", "57014", "25006", "42P01", "55P03", "58030",
            "25P03",
        ] {
            assert!(passes(code), "{code}");
        }
        for code in [
            "23505", "42601", "55000", "25001", "40001", "40P01", "", "5",
        ] {
            assert!(!passes(code), "{code}");
        }
        assert!(rolled_back("40001") && rolled_back("40P01") && !rolled_back("57P01"));
    }

    fn config(url: &str) -> DatabaseConfig {
        DatabaseConfig {
            url: Some(url.into()),
            ..DatabaseConfig::default()
        }
    }

    #[test]
    fn every_part_has_connections_and_together_they_are_what_is_set() {
        for max_connections in 3..=90 {
            for engine_connections in 1..=90 {
                let config = DatabaseConfig {
                    max_connections,
                    engine_connections,
                    ..DatabaseConfig::default()
                };
                let Connections {
                    engine,
                    writes,
                    reads,
                } = Connections::of(&config);
                assert_eq!(engine + writes + reads, max_connections, "{config:?}");
                assert!(engine >= 1 && writes >= 1 && reads >= writes, "{config:?}");
            }
        }
        let usual = Connections::of(&DatabaseConfig::default());
        assert_eq!(
            usual,
            Connections {
                engine: 8,
                writes: 4,
                reads: 8
            }
        );
    }

    #[tokio::test]
    async fn opening_an_external_server_does_not_wait_for_it() {
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
    fn a_way_to_another_machine_that_may_be_in_clear_is_noticed() {
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
            let options = external(&format!("postgres://me@{rest}").into()).unwrap();
            assert_eq!(may_be_in_clear(&options), may_be, "{rest}");
        }
    }

    #[tokio::test]
    async fn a_wrong_url_is_named_without_its_password() {
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
    fn a_password_comes_from_a_file_without_its_line_end() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("password");
        std::fs::write(&file, "pass word\n").unwrap();
        let options = || PgConnectOptions::from_str("postgres://me@localhost/x").unwrap();
        let given = with_password(options(), Some(&file)).unwrap();
        assert!(given.to_url_lossy().as_str().contains("me:pass%20word@"));
        let missing = with_password(options(), Some(&place.path().join("none")))
            .unwrap_err()
            .to_string();
        assert!(
            missing.starts_with("FARESCAN_DATABASE_PASSWORD_FILE: ") && missing.contains("none"),
            "{missing}"
        );
    }

    #[test]
    fn session_settings_leave_the_url_its_word() {
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
