//! Relative links and pictures of all Markdown files lead to files of the repository, and anchors
//! to headings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// A link of a document.
#[derive(Debug, PartialEq, Eq)]
struct Link {
    line: usize,
    /// Empty: the document itself.
    file: String,
    anchor: Option<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Markdown file of the repository, by its path.
fn documents() -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && name != ".git" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.insert(path.strip_prefix(root()).unwrap().to_path_buf(), text);
            }
        }
    }
    found
}

/// The lines of a text outside of fenced blocks, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut is_block = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// The links to files and headings, and the pictures. Code and addresses are left out.
fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, whole) in prose(text) {
        let outside_code: String = whole.split('`').step_by(2).collect::<Vec<_>>().join("x");
        for (begin, end) in [
            ("](", ')'),
            ("src=\"", '"'),
            ("srcset=\"", '"'),
            ("href=\"", '"'),
        ] {
            for part in outside_code.split(begin).skip(1) {
                let Some((target, _)) = part.split_once(end) else {
                    continue;
                };
                if target.contains(':') {
                    continue;
                }
                let (file, anchor) = match target.split_once('#') {
                    Some((file, anchor)) => (file, Some(anchor.to_owned())),
                    None => (target, None),
                };
                found.push(Link {
                    line,
                    file: file.to_owned(),
                    anchor,
                });
            }
        }
    }
    found
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).into_iter().filter_map(|(_, line)| {
        line.trim_start_matches('#')
            .strip_prefix(' ')
            .filter(|_| line.starts_with('#'))
    });
    headings
        .map(|heading| {
            let lower = heading.to_lowercase();
            lower
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

/// The path without `..` in it.
fn resolved(from: &Path, file: &str) -> PathBuf {
    let mut path = from.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path
}

/// What is wrong with a link, if anything.
fn wrong(from: &Path, link: &Link, documents: &BTreeMap<PathBuf, String>) -> Option<String> {
    let path = if link.file.is_empty() {
        from.to_path_buf()
    } else {
        resolved(from, &link.file)
    };
    if !root().join(&path).exists() {
        return Some(format!("{} is not there", path.display()));
    }
    let anchor = link.anchor.as_ref()?;
    let headings = documents.get(&path).map(|text| anchors(text));
    match headings {
        Some(headings) if headings.contains(anchor) => None,
        _ => Some(format!("{} has no heading for #{anchor}", path.display())),
    }
}

#[test]
fn links_of_all_documents_resolve() {
    let documents = documents();
    let (mut found, mut count) = (Vec::new(), 0);
    for (path, text) in &documents {
        for link in links(text) {
            count += 1;
            if let Some(why) = wrong(path, &link, &documents) {
                found.push(format!("{}:{}: {why}", path.display(), link.line));
            }
        }
    }
    assert!(count > 100, "{count} links");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn links_are_read_outside_of_code() {
    let text = "[a](b.md) [c](https://d) `[e](f)`\n```\n[g](h)\n```\n[i](j.md#k), [l](#m)\n<img src=\"n.png\">";
    let link = |line, file: &str, anchor: Option<&str>| Link {
        line,
        file: file.to_owned(),
        anchor: anchor.map(str::to_owned),
    };
    assert_eq!(
        links(text),
        [
            link(1, "b.md", None),
            link(5, "j.md", Some("k")),
            link(5, "", Some("m")),
            link(6, "n.png", None),
        ]
    );
}

#[test]
fn dead_links_and_anchors_are_found() {
    let documents = BTreeMap::from([(
        PathBuf::from("README.md"),
        "# The API's `key`\n```\n# No heading\n```\n".to_owned(),
    )]);
    let why = |text: &str| wrong(Path::new("manual/a.md"), &links(text)[0], &documents);
    assert_eq!(why("[a](../README.md#the-apis-key)"), None);
    assert!(why("[a](../README.md#no-heading)").is_some());
    assert!(why("[a](README.md)").is_some());
    assert!(why("[a](../README.md)").is_none());
}
