//! Answers that the database cannot take: on disk until it can (engine.md, "Spool"; `docs/decisions/0011` says why it is our own).
//!
//! ```text
//!  <folder>/<installation>/<process start>.spool       one file for each process that needed one, locked while it lives
//!                          <process start>.refused     what the database refused for good, kept to be looked at
//!                          <process start>.damaged     what could not be read whole, the same
//! ```
//!
//! A file whose process is dead is taken over by whoever finds it, through its lock. A record is taken off only after it is stored, so a
//! death in between stores it twice, which recording makes once. The installation is a number of the database's own: answers of one
//! database are never offered to another. No caller's key is ever in it: a finished call has none.
//!
//! Here: files and bytes, blocking ([`Spool`]), and the form of a call in them ([`entry`]). Not here: when an answer goes to the spool and
//! when it is drained (`record`).

pub(super) mod entry;
mod frame;
mod log;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use log::Log;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::retry::{Failed, Until, retry};

/// The most answers and bytes that are read at a time.
const CHUNK: (usize, usize) = (100, 8 * 1024 * 1024);

/// The answers that one process holds on disk.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    bound: u64,
    /// This process start: the name of its files.
    name: Uuid,
    /// This process's own file, made when the first answer needs it.
    own: Option<Log>,
    /// Files of dead processes.
    adopted: VecDeque<Log>,
}

/// Answers that were read and are still in the spool.
#[derive(Debug)]
pub(super) struct Chunk {
    read: log::Read,
    own: bool,
}

impl Chunk {
    /// In the order in which they came; a damaged one is missing.
    pub(super) fn payloads(&self) -> &[Vec<u8>] {
        &self.read.payloads
    }
}

/// Why there is no spool.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    #[error(
        "answers cannot be kept in {folder}: {error}; set FARESCAN_SPOOL_DIR to a folder that this process may write to"
    )]
    Folder { folder: PathBuf, error: io::Error },
    #[error(
        "there is no data folder for answers that the database cannot take: set FARESCAN_SPOOL_DIR"
    )]
    NoFolder,
    #[error("the database does not know its installation: {0}")]
    Database(#[from] sqlx::Error),
}

/// Makes the folder, for this user alone, and tries whether files can be made in it. What lies above it is the data folder, which the user of an
/// embedded server has to pass through where root runs us.
///
/// # Errors
/// They cannot.
pub fn make_folder(folder: &Path) -> Result<(), SpoolError> {
    let above = if rustix::process::geteuid().is_root() {
        0o755
    } else {
        0o700
    };
    let made = folder.parent().map_or(Ok(()), |parent| {
        DirBuilder::new().recursive(true).mode(above).create(parent)
    });
    let made = made.and_then(|()| DirBuilder::new().recursive(true).mode(0o700).create(folder));
    let tried = made.and_then(|()| Log::make(folder, Uuid::now_v7())?.remove());
    tried.map_err(|error| SpoolError::Folder {
        folder: folder.to_owned(),
        error,
    })
}

