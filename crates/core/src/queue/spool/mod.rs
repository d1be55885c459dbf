//! The spool: answers on disk until the database can store them (engine.md, rules 53 to 59;
//! `docs/decisions/0011` says why it is our own).
//!
//! ```text
//!  <folder>/<installation>/<process start>.spool      locked while the process lives
//!                          <process start>.refused    answers that the database rejected
//!                          <process start>.damaged    files that could not be read whole
//! ```
//!
//! Another process adopts the file of a dead process through its lock. A record is removed only
//! after it is stored; a process that dies in between stores it twice, which recording tolerates.
//! The installation is an id in the database, so answers of one database never reach another. A
//! completed call holds no caller's key.
//!
//! Here: files and bytes, blocking ([`Spool`]), and the payload format ([`entry`]). Not here: when
//! an answer is spooled and drained (`result_writer`).

pub(super) mod entry;
mod file;
mod frame;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use file::SpoolFile;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::database_retry::{RetryError, RetryUntil, retry};

/// The most answers and bytes of a chunk.
const CHUNK_LIMITS: (usize, usize) = (100, 8 * 1024 * 1024);

/// The answers that one process has on disk.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    max_bytes: u64,
    /// This process start: the name of its files.
    name: Uuid,
    /// This process's own file, created with the first answer.
    own: Option<SpoolFile>,
    /// Files of dead processes.
    adopted: VecDeque<SpoolFile>,
}

/// Answers that were read and are still in the spool.
#[derive(Debug)]
pub(super) struct SpoolChunk {
    read: file::ReadBatch,
    own: bool,
    /// The spool holds nothing else.
    pub(super) is_last: bool,
}

impl SpoolChunk {
    /// In the order in which they were appended, without damaged ones.
    pub(super) fn payloads(&self) -> &[Vec<u8>] {
        &self.read.payloads
    }
}

/// Why there is no spool.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    #[error(
        "cannot write spool files to {folder}: {error}; set FARESCAN_SPOOL_DIR to a folder that this process may write to"
    )]
    Folder { folder: PathBuf, error: io::Error },
    #[error("no folder for spool files: set FARESCAN_SPOOL_DIR")]
    NoFolder,
    #[error("cannot read the installation id from the database: {0}")]
    Database(#[from] sqlx::Error),
}

/// Creates the folder, for this user only, and a file in it as a test. Its parent is the data
/// folder; where root runs this program, the embedded server's user needs access to that one.
///
/// # Errors
/// When the folder or a file in it cannot be created.
pub fn create_folder(folder: &Path) -> Result<(), SpoolError> {
    let above = if rustix::process::geteuid().is_root() {
        0o755
    } else {
        0o700
    };
    let created = folder.parent().map_or(Ok(()), |parent| {
        DirBuilder::new().recursive(true).mode(above).create(parent)
    });
    let created =
        created.and_then(|()| DirBuilder::new().recursive(true).mode(0o700).create(folder));
    let tried = created.and_then(|()| SpoolFile::create(folder, Uuid::now_v7())?.remove());
    tried.map_err(|error| SpoolError::Folder {
        folder: folder.to_owned(),
        error,
    })
}

