//! A Postgres of the program's own: found on the machine, made, started, adopted and stopped without an operator.
//!
//! It is the same database as in production, kept private: a unix socket in a folder that only its user may enter,
//! no port, fsync on. Any number of processes share one server:
//!
//! ```text
//! home/                  0755 and root's when root runs us, else 0700
//!   start.lock           exclusive while a server is started or stopped
//!   use.lock             shared while in use: who gets it exclusively is the last one and stops the server
//!   postgres.log
//!   pg_hba.conf pg_ident.conf   who may connect: the operator's user
//!   postgres/            0700, the server's user
//!     data/  data.new/   a cluster is made beside its place and renamed into it
//!     run/               the socket (in /tmp when the path is too long for one)
//! ```
//!
//! A process that is killed leaves its server running; the next start finds it by its pid file and adopts it. Locks
//! die with their processes, so nothing has to be cleaned up by hand.
//!
//! Everything here blocks and takes no runtime; `crate::db` calls it from a blocking thread. What is *not* here: the
//! schema, connections, and watching the server: a postmaster restarts its own children.

#![expect(
    clippy::disallowed_methods,
    reason = "blocks by design, on a thread that is made for it"
)]

mod access;
mod account;
mod binaries;
mod cluster;
mod error;
mod folders;
mod install;
mod lock;
mod postmaster;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgSslMode};

pub use error::EmbeddedError;
pub use folders::default_home;

use account::Account;
use binaries::ProgramFile;
use folders::Folders;
use lock::Lock;

/// The oldest Postgres that the statements of this program run on.
pub const OLDEST_MAJOR: u32 = 15;

/// The only role of an embedded cluster.
const ROLE: &str = "farescan";

/// Names the socket file, `.s.PGSQL.5432`; nothing listens on a port.
const PORT: u16 = 5432;

/// How long one process waits while another starts or stops the server.
const LOCK_PATIENCE: Duration = Duration::from_secs(120);

/// Whether committed data survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// fsync on: for everything that is worth keeping.
    Full,
    /// fsync off: for tests, which only have to survive killed processes.
    Scratch,
}

/// Which server to run.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The folder of everything, made when missing; processes with the same folder share a server.
    pub home: PathBuf,
    /// The folder with `postgres` and `initdb`; `None`: searched.
    pub pg_bin: Option<PathBuf>,
    /// Whether the data must outlive the machine's power.
    pub durability: Durability,
}

/// How the server came to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The folder was empty: the cluster was made and started.
    Created,
    /// The cluster was there and is started.
    Started,
    /// The server ran already: another process uses it, or was killed.
    Adopted,
}

/// What became of the wish to restart a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It was stopped and started.
    Restarted,
    /// Another process has restarted it.
    ByAnother,
    /// A process that uses it has not agreed; this one has from now on.
    Objected,
}

/// A running server in use by this process. Dropping it gives the server up and, as the last user, stops it.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    folders: Folders,
    /// The program file that was looked at last, and the version that it said.
    seen: Option<(ProgramFile, String)>,
    origin: Origin,
    socket_dir: PathBuf,
    pid: i32,
    in_use: Lock,
}

impl Server {
    /// Starts or adopts the server of the folder. Blocks: up to a second for a new cluster, about 0.1 s otherwise,
    /// longer while another process is at it or after a crash.
    ///
    /// # Errors
    /// Each says what mends it: no programs, data of another major version, a folder out of reach, a server that
    /// would not start (with the end of its log). No server and no lock is left behind then.
    pub fn start(options: &ServerOptions) -> Result<Self, EmbeddedError> {
        let begun = Instant::now();
        let folders = Folders::make(&options.home)?;
        let starting = Lock::exclusive(&folders.start_lock, LOCK_PATIENCE)?;
        let account = Account::of_server(&folders)?;
        folders.make_for(account.as_ref())?;
        let (origin, running) = cluster::run(&folders, account.as_ref(), options)?;
        // Taken before the start lock is given back: whoever stops next must find this process using the server.
        let in_use = Lock::shared(&folders.use_lock)?;
        drop(starting);
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(?origin, pid = running.pid, home = %folders.home.display(), took_ms, "embedded Postgres is up");
        let options = options.clone();
        Ok(Self {
            options,
            folders,
            seen: None,
            origin,
            socket_dir: running.socket_dir,
            pid: running.pid,
            in_use,
        })
    }

