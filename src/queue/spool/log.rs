//! One file of the spool: locked for its process, appended and synced, read from its front.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::frame::{self, HEAD, Head, MAGIC};

/// The first bytes of a file that are no record.
const FRONT: u64 = MAGIC.len() as u64;
/// A file that is being made: it gets its name once it is locked, so that nobody takes it for a dead process's.
pub(super) const DRAFT: &str = "new";
/// How many drafts are made before it is an error that each is gone.
const DRAFTS: u32 = 10;
/// A file with records.
pub(super) const NAME: &str = "spool";
/// What could not be read whole, kept to be looked at.
const DAMAGED: &str = "damaged";

/// A file with records, locked as long as this lives. The kernel drops the lock with the process, however it ends.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    path: PathBuf,
    /// Where the next record goes: behind it there may be the torn rest of one.
    end: u64,
    /// The records before this are stored elsewhere.
    taken: u64,
    /// Something in it could not be read.
    damaged: bool,
}

/// What was read from a file's front.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) payloads: Vec<Vec<u8>>,
    /// Behind the last of them.
    end: u64,
    damaged: bool,
}

impl Log {
    /// A new, empty file in `folder`.
    ///
    /// Between the making of a draft and its lock another process may take it for a dead one's and remove it; then there is another
    /// draft, under a name of its own, because whoever removes goes by the name.
    pub(super) fn make(folder: &Path, name: Uuid) -> io::Result<Self> {
        let path = folder.join(name.simple().to_string()).with_extension(NAME);
        let mut tries = 0..DRAFTS;
        loop {
            tries.next();
            let draft = folder
                .join(Uuid::now_v7().simple().to_string())
                .with_extension(DRAFT);
            match Self::make_by(&draft, &path) {
                Ok(log) => return Ok(log),
                Err(error) => {
                    // It may not be there.
                    drop(std::fs::remove_file(&draft));
                    let taken = matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::WouldBlock
                    );
                    if !taken || tries.is_empty() {
                        return Err(error);
                    }
                }
            }
        }
    }

    fn make_by(draft: &Path, path: &Path) -> io::Result<Self> {
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
            end: FRONT,
            taken: FRONT,
            damaged: false,
        })
    }

    /// Takes over a file whose process is dead; `None`: it lives, or the file is gone, or it is of another version of this program.
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
            return Ok(None); // Another process took it over and was done with it.
        }
        if path.extension().is_some_and(|extension| extension == DRAFT) {
            // Whoever was making it may have removed it too.
            return match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(None),
            };
        }
        let mut magic = [0; MAGIC.len()];
        if found.len() < FRONT || file.read_exact_at(&mut magic, 0).is_err() || magic != *MAGIC {
            return Ok(None);
        }
        Ok(Some(Self {
            file,
            path: path.to_owned(),
            end: found.len(),
            taken: FRONT,
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
            // What stands behind the end is written over by the next append, and is no whole record for whoever reads it before. A record
            // that is whole and was not synced may be read: it is one that the process holds still, and storing it twice stores it once.
            Err(_) => drop(self.file.set_len(self.end)),
        }
        written
    }

    /// The first records that were not taken: at most `count`, and not many more bytes than `bytes`.
    pub(super) fn read(&self, count: usize, bytes: usize) -> io::Result<Read> {
        let mut read = Read {
            end: self.taken,
            ..Read::default()
        };
        let mut held = 0;
        while read.payloads.len() < count && held < bytes {
            let left = self.end - read.end;
            let mut head = [0; HEAD];
            if left < HEAD as u64 {
                read.cut(self, left);
                break;
            }
            self.file.read_exact_at(&mut head, read.end)?;
            let Some(head) = Head::read(head) else {
                tracing::error!(file = %self.path.display(), at = read.end, "the rest of a spool file cannot be read; it is kept");
                (read.damaged, read.end) = (true, self.end);
                break;
            };
            if left < (HEAD + head.length()) as u64 {
                read.cut(self, left);
                break;
            }
            let mut payload = vec![0; head.length()];
            self.file
                .read_exact_at(&mut payload, read.end + HEAD as u64)?;
            read.end += (HEAD + head.length()) as u64;
            held += head.length();
            if head.fits(&payload) {
                read.payloads.push(payload);
            } else {
                tracing::error!(file = %self.path.display(), before = read.end, "a spooled answer is damaged; its file is kept");
                read.damaged = true;
            }
        }
        Ok(read)
    }

    /// What was read is stored elsewhere.
    pub(super) fn take(&mut self, read: &Read) {
        self.taken = read.end;
        self.damaged |= read.damaged;
    }

    /// Nothing is left in it.
    pub(super) fn is_drained(&self) -> bool {
        self.taken >= self.end
    }

    /// Away with a file that is drained; what could not be read stays under another name.
    pub(super) fn remove(self) -> io::Result<()> {
        if self.damaged {
            std::fs::rename(&self.path, self.path.with_extension(DAMAGED))
        } else {
            std::fs::remove_file(&self.path)
        }
    }
}

impl Read {
    /// The last record of a process that was killed while it wrote: nobody was told that it is kept.
    fn cut(&mut self, log: &Log, left: u64) {
        if left > 0 {
            tracing::warn!(file = %log.path.display(), bytes = left, "the torn end of a spool file is cut off");
        }
        self.end = log.end;
    }
}

/// The records of some payloads, as [`Log::append`] takes them; `None`: one of them is too long.
pub(super) fn records<'a>(payloads: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    payloads
        .into_iter()
        .all(|payload| frame::put(payload, &mut bytes))
        .then_some(bytes)
}
