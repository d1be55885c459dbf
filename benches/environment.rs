//! The program as a user runs it: the embedded Postgres in a temporary folder, `farescan serve` and
//! `farescan worker` as processes.

use std::fs::{self, File, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use farescan::config::DatabaseConfig;
use farescan::db::{self, Database};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sqlx::PgPool;
use tempfile::TempDir;
use tokio::time::sleep;

use super::Res;
use super::meter::ProcessSet;
use super::parent::ending_with_parent;

/// How often a condition is polled.
const POLL: Duration = Duration::from_millis(10);
/// The most polls of a condition: two minutes.
const MAX_POLLS: usize = 12_000;

/// A folder with a running, migrated Postgres.
pub struct BenchEnvironment {
    database: Database,
    postmaster: u32,
    folder: TempDir,
}

impl BenchEnvironment {
    /// Created as the program does it, in `FARESCAN_BENCH_DIR` or the temporary folder. Fails if
    /// commits are not durable.
    pub async fn new() -> Res<Self> {
        let parent =
            std::env::var_os("FARESCAN_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        // The server's user must be able to reach it when root runs this.
        let folder = tempfile::Builder::new()
            .prefix("farescan-bench-")
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in(parent)?;
        let home = folder.path().join("data");
        let database = Database::open(&DatabaseConfig {
            data_dir: Some(home.clone()),
            ..DatabaseConfig::default()
        })
        .await?;
        db::migrate(database.pool()).await?;
        for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
            let value: String = sqlx::query_scalar("select current_setting($1)")
                .bind(setting)
                .fetch_one(database.pool())
                .await?;
            if value != "on" {
                return Err(format!("{setting} is {value}: commits are not durable").into());
            }
        }
        let pid_file = fs::read_to_string(home.join("postgres/data/postmaster.pid"))?;
        let postmaster = pid_file.lines().next().unwrap_or_default().trim().parse()?;
        Ok(Self {
            database,
            postmaster,
            folder,
        })
    }

    pub fn pool(&self) -> &PgPool {
        self.database.pool()
    }

    /// All processes of its Postgres.
    pub fn postgres(&self) -> ProcessSet {
        ProcessSet::Tree(self.postmaster)
    }

    /// Starts `farescan serve` without a worker.
    pub fn serve(&self, upstream: &str) -> Res<Program> {
        self.serve_with(upstream, &[])
    }

    /// The same with more settings.
    pub fn serve_with(&self, upstream: &str, settings: &[(&str, String)]) -> Res<Program> {
        self.start(
            &[
                "serve",
                "--no-worker",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ],
            upstream,
            settings,
        )
    }

    /// Starts `farescan worker` with this many concurrent calls.
    pub fn worker(&self, upstream: &str, concurrency: u32) -> Res<Program> {
        let settings = [("FARESCAN_WORKER_CONCURRENCY", concurrency.to_string())];
        self.start(
            &["worker", "--admin-listen", "127.0.0.1:0"],
            upstream,
            &settings,
        )
    }

    fn start(&self, command: &[&str], upstream: &str, settings: &[(&str, String)]) -> Res<Program> {
        let log = self.folder.path().join(format!("{}.log", command[0]));
        let child = ending_with_parent(&program())
            .args(command)
            .env_clear()
            .envs(
                ["PATH", "HOME", "LANG"]
                    .iter()
                    .filter_map(|name| Some((*name, std::env::var_os(name)?))),
            )
            .env("FARESCAN_DATA_DIR", self.folder.path().join("data"))
            .env("FARESCAN_FLIGHTS_URL", upstream)
            .env("FARESCAN_HOTELS_URL", upstream)
            .env("FARESCAN_FLIGHTS_PER_MINUTE", "60000")
            .env("FARESCAN_HOTELS_PER_MINUTE", "60000")
            .env("FARESCAN_MAX_IN_FLIGHT", "1000")
            .env("FARESCAN_LOG_FORMAT", "json")
            .envs(settings.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        Ok(Program { child, log })
    }

    /// Stops Postgres; call it after the programs have ended.
    pub async fn close(self) {
        self.database.close().await;
    }

    /// A folder for other files of a bench.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// The program of this build, or another build for comparison.
fn program() -> PathBuf {
    std::env::var_os("FARESCAN_BENCH_PROGRAM")
        .map_or_else(|| env!("CARGO_BIN_EXE_farescan").into(), PathBuf::from)
}

/// A process of the program; killed when dropped.
pub struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the log line `listening`; returns the API's address if it has one.
    pub async fn listening(&mut self) -> Res<Option<SocketAddr>> {
        for _ in 0..MAX_POLLS {
            let log = fs::read_to_string(&self.log)?;
            let mut lines = log
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            if let Some(line) = lines.find(|line| line["message"] == "listening") {
                return Ok(line["address"].as_str().map(str::parse).transpose()?);
            }
            if self.child.try_wait()?.is_some() {
                break;
            }
            sleep(POLL).await;
        }
        Err(format!(
            "the program does not start: {}",
            fs::read_to_string(&self.log)?
        )
        .into())
    }

    /// Sends SIGTERM and waits for the end of the process.
    pub async fn stop(mut self) -> Res<()> {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            kill_process(pid, Signal::TERM)?;
        }
        for _ in 0..MAX_POLLS {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            sleep(POLL).await;
        }
        Err("the program does not end".into())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
