//! `farescan.toml`: several services by name, and the key of each in a file of its own.
//!
//! ```toml
//! default = "work"
//!
//! [profiles.work]
//! url = "https://fares.example.com"
//! ```
//!
//! The key of `work` is in `keys/work` beside it, which only its owner can read.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use secrecy::SecretString;
use toml_edit::{DocumentMut, table, value};

use crate::Failure;

/// The profile without `--profile`, FARESCAN_PROFILE and `default`.
pub const DEFAULT_PROFILE: &str = "default";
const FILE: &str = "farescan.toml";
const KEYS: &str = "keys";
/// The longest name of a profile.
const MAX_NAME: usize = 50;

/// The configuration folder with its file.
#[derive(Debug)]
pub struct Profiles {
    folder: PathBuf,
    file: DocumentMut,
}

impl Profiles {
    /// Reads the file of the platform's configuration folder; a missing one is empty.
    ///
    /// # Errors
    /// It cannot be read, or is not TOML.
    pub fn load() -> Result<Self, Failure> {
        let base = etcetera::choose_base_strategy()
            .map_err(|_| "the configuration folder is unknown: set HOME or XDG_CONFIG_HOME")?;
        Self::in_folder(base.config_dir().join("farescan"))
    }

    fn in_folder(folder: PathBuf) -> Result<Self, Failure> {
        let path = folder.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{}: {error}", path.display()).into()),
        };
        // It says where the key goes.
        if fs::metadata(&path).is_ok_and(|found| found.permissions().mode() & 0o022 != 0) {
            anstream::eprintln!(
                "farescan: other users can write {path}, which says where your key is sent: run `chmod go-w {path}`",
                path = path.display()
            );
        }
        let file = text
            .parse()
            .map_err(|error| format!("{} is not valid TOML: {error}", path.display()))?;
        Ok(Self { folder, file })
    }

    /// The same in a folder of a test.
    #[cfg(test)]
    pub(super) fn in_folder_for_test(folder: &Path) -> Result<Self, Failure> {
        Self::in_folder(folder.to_owned())
    }

    /// The path of `farescan.toml`.
    pub fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// The profile that `default` names.
    pub fn default_name(&self) -> Option<&str> {
        self.file.get("default")?.as_str()
    }

    /// Whether the file has this profile.
    pub fn has(&self, name: &str) -> bool {
        self.file
            .get("profiles")
            .and_then(|profiles| profiles.get(name))
            .is_some()
    }

    /// The names of all profiles, for an error.
    pub fn names(&self) -> Vec<String> {
        let profiles = self
            .file
            .get("profiles")
            .and_then(|item| item.as_table_like());
        profiles
            .into_iter()
            .flat_map(|profiles| profiles.iter().map(|(name, _)| name.to_owned()))
            .collect()
    }

    /// The address of a profile.
    pub fn url(&self, name: &str) -> Option<&str> {
        self.file.get("profiles")?.get(name)?.get("url")?.as_str()
    }

    /// The stored key of a profile.
    ///
    /// # Errors
    /// The file cannot be read, or others can read it.
    pub fn key(&self, name: &str) -> Result<Option<SecretString>, Failure> {
        let path = self.key_path(name)?;
        let mode = match fs::metadata(&path) {
            Ok(metadata) => metadata.permissions().mode(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", path.display()).into()),
        };
        if mode & 0o077 != 0 {
            return Err(format!(
                "other users can read the key in {path}: run `chmod 600 {path}`, and consider a new key",
                path = path.display()
            )
            .into());
        }
        read_key_file(&path).map(Some)
    }

    /// Stores the address and the key of a profile. The first one becomes the default.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn store(&mut self, name: &str, url: &str, key: &str) -> Result<PathBuf, Failure> {
        let path = self.key_path(name)?;
        let keys = self.folder.join(KEYS);
        let unwritable = |error: std::io::Error| format!("{}: {error}", keys.display());
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&keys)
            .map_err(unwritable)?;
        write_private(&path, &format!("{key}\n"))?;
        if self.file.get("profiles").is_none() {
            let mut profiles = table();
            if let Some(profiles) = profiles.as_table_mut() {
                profiles.set_implicit(true);
            }
            self.file.insert("profiles", profiles);
            self.file.insert("default", value(name));
        }
        let profiles = self
            .file
            .get_mut("profiles")
            .and_then(|item| item.as_table_like_mut())
            .ok_or_else(|| format!("`profiles` in {FILE} is not a table"))?;
        let profile = profiles.entry(name).or_insert(table());
        match profile.as_table_like_mut() {
            Some(profile) => _ = profile.insert("url", value(url)),
            None => return Err(format!("`profiles.{name}` in {FILE} is not a table").into()),
        }
        write_private(&self.path(), &self.file.to_string())?;
        Ok(path)
    }

    fn key_path(&self, name: &str) -> Result<PathBuf, Failure> {
        let valid = (1..=MAX_NAME).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if valid {
            Ok(self.folder.join(KEYS).join(name))
        } else {
            Err(format!(
                "--profile: found {name:?}; expected a name of 1 to {MAX_NAME} letters, digits, `-` and `_`"
            )
            .into())
        }
    }
}

/// The key in a file, without the line's end.
///
/// # Errors
/// The file cannot be read.
pub fn read_key_file(path: &Path) -> Result<SecretString, Failure> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(text.trim().into())
}

/// Replaces a file that only its owner can read, in one step.
fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let new = path.with_extension("new");
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::set_permissions(&new, fs::Permissions::from_mode(0o600)))
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|error| format!("{}: {error}", path.display()).into())
}
