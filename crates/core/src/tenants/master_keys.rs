//! The master key: a ring of 32-byte keys, one of them the primary.
//!
//! Format, in a file (`FARESCAN_MASTER_KEY_FILE`) or a variable (`FARESCAN_MASTER_KEY`): entries
//! `id:key` separated by white space or commas, the key as 64 hexadecimal digits. **The first entry
//! is the primary.** A line that starts with `#` is a comment.
//!
//! ```text
//! # made 2027-05-01
//! 2027-05:9f3c…   the primary: seals new grants, makes new fingerprints
//! 2026-11:04ab…   still opens what it sealed
//! ```
//!
//! To replace the primary, add a new entry at the end and restart every process; then move it to
//! the top and restart again; then run `farescan keys rewrap` (docs/running.md). With the entry on
//! top at once, a process that lacks it could not open what others seal.
//!
//! HKDF-SHA256 derives one key per use from each entry, so that a fingerprint reveals nothing about
//! a sealed key.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use hkdf::Hkdf;
use rand::Rng as _;
use sha2::Sha256;
use zeroize::Zeroizing;

/// The ring. It holds the derived keys only, not the master keys.
#[derive(Clone)]
pub struct Keyring {
    /// Never empty; the first is the primary.
    keys: Vec<RingKey>,
}

/// The keys derived from one master key.
#[derive(Clone)]
pub(super) struct RingKey {
    pub(super) id: String,
    pub(super) sealing: Zeroizing<[u8; 32]>,
    pub(super) fingerprints: Zeroizing<[u8; 32]>,
    pub(super) sessions: Zeroizing<[u8; 32]>,
    pub(super) proofs: Zeroizing<[u8; 32]>,
}

