//! Real databases for tests: `TestDb`, one for each test on a shared server, and `PrivatePg`, a
//! server of a test's own.
//!
//! The shared server is `DATABASE_URL` if set (its role must be allowed to create databases), else
//! an embedded one without fsync in the temporary folder. Parallel test processes share it and none
//! stops it, so the next run starts faster. `script/test` stops it at the end.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::WAIT_LIMIT;
use farescan::config::DatabaseConfig;
use farescan::db::embedded::{Durability, EmbeddedServer, ServerOptions};
use farescan::db::{self, Database};
use rustix::process::{Pid, Signal};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tempfile::TempDir;

/// Databases of failed or killed tests stay this long for inspection.
const MAX_AGE_SECONDS: u64 = 1800;
/// The longest that a test waits until its database is dropped.
const DROP_TIMEOUT: Duration = Duration::from_secs(2);

/// A migrated, empty database, dropped when its test has passed.
pub struct TestDb {
    name: String,
    admin: PgConnectOptions,
    url: String,
    database: Database,
}

impl TestDb {
    pub async fn new() -> Self {
        let admin = shared_server().await;
        let template = format!("farescan_template_{}", migrations_digest());
        let name = unique_name();
        let mut connection = connect(&admin).await;
        drop_stale(&mut connection).await;
        let create = format!("create database {name} template {template} strategy file_copy");
        if let Err(error) = execute(&mut connection, &create).await {
            let missing = error
                .as_database_error()
                .and_then(|error| error.code())
                .is_some_and(|code| code == "3D000");
            assert!(missing, "cannot make a test database: {error}");
            make_template(&admin, &mut connection, &template).await;
            execute(&mut connection, &create).await.unwrap();
        }
        connection.close().await.unwrap();
        Self::open(admin, name).await
    }

    /// A database without tables.
    pub async fn empty() -> Self {
        let (admin, name) = (shared_server().await, unique_name());
        let create = format!("create database {name}");
        execute(&mut connect(&admin).await, &create).await.unwrap();
        Self::open(admin, name).await
    }

    async fn open(admin: PgConnectOptions, name: String) -> Self {
        let url = admin.clone().database(&name).to_url_lossy().to_string();
        let database = Database::open(&config(&url)).await.unwrap();
        Self {
            name,
            admin,
            url,
            database,
        }
    }

    fn drop_statement(&self) -> String {
        format!("drop database if exists {} with (force)", self.name)
    }

    /// The program's own pool.
    pub fn pool(&self) -> &PgPool {
        self.database.pool()
    }

    /// For connections outside the pool.
    pub fn connect_options(&self) -> PgConnectOptions {
        self.database.connect_options().clone()
    }

    /// The `DATABASE_URL` of programs that use this database.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// For code that opens the database itself.
    pub fn config(&self) -> DatabaseConfig {
        config(&self.url)
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the test's database remains for inspection: {}", self.url);
            return;
        }
        let (admin, drop_it) = (self.admin.clone(), self.drop_statement());
        let (done, dropped) = mpsc::channel();
        // The test's own runtime cannot block on a future here.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime
                .block_on(async { execute(&mut connect(&admin).await, &drop_it).await.unwrap() });
            let _ = done.send(());
        });
        // Postgres waits until every session has confirmed the drop. A session whose client does
        // not read, such as a stopped process, does not confirm it; the drop then ends later by
        // itself.
        let gone = dropped.recv_timeout(DROP_TIMEOUT);
        assert_ne!(
            gone,
            Err(mpsc::RecvTimeoutError::Disconnected),
            "the test's database can be dropped"
        );
    }
}

/// A server for one test, which may crash it. The program treats it as an external server.
pub struct PrivatePg {
    // Declared before the folder: it must stop before the folder is removed.
    server: Option<EmbeddedServer>,
    options: ServerOptions,
    _place: TempDir,
}

impl PrivatePg {
    /// Starts a server with an empty database `farescan`.
    pub async fn start() -> Self {
        let place = world_readable_folder();
        let options = ServerOptions {
            home: place.path().join("pg"),
            pg_bin: None,
            durability: Durability::Scratch,
        };
        let server = start(options.clone()).await;
        let mut connection = connect(&server.connect_options().database("postgres")).await;
        execute(&mut connection, "create database farescan")
            .await
            .unwrap();
        connection.close().await.unwrap();
        Self {
            server: Some(server),
            options,
            _place: place,
        }
    }

    pub fn url(&self) -> String {
        let options = self.server.as_ref().unwrap().connect_options();
        options.database("farescan").to_url_lossy().to_string()
    }

