//! Comments cite rules as `page.md, rule 7`. Each citation names a page of `docs/reference` and one of its rules, each document that is
//! named is in the repository, and relative links resolve.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Where rules are cited.
const CITING: [&str; 7] = [
    "src",
    "crates",
    "tests",
    "migrations",
    "benches",
    "script",
    "docs",
];
/// This file has examples of wrong citations.
const SELF: &str = "tests/citations.rs";
/// Names of documents that are not in the repository.
const OUTSIDE: [&str; 5] = ["jobs-api", "design:", "contract.md", "store.md", "stack.md"];
/// Words that cite a document outside the repository when a number follows.
const OUTSIDE_BY_NUMBER: [&str; 3] = ["contract", "specification", "section"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text files under a folder, or the file itself.
/// Without the works of others.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.ends_with("third_party") {
        return;
    }
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            files(&entry.unwrap().path(), found);
        }
    } else if path.exists() {
        found.push(path.to_owned());
    }
}

fn texts(names: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for name in names {
        files(&root().join(name), &mut found);
    }
    found.sort();
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    found
        .iter()
        .filter_map(|path| Some((name(path), std::fs::read_to_string(path).ok()?)))
        .collect()
}

/// The comment or text of a line, without what begins a comment.
fn content(line: &str) -> &str {
    let line = line.trim();
    ["//!", "///", "//", "--", "#"]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .unwrap_or(line)
        .trim_start()
}

/// A file as one line, with the place in it where each line begins: a citation may be wrapped.
fn joined(text: &str) -> (String, Vec<usize>) {
    let (mut all, mut begins) = (String::new(), Vec::new());
    for line in text.lines() {
        begins.push(all.len());
        all.push_str(content(line));
        all.push(' ');
    }
    (all, begins)
}

fn line_of(begins: &[usize], at: usize) -> usize {
    begins.partition_point(|begin| *begin <= at)
}

fn number(text: &str) -> Option<(usize, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The numbers at the beginning of a text: `3 and 5`, `3, 4 and 7`, `3 to 5`.
fn numbers(text: &str) -> Vec<RangeInclusive<usize>> {
    let Some((first, mut rest)) = number(text) else {
        return Vec::new();
    };
    let mut found = vec![first..=first];
    loop {
        let next = |word: &str| rest.strip_prefix(word).and_then(number);
        if let Some((last, after)) = next(" to ") {
            let begin = *found.pop().unwrap().start();
            found.push(begin..=last);
            rest = after;
        } else if let Some((one, after)) = next(", and ")
            .or_else(|| next(" and "))
            .or_else(|| next(", "))
        {
            found.push(one..=one);
            rest = after;
        } else {
            return found;
        }
    }
}

/// A page and rules of it that a text cites, and where.
#[derive(Debug, PartialEq)]
struct Citation {
    at: usize,
    page: String,
    rules: Vec<RangeInclusive<usize>>,
}

fn citations(text: &str) -> Vec<Citation> {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '-' || c == '_';
    let mut found = Vec::new();
    for (at, mark) in text.match_indices(".md, rule") {
        let after = &text[at + mark.len()..];
        let one = |text| number(text).map(|(rule, _)| rule..=rule);
        if after.starts_with(" N") {
            continue; // the form of a citation, not one
        }
        let rules = match (after.strip_prefix(' '), after.strip_prefix("s ")) {
            (Some(rule), _) => one(rule).into_iter().collect(),
            (None, Some(rules)) => numbers(rules),
            (None, None) => continue,
        };
        let begin = text[..at].trim_end_matches(is_name).len();
        found.push(Citation {
            at: begin,
            page: text[begin..at].to_owned(),
            rules,
        });
    }
    found
}

/// The number of each rule of a page, in its order.
fn rules(page: &str) -> Vec<usize> {
    let rule = |line: &str| line.strip_prefix("**")?.split_once(".** ")?.0.parse().ok();
    page.lines().filter_map(rule).collect()
}

/// The pages of `docs/reference` with their rules.
fn pages() -> BTreeMap<String, Vec<usize>> {
    texts(&["docs/reference"])
        .into_iter()
        .filter_map(|(path, text)| {
            let name = path.rsplit('/').next()?.strip_suffix(".md")?.to_owned();
            Some((name, rules(&text)))
        })
        .collect()
}

/// What of a citation is not there.
fn missing(citation: &Citation, pages: &BTreeMap<String, Vec<usize>>) -> Option<String> {
    let page = &citation.page;
    let Some(known) = pages.get(page) else {
        return Some(format!("there is no page docs/reference/{page}.md"));
    };
    if citation.rules.is_empty() {
        return Some(format!("{page}.md is cited without the number of a rule"));
    }
    if citation.rules.iter().any(RangeInclusive::is_empty) {
        return Some(format!("rules of {page}.md are cited backwards"));
    }
    let known: BTreeSet<_> = known.iter().copied().collect();
    let ends = citation
        .rules
        .iter()
        .flat_map(|range| [*range.start(), *range.end()]);
    let gone: BTreeSet<_> = ends.filter(|rule| !known.contains(rule)).collect();
    (!gone.is_empty()).then(|| format!("{page}.md has no rule {gone:?}"))
}

/// Where a text cites documents that are not in the repository.
fn outside(text: &str) -> Vec<usize> {
    let text = text.to_ascii_lowercase();
    let is_word = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let mut found = Vec::new();
    for word in OUTSIDE {
        for (at, _) in text.match_indices(word) {
            let is_quoted = text[..at].ends_with('"') && text[at + word.len()..].starts_with('"');
            if is_word(at) && !is_quoted {
                found.push(at);
            }
        }
    }
    for word in OUTSIDE_BY_NUMBER {
        for (at, _) in text.match_indices(word) {
            let after = text[at + word.len()..].strip_prefix([' ', '_']);
            if is_word(at) && after.and_then(number).is_some() {
                found.push(at);
            }
        }
    }
    found
}

/// The paths below `docs` that a text names, and where.
fn documents(text: &str) -> Vec<(usize, &str)> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let mut found = Vec::new();
    for (at, mark) in text.match_indices("docs/") {
        let rest = &text[at..];
        let path = rest[..rest.find(|c| !is_path(c)).unwrap_or(rest.len())].trim_end_matches('.');
        let begins = !text[..at].ends_with(|c: char| is_path(c) || c == '}' || c == '$');
        if begins && path.len() > mark.len() {
            found.push((at, path));
        }
    }
    found
}

