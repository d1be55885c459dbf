//! Finds a suitable Postgres installation.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{EmbeddedError, OLDEST_MAJOR, install};

/// Where packages install Postgres: parent folder and name prefix before the version. Programs are
/// in its `bin`.
const PACKAGES: [(&str, &str); 9] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/usr/lib", "postgresql"),
    ("/usr/libexec", "postgresql"),
    ("/opt/homebrew/opt", "postgresql"),
    ("/usr/local/opt", "postgresql"),
    ("/usr/local", "pgsql"),
    ("/home/linuxbrew/.linuxbrew/opt", "postgresql"),
    ("/Applications/Postgres.app/Contents/Versions", ""),
];

/// A Postgres installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binaries {
    pub(super) folder: PathBuf,
    pub(super) major: u32,
    /// As the server reports it: `15.14 (Debian 15.14-0+deb12u1)`.
    pub(super) version: String,
}

impl Binaries {
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// `None` unless the folder has both programs and `postgres --version` works.
    fn in_folder(folder: &Path) -> Option<Self> {
        let postgres = folder.join("postgres");
        if !postgres.is_file() || !folder.join("initdb").is_file() {
            return None;
        }
        let output = Command::new(&postgres)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let output = String::from_utf8_lossy(&output.stdout);
        let (_, version) = output.trim().split_once(") ")?;
        Some(Self {
            folder: folder.to_owned(),
            major: major(version)?,
            version: version.to_owned(),
        })
    }
}

/// A program file and its fingerprint, to detect a replacement.
#[derive(Debug)]
pub(super) struct ProgramFile {
    path: PathBuf,
    /// Device, inode, seconds and nanoseconds of the last change.
    fingerprint: (u64, u64, i64, i64),
}

impl ProgramFile {
    /// `None` if the file is missing.
    pub(super) fn at(path: PathBuf) -> Option<Self> {
        let fingerprint = Self::fingerprint(&path)?;
        Some(Self { path, fingerprint })
    }

    /// Whether the file has not been replaced.
    pub(super) fn is_unchanged(&self) -> bool {
        Self::fingerprint(&self.path) == Some(self.fingerprint)
    }

    fn fingerprint(path: &Path) -> Option<(u64, u64, i64, i64)> {
        let file = fs::metadata(path).ok()?;
        Some((file.dev(), file.ino(), file.ctime(), file.ctime_nsec()))
    }
}

/// The first installation that fits the cluster (`needed`: its folder and major version), or any
/// new enough one for a new cluster. Searches only the configured folder, if there is one.
pub(super) fn find(
    named: Option<&Path>,
    needed: Option<(&Path, u32)>,
) -> Result<Binaries, EmbeddedError> {
    let (folders, searched) = match named {
        Some(folder) => (vec![folder.to_owned()], folder.display().to_string()),
        None => (search_path(), "PATH and the folders of packages".to_owned()),
    };
    let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let has_shell = Path::new("/bin/sh").exists();
    find_in(&folders, &searched, needed, (&os_release, has_shell))
}

fn find_in(
    folders: &[PathBuf],
    searched: &str,
    needed: Option<(&Path, u32)>,
    (os_release, has_shell): (&str, bool),
) -> Result<Binaries, EmbeddedError> {
    let mut unsuitable: Vec<Binaries> = Vec::new();
    for found in folders
        .iter()
        .filter_map(|folder| Binaries::in_folder(folder))
    {
        match needed {
            Some((_, major)) if found.major == major => return Ok(found),
            None if found.major >= OLDEST_MAJOR => return Ok(found),
            _ => unsuitable.push(found),
        }
    }
    Err(match needed {
        Some((data, made_by)) => EmbeddedError::WrongVersion {
            data: data.to_owned(),
            made_by,
            found: list_unsuitable(&unsuitable),
            install: install::advice(os_release, Some(made_by), has_shell),
        },
        None => EmbeddedError::NoBinaries {
            searched: searched.to_owned(),
            found: list_unsuitable(&unsuitable),
            install: install::advice(os_release, None, has_shell),
        },
    })
}

fn list_unsuitable(unsuitable: &[Binaries]) -> String {
    let found: Vec<_> = unsuitable
        .iter()
        .map(|found| format!("{} in {}", found.major, found.folder.display()))
        .collect();
    if found.is_empty() {
        "found none".to_owned()
    } else {
        format!("found only {}", found.join(", "))
    }
}

