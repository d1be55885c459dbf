//! A private Postgres: found, created, started, adopted and stopped without an operator.
//!
//! It works as in production, but is private: a unix socket in a folder that only its user may
//! enter, no port, fsync on. Any number of processes share one server:
//!
//! ```text
//! home/                  0755 and owned by root if root runs us, else 0700
//!   start.lock           exclusive while a server is started or stopped
//!   use.lock             shared while in use: the last process gets it exclusively
//!   postgres.log
//!   pg_hba.conf pg_ident.conf   who may connect: the operator's user
//!   postgres/            0700, the server's user
//!     data/  data.new/   a cluster is created as data.new and renamed
//!     run/               the socket (in /tmp when the path is too long for one)
//! ```
//!
//! The server survives a killed process; the next start finds its pid file and adopts it. File
//! locks end with their process, so nothing needs manual cleanup.
//!
//! All functions block and need no runtime; `crate::db` calls them from a blocking thread. Schema
//! and connections are in `crate::db`. No supervision: a postmaster restarts its own children.

#![expect(
    clippy::disallowed_methods,
    reason = "blocks by design, on a thread that is made for it"
)]

mod access;
mod binaries;
mod cluster;
mod error;
mod folders;
mod install;
mod lock;
mod postmaster;
mod server_user;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgSslMode};

pub use error::EmbeddedError;
pub use folders::default_home;

use binaries::ProgramFile;
use folders::Folders;
use lock::Lock;
use server_user::ServerUser;

/// The oldest supported Postgres.
pub const OLDEST_MAJOR: u32 = 15;

/// The only role of an embedded cluster.
const ROLE: &str = "farescan";

/// Part of the socket's name, `.s.PGSQL.5432`; no port is open.
const PORT: u16 = 5432;

/// How long a process waits while another one starts or stops the server.
const LOCK_PATIENCE: Duration = Duration::from_secs(120);

/// Whether committed data survives a power failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// fsync on.
    Full,
    /// fsync off: for tests, which only kill processes.
    Scratch,
}

/// Where and how to run a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Root folder, created if missing. Processes with the same folder share a server.
    pub home: PathBuf,
    /// Folder with `postgres` and `initdb`; searched if `None`.
    pub pg_bin: Option<PathBuf>,
    pub durability: Durability,
}

/// How `start` obtained the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Created the cluster and started the server.
    Created,
    /// Started the server of an existing cluster.
    Started,
    /// The server was running: another process uses it, or was killed.
    Adopted,
}

/// Result of a restart request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartOutcome {
    /// This process restarted the server.
    Restarted,
    /// Another process restarted it.
    RestartedByAnother,
    /// Another process has not agreed yet; this one has.
    Blocked,
}

/// A running server that this process uses. On drop, the last user stops it.
#[derive(Debug)]
pub struct EmbeddedServer {
    options: ServerOptions,
    folders: Folders,
    /// The last checked program file and its version.
    checked_program: Option<(ProgramFile, String)>,
    origin: Origin,
    socket_dir: PathBuf,
    pid: i32,
    in_use: Lock,
}

impl EmbeddedServer {
    /// Starts or adopts the server of the folder. Blocks up to a second for a new cluster,
    /// otherwise about 0.1 s; longer after a crash or while another process starts or stops the
    /// server.
    ///
    /// # Errors
    /// No programs, data of another major version, an inaccessible folder, or a server that does
    /// not start (with the end of its log). Leaves neither server nor lock behind.
    pub fn start(options: &ServerOptions) -> Result<Self, EmbeddedError> {
        let begun = Instant::now();
        let folders = Folders::make(&options.home)?;
        let starting = Lock::exclusive(&folders.start_lock, LOCK_PATIENCE)?;
        let user = ServerUser::of_server(&folders.data)?;
        folders.make_for(user.as_ref())?;
        let (origin, running) = cluster::run(&folders, user.as_ref(), options)?;
        // Taken while the start lock is held, so that no other process stops the server in between.
        let in_use = Lock::shared(&folders.use_lock)?;
        drop(starting);
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(?origin, pid = running.pid, home = %folders.home.display(), took_ms, "embedded Postgres started");
        let options = options.clone();
        Ok(Self {
            options,
            folders,
            checked_program: None,
            origin,
            socket_dir: running.socket_dir,
            pid: running.pid,
            in_use,
        })
    }

