//! The first pages of a reader: README is short and has the two commands of a fresh machine, and the
//! indexes of documents and decisions name each of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The pages in a folder of `docs`, as links from it, without its index.
fn pages(folder: &str) -> BTreeSet<String> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "docs", folder]
        .iter()
        .collect();
    let prefix = if folder.is_empty() || folder == "decisions" {
        String::new()
    } else {
        format!("{folder}/")
    };
    std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            Path::new(name).extension().is_some_and(|kind| kind == "md") && name != "README.md"
        })
        .map(|name| format!("{prefix}{name}"))
        .collect()
}

/// The pages of a folder that an index does not name.
fn unlisted(index: &str, pages: BTreeSet<String>) -> Vec<String> {
    assert!(pages.len() > 5, "{pages:?}");
    let is_unlisted = |page: &String| !index.contains(&format!("]({page})"));
    pages.into_iter().filter(is_unlisted).collect()
}

#[test]
fn readme_is_short_and_begins_on_a_fresh_machine() {
    let readme = read("README.md");
    let lines: Vec<_> = readme.lines().collect();
    assert!(lines.len() <= 120, "{} lines", lines.len());
    for command in ["script/demo", "script/test"] {
        assert!(
            lines.iter().any(|line| line.starts_with(command)),
            "{command}"
        );
    }
    let shown: Vec<_> = readme
        .split("```text\n")
        .skip(1)
        .flat_map(|rest| rest.split("```").next().unwrap().lines())
        .collect();
    assert!((5..=12).contains(&shown.len()), "{shown:?}");
    assert!(
        shown.iter().all(|line| line.chars().count() <= 100),
        "{shown:?}"
    );
}

#[test]
fn readme_lists_the_decisions_and_documents() {
    assert!(read("README.md").contains("](docs/README.md)"));
    let decisions = read("docs/decisions/README.md");
    let unlisted_decisions = unlisted(&decisions, pages("decisions"));
    assert!(unlisted_decisions.is_empty(), "{unlisted_decisions:?}");
    let documents = read("docs/README.md");
    let all: BTreeSet<_> = ["", "guides", "reference"]
        .into_iter()
        .flat_map(pages)
        .collect();
    let unlisted_documents = unlisted(&documents, all);
    assert!(unlisted_documents.is_empty(), "{unlisted_documents:?}");
}

#[test]
fn an_unlisted_page_is_found() {
    let pages: BTreeSet<_> = (1..8).map(|number| format!("000{number}.md")).collect();
    let index: String = (1..7)
        .map(|number| format!("[{number}](000{number}.md)\n"))
        .collect();
    assert_eq!(unlisted(&index, pages), ["0007.md"]);
}