/// `PATH`, then the package folders, newest version first.
fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .collect();
    for (parent, prefix) in PACKAGES {
        folders.extend(
            versions(Path::new(parent), prefix)
                .into_iter()
                .map(|folder| folder.join("bin")),
        );
    }
    folders
}

/// Folders in `parent` with this prefix and an optional version, highest version first.
fn versions(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix(prefix)?.trim_start_matches('@');
            let major = if version.is_empty() {
                0
            } else {
                version.split('.').next()?.parse().ok()?
            };
            Some((major, entry.path()))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, folder)| folder).collect()
}

/// Parses `15.14 (Debian 15.14-0+deb12u1)`, `17beta1` and the like.
fn major(version: &str) -> Option<u32> {
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder with fake programs that report this version.
    fn installed(parent: &Path, major: u32) -> PathBuf {
        let folder = parent.join(major.to_string()).join("bin");
        fs::create_dir_all(&folder).unwrap();
        for program in ["postgres", "initdb"] {
            let path = folder.join(program);
            fs::write(
                &path,
                format!("#!/bin/sh\necho '{program} (PostgreSQL) {major}.3'\n"),
            )
            .unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    #[test]
    fn the_first_suitable_folder_is_used() {
        let place = tempfile::tempdir().unwrap();
        let folders = [14, 16, 15, 17].map(|major| installed(place.path(), major));
        assert_eq!(
            find_in(&folders, "here", None, ("", true)).unwrap().major,
            16,
            "14 is too old, 16 comes before 17"
        );
        assert_eq!(
            find_in(&folders, "here", Some((Path::new("/data"), 15)), ("", true))
                .unwrap()
                .major,
            15
        );
        assert_eq!(
            find(Some(&folders[3]), None).unwrap().major,
            17,
            "a named folder is the only one"
        );
    }

    #[test]
    fn without_postgres_the_error_has_the_install_command() {
        let place = tempfile::tempdir().unwrap();
        let error = find_in(
            &[installed(place.path(), 13)],
            "here",
            None,
            ("ID=debian", true),
        )
        .unwrap_err()
        .to_string();
        assert!(
            error.contains("no PostgreSQL 15 or newer found (searched here"),
            "{error}"
        );
        assert!(error.contains("found only 13 in "), "{error}");
        assert!(
            error.contains("`sudo apt-get update && sudo apt-get install -y postgresql`"),
            "{error}"
        );
        assert!(
            error.contains("FARESCAN_PG_BIN") && error.contains("DATABASE_URL"),
            "{error}"
        );
    }

    #[test]
    fn data_of_another_version_is_reported() {
        let place = tempfile::tempdir().unwrap();
        let folders = [installed(place.path(), 16)];
        let error = find_in(
            &folders,
            "here",
            Some((Path::new("/data"), 15)),
            ("ID=debian", true),
        )
        .unwrap_err()
        .to_string();
        assert!(
            error.contains("the data in /data belongs to PostgreSQL 15, which is not installed (found only 16 in "),
            "{error}"
        );
        assert!(
            error.contains("apt-get install -y postgresql-15"),
            "{error}"
        );
    }

    #[test]
    fn an_image_without_a_shell_gets_no_command_to_install() {
        let error = find_in(&[], "here", None, ("ID=debian", false)).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains(
                "this image has none and nothing to install it with: use docker-compose.yml"
            ) && error.contains("or set DATABASE_URL to a running server")
                && !error.contains("apt-get"),
            "{error}"
        );
    }

    #[test]
    fn versions_are_listed_newest_first() {
        let place = tempfile::tempdir().unwrap();
        for name in [
            "postgresql@9",
            "postgresql@17",
            "postgresql",
            "postgresql@16",
            "postgresql-common",
            "mysql",
        ] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        let names: Vec<_> = versions(place.path(), "postgresql")
            .iter()
            .map(|f| f.file_name().unwrap().to_owned())
            .collect();
        assert_eq!(
            names,
            [
                "postgresql@17",
                "postgresql@16",
                "postgresql@9",
                "postgresql"
            ]
        );
    }

    #[test]
    fn the_major_version_is_parsed() {
        assert_eq!(major("15.14 (Debian 15.14-0+deb12u1)"), Some(15));
        assert_eq!(major("18beta1"), Some(18));
        assert_eq!(major("something else"), None);
    }
}
