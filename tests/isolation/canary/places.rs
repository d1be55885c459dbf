//! Where a key is looked for: answers, logs, metrics, every table, every file of the data folder, what the system tells of processes.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use farescan::search::decompress;
use sqlx::AssertSqlSafe;

use super::finder::Finder;
use super::requests::Rounds;
use super::service::Service;

/// The database server's own log, below the data folder.
const SERVER_LOG: &str = "data home/postgres.log";

/// What was gathered, by place.
#[derive(Default)]
pub struct Places(Vec<(String, Vec<u8>)>);

impl Places {
    fn add(&mut self, place: impl Into<String>, bytes: Vec<u8>) {
        self.0.push((place.into(), bytes));
    }

    pub fn answers(&mut self, rounds: &Rounds) {
        self.add("answers", rounds.answers.clone());
    }

    /// Everything on the admin listener.
    pub async fn metrics(&mut self, service: &Service) {
        for path in ["/metrics", "/healthz", "/readyz"] {
            let answer = reqwest::Client::builder()
                .no_proxy()
                .build()
                .unwrap()
                .get(format!("{}{path}", service.admin_url));
            let answer = answer.send().await.unwrap();
            let head = format!("{} {:?}\n", answer.status(), answer.headers());
            self.add(
                format!("admin {path}"),
                [head.as_bytes(), &answer.bytes().await.unwrap()].concat(),
            );
        }
    }

    /// The logs of every start of the service.
    pub fn logs(&mut self, service: &Service) {
        for entry in std::fs::read_dir(service.place()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "log") {
                self.add(
                    format!("log {}", path.file_name().unwrap().to_string_lossy()),
                    std::fs::read(&path).unwrap(),
                );
            }
        }
    }

    /// Every row of every table, what sessions run now, and the stored answers as they were before they were compressed.
    pub async fn database(&mut self, service: &Service) {
        let mut conn = service.connect().await;
        let tables: Vec<String> = values!(&mut conn, "select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
             where c.relkind in ('r', 'm', 'v') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
             union all select 'pg_stat_activity' union all select 'pg_settings' union all select 'pg_prepared_statements'");
        for table in tables {
            let rows = AssertSqlSafe(format!(
                "select coalesce(string_agg(t::text, E'\\n'), '') from {table} t"
            ));
            let text: String = value!(&mut conn, rows);
            self.add(
                format!("table {}", table.trim_start_matches("public.")),
                text.into_bytes(),
            );
        }
        let bodies: Vec<Vec<u8>> = values!(&mut conn, "select body from answers");
        assert!(!bodies.is_empty(), "answers were stored");
        let decoded: Vec<Vec<u8>> = bodies
            .iter()
            .map(|body| decompress(body).unwrap())
            .collect();
        self.add("stored answers", decoded.concat());
    }

    /// Every file below the data folder: tables, write-ahead log, the server's own log.
    pub async fn folder(&mut self, service: &Service) {
        let mut conn = service.connect().await;
        execute!(&mut conn, "checkpoint");
        let mut folders = vec![service.place().join("home")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let kind = std::fs::symlink_metadata(&path).map(|found| found.file_type());
                match kind {
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    // A file may go away while the server works.
                    Ok(kind) if kind.is_file() => self.file(service.place(), path),
                    _ => {}
                }
            }
        }
    }

    fn file(&mut self, place: &Path, path: PathBuf) {
        let mut bytes = Vec::new();
        if std::fs::File::open(&path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .is_ok()
        {
            self.add(
                format!("data {}", path.strip_prefix(place).unwrap().display()),
                bytes,
            );
        }
    }

    /// What the system tells of the service and of its database's processes.
    pub fn processes(&mut self, service: &Service) {
        for root in [service.pid(), service.postmaster()] {
            self.processes_of(root);
        }
    }

    /// A process and those that it started.
    pub fn processes_of(&mut self, root: u32) {
        for pid in std::iter::once(root).chain(children(root)) {
            for file in ["cmdline", "environ", "comm"] {
                // A session's process may have ended by now.
                if let Ok(bytes) = std::fs::read(format!("/proc/{pid}/{file}")) {
                    self.add(format!("process {file}"), bytes);
                }
            }
        }
    }

    /// The places that hold a key, and in which form.
    pub fn search(&self, finder: &Finder) -> Vec<String> {
        let found = |(place, bytes): &(String, Vec<u8>)| {
            let forms = finder.find(bytes);
            (!forms.is_empty())
                .then(|| format!("{place}: {forms:?} {}", Self::around(place, bytes, finder)))
        };
        self.0.iter().filter_map(found).collect()
    }

    /// What stands beside the first find, to say where it came from.
    fn around(place: &str, bytes: &[u8], finder: &Finder) -> String {
        if place.starts_with("data ") && place != SERVER_LOG {
            return String::new();
        }
        let line = bytes
            .split(|byte| *byte == b'\n')
            .find(|line| !finder.find(line).is_empty())
            .unwrap_or_default();
        String::from_utf8_lossy(&line[..line.len().min(600)]).into_owned()
    }

    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kind in [
            "answers",
            "log",
            "admin",
            "table",
            "stored answers",
            "data",
            "process",
        ] {
            let of_kind = || self.0.iter().filter(|(place, _)| place.starts_with(kind));
            writeln!(
                f,
                "  {kind:16} {:5} {:10} bytes",
                of_kind().count(),
                of_kind().map(|(_, bytes)| bytes.len()).sum::<usize>()
            )?;
        }
        Ok(())
    }
}

fn children(of: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // After the name in brackets: the state, then the parent.
        let parent = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
        if parent == Some(of) {
            found.push(pid);
        }
    }
    found
}
