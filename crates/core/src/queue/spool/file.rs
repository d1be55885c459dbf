//! One file of the spool: locked by its process, appended and synced at the end, read from the
//! front.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::frame::{self, HEADER_LEN, MAGIC, RecordHeader};

/// Bytes before the first record.
const MAGIC_LEN: u64 = MAGIC.len() as u64;
/// Extension of a file that is being created: it is renamed once it is locked, so that no process
/// adopts it.
pub(super) const DRAFT: &str = "new";
/// How many drafts are created before their removal by other processes is an error.
const MAX_DRAFTS: u32 = 10;
/// Extension of a file with records.
pub(super) const NAME: &str = "spool";
/// Extension of a file that could not be read whole, for inspection.
const DAMAGED: &str = "damaged";

/// A file with records, locked until it is dropped. The kernel releases the lock when the process
/// ends, however it ends.
#[derive(Debug)]
pub(super) struct SpoolFile {
    file: File,
    path: PathBuf,
    /// Where the next record starts; a torn record may follow.
    end: u64,
    /// The records before this offset are stored elsewhere.
    consumed: u64,
    /// Part of it could not be read.
    damaged: bool,
}

/// Records read from the front of a file.
#[derive(Debug, Default)]
pub(super) struct ReadBatch {
    pub(super) payloads: Vec<Vec<u8>>,
    /// The offset after the last of them.
    end: u64,
    damaged: bool,
}

impl SpoolFile {
    /// Creates an empty file in `folder`.
    ///
    /// Before a draft is locked another process may remove it as a dead process's; then this tries
    /// another draft with a new name, because removal goes by name.
    pub(super) fn create(folder: &Path, name: Uuid) -> io::Result<Self> {
        let path = folder.join(name.simple().to_string()).with_extension(NAME);
        let mut tries = 0..MAX_DRAFTS;
        loop {
            tries.next();
            let draft = folder
                .join(Uuid::now_v7().simple().to_string())
                .with_extension(DRAFT);
            match Self::create_from_draft(&draft, &path) {
                Ok(file) => return Ok(file),
                Err(error) => {
                    // The draft may not exist.
                    drop(std::fs::remove_file(&draft));
                    let removed_by_other = matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::WouldBlock
                    );
                    if !removed_by_other || tries.is_empty() {
                        return Err(error);
                    }
                }
            }
        }
    }

    fn create_from_draft(draft: &Path, path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(draft)?;
        file.try_lock()?;
        file.write_all_at(MAGIC, 0)?;
        file.sync_all()?;
        std::fs::rename(draft, path)?;
        if let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            end: MAGIC_LEN,
            consumed: MAGIC_LEN,
            damaged: false,
        })
    }

    /// Adopts a file whose process is dead; `None`: the process lives, the file is gone, or another
    /// version of this program wrote it.
    pub(super) fn adopt(path: &Path) -> io::Result<Option<Self>> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let found = file.metadata()?;
        if found.nlink() == 0 {
            return Ok(None); // Another process adopted it and removed it.
        }
        if path.extension().is_some_and(|extension| extension == DRAFT) {
            // Its creator may have removed it too.
            return match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(None),
            };
        }
        let mut magic = [0; MAGIC.len()];
        if found.len() < MAGIC_LEN || file.read_exact_at(&mut magic, 0).is_err() || magic != *MAGIC
        {
            return Ok(None);
        }
        Ok(Some(Self {
            file,
            path: path.to_owned(),
            end: found.len(),
            consumed: MAGIC_LEN,
            damaged: false,
        }))
    }

    /// Bytes on disk.
    pub(super) fn size(&self) -> u64 {
        self.end
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends records and waits until they are on disk; all of them or, with an error, none.
    pub(super) fn append(&mut self, records: &[u8]) -> io::Result<()> {
        let written = self
            .file
            .write_all_at(records, self.end)
            .and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => self.end += records.len() as u64,
            // The next append overwrites what follows the end. Until then a reader may see a whole
            // record that was not synced: this process still has it too, and storing a record twice
            // is harmless.
            Err(_) => drop(self.file.set_len(self.end)),
        }
        written
    }

    /// The first records that are not consumed: at most `count`, and about `bytes` bytes.
    pub(super) fn read(&self, count: usize, bytes: usize) -> io::Result<ReadBatch> {
        let mut read = ReadBatch {
            end: self.consumed,
            ..ReadBatch::default()
        };
        let mut total = 0;
        while read.payloads.len() < count && total < bytes {
            let left = self.end - read.end;
            let mut header = [0; HEADER_LEN];
            if left < HEADER_LEN as u64 {
                read.skip_torn_end(self, left);
                break;
            }
            self.file.read_exact_at(&mut header, read.end)?;
            let Some(header) = RecordHeader::read(header) else {
                tracing::error!(file = %self.path.display(), at = read.end, "spool file unreadable from this offset; kept as damaged");
                (read.damaged, read.end) = (true, self.end);
                break;
            };
            if left < (HEADER_LEN + header.length()) as u64 {
                read.skip_torn_end(self, left);
                break;
            }
            let mut payload = vec![0; header.length()];
            self.file
                .read_exact_at(&mut payload, read.end + HEADER_LEN as u64)?;
            read.end += (HEADER_LEN + header.length()) as u64;
            total += header.length();
            if header.matches(&payload) {
                read.payloads.push(payload);
            } else {
                tracing::error!(file = %self.path.display(), before = read.end, "spooled answer damaged; file kept as damaged");
                read.damaged = true;
            }
        }
        Ok(read)
    }

    /// Whether no record follows the batch.
    pub(super) fn ends_with(&self, read: &ReadBatch) -> bool {
        read.end >= self.end
    }

    /// Marks the batch as stored elsewhere.
    pub(super) fn advance(&mut self, read: &ReadBatch) {
        self.consumed = read.end;
        self.damaged |= read.damaged;
    }

    /// Whether all records are consumed.
    pub(super) fn is_drained(&self) -> bool {
        self.consumed >= self.end
    }

    /// Removes a drained file, or renames it where part of it could not be read.
    pub(super) fn remove(self) -> io::Result<()> {
        if self.damaged {
            std::fs::rename(&self.path, self.path.with_extension(DAMAGED))
        } else {
            std::fs::remove_file(&self.path)
        }
    }
}

impl ReadBatch {
    /// Skips the last record of a process that was killed while it wrote: its append never
    /// returned.
    fn skip_torn_end(&mut self, file: &SpoolFile, left: u64) {
        if left > 0 {
            tracing::warn!(file = %file.path.display(), bytes = left, "torn end of a spool file skipped");
        }
        self.end = file.end;
    }
}

/// The records of some payloads, as [`SpoolFile::append`] takes them; `None`: one of them is too long.
pub(super) fn records<'a>(payloads: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    payloads
        .into_iter()
        .all(|payload| frame::append_record(payload, &mut bytes))
        .then_some(bytes)
}