impl Spool {
    /// The spool for answers of the database, below `folder`; `None`: told to stop before the database said who it is.
    ///
    /// # Errors
    /// The folder cannot be written to, or the database refuses to say.
    pub async fn of_database(
        pool: &PgPool,
        folder: &Path,
        bound: u64,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, SpoolError> {
        let until = Until::Stop(stop.clone());
        let ask =
            || sqlx::query_scalar!("select installation_id from installation").fetch_one(pool);
        match retry("installation", &until, ask).await {
            Ok(number) => Self::open(folder.join(number.simple().to_string()), bound).map(Some),
            Err(Failed::Stopped) => Ok(None),
            Err(Failed::Refused(error)) => Err(error.into()),
        }
    }

    /// The spool in `folder`, which holds at most `bound` bytes of this process. Looks at nothing yet.
    fn open(folder: PathBuf, bound: u64) -> Result<Self, SpoolError> {
        make_folder(&folder)?;
        Ok(Self {
            folder,
            bound,
            name: Uuid::now_v7(),
            own: None,
            adopted: VecDeque::new(),
        })
    }

    /// Appends answers and waits until they are on disk; all of them or, with an error, none.
    pub(super) fn append(&mut self, payloads: &[Vec<u8>]) -> io::Result<()> {
        let Some(records) = log::records(payloads.iter().map(Vec::as_slice)) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an answer is too long for the spool",
            ));
        };
        if self.size() + records.len() as u64 > self.bound {
            return Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                "the spool is full",
            ));
        }
        let own = match &mut self.own {
            Some(own) => own,
            None => self.own.insert(Log::make(&self.folder, self.name)?),
        };
        own.append(&records)
    }

    /// Appends as many of the first answers as there is room for; gives how many, and why not all.
    pub(super) fn append_most(&mut self, payloads: &[Vec<u8>]) -> (usize, io::Result<()>) {
        if self.append(payloads).is_ok() {
            return (payloads.len(), Ok(()));
        }
        for (count, payload) in payloads.iter().enumerate() {
            if let Err(error) = self.append(std::slice::from_ref(payload)) {
                return (count, Err(error));
            }
        }
        (payloads.len(), Ok(()))
    }

    /// Takes over the files of dead processes; gives how many.
    pub(super) fn adopt(&mut self) -> io::Result<usize> {
        let mut found = 0;
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let is_ours = self
                .own
                .iter()
                .chain(&self.adopted)
                .any(|log| log.path() == path);
            let is_spool = path
                .extension()
                .is_some_and(|extension| extension == log::NAME || extension == log::DRAFT);
            if is_ours || !is_spool {
                continue;
            }
            if let Some(log) = Log::adopt(&path)? {
                tracing::info!(file = %path.display(), bytes = log.size(), "the spool of a process that ended is taken over");
                self.adopted.push_back(log);
                found += 1;
            }
        }
        Ok(found)
    }

    /// The oldest answers: those of dead processes first. `None`: there are none.
    pub(super) fn read(&mut self) -> io::Result<Option<Chunk>> {
        let (own, Some(log)) = (
            self.adopted.is_empty(),
            self.adopted.front().or(self.own.as_ref()),
        ) else {
            return Ok(None);
        };
        Ok(Some(Chunk {
            read: log.read(CHUNK.0, CHUNK.1)?,
            own,
        }))
    }

    /// The answers of a chunk are stored, or set aside; gives whether nothing of this process's own is left.
    pub(super) fn take(&mut self, chunk: &Chunk) -> io::Result<bool> {
        let front = if chunk.own {
            self.own.as_mut()
        } else {
            self.adopted.front_mut()
        };
        if let Some(log) = front {
            log.take(&chunk.read);
            if log.is_drained() {
                let drained = if chunk.own {
                    self.own.take()
                } else {
                    self.adopted.pop_front()
                };
                drained.map_or(Ok(()), Log::remove)?;
            }
        }
        Ok(self.own.is_none())
    }

    /// Keeps an answer that will never be stored, for whoever wants to look at it.
    pub(super) fn set_aside(&self, payload: &[u8]) -> io::Result<PathBuf> {
        let path = self
            .folder
            .join(self.name.simple().to_string())
            .with_extension("refused");
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)?;
        let room = self.bound.saturating_sub(file.metadata()?.len());
        let record = log::records([payload]).filter(|record| record.len() as u64 <= room);
        file.write_all(&record.ok_or(io::ErrorKind::QuotaExceeded)?)?;
        file.sync_data()?;
        Ok(path)
    }

    /// Bytes on disk.
    pub(super) fn size(&self) -> u64 {
        self.own.iter().chain(&self.adopted).map(Log::size).sum()
    }

    /// Whether new calls may be begun: a fifth of the room is left for those in flight.
    pub(super) fn has_room(&self) -> bool {
        self.size() < self.bound / 5 * 4
    }
}
