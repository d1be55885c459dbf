//! The spool's files as a stranger reads them: an implementation of the format of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::worker::stage::Stage;

/// All files with this ending below the stage's spool folder.
pub fn files(stage: &Stage, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![stage.spool.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == ending) {
                found.push(path);
            }
        }
    }
    found
}

/// How many whole records stand in the files.
pub fn count(stage: &Stage) -> usize {
    files(stage, "spool").iter().map(|path| records(path)).sum()
}

fn records(path: &Path) -> usize {
    // A file that was drained meanwhile is gone.
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

/// Waits until so many records stand in the files.
pub async fn wait_for(stage: &Stage, records: usize) {
    for _ in 0..6_000 {
        if count(stage) == records {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} answers are spooled, not {records}", count(stage));
}