    /// The folder of everything, absolute.
    pub fn home(&self) -> &Path {
        &self.folders.home
    }

    /// How the server came to run.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The postmaster's process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The folder of the socket.
    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    /// How to connect; the database is left to the caller. `PG…` variables of the environment have no say.
    pub fn connect_options(&self) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .socket(&self.socket_dir)
            .port(PORT)
            .username(ROLE)
            .ssl_mode(PgSslMode::Disable)
    }

    /// The version of the programs that a start would use now. They are asked only when their file is another one than before.
    ///
    /// # Errors
    /// There are none that fit.
    pub fn installed_version(&mut self) -> Result<String, EmbeddedError> {
        if let Some((file, version)) = &self.seen
            && file.is_as_it_was()
        {
            return Ok(version.clone());
        }
        let binaries = cluster::find(&self.folders, &self.options)?;
        self.seen = ProgramFile::at(binaries.program("postgres"))
            .map(|file| (file, binaries.version.clone()));
        Ok(binaries.version)
    }

    /// Restarts the server with the files that are there now, unless another process uses it that has not agreed. Asking is agreeing: until
    /// [`Self::rejoin`], or a restart, this process does not object to others'. To be asked again while somebody objects.
    ///
    /// # Errors
    /// No programs that fit, in which case it goes on running; or the server does not stop, or not start.
    pub fn renew(&mut self) -> Result<Renewal, EmbeddedError> {
        let _starting = Lock::exclusive(&self.folders.start_lock, LOCK_PATIENCE)?;
        let is_the_same = postmaster::is_ready(&self.folders.data, self.pid)?;
        if is_the_same {
            // Before anything is stopped: after an upgrade to another major version nothing could start it again.
            cluster::find(&self.folders, &self.options)?;
            if !self.in_use.is_last()? {
                return Ok(Renewal::Objected);
            }
            // Held alone until now: whoever starts next must not wait for what fails below.
            self.in_use.rejoin()?;
            postmaster::stop(&self.folders.data)?;
        }
        self.run_and_use()?;
        Ok(if is_the_same {
            Renewal::Restarted
        } else {
            Renewal::ByAnother
        })
    }

    /// Objects again to restarts by others.
    ///
    /// # Errors
    /// The server is gone and does not start.
    pub fn rejoin(&mut self) -> Result<(), EmbeddedError> {
        let _starting = Lock::exclusive(&self.folders.start_lock, LOCK_PATIENCE)?;
        self.run_and_use()
    }

    /// The caller holds the start lock.
    fn run_and_use(&mut self) -> Result<(), EmbeddedError> {
        let account = Account::of_server(&self.folders)?;
        self.folders.make_for(account.as_ref())?;
        let (_, running) = cluster::run(&self.folders, account.as_ref(), &self.options)?;
        (self.pid, self.socket_dir) = (running.pid, running.socket_dir);
        self.in_use.rejoin()
    }

    fn give_up(&self) -> Result<(), EmbeddedError> {
        let _stopping = Lock::exclusive(&self.folders.start_lock, LOCK_PATIENCE)?;
        if self.in_use.is_last()? {
            postmaster::stop(&self.folders.data)?;
            self.folders.clear_temporary();
            tracing::info!(home = %self.folders.home.display(), "embedded Postgres is stopped");
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.give_up() {
            tracing::warn!(%error, "the embedded Postgres was left running");
        }
    }
}
