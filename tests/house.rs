//! The house's directions (design: who may use whom), read from the sources.
//!
//! What is absent is held too: apalis outside `queue` and `worker`, SQL outside `store.rs` files, `queue` and `db`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Modules that everybody may use: names, settings, limits of the system, metrics, positions in lists.
const LEAVES: &[&str] = &["ids", "config", "files", "measure", "paging"];

/// Who may use whom, beside the leaves and himself. Who is not here (`cli`, `worker` …) ties the others together and may use all.
const MAY_USE: &[(&str, &[&str])] = &[
    ("ids", &[]),
    ("contract", &[]),
    ("search", &["contract"]),
    ("upstream", &["search", "contract"]),
    ("sandbox", &["contract"]),
    ("db", &[]),
    ("marketplace", &["db", "upstream"]),
    // The key that tenants seal is `search::CallerKey`.
    ("tenants", &["db", "search"]),
    ("history", &["db", "search", "contract"]),
    ("scans", &["db", "history", "tenants", "search", "contract"]),
    ("webhooks", &["db", "tenants", "contract"]),
    (
        "monitors",
        &[
            "db", "scans", "history", "webhooks", "tenants", "search", "contract",
        ],
    ),
    ("account", &["db", "scans", "tenants", "contract"]),
    (
        "queue",
        &[
            "db", "scans", "history", "tenants", "upstream", "search", "contract",
        ],
    ),
    ("config", &["upstream"]),
    ("telemetry", &[]),
];

/// Used by nobody but the top: the faces.
const FACES: &[&str] = &["http", "web", "cli"];

fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                sources.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    sources
}

/// The module at the top of the house that a file belongs to.
fn module(path: &Path) -> String {
    Path::new(path.components().next().unwrap().as_os_str())
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

/// The modules at the top of the house that a source names after `crate::`, in braces too; comments do not count.
fn uses(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let word = |text: &str| {
        text.trim_start()
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect::<String>()
    };
    let mut used = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let after = &code[at + "crate::".len()..];
        if code[..at].ends_with('$') {
            continue; // a macro's own path, written where the macro is
        }
        match after.strip_prefix('{') {
            Some(list) => used.extend(top_level(list).into_iter().map(word)),
            None => _ = used.insert(word(after)),
        }
    }
    used
}

/// The parts of a braced list, its own inner lists cut off.
fn top_level(list: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                parts.push(&list[begin..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts
}

#[test]
fn the_reader_of_sources_sees_what_is_used() {
    let text = "use crate::a::{b, c};\nuse crate::{d::{e, f}, g};\n// use crate::h;\nlet x = crate::i::j();\n$crate::k::l!()";
    assert_eq!(uses(text), ["a", "d", "g", "i"].map(str::to_owned).into());
}

#[test]
fn each_module_uses_only_whom_it_may() {
    let mut broken = Vec::new();
    for (path, text) in sources() {
        let module = module(&path);
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == module) else {
            continue;
        };
        for used in uses(&text) {
            let fine = used == module
                || allowed.contains(&used.as_str())
                || (LEAVES.contains(&used.as_str()) && !matches!(module.as_str(), "ids"));
            if !fine {
                broken.push(format!("{}: {module} uses {used}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn faces_are_used_by_nobody_below_them() {
    let top = ["lib", "main", "service", "worker", "cli", "http", "web"];
    for (path, text) in sources() {
        let module = module(&path);
        let used: Vec<_> = uses(&text)
            .into_iter()
            .filter(|used| FACES.contains(&used.as_str()) && *used != module)
            .collect();
        assert!(
            used.is_empty() || top.contains(&module.as_str()),
            "{}: {module} uses {used:?}",
            path.display()
        );
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
fn sql_is_only_in_stores_the_queue_and_db() {
    for (path, text) in sources() {
        let holds = text.contains("sqlx::query");
        let may = path.ends_with("store.rs")
            || path.components().any(|part| part.as_os_str() == "store")
            || matches!(module(&path).as_str(), "queue" | "db");
        assert!(!holds || may, "{} holds SQL", path.display());
    }
}

/// Where this process's clock is asked, and why that is right there.
const OWN_CLOCK: &[(&str, &str)] = &[
    ("db/clock.rs", "compares it with the database's"),
    ("queue/begin.rs", "when a call began"),
    ("queue/call.rs", "when a call began and ended"),
    ("queue/record.rs", "when a call was recorded"),
    ("queue/give_up.rs", "when a call was given up"),
    ("queue/keep.rs", "how long an answer waited in the spool"),
    ("queue/charge.rs", "when the marketplace accepted a key"),
    ("http/admission.rs", "when the marketplace accepted a key"),
    ("webhooks/run.rs", "when a delivery was tried"),
    (
        "cli/tenants/restore.rs",
        "when an operator undid a rotation",
    ),
    ("sandbox/server.rs", "the marketplace's own"),
    ("cli/demo/mod.rs", "the day of its searches"),
    ("cli/keys/new.rs", "the name of a key"),
];

/// Partitions, expiry, slots and upkeep are decided for all processes: they go by `db::clock::DatabaseTime`.
#[test]
fn only_what_a_process_notes_of_itself_goes_by_its_clock() {
    for (path, text) in sources() {
        let code = text.split("#[cfg(test)]").next().unwrap();
        let asks = code
            .lines()
            .any(|line| line.contains("Timestamp::now") && !line.trim_start().starts_with("//"));
        let may =
            OWN_CLOCK.iter().any(|(file, _)| path.ends_with(file)) || path.ends_with("tests.rs");
        assert!(!asks || may, "{} asks the process's clock", path.display());
    }
}

/// Whoever locks a monitor does it by `webhooks::MonitorLock`, so the order of locks is the same everywhere; but for who takes all rows of
/// a caller, table by table, and monitors before what refers to them.
#[test]
fn monitors_and_webhooks_are_locked_in_one_place() {
    let locks = |statement: &str| {
        [
            "for update",
            "for no key update",
            "for share",
            "for key share",
        ]
        .iter()
        .any(|lock| statement.contains(lock))
    };
    for (path, text) in sources() {
        let is_relocation = path.ends_with("tenants/relocate/store.rs");
        for statement in text.split('"').filter(|part| locks(part) && !is_relocation) {
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
