//! File locks between processes. The kernel releases them when a process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::EmbeddedError;

const POLL: Duration = Duration::from_millis(10);

/// A lock in use.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Waits for the lock, at most `patience`.
    pub(super) fn exclusive(path: &Path, patience: Duration) -> Result<Self, EmbeddedError> {
        let file = open(path)?;
        let deadline = Instant::now() + patience;
        // The blocking call has no timeout.
        loop {
            match file.try_lock() {
                Ok(()) => {
                    return Ok(Self {
                        file,
                        path: path.to_owned(),
                    });
                }
                Err(TryLockError::Error(error)) => {
                    return Err(EmbeddedError::io("cannot lock", path)(error));
                }
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(EmbeddedError::Busy {
                        lock: path.to_owned(),
                        seconds: patience.as_secs(),
                    });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(POLL),
            }
        }
    }

    /// Shares the lock. Only `is_last` locks exclusively, briefly and under the start lock.
    pub(super) fn shared(path: &Path) -> Result<Self, EmbeddedError> {
        let file = open(path)?;
        file.lock_shared()
            .map_err(EmbeddedError::io("cannot lock", path))?;
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    /// Releases a shared lock and returns whether no other process holds it. The caller holds the
    /// start lock, so that no process can join meanwhile.
    pub(super) fn is_last(&self) -> Result<bool, EmbeddedError> {
        self.file
            .unlock()
            .map_err(EmbeddedError::io("cannot unlock", &self.path))?;
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => {
                Err(EmbeddedError::io("cannot lock", &self.path)(error))
            }
        }
    }

    /// Shares the lock again after [`Self::is_last`]. The caller holds the start lock.
    pub(super) fn rejoin(&self) -> Result<(), EmbeddedError> {
        self.file
            .lock_shared()
            .map_err(EmbeddedError::io("cannot lock", &self.path))
    }
}

fn open(path: &Path) -> Result<File, EmbeddedError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(EmbeddedError::io("cannot open", path))
}
