//! The directions between the modules of `crates/core`, checked against the sources. The compiler
//! holds those between the crates.
//!
//! The tests also allow apalis only in `queue` and `worker`, and SQL only in `store.rs` files,
//! `queue`, `upkeep` and `db`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::syntax::{Syntax, product};

/// Modules that every module may use: settings, system limits, metrics, cursors of lists, background
/// passes, and two of the contract by their short names.
const LEAVES: &[&str] = &[
    "config",
    "ids",
    "open_files",
    "metrics",
    "paging",
    "passes",
    "visible_text",
];

/// The modules that each module may use, besides [`LEAVES`]. A module that is not listed is one of
/// another crate.
const MAY_USE: &[(&str, &[&str])] = &[
    ("search", &["contract"]),
    ("upstream", &["search", "contract"]),
    ("db", &[]),
    ("marketplace", &["db", "upstream"]),
    // The key that tenants seal is `search::CallerKey`.
    ("tenants", &["db", "search"]),
    ("history", &["db", "search", "contract"]),
    ("commands", &["db", "tenants", "search", "contract"]),
    (
        "scans",
        &[
            "ask", "commands", "db", "history", "planner", "tenants", "search", "contract",
        ],
    ),
    ("notices", &["sheets", "contract"]),
    ("notify", &["contract"]),
    (
        "webhooks",
        &["commands", "db", "notices", "notify", "tenants", "contract"],
    ),
    (
        "channels",
        &[
            "commands", "db", "notices", "notify", "tenants", "webhooks", "contract",
        ],
    ),
    (
        "monitors",
        &[
            "account", "channels", "commands", "db", "scans", "history", "notices", "notify",
            "webhooks", "tenants", "search", "contract",
        ],
    ),
    ("activity", &["scans", "monitors", "webhooks", "contract"]),
    (
        "account",
        &["commands", "db", "scans", "tenants", "contract"],
    ),
    (
        "queue",
        &[
            "commands", "db", "scans", "history", "tenants", "upstream", "search", "contract",
        ],
    ),
    (
        "charges",
        &["db", "queue", "tenants", "upstream", "search", "contract"],
    ),
    ("search_recorder", &["db", "queue", "tenants", "search"]),
    (
        "upkeep",
        &["commands", "db", "queue", "scans", "history", "tenants"],
    ),
    (
        "app",
        &[
            "charges",
            "commands",
            "db",
            "monitors",
            "queue",
            "scans",
            "search_recorder",
            "tenants",
            "upstream",
            "webhooks",
            "search",
            "contract",
        ],
    ),
    (
        "worker",
        &["marketplace", "queue", "tenants", "upkeep", "upstream"],
    ),
    ("config", &["upstream"]),
    ("metrics", &[]),
    ("open_files", &[]),
    ("paging", &["contract"]),
    ("passes", &[]),
    ("logging", &[]),
];

/// The files of the product, with their paths in one tree of modules: the files of `crates/core` and
/// of `src` are at its root, each other crate is a module: `crates/contract/src/lib.rs` is
/// `contract/lib.rs`.
pub fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    read_sources(&root.join("src"), Path::new(""), &mut sources);
    // It only re-exports what the crates have.
    sources.retain(|(path, _)| path != Path::new("lib.rs"));
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let below = if name == "core" { "".into() } else { name };
        read_sources(&entry.path().join("src"), Path::new(&below), &mut sources);
    }
    sources
}

