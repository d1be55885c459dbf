//! Why the embedded server cannot run, and what the reader should do about it.

use std::io;
use std::path::{Path, PathBuf};

/// Each text ends with what mends it.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No usable Postgres on this machine.
    #[error(
        "no PostgreSQL {oldest} or newer was found (looked in {looked}; {found}); install it with `{install}`, \
         or name the folder of its programs in FARESCAN_PG_BIN, or set DATABASE_URL to a running server",
        oldest = super::OLDEST_MAJOR
    )]
    NoBinaries {
        /// Where was searched, for reading.
        looked: String,
        /// What there is instead, for reading.
        found: String,
        /// One line for this system's shell.
        install: String,
    },

    /// Data files are readable by their own major version only.
    #[error(
        "the data in {} belongs to PostgreSQL {made_by}, but {found}; install it with `{install}`, or name the folder \
         of its programs in FARESCAN_PG_BIN, or move the data away to begin with an empty database",
        data.display()
    )]
    WrongVersion {
        /// The cluster's folder.
        data: PathBuf,
        /// The major version of its files.
        made_by: u32,
        /// What there is instead, for reading.
        found: String,
        /// One line for this system's shell.
        install: String,
    },

    /// Postgres refuses to run as root, and there is nobody else.
    #[error(
        "PostgreSQL does not run as root, and this system has neither a user `postgres` nor `nobody`; \
         add one, start farescan as another user, or set DATABASE_URL"
    )]
    NoAccount,

    /// The server's user cannot enter a folder on the way to its data.
    #[error(
        "the database server runs as `{user}`, who may not enter {}; set FARESCAN_DATA_DIR to a folder that \
         every user can reach, or allow it with `chmod o+x {}`",
        folder.display(), folder.display()
    )]
    OutOfReach {
        /// Whom the server would run as.
        user: String,
        /// The first folder that is closed.
        folder: PathBuf,
    },

    /// Somebody else's folder: using it would hand them the database.
    #[error(
        "{} belongs to another user or is open to others; give it to the database server's user alone, \
         or set FARESCAN_DATA_DIR to another folder", .0.display()
    )]
    NotOurs(PathBuf),

    /// No data folder was named and none can be derived.
    #[error("there is no HOME to keep the database in; set FARESCAN_DATA_DIR or DATABASE_URL")]
    NoHome,

    /// The server tells users by their names.
    #[error(
        "this process runs as user {0}, which has no name on this system: add it to /etc/passwd, or set DATABASE_URL"
    )]
    NoName(u32),

    /// Another process starts or stops the server, and does not end.
    #[error("waited {seconds} s for another process that starts or stops the database ({} is locked)", lock.display())]
    Busy {
        /// The lock file.
        lock: PathBuf,
        /// How long was waited.
        seconds: u64,
    },

    /// `initdb` failed.
    #[error("the database could not be made: {0}")]
    Initdb(String),

    /// The server ended at once; the text is the end of its log.
    #[error("the database server did not start; {} ends with:\n{tail}", log.display())]
    Start {
        /// The log file.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },

    /// A server process lives and does not answer.
    #[error(
        "the database server (process {pid}) does not answer on its socket; end it and start again"
    )]
    NoAnswer {
        /// The postmaster.
        pid: i32,
    },

    /// Everything else: the file system.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was being done, such as `cannot make`.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl EmbeddedError {
    /// For `map_err`: names what was done to which path.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }
}