    /// Opens its database as the program does.
    pub async fn open(&self) -> Database {
        let config = DatabaseConfig {
            url: Some(self.url().into()),
            ..DatabaseConfig::default()
        };
        Database::open(&config).await.unwrap()
    }

    /// What the server has written to its log.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.options.home.join("postgres.log")).unwrap())
            .into_owned()
    }

    /// As `pg_ctl stop -m immediate`: sessions are cut, nothing is flushed. Returns when the server
    /// has exited.
    pub async fn stop_immediate(&mut self) {
        let server = self.server.as_ref().unwrap();
        rustix::process::kill_process(Pid::from_raw(server.pid()).unwrap(), Signal::QUIT).unwrap();
        let pid_file = self.options.home.join("postgres/data/postmaster.pid");
        super::wait_until("the server is gone", async || !pid_file.exists()).await;
    }

    /// As `pg_ctl stop -m fast`: sessions are cut, everything is flushed. Returns when the server
    /// has exited.
    pub async fn stop_fast(&mut self) {
        let server = self.server.as_ref().unwrap();
        rustix::process::kill_process(Pid::from_raw(server.pid()).unwrap(), Signal::INT).unwrap();
        let pid_file = self.data_dir().join("postmaster.pid");
        super::wait_until("the server is gone", async || !pid_file.exists()).await;
    }

    /// The server's data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.options.home.join("postgres/data")
    }

    /// Makes the server's user the owner of a file.
    pub fn chown_to_server(&self, file: &Path) {
        let owner = std::fs::metadata(self.data_dir()).unwrap();
        std::os::unix::fs::chown(file, Some(owner.uid()), Some(owner.gid())).unwrap();
    }

    /// Starts the server again with the same URL.
    pub async fn restart(&mut self) {
        // The first guard is dropped once the second holds the lock, so it does not stop the
        // server.
        self.server = Some(start(self.options.clone()).await);
    }
}

/// A temporary folder that the server's user can access when root runs the test.
pub fn world_readable_folder() -> TempDir {
    let permissions = std::fs::Permissions::from_mode(0o755);
    tempfile::Builder::new()
        .prefix("farescan-")
        .permissions(permissions)
        .tempdir_in("/tmp")
        .unwrap()
}

/// Connects; tests in parallel may use all connections of the server for a moment.
pub async fn connect(options: &PgConnectOptions) -> PgConnection {
    let end = Instant::now() + WAIT_LIMIT;
    loop {
        match options.connect().await {
            Ok(connection) => return connection,
            Err(error) if is_too_many(&error) && Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => panic!("no connection to {options:?}: {error}"),
        }
    }
}

fn is_too_many(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|error| error.code().as_deref() == Some("53300"))
}

pub async fn execute(connection: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await
        .map(drop)
}

fn config(url: &str) -> DatabaseConfig {
    // Tests use only the engine's pool, which several workers and services share.
    DatabaseConfig {
        url: Some(url.into()),
        max_connections: 40,
        engine_connections: 20,
        // A machine that builds beside the tests may take seconds to make a connection.
        acquire_timeout: Duration::from_secs(10),
        ..DatabaseConfig::default()
    }
}

async fn start(options: ServerOptions) -> EmbeddedServer {
    tokio::task::spawn_blocking(move || EmbeddedServer::start(&options).unwrap())
        .await
        .unwrap()
}

/// Connects as a role that may create databases.
async fn shared_server() -> PgConnectOptions {
    // A static is never dropped, so the server keeps running; the process's exit releases the lock.
    static SHARED: OnceLock<EmbeddedServer> = OnceLock::new();
    if let Some(url) = std::env::var("DATABASE_URL")
        .ok()
        .filter(|url| !url.is_empty())
    {
        return PgConnectOptions::from_str(&url).expect("DATABASE_URL is a Postgres URL");
    }
    let user = rustix::process::geteuid().as_raw();
    let options = ServerOptions {
        home: PathBuf::from(format!("/tmp/farescan-tests-{user}")),
        pg_bin: None,
        durability: Durability::Scratch,
    };
    let shared = tokio::task::spawn_blocking(move || {
        SHARED.get_or_init(|| EmbeddedServer::start(&options).unwrap())
    });
    shared.await.unwrap().connect_options().database("postgres")
}

