//! Real databases for tests: `TestDb`, one for each test on a shared server, and `PrivatePg`, a server of a test's own.
//!
//! The shared server is `DATABASE_URL` if set (its role must be allowed to create databases), else an embedded one
//! without fsync in the temporary folder. Test processes come and go in parallel: they adopt it, and none stops it,
//! so that the next run finds it warm. `script/test` stops it at the end.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farescan::config::DatabaseConfig;
use farescan::db::embedded::{Durability, Server, ServerOptions};
use farescan::db::{self, Database};
use rustix::process::{Pid, Signal};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tempfile::TempDir;

/// Databases of failed or killed tests are kept this long, to be looked at.
const KEEP_SECONDS: u64 = 1800;
/// A test waits no longer than this for its database to go.
const LONGEST_DROP: Duration = Duration::from_secs(2);

/// A migrated, empty database, dropped when its test has passed.
pub struct TestDb {
    name: String,
    admin: PgConnectOptions,
    url: String,
    database: Database,
    is_gone: bool,
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
        let url = admin.clone().database(&name).to_url_lossy().to_string();
        let database = Database::open(&config(&url)).await.unwrap();
        Self {
            name,
            admin,
            url,
            database,
            is_gone: false,
        }
    }

    /// Drops it now. For a task in which other tests' futures are polled: they would wait while this one's end is waited for in `drop`.
    pub async fn close(mut self) {
        self.is_gone = true;
        execute(&mut connect(&self.admin).await, &self.drop_statement())
            .await
            .unwrap();
    }

    fn drop_statement(&self) -> String {
        format!("drop database if exists {} with (force)", self.name)
    }

    /// A database of its own with all that this one holds, which nobody may be using any more.
    pub async fn copy(&self) -> Self {
        let name = unique_name();
        let mut connection = connect(&self.admin).await;
        let leave =
            "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = $1";
        let create = format!(
            "create database {name} template {} strategy file_copy",
            self.name
        );
        for tries_left in (0..100).rev() {
            sqlx::query(leave)
                .bind(&self.name)
                .execute(&mut connection)
                .await
                .unwrap();
            match execute(&mut connection, &create).await {
                Ok(()) => break,
                Err(error) if tries_left == 0 => panic!("cannot copy a test database: {error}"),
                // A session that was told to leave is at it still.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        connection.close().await.unwrap();
        let url = self
            .admin
            .clone()
            .database(&name)
            .to_url_lossy()
            .to_string();
        let database = Database::open(&config(&url)).await.unwrap();
        Self {
            name,
            admin: self.admin.clone(),
            url,
            database,
            is_gone: false,
        }
    }

    /// The program's own pool on it.
    pub fn pool(&self) -> &PgPool {
        self.database.pool()
    }

    /// For connections outside the pool.
    pub fn connect_options(&self) -> PgConnectOptions {
        self.database.connect_options().clone()
    }

    /// For programs that are started on it, as their `DATABASE_URL`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// For parts that open it themselves.
    pub fn config(&self) -> DatabaseConfig {
        config(&self.url)
    }
}

impl Drop for TestDb {
    fn drop(&mut self) {
        if self.is_gone {
            return;
        }
        if std::thread::panicking() {
            eprintln!("the test's database is kept for a while: {}", self.url);
            return;
        }
        let (admin, drop_it) = (self.admin.clone(), self.drop_statement());
        let (tell, told) = mpsc::channel();
        // A runtime of its own: the test's cannot be waited for from within.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime
                .block_on(async { execute(&mut connect(&admin).await, &drop_it).await.unwrap() });
            let _ = tell.send(());
        });
        // Postgres drops no database before every session has heard of it, and one whose client does not read its answer hears nothing: a
        // process that a test has stopped, for one. The drop ends by itself then.
        let gone = told.recv_timeout(LONGEST_DROP);
        assert_ne!(
            gone,
            Err(mpsc::RecvTimeoutError::Disconnected),
            "the test's database can be dropped"
        );
    }
}

/// A server of the test's own, which it may crash; the rest of the program takes it for an external one.
pub struct PrivatePg {
    // Before the folder: it must be stopped when that goes.
    server: Option<Server>,
    options: ServerOptions,
    _place: TempDir,
}

impl PrivatePg {
    /// Empty but for a database `farescan` without tables.
    pub async fn start() -> Self {
        let place = reachable_folder();
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

    /// What the server has written to its log.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.options.home.join("postgres.log")).unwrap())
            .into_owned()
    }

    /// As `pg_ctl stop -m immediate`: sessions are cut, nothing is flushed. Returns when nobody answers any more.
    pub async fn stop_immediate(&mut self) {
        let server = self.server.as_ref().unwrap();
        rustix::process::kill_process(Pid::from_raw(server.pid()).unwrap(), Signal::QUIT).unwrap();
        let pid_file = self.options.home.join("postgres/data/postmaster.pid");
        until("the server is gone", || !pid_file.exists()).await;
    }