/// Why a ring cannot be used. The message never shows a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// There is no entry.
    #[error(
        "the master key is empty: it needs at least one entry `id:key` with the key as 64 hexadecimal digits"
    )]
    Empty,
    /// An entry has another format.
    #[error(
        "entry {number} of the master key is not `id:key`: the id has 1 to 32 letters, digits, `.`, `_` or `-`, the key 64 hexadecimal \
         digits (`openssl rand -hex 32` makes one)"
    )]
    Malformed {
        /// Counted from 1.
        number: usize,
    },
    /// The id for a new entry is not valid.
    #[error(
        "`{found}` is not an id of an entry: an id has 1 to 32 letters, digits, `.`, `_` or `-`"
    )]
    InvalidId {
        /// The beginning of the given id.
        found: String,
    },
    /// An id or a key occurs twice.
    #[error("entry {number} of the master key repeats the id or the key of an earlier one")]
    Repeated {
        /// Counted from 1.
        number: usize,
    },
    /// Other users can read the file.
    #[error(
        "the master key file {path} has mode {mode:04o}, so other users can read it: run `chmod 600 {path}`; a secret that is mounted for a \
         group needs mode 0440 and FARESCAN_MASTER_KEY_GROUP_READABLE=true"
    )]
    ReadableByOthers {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file cannot be read or created.
    #[error("the master key file {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The longest id of a ring key, in characters.
const MAX_ID_CHARS: usize = 32;

impl Keyring {
    /// Parses a ring.
    ///
    /// # Errors
    /// When the text has another format, or an id or key occurs twice.
    pub fn parse(text: &str) -> Result<Self, KeyringError> {
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with('#'));
        let entries = lines
            .flat_map(|line| line.split([',', ' ', '\t']))
            .filter(|entry| !entry.is_empty());
        let mut keys: Vec<RingKey> = Vec::new();
        for (index, entry) in entries.enumerate() {
            let number = index + 1;
            let (id, digits) = entry
                .split_once(':')
                .filter(|(id, _)| is_id(id))
                .ok_or(KeyringError::Malformed { number })?;
            let key = RingKey::derive(
                id,
                &*decode_hex(digits).ok_or(KeyringError::Malformed { number })?,
            );
            if keys
                .iter()
                .any(|known| known.id == key.id || known.sealing == key.sealing)
            {
                return Err(KeyringError::Repeated { number });
            }
            keys.push(key);
        }
        if keys.is_empty() {
            Err(KeyringError::Empty)
        } else {
            Ok(Self { keys })
        }
    }

    /// Reads a ring from a file that only its owner can read; with `group_readable` also its group.
    ///
    /// # Errors
    /// When the file cannot be read, others can read it, or it does not hold a ring.
    pub fn read(path: &Path, group_readable: bool) -> Result<Self, KeyringError> {
        let failed = |source| KeyringError::File {
            path: path.to_owned(),
            source,
        };
        let mut file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
        let others = if group_readable { 0o037 } else { 0o077 };
        if mode & others != 0 {
            return Err(KeyringError::ReadableByOthers {
                path: path.to_owned(),
                mode,
            });
        }
        let mut text = Zeroizing::new(String::new());
        file.read_to_string(&mut text).map_err(failed)?;
        Self::parse(&text)
    }

    /// Reads the ring of an embedded database, a file beside its data, and creates it (mode 0600)
    /// if it is missing. Processes may race here: one creates the ring, all read it.
    ///
    /// # Errors
    /// When the file can be neither read nor created, or does not hold a ring.
    pub fn read_or_create(path: &Path) -> Result<Self, KeyringError> {
        match Self::read(path, false) {
            Err(KeyringError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Self::create_file(path, "1")?;
                Self::read(path, false)
            }
            read => read,
        }
    }

    /// Creates a file with a ring of one new key (mode 0600). Returns `false` and changes nothing
    /// if the file exists.
    ///
    /// # Errors
    /// When `id` is not valid, or the file cannot be created.
    pub fn create_file(path: &Path, id: &str) -> Result<bool, KeyringError> {
        write_new_file(path, &Self::generate_entry(id)?).map_err(|source| KeyringError::File {
            path: path.to_owned(),
            source,
        })
    }

    /// Generates an entry `id:key`.
    ///
    /// # Errors
    /// When `id` is not valid.
    pub fn generate_entry(id: &str) -> Result<Zeroizing<String>, KeyringError> {
        if !is_id(id) {
            return Err(KeyringError::InvalidId {
                found: id.chars().take(2 * MAX_ID_CHARS).collect(),
            });
        }
        let mut random = Zeroizing::new([0_u8; 32]);
        rand::rng().fill_bytes(random.as_mut());
        // Full capacity at once: a reallocation would leave a copy in freed memory.
        let mut entry = Zeroizing::new(String::with_capacity(MAX_ID_CHARS + 1 + 64));
        entry.push_str(id);
        entry.push(':');
        for nibble in random.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
            entry.extend(char::from_digit(nibble.into(), 16));
        }
        Ok(entry)
    }

    /// The keys, the primary first.
    pub(super) fn keys(&self) -> &[RingKey] {
        &self.keys
    }

    /// The key that seals and makes new fingerprints.
    pub(super) fn primary(&self) -> &RingKey {
        &self.keys[0]
    }

    /// The key with this id.
    pub(super) fn key(&self, id: &str) -> Option<&RingKey> {
        self.keys.iter().find(|key| key.id == id)
    }
}

/// Shows only the ids, because a ring may reach a log.
impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.keys.iter().map(|key| &key.id))
            .finish()
    }
}

impl RingKey {
    fn derive(id: &str, master: &[u8; 32]) -> Self {
        let source = Hkdf::<Sha256>::new(None, master);
        let derived = |purpose: &str| {
            let mut key = Zeroizing::new([0; 32]);
            source
                .expand(purpose.as_bytes(), key.as_mut())
                .expect("HKDF-SHA256 gives up to 8,160 bytes, 32 are asked for");
            key
        };
        Self {
            id: id.to_owned(),
            sealing: derived("farescan/1/sealing"),
            fingerprints: derived("farescan/1/fingerprints"),
            sessions: derived("farescan/1/sessions"),
            proofs: derived("farescan/1/proofs"),
        }
    }
}