/// Whether a document is there; a decision may be named by its number alone.
fn exists(path: &str) -> bool {
    let is_decision = |number: &str| {
        let folder = std::fs::read_dir(root().join("docs/decisions")).unwrap();
        let mut names = folder.map(|entry| entry.unwrap().file_name());
        number.len() == 4 && names.any(|name| name.to_string_lossy().starts_with(number))
    };
    root().join(path).exists()
        || path
            .strip_prefix("docs/decisions/")
            .is_some_and(is_decision)
}

#[test]
fn cited_rules_are_in_the_reference() {
    let pages = pages();
    let (mut wrong, mut count) = (String::new(), 0);
    for (path, text) in texts(&CITING) {
        if path == SELF {
            continue;
        }
        let (text, begins) = joined(&text);
        for citation in citations(&text) {
            count += 1;
            if let Some(why) = missing(&citation, &pages) {
                writeln!(wrong, "{path}:{}: {why}", line_of(&begins, citation.at)).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 0, "no rule is cited, so citations are not found");
}

#[test]
fn cited_documents_are_in_the_repository() {
    let mut wrong = String::new();
    for (path, text) in texts(&CITING[..5]) {
        if path == SELF {
            continue;
        }
        let (text, begins) = joined(&text);
        for at in outside(&text) {
            let cited: String = text[at..].chars().take(30).collect();
            writeln!(wrong, "{path}:{}: {cited}", line_of(&begins, at)).unwrap();
        }
        for (at, document) in documents(&text) {
            if !exists(document) {
                writeln!(
                    wrong,
                    "{path}:{}: {document} is not there",
                    line_of(&begins, at)
                )
                .unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn rules_of_a_page_are_numbered_without_gaps() {
    for (page, rules) in pages() {
        let expected: Vec<_> = (1..=rules.len()).collect();
        assert_eq!(rules, expected, "docs/reference/{page}.md");
    }
}

#[test]
fn citations_are_read_in_all_their_forms() {
    let of = |text: &str| {
        citations(text)
            .into_iter()
            .map(|citation| (citation.page, citation.rules))
            .collect::<Vec<_>>()
    };
    let page = |rules: &[RangeInclusive<usize>]| vec![("pace".to_owned(), rules.to_vec())];
    assert_eq!(of("(pace.md, rule 4)."), page(&[4..=4]));
    assert_eq!(of("pace.md, rules 4 and 12: x"), page(&[4..=4, 12..=12]));
    assert_eq!(of("docs/reference/pace.md, rules 4 to 9"), page(&[4..=9]));
    assert_eq!(
        of("pace.md, rules 1, 3 to 5 and 8"),
        page(&[1..=1, 3..=5, 8..=8])
    );
    assert_eq!(of("pace.md, rule 4 and 2 more"), page(&[4..=4]));
    assert_eq!(of("pace.md, rule of thumb"), page(&[]));
    assert!(of("pace.md, `rule`; pace.md, rule N").is_empty());
}

#[test]
fn wrapped_citations_are_found_at_their_line() {
    let (text, begins) = joined("fn a() {}\n    /// A reason (pace.md,\n    /// rule 7).\n");
    let found = citations(&text);
    assert_eq!(
        (found[0].rules.as_slice(), line_of(&begins, found[0].at)),
        ([7..=7].as_slice(), 2)
    );
}

#[test]
fn missing_pages_and_rules_are_named() {
    let pages = BTreeMap::from([("pace".to_owned(), rules("**1.** One.\n\n**2.** Two.\n"))]);
    let why = |text: &str| missing(&citations(text)[0], &pages);
    assert_eq!(why("pace.md, rules 1 and 2"), None);
    assert_eq!(
        why("pace.md, rules 2 to 3").unwrap(),
        "pace.md has no rule {3}"
    );
    assert!(why("pace.md, rules 2 to 1").is_some());
    assert!(why("pace.md, rule of thumb").is_some());
    assert!(why("speed.md, rule 1").unwrap().contains("no page"));
}

#[test]
fn documents_outside_the_repository_are_recognised() {
    for cites in [
        "(contract 16)",
        "Contract 2",
        "contract_21_x",
        "design: who",
        "(jobs-api, \"Scans\")",
    ] {
        assert_eq!(outside(cites).len(), 1, "{cites}");
    }
    for plain in [
        "the contract of 16 scans",
        "by design",
        "restore.md",
        "subsection 4",
        "[\"jobs-api\"]",
    ] {
        assert!(outside(plain).is_empty(), "{plain}");
    }
    assert_eq!(
        documents("(docs/a.md, docs/b/0001). /docs/c {x}/docs/d"),
        [(1, "docs/a.md"), (12, "docs/b/0001")]
    );
}