impl Spool {
    /// Opens the spool of a database below `folder`; `None`: stopped before the database answered.
    ///
    /// # Errors
    /// When the folder is not writable or the database rejects the query.
    pub async fn open_for_database(
        pool: &PgPool,
        folder: &Path,
        max_bytes: u64,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, SpoolError> {
        let until = RetryUntil::Stop(stop.clone());
        let ask =
            || sqlx::query_scalar!("select installation_id from installation").fetch_one(pool);
        match retry("installation", &until, ask).await {
            Ok(number) => Self::open(folder.join(number.simple().to_string()), max_bytes).map(Some),
            Err(RetryError::Stopped) => Ok(None),
            Err(RetryError::Permanent(error)) => Err(error.into()),
        }
    }

    /// The spool in `folder` with at most `max_bytes` bytes of this process. Reads nothing yet.
    fn open(folder: PathBuf, max_bytes: u64) -> Result<Self, SpoolError> {
        create_folder(&folder)?;
        Ok(Self {
            folder,
            max_bytes,
            name: Uuid::now_v7(),
            own: None,
            adopted: VecDeque::new(),
        })
    }

    /// Appends answers and waits until they are on disk; all of them or, with an error, none.
    pub(super) fn append(&mut self, payloads: &[Vec<u8>]) -> io::Result<()> {
        let Some(records) = file::records(payloads.iter().map(Vec::as_slice)) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "answer too long for the spool",
            ));
        };
        if self.size() + records.len() as u64 > self.max_bytes {
            return Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                "the spool is full",
            ));
        }
        let own = match &mut self.own {
            Some(own) => own,
            None => self.own.insert(SpoolFile::create(&self.folder, self.name)?),
        };
        own.append(&records)
    }

    /// Appends as many of the first answers as fit; returns their number and the error of the next.
    pub(super) fn append_as_many_as_fit(
        &mut self,
        payloads: &[Vec<u8>],
    ) -> (usize, io::Result<()>) {
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

    /// Adopts the files of dead processes; returns their number.
    pub(super) fn adopt(&mut self) -> io::Result<usize> {
        let mut found = 0;
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let is_ours = self
                .own
                .iter()
                .chain(&self.adopted)
                .any(|file| file.path() == path);
            let is_spool = path
                .extension()
                .is_some_and(|extension| extension == file::NAME || extension == file::DRAFT);
            if is_ours || !is_spool {
                continue;
            }
            if let Some(file) = SpoolFile::adopt(&path)? {
                tracing::info!(file = %path.display(), bytes = file.size(), "adopted the spool file of a dead process");
                self.adopted.push_back(file);
                found += 1;
            }
        }
        Ok(found)
    }

    /// The oldest answers: those of dead processes first. `None`: there are none.
    pub(super) fn read(&mut self) -> io::Result<Option<SpoolChunk>> {
        let (own, Some(file)) = (
            self.adopted.is_empty(),
            self.adopted.front().or(self.own.as_ref()),
        ) else {
            return Ok(None);
        };
        let read = file.read(CHUNK_LIMITS.0, CHUNK_LIMITS.1)?;
        let files = self.adopted.len() + usize::from(self.own.is_some());
        Ok(Some(SpoolChunk {
            is_last: files == 1 && file.ends_with(&read),
            read,
            own,
        }))
    }

    /// Removes a chunk that is stored or quarantined; returns whether this process's own file is
    /// gone.
    pub(super) fn remove_chunk(&mut self, chunk: &SpoolChunk) -> io::Result<bool> {
        let front = if chunk.own {
            self.own.as_mut()
        } else {
            self.adopted.front_mut()
        };
        if let Some(file) = front {
            file.advance(&chunk.read);
            if file.is_drained() {
                let drained = if chunk.own {
                    self.own.take()
                } else {
                    self.adopted.pop_front()
                };
                drained.map_or(Ok(()), SpoolFile::remove)?;
            }
        }
        Ok(self.own.is_none())
    }

    /// Moves an answer that can never be stored to the `.refused` file, for inspection.
    pub(super) fn quarantine(&self, payload: &[u8]) -> io::Result<PathBuf> {
        let path = self
            .folder
            .join(self.name.simple().to_string())
            .with_extension("refused");
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)?;
        let free = self.max_bytes.saturating_sub(file.metadata()?.len());
        let record = file::records([payload]).filter(|record| record.len() as u64 <= free);
        file.write_all(&record.ok_or(io::ErrorKind::QuotaExceeded)?)?;
        file.sync_data()?;
        Ok(path)
    }

    /// Bytes on disk.
    pub(super) fn size(&self) -> u64 {
        self.own
            .iter()
            .chain(&self.adopted)
            .map(SpoolFile::size)
            .sum()
    }

    /// Whether new calls may begin: a fifth of the spool is reserved for those in flight.
    pub(super) fn has_capacity(&self) -> bool {
        self.size() < self.max_bytes / 5 * 4
    }
}
