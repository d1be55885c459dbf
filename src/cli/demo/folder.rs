//! The folder of a demo's database, used by one demo at a time.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use farescan_client::Failure;

/// Concurrent demos in one data folder.
const MAX_DEMOS: u32 = 9;

/// A folder, locked until this value is dropped or the process ends.
#[derive(Debug)]
pub struct DemoFolder {
    pub path: PathBuf,
    _lock: File,
}

/// Locks the first free folder in `demos`, so that a later demo reuses the database.
///
/// # Errors
/// The folder cannot be created or written to, or all are in use.
pub fn acquire(demos: &Path) -> Result<DemoFolder, Failure> {
    let unusable = |error| {
        format!(
            "the demo cannot create its database in {}: {error}; set FARESCAN_DATA_DIR to another folder",
            demos.display()
        )
    };
    // As root, the database server runs as another user, which must enter the folder.
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
    for number in 1..=MAX_DEMOS {
        let lock = demos.join(format!("{number}.lock"));
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(lock)
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {
                return Ok(DemoFolder {
                    path: demos.join(number.to_string()),
                    _lock: lock,
                });
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(unusable(error).into()),
        }
    }
    Err(format!(
        "{MAX_DEMOS} demos are running in {}: stop one of them, or set FARESCAN_DATA_DIR to another folder",
        demos.display()
    )
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_demo_gets_the_first_free_folder() {
        let dir = tempfile::tempdir().unwrap();
        let demos = dir.path().join("demos");
        let first = acquire(&demos).unwrap();
        let second = acquire(&demos).unwrap();
        assert_eq!(
            (first.path.clone(), second.path.clone()),
            (demos.join("1"), demos.join("2"))
        );
        drop(first);
        let all: Vec<_> = (1..MAX_DEMOS).map(|_| acquire(&demos).unwrap()).collect();
        assert_eq!(all[0].path, demos.join("1"));
        let refused = acquire(&demos).unwrap_err().to_string();
        assert!(
            refused.starts_with("9 demos are running in ") && refused.contains("FARESCAN_DATA_DIR"),
            "{refused}"
        );
        drop(second);
        assert_eq!(acquire(&demos).unwrap().path, demos.join("2"));
    }
}