    /// As `pg_ctl stop -m fast`: sessions are cut, everything is flushed. Returns when nobody answers any more.
    pub async fn stop_fast(&mut self) {
        let server = self.server.as_ref().unwrap();
        rustix::process::kill_process(Pid::from_raw(server.pid()).unwrap(), Signal::INT).unwrap();
        let pid_file = self.data_dir().join("postmaster.pid");
        until("the server is gone", || !pid_file.exists()).await;
    }

    /// The server's own folder.
    pub fn data_dir(&self) -> PathBuf {
        self.options.home.join("postgres/data")
    }

    /// Gives a file to the server's user.
    pub fn give(&self, file: &Path) {
        let owner = std::fs::metadata(self.data_dir()).unwrap();
        std::os::unix::fs::chown(file, Some(owner.uid()), Some(owner.gid())).unwrap();
    }

    /// Starts it again; the URL stays.
    pub async fn restart(&mut self) {
        // The first guard goes when the second holds the lock: it does not stop the server then.
        self.server = Some(start(self.options.clone()).await);
    }
}

/// A temporary folder that the server's user can reach when root runs the test.
pub fn reachable_folder() -> TempDir {
    let permissions = std::fs::Permissions::from_mode(0o755);
    tempfile::Builder::new()
        .prefix("farescan-")
        .permissions(permissions)
        .tempdir_in("/tmp")
        .unwrap()
}

/// Waits for a condition.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = tokio::time::Instant::now() + super::PATIENCE;
    while !condition() {
        assert!(
            tokio::time::Instant::now() < end,
            "waited too long until {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub async fn connect(options: &PgConnectOptions) -> PgConnection {
    options
        .connect()
        .await
        .unwrap_or_else(|error| panic!("no connection to {options:?}: {error}"))
}

pub async fn execute(connection: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await
        .map(drop)
}

fn config(url: &str) -> DatabaseConfig {
    // Tests work with the engine's pool alone, several workers and services on one.
    DatabaseConfig {
        url: Some(url.into()),
        max_connections: 40,
        engine_connections: 20,
        ..DatabaseConfig::default()
    }
}

async fn start(options: ServerOptions) -> Server {
    tokio::task::spawn_blocking(move || Server::start(&options).unwrap())
        .await
        .unwrap()
}

/// How to connect as one who may create databases.
async fn shared_server() -> PgConnectOptions {
    // Never dropped, so never stopped: the lock goes with the process, the server stays for the next one.
    static SHARED: OnceLock<Server> = OnceLock::new();
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
        SHARED.get_or_init(|| Server::start(&options).unwrap())
    });
    shared.await.unwrap().connect_options().database("postgres")
}

/// Migrates once for all tests with the same migrations. Takes the name only when it is whole.
async fn make_template(admin: &PgConnectOptions, connection: &mut PgConnection, template: &str) {
    execute(
        connection,
        "select pg_advisory_lock(hashtext('farescan test template'))",
    )
    .await
    .unwrap();
    let exists: bool =
        sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
            .bind(template)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
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
        accept_at_once(&pool).await;
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

/// The scripted marketplace accepts any key: here its callers are accepted from the start, so that a test can order what it is about at
/// once. What a caller may do who is not accepted yet is tested without this: [`strangers`].
pub async fn accept_at_once(pool: &PgPool) {
    for statement in [
        "create or replace function accept_at_once() returns trigger language plpgsql as $$
         begin new.accepted_at := new.created_at; return new; end $$",
        "create or replace trigger accept_at_once before insert on tenants for each row execute function accept_at_once()",
    ] {
        sqlx::query(statement).execute(pool).await.unwrap();
    }
}

/// From here on callers are strangers until the marketplace accepts them, as they are in production.
pub async fn strangers(pool: &PgPool) {
    sqlx::query("drop trigger accept_at_once on tenants")
        .execute(pool)
        .await
        .unwrap();
}

fn migrations_digest() -> String {
    use sha2::{Digest, Sha256};
    let mut digest = Sha256::new();
    for migration in sqlx::migrate!("./migrations").iter() {
        digest.update(migration.version.to_be_bytes());
        digest.update(&migration.checksum);
    }
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

/// Drops what failed or killed tests left long ago, unless somebody is connected to it.
async fn drop_stale(connection: &mut PgConnection) {
    let names: Vec<String> = sqlx::query_scalar(
        "select datname::text from pg_database where datname like 'farescan\\_test\\_%' \
         and not exists (select from pg_stat_activity where pg_stat_activity.datname = pg_database.datname)",
    )
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    let oldest = seconds_now() - KEEP_SECONDS;
    for name in names {
        let born: Option<u64> = name.split('_').nth(2).and_then(|born| born.parse().ok());
        if born.is_some_and(|born| born < oldest) {
            // Another test may be at it too: whoever comes second finds nothing to drop.
            drop(execute(connection, &format!("drop database if exists {name}")).await);
        }
    }
}