fn read_sources(folder: &Path, below: &Path, sources: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let below = below.join(path.file_name().unwrap());
        if path.is_dir() {
            read_sources(&path, &below, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push((below, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The top-level module that a file belongs to.
fn module(path: &Path) -> String {
    Path::new(path.components().next().unwrap().as_os_str())
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

/// A module that is not listed would be free to use any other.
#[test]
fn each_module_of_core_is_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/core/src");
    for entry in std::fs::read_dir(folder).unwrap() {
        let module = module(Path::new(&entry.unwrap().file_name()));
        let is_listed = MAY_USE.iter().any(|(name, _)| *name == module);
        assert!(is_listed || module == "lib", "{module}");
    }
}

#[test]
fn each_module_uses_only_the_modules_it_may() {
    let mut broken = Vec::new();
    for file in product() {
        let (path, module) = (&file.path, module(&file.path));
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == module) else {
            continue;
        };
        for used in file.top_modules() {
            let fine = used == module
                || allowed.contains(&used.as_str())
                || LEAVES.contains(&used.as_str());
            if !fine {
                broken.push(format!("{}: {module} uses {used}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// `cargo install --path crates/client` installs the commands alone.
#[test]
fn the_client_depends_on_neither_server_nor_database() {
    let tree = std::process::Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--package",
            "farescan-client",
        ])
        .args(["--edges", "normal", "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    let crates: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(crates.contains("farescan-contract"), "{tree}");
    for server in [
        "sqlx",
        "axum",
        "farescan",
        "farescan-core",
        "farescan-sandbox",
    ] {
        assert!(!crates.contains(server), "{server}");
    }
}

#[test]
fn only_queue_and_worker_name_apalis() {
    for (path, text) in sources() {
        let named = text.contains("apalis::") || text.contains("apalis_core::");
        assert!(
            !named || matches!(module(&path).as_str(), "queue" | "worker"),
            "{}",
            path.display()
        );
    }
}

#[test]
fn sql_is_only_in_stores_queue_upkeep_and_db() {
    for (path, text) in sources() {
        let has_sql = text.contains("sqlx::query");
        let may = path.ends_with("store.rs")
            || path.components().any(|part| part.as_os_str() == "store")
            || matches!(module(&path).as_str(), "queue" | "upkeep" | "db");
        assert!(!has_sql || may, "{} holds SQL", path.display());
    }
}

/// The files that may read the process's clock, and for what.
const PROCESS_CLOCK: &[(&str, &str)] = &[
    (
        "db/clock.rs",
        "compares the process's clock with the database's",
    ),
    ("queue/begin.rs", "when a call began"),
    ("queue/call.rs", "when a call began and ended"),
    ("queue/record.rs", "when a call was recorded"),
    ("queue/abandon.rs", "when a call was abandoned"),
    (
        "queue/result_writer.rs",
        "how long an answer waited in the spool",
    ),
    ("webhooks/run.rs", "when a delivery was tried"),
    ("sandbox/server.rs", "the clock of the sandbox marketplace"),
    ("cli/demo/mod.rs", "the day of its searches"),
    ("cli/serve.rs", "the days of a trial's past"),
    (
        "client/dates.rs",
        "the first of the dates that a command means",
    ),
    ("cli/keys/new.rs", "the name of a key"),
];

/// Partitions, expiry, slots and upkeep concern all processes: they use `db::clock::DatabaseTime`.
#[test]
fn only_listed_files_read_the_process_clock() {
    let reads = |file: &Syntax| {
        let clock = ["Timestamp".to_owned(), "now".to_owned()];
        file.paths.iter().any(|path| path.ends_with(&clock))
    };
    let reading: BTreeSet<_> = product()
        .iter()
        .filter(|file| reads(file))
        .map(|file| file.path.display().to_string())
        .collect();
    let listed = PROCESS_CLOCK.iter().map(|(file, _)| (*file).to_owned());
    assert_eq!(reading, listed.collect());
}

/// Whether a statement locks rows.
fn locks_rows(statement: &str) -> bool {
    [
        "for update",
        "for no key update",
        "for share",
        "for key share",
    ]
    .iter()
    .any(|lock| statement.contains(lock))
}

/// Every lock on a monitor is taken by `webhooks::MonitorLock`, so the lock order is the same
/// everywhere. The exception is the relocation of a tenant: it locks all rows of the tenant table
/// by table, monitors before the tables that refer to them.
#[test]
fn monitors_and_webhooks_are_locked_in_one_place() {
    for (path, text) in sources() {
        let is_relocation = path.ends_with("tenants/relocate/store.rs");
        for statement in text
            .split('"')
            .filter(|part| locks_rows(part) && !is_relocation)
        {
            let of_monitor = statement.contains("from monitors");
            let of_webhook = statement.contains("from webhook_endpoints");
            assert!(
                !of_monitor || path.ends_with("webhooks/store/lock.rs"),
                "{}: {statement}",
                path.display()
            );
            assert!(
                !of_webhook || path.starts_with("webhooks/store"),
                "{}: {statement}",
                path.display()
            );
        }
    }
}

/// `scans::store::lock` takes every lock of `scans`, so that all commands have one lock order. The
/// queue's SQL functions have their own locks.
#[test]
fn scans_are_locked_in_one_place() {
    for (path, text) in sources() {
        assert!(
            module(&path) != "scans"
                || path.ends_with("scans/store/lock.rs")
                || !text.split('"').any(locks_rows),
            "{} locks rows",
            path.display()
        );
    }
}

/// A reader who searches for a type's name finds one type. Types of tests do not count.
#[test]
fn a_type_name_stands_for_one_type() {
    let mut files = BTreeMap::<String, Vec<PathBuf>>::new();
    for file in product() {
        for name in file.types {
            files.entry(name).or_default().push(file.path.clone());
        }
    }
    files.retain(|_, files| files.len() > 1);
    assert!(files.is_empty(), "{files:#?}");
}
