//! Errors of the embedded server.

use std::io;
use std::path::{Path, PathBuf};

/// Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No suitable Postgres installation.
    #[error(
        "no PostgreSQL {oldest} or newer found (searched {searched}; {found}); {install}, \
         or set FARESCAN_PG_BIN to the folder of its programs, or set DATABASE_URL to a running server",
        oldest = super::OLDEST_MAJOR
    )]
    NoBinaries {
        /// The searched folders, as text.
        searched: String,
        /// The unsuitable installations, as text.
        found: String,
        /// How to install Postgres on this system.
        install: String,
    },

    /// No installation of the cluster's major version.
    #[error(
        "the data in {} belongs to PostgreSQL {made_by}, which is not installed ({found}); {install}, or set \
         FARESCAN_PG_BIN to the folder of its programs, or move the data away to start with an empty database",
        data.display()
    )]
    WrongVersion {
        /// The cluster's folder.
        data: PathBuf,
        /// The cluster's major version.
        made_by: u32,
        /// The unsuitable installations, as text.
        found: String,
        /// How to install Postgres on this system.
        install: String,
    },

    /// Postgres refuses to run as root, and there is no other user.
    #[error(
        "PostgreSQL does not run as root, and this system has neither a user `postgres` nor `nobody`; \
         add one, start farescan as another user, or set DATABASE_URL"
    )]
    NoServerUser,

    /// The server's user cannot enter a folder on the path to its data.
    #[error(
        "the database server runs as `{user}`, which may not enter {}; set FARESCAN_DATA_DIR to a folder that \
         every user can reach, or allow it with `chmod o+x {}`",
        folder.display(), folder.display()
    )]
    FolderNotAccessible {
        /// The server's user.
        user: String,
        /// The first inaccessible folder.
        folder: PathBuf,
    },

    /// Another user's folder: that user could read or replace the database.
    #[error(
        "{} belongs to another user or is open to others; give it to the database server's user alone, \
         or set FARESCAN_DATA_DIR to another folder", .0.display()
    )]
    ForeignFolder(PathBuf),

    /// The data folder cannot be created.
    #[error("cannot create {}: {source}; set FARESCAN_DATA_DIR to another folder", home.display())]
    NoFolder {
        /// The data folder.
        home: PathBuf,
        /// The cause.
        source: io::Error,
    },

    /// No data folder is configured, and there is no default.
    #[error("no folder for the database: HOME is not set; set FARESCAN_DATA_DIR or DATABASE_URL")]
    NoHome,

    /// Peer authentication needs a user name.
    #[error(
        "this process runs as user {0}, which has no name on this system: add it to /etc/passwd, or set DATABASE_URL"
    )]
    UnnamedUser(u32),

    /// Another process holds the start lock for too long.
    #[error("waited {seconds} s for another process that starts or stops the database ({} is locked)", lock.display())]
    Busy {
        /// The lock file.
        lock: PathBuf,
        /// The waiting time.
        seconds: u64,
    },

    /// `initdb` failed.
    #[error("initdb failed: {0}")]
    Initdb(String),

    /// The server ended at once.
    #[error("the database server did not start; {} ends with:\n{tail}", log.display())]
    Start {
        /// The log file.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },

    /// The server process does not respond.
    #[error(
        "the database server (process {pid}) does not answer on its socket; kill it and start again"
    )]
    NoAnswer {
        /// Process id of the postmaster.
        pid: i32,
    },

    /// An I/O error.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// The failed action, such as `cannot create`.
        doing: &'static str,
        /// The affected path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl EmbeddedError {
    /// For `map_err`: adds action and path.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }
}