/// Migrates once for all tests with the same migrations. The template gets its name only when it is
/// complete.
async fn make_template(admin: &PgConnectOptions, connection: &mut PgConnection, template: &str) {
    execute(
        connection,
        "select pg_advisory_lock(hashtext('farescan test template'))",
    )
    .await
    .unwrap();
    let exists: bool = value!(
        &mut *connection,
        "select exists (select from pg_database where datname = $1)",
        template
    );
    if !exists {
        let draft = format!("{template}_draft");
        execute(
            connection,
            &format!("drop database if exists {draft} with (force)"),
        )
        .await
        .unwrap();
        execute(connection, &format!("create database {draft}"))
            .await
            .unwrap();
        let pool = PgPoolOptions::new()
            .connect_with(admin.clone().database(&draft))
            .await
            .unwrap();
        db::migrate(&pool).await.expect("the migrations run");
        accept_new_tenants(&pool).await;
        pool.close().await;
        execute(
            connection,
            &format!("alter database {draft} rename to {template}"),
        )
        .await
        .unwrap();
    }
    execute(
        connection,
        "select pg_advisory_unlock(hashtext('farescan test template'))",
    )
    .await
    .unwrap();
}

/// Marks new tenants as accepted by the marketplace, so that a test can submit several scans at
/// once. Tests of callers that are not accepted yet undo it with [`require_key_acceptance`].
pub async fn accept_new_tenants(pool: &PgPool) {
    for statement in [
        "create or replace function accept_at_once() returns trigger language plpgsql as $$
         begin new.accepted_at := new.created_at; return new; end $$",
        "create or replace trigger accept_at_once before insert on tenants for each row execute function accept_at_once()",
    ] {
        execute!(pool, statement);
    }
}

/// From now on a tenant is accepted only once the marketplace has accepted its key, as in
/// production.
pub async fn require_key_acceptance(pool: &PgPool) {
    execute!(pool, "drop trigger accept_at_once on tenants");
}

fn migrations_digest() -> String {
    use sha2::{Digest, Sha256};
    let mut digest = Sha256::new();
    for migration in sqlx::migrate!("./migrations").iter() {
        digest.update(migration.version.to_be_bytes());
        digest.update(&migration.checksum);
    }
    digest.update(farescan::db::functions::digest());
    digest
        .finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// `farescan_test_<born>_<process>_<count>`.
fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(
        "farescan_test_{}_{}_{count}",
        seconds_now(),
        std::process::id()
    )
}

fn seconds_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

/// Drops databases that failed or killed tests left long ago and that nobody is connected to.
async fn drop_stale(connection: &mut PgConnection) {
    let names: Vec<String> = values!(
        &mut *connection,
        "select datname::text from pg_database where datname like 'farescan\\_test\\_%' \
         and not exists (select from pg_stat_activity where pg_stat_activity.datname = pg_database.datname)"
    );
    let oldest = seconds_now() - MAX_AGE_SECONDS;
    for name in names {
        let born: Option<u64> = name.split('_').nth(2).and_then(|born| born.parse().ok());
        if born.is_some_and(|born| born < oldest) {
            // Another test may drop it at the same time; the second one finds nothing.
            drop(execute(connection, &format!("drop database if exists {name}")).await);
        }
    }
}

/// A transaction; a busy machine may need longer for a connection than the program's limit.
pub async fn begin(pool: &PgPool) -> sqlx::Transaction<'static, sqlx::Postgres> {
    let end = Instant::now() + WAIT_LIMIT;
    loop {
        match farescan::db::begin(pool).await {
            Err(sqlx::Error::PoolTimedOut) if Instant::now() < end => {}
            begun => return begun.unwrap(),
        }
    }
}

/// Begins a transaction whose statements may take as long as they do: the service's limit is for
/// its own statements, and a large seed takes longer on a slow disk.
pub async fn begin_seeding(pool: &PgPool) -> sqlx::Transaction<'static, sqlx::Postgres> {
    let mut tx = begin(pool).await;
    execute!(&mut *tx, "set local statement_timeout = 0");
    tx
}

/// A transaction that holds locks as long as its test needs, also on a busy machine.
pub async fn begin_holding(pool: &PgPool) -> sqlx::Transaction<'static, sqlx::Postgres> {
    let mut tx = begin(pool).await;
    execute!(
        &mut *tx,
        "set local idle_in_transaction_session_timeout = 0"
    );
    tx
}

/// A pool whose database cannot be reached, and its address.
pub fn unreachable_database() -> (PgPool, PgConnectOptions) {
    let options = PgConnectOptions::new()
        .host("127.0.0.1")
        .port(1)
        .username("nobody");
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_millis(200))
        .connect_lazy_with(options.clone());
    (pool, options)
}
