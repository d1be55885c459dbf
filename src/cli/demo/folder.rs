//! Where a demo keeps its database: a folder that no other demo uses.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::cli::Failure;

/// Demos that run at the same time from one data folder.
const MOST: u32 = 9;

/// A folder, held by a lock until this is dropped or the process ends.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    _lock: File,
}

/// The first folder in `demos` that no other process has: a demo that is run again finds the database that it made before.
///
/// # Errors
/// The folder cannot be made or written to, or all are in use.
pub fn take(demos: &Path) -> Result<Folder, Failure> {
    let unusable = |error| {
        format!(
            "the demo cannot keep its database in {}: {error}; set FARESCAN_DATA_DIR to another folder",
            demos.display()
        )
    };
    // The database server's user has to pass through root's folder; a user's own is closed to others.
    let mode = if rustix::process::geteuid().is_root() {
        0o755
    } else {
        0o700
    };
    DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(demos)
        .map_err(unusable)?;
    for number in 1..=MOST {
        let lock = demos.join(format!("{number}.lock"));
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(lock)
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {
                return Ok(Folder {
                    path: demos.join(number.to_string()),
                    _lock: lock,
                });
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(unusable(error).into()),
        }
    }
    Err(format!(
        "{MOST} demos are running in {} already: end one of them, or set FARESCAN_DATA_DIR to another folder",
        demos.display()
    )
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_demo_has_a_folder_of_its_own_and_the_next_one_the_first_free() {
        let place = tempfile::tempdir().unwrap();
        let demos = place.path().join("demos");
        let first = take(&demos).unwrap();
        let second = take(&demos).unwrap();
        assert_eq!(
            (first.path.clone(), second.path.clone()),
            (demos.join("1"), demos.join("2"))
        );
        drop(first);
        let all: Vec<_> = (1..MOST).map(|_| take(&demos).unwrap()).collect();
        assert_eq!(all[0].path, demos.join("1"));
        let refused = take(&demos).unwrap_err().to_string();
        assert!(
            refused.starts_with("9 demos are running in ") && refused.contains("FARESCAN_DATA_DIR"),
            "{refused}"
        );
        drop(second);
        assert_eq!(take(&demos).unwrap().path, demos.join("2"));
    }
}