fn is_id(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=MAX_ID_CHARS).contains(&text.len()) && text.bytes().all(plain)
}

fn decode_hex(digits: &str) -> Option<Zeroizing<[u8; 32]>> {
    if digits.len() != 64 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = Zeroizing::new([0; 32]);
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// Writes a ring of one entry to `path`; `false`: the file exists. The file appears complete or not
/// at all: it is written and synced under a temporary name and then linked.
fn write_new_file(path: &Path, entry: &str) -> io::Result<bool> {
    const HEAD: &str = "# Opens the keys that this database holds for its callers. Lost, they are lost: keep it with every backup.\n";
    let text = Zeroizing::new([HEAD, entry, "\n"].concat());

    let draft = path.with_extension(format!("{}.draft", uuid::Uuid::now_v7().simple()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    let linked = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&draft, path));
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const A: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const B: &str = "ff0102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";

    #[test]
    fn the_first_entry_is_the_primary() {
        for text in [
            format!("# new\n b:{B}\n\n# old, still opens\na:{A}\n"),
            format!("b:{B},a:{A}"),
            format!("b:{B} a:{A}"),
        ] {
            let ring = Keyring::parse(&text).unwrap();
            assert_eq!(ring.primary().id, "b", "{text}");
            assert_eq!(
                ring.keys()
                    .iter()
                    .map(|key| key.id.as_str())
                    .collect::<Vec<_>>(),
                ["b", "a"]
            );
            assert!(ring.key("a").is_some() && ring.key("c").is_none());
        }
    }

    #[test]
    fn an_invalid_ring_is_refused_and_not_shown() {
        for text in ["", "  \n", "# nothing"] {
            assert!(
                matches!(Keyring::parse(text), Err(KeyringError::Empty)),
                "{text:?}"
            );
        }
        let short = &A[1..];
        let long_id = "i".repeat(33);
        for bad in [
            A.to_owned(),
            format!("a:{short}"),
            format!("a:{short}g"),
            format!(":{A}"),
            format!("ä:{A}"),
            format!("{long_id}:{A}"),
        ] {
            let refused = Keyring::parse(&format!("ok:{B},{bad}")).unwrap_err();
            assert!(
                matches!(refused, KeyringError::Malformed { number: 2 }),
                "{bad}"
            );
            assert!(!format!("{refused} {refused:?}").contains(&A[4..16]));
        }
        for twice in [format!("a:{A},a:{B}"), format!("a:{A},b:{A}")] {
            assert!(
                matches!(
                    Keyring::parse(&twice),
                    Err(KeyringError::Repeated { number: 2 })
                ),
                "{twice}"
            );
        }
    }

    #[test]
    fn each_use_has_its_own_key_and_debug_shows_ids_only() {
        let ring = Keyring::parse(&format!("a:{A}")).unwrap();
        let key = ring.primary();
        assert_ne!(key.sealing, key.fingerprints);
        assert_ne!(key.sealing, key.sessions);
        assert_ne!(key.fingerprints, key.sessions);
        assert!(![&key.sealing, &key.fingerprints, &key.sessions].contains(&&key.proofs));
        assert_ne!(Some(key.sealing.clone()), decode_hex(A));
        assert_eq!(format!("{ring:?}"), r#"["a"]"#);
    }

    #[test]
    fn racing_processes_create_one_private_ring() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        let racing: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || {
                    Keyring::read_or_create(&path)
                        .unwrap()
                        .primary()
                        .sealing
                        .clone()
                })
            })
            .collect();
        let made: Vec<_> = racing
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        assert!(made.iter().all(|key| *key == made[0]));
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "no draft is left"
        );
    }
}
