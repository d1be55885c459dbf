//! A file that gets its name when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::Failure;

/// Writes beside the wanted file; dropped before [`Self::complete`], it leaves nothing.
pub struct PartialFile {
    file: BufWriter<File>,
    temporary: PathBuf,
    wanted: PathBuf,
}

impl PartialFile {
    /// # Errors
    /// The folder cannot be written.
    pub fn create(wanted: &Path) -> Result<Self, Failure> {
        let mut name = wanted.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let temporary = wanted.with_file_name(name);
        let file = File::create(&temporary).map_err(|error| unwritable(wanted, &error))?;
        Ok(Self {
            file: BufWriter::new(file),
            temporary,
            wanted: wanted.to_owned(),
        })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// The last bytes cannot be written.
    pub fn complete(mut self) -> Result<(), Failure> {
        let written = self
            .file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all())
            .and_then(|()| fs::rename(&self.temporary, &self.wanted));
        Ok(written.map_err(|error| unwritable(&self.wanted, &error))?)
    }
}

impl Write for PartialFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        written.map_err(|error| unwritable(&self.wanted, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        flushed.map_err(|error| unwritable(&self.wanted, &error))
    }
}

/// The error with the file and what to do.
fn unwritable(wanted: &Path, error: &io::Error) -> io::Error {
    let next = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space",
        io::ErrorKind::NotFound => "create the folder",
        _ => "check the folder's permissions",
    };
    let text = format!(
        "{} cannot be written: {error}; nothing is left there\n  next: {next}, or name another file; the items stay stored and can be exported again at no cost",
        wanted.display()
    );
    io::Error::new(error.kind(), text)
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // Renamed if it is complete.
        _ = fs::remove_file(&self.temporary);
    }
}
