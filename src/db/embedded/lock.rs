//! Locks between processes. The kernel drops them with their process, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::EmbeddedError;

const POLL: Duration = Duration::from_millis(10);

/// A held lock.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Waits until nobody else holds the lock, at most `patience`.
    pub(super) fn exclusive(path: &Path, patience: Duration) -> Result<Self, EmbeddedError> {
        let file = open(path)?;
        let give_up = Instant::now() + patience;
        // Polled, since the blocking call has no end of its own.
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
                Err(TryLockError::WouldBlock) if Instant::now() >= give_up => {
                    return Err(EmbeddedError::Busy {
                        lock: path.to_owned(),
                        seconds: patience.as_secs(),
                    });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(POLL),
            }
        }
    }

    /// Joins the other holders. Only `is_last` takes this lock exclusively, for a moment and under the start lock.
    pub(super) fn shared(path: &Path) -> Result<Self, EmbeddedError> {
        let file = open(path)?;
        file.lock_shared()
            .map_err(EmbeddedError::io("cannot lock", path))?;
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    /// Gives a shared lock up and tells whether nobody else holds it. The caller holds the start lock, so that no
    /// one can join between the answer and what is done with it.
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

    /// Joins the other holders again after [`Self::is_last`]. The caller holds the start lock.
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