    /// Root folder, absolute.
    pub fn home(&self) -> &Path {
        &self.folders.home
    }

    /// How the server was obtained.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Process id of the postmaster.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Folder of the socket.
    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    /// Connect options without a database. Ignores `PG…` environment variables.
    pub fn connect_options(&self) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .socket(&self.socket_dir)
            .port(PORT)
            .username(ROLE)
            .ssl_mode(PgSslMode::Disable)
    }

    /// Version of the programs that a start would use now. Runs them only if their file has
    /// changed.
    pub fn installed_version(&mut self) -> Result<String, EmbeddedError> {
        if let Some((file, version)) = &self.checked_program
            && file.is_unchanged()
        {
            return Ok(version.clone());
        }
        let binaries = cluster::find(&self.folders, &self.options)?;
        self.checked_program = ProgramFile::at(binaries.program("postgres"))
            .map(|file| (file, binaries.version.clone()));
        Ok(binaries.version)
    }

    /// Restarts the server with the installed files, unless another process that uses it has not
    /// agreed. The call itself is this process's consent, until [`Self::rejoin`] or a restart.
    /// Repeat it while blocked.
    ///
    /// # Errors
    /// No suitable programs (the server keeps running), or the server does not stop or start.
    pub fn restart(&mut self) -> Result<RestartOutcome, EmbeddedError> {
        let _starting = Lock::exclusive(&self.folders.start_lock, LOCK_PATIENCE)?;
        let is_the_same = postmaster::is_ready(&self.folders.data, self.pid)?;
        if is_the_same {
            // Check before stopping: after an upgrade to another major version nothing could start
            // the server.
            cluster::find(&self.folders, &self.options)?;
            if !self.in_use.is_last()? {
                return Ok(RestartOutcome::Blocked);
            }
            // Shared again, so that a failure below does not block other processes.
            self.in_use.rejoin()?;
            postmaster::stop(&self.folders.data)?;
        }
        self.run_and_use()?;
        Ok(if is_the_same {
            RestartOutcome::Restarted
        } else {
            RestartOutcome::RestartedByAnother
        })
    }

    /// Withdraws the consent to restarts.
    pub fn rejoin(&mut self) -> Result<(), EmbeddedError> {
        let _starting = Lock::exclusive(&self.folders.start_lock, LOCK_PATIENCE)?;
        self.run_and_use()
    }

    /// The caller holds the start lock.
    fn run_and_use(&mut self) -> Result<(), EmbeddedError> {
        let user = ServerUser::of_server(&self.folders.data)?;
        self.folders.make_for(user.as_ref())?;
        let (_, running) = cluster::run(&self.folders, user.as_ref(), &self.options)?;
        (self.pid, self.socket_dir) = (running.pid, running.socket_dir);
        self.in_use.rejoin()
    }

    fn release(&self) -> Result<(), EmbeddedError> {
        let _stopping = Lock::exclusive(&self.folders.start_lock, LOCK_PATIENCE)?;
        if self.in_use.is_last()? {
            postmaster::stop(&self.folders.data)?;
            self.folders.clear_temporary();
            tracing::info!(home = %self.folders.home.display(), "embedded Postgres stopped");
        }
        Ok(())
    }
}

impl Drop for EmbeddedServer {
    fn drop(&mut self) {
        if let Err(error) = self.release() {
            tracing::warn!(%error, "failed to stop the embedded Postgres");
        }
    }
}
