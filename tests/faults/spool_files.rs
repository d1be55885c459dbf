//! Reads the spool's files with an independent implementation of the format.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::worker::fixture::WorkerFixture;

/// All files with this ending below the fixture's spool folder.
pub fn files(fixture: &WorkerFixture, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![fixture.spool.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == ending)
            {
                found.push(path);
            }
        }
    }
    found
}

/// How many complete records the files hold.
pub fn count(fixture: &WorkerFixture) -> usize {
    files(fixture, "spool")
        .iter()
        .map(|path| records(path))
        .sum()
}

fn records(path: &Path) -> usize {
    // A drained file may have been removed meanwhile.
    let bytes = std::fs::read(path).unwrap_or_default();
    let (mut rest, mut count) = (bytes.get(16..).unwrap_or_default(), 0);
    while let Some((head, behind)) = rest.split_first_chunk::<12>() {
        let length = u32::from_le_bytes(*head.first_chunk().unwrap()) as usize;
        let Some(next) = behind.get(length..) else {
            break;
        };
        (rest, count) = (next, count + 1);
    }
    count
}

/// Waits until the files hold this many records.
pub async fn wait_for(fixture: &WorkerFixture, records: usize) {
    for _ in 0..6_000 {
        if count(fixture) == records {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} answers are spooled, not {records}", count(fixture));
}
