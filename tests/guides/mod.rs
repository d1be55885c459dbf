//! The guides (docs/guides): their commands run as written, in bash, and print what the guides show.
//!
//! A block marked `sh` is run; `sh exit=3` names another exit code than 0. A block marked `text`
//! after it is its output. Each line of it must come in the output, in this order: a number stands
//! for any number, an id for any id, spaces for any spaces and `…` for anything. A line with only
//! `…` stands for any lines.

mod service;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;

use parquet::file::reader::{FileReader as _, SerializedFileReader};

use self::service::GuideService;

/// A command block of a guide and the output that the guide shows.
#[derive(Debug, Default)]
struct Step {
    line: usize,
    commands: String,
    exit_code: i32,
    shown: Vec<String>,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/guides")
}

fn read(guide: &str) -> String {
    std::fs::read_to_string(folder().join(format!("{guide}.md"))).unwrap()
}

/// The fenced blocks as (first line, information string, text).
fn blocks(markdown: &str) -> Vec<(usize, &str, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, &str, String)> = None;
    for (number, line) in markdown.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (fence, &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(info), None) => open = Some((number + 1, info, String::new())),
            (None, Some((_, _, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

fn steps(markdown: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (line, info, text) in blocks(markdown) {
        if let Some(options) = info.strip_prefix("sh") {
            let exit_code = options.trim().strip_prefix("exit=").unwrap_or("0");
            steps.push(Step {
                line,
                commands: text,
                exit_code: exit_code.parse().unwrap(),
                shown: Vec::new(),
            });
        } else if info == "text"
            && let Some(step) = steps.last_mut()
        {
            step.shown.extend(text.lines().map(str::to_owned));
        }
    }
    steps
}

/// One bash runs all steps, so that variables stay; marks separate their outputs.
fn script(steps: &[Step]) -> String {
    let step = |(number, step): (usize, &Step)| {
        let commands = step.commands.trim_end();
        format!("echo '@@ begin'\n{commands}\ncode=$?; echo; echo \"@@ end {number} $code\"\n")
    };
    let steps: String = steps.iter().enumerate().map(step).collect();
    format!("exec 2>&1\n{steps}")
}

/// The output and exit code of each step.
fn results(output: &str) -> Vec<(String, i32)> {
    let parts = output.split("@@ begin\n").skip(1);
    parts
        .map(|part| {
            let (text, end) = part.rsplit_once("@@ end ").unwrap_or((part, "0 -1"));
            let code = end.split_whitespace().nth(1).unwrap();
            (text.trim_end().to_owned(), code.parse().unwrap())
        })
        .collect()
}

/// The line with each number, id, date and run of spaces or rules replaced by a mark.
fn normal(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.trim();
    while let Some(first) = rest.chars().next() {
        let end = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, ',' | '.' | ':' | '-');
        let taken = if first.is_ascii_digit() {
            let end = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
            let digits = rest[..end].trim_end_matches([',', '.', ':', '-']).len();
            out.push('0');
            digits
        } else if let Some(id) = id_length(rest) {
            out.push_str(&rest[..4]);
            id
        } else if first.is_whitespace() || matches!(first, '─' | '═') {
            out.push(' ');
            end(|c| c.is_whitespace() || matches!(c, '─' | '═'))
        } else {
            out.push(first);
            first.len_utf8()
        };
        rest = &rest[taken..];
    }
    out
}

/// The length of an id, such as `scn_…`, at the beginning of a text.
fn id_length(text: &str) -> Option<usize> {
    let known = ["scn_", "itm_", "att_", "mon_", "alr_", "dlv_", "chn_"];
    let rest = known.iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let digits = rest.find(|c: char| !c.is_ascii_hexdigit() && c != '…');
    Some(4 + digits.unwrap_or(rest.len()))
}

/// The number of all searches in `5 searches instead of 15.`, where a line has it.
fn searches(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once(" instead of ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// Whether a line of output is what a line of the guide shows. Numbers of searches may differ, that
/// of all may not.
fn fits(shown: &str, found: &str) -> bool {
    if searches(shown) != searches(found) {
        return false;
    }
    let (shown, found) = (normal(shown), normal(found));
    let mut parts = shown.split('…');
    let Some(mut rest) = parts.next().and_then(|first| found.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The first line that the output does not have; `…` alone allows lines between.
fn missing<'a>(shown: &'a [String], output: &str) -> Option<&'a str> {
    let mut found = output.lines().filter(|line| !line.trim().is_empty());
    let mut lines = shown.iter().filter(|line| line.trim() != "…");
    lines
        .find(|line| !found.any(|found| fits(line, found)))
        .map(String::as_str)
}

/// Runs a guide; returns what is wrong, and the folder in which its commands wrote.
async fn run(markdown: &str) -> (Vec<String>, tempfile::TempDir) {
    let service = GuideService::start().await;
    let home = tempfile::tempdir().unwrap();
    let steps = steps(markdown);
    assert!(steps.len() > 1, "a guide without commands");
    let mut bash = tokio::process::Command::new("bash");
    service.set_environment(&mut bash, home.path());
    bash.args(["-c", &script(&steps)])
        .current_dir(home.path())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = bash.output().await.unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let results = results(&output);
    let mut wrong = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let Some((text, code)) = results.get(number) else {
            wrong.push(format!("line {}: was not run: {output}", step.line));
            continue;
        };
        if *code != step.exit_code {
            wrong.push(format!("line {}: exit code {code}:\n{text}", step.line));
        }
        if let Some(line) = missing(&step.shown, text) {
            wrong.push(format!("line {}: {line:?} is not in\n{text}", step.line));
        }
        if step.shown.is_empty() && text.contains("error") {
            wrong.push(format!("line {}: {text}", step.line));
        }
    }
    (wrong, home)
}

/// The guides, each of which has a test of its commands below.
const GUIDES: [&str; 10] = [
    "alerts-on-a-phone",
    "asking-in-words",
    "asking-the-history",
    "calling-the-api",
    "is-that-a-good-price",
    "monitoring-and-webhooks",
    "rate-parity",
    "running-for-others",
    "scanning-dates",
    "spending-less",
];

#[test]
fn each_guide_has_a_test() {
    let files = std::fs::read_dir(folder()).unwrap();
    let mut guides: Vec<_> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    guides.sort_unstable();
    assert_eq!(guides, GUIDES.map(|guide| format!("{guide}.md")));
}

async fn check(guide: &str) -> tempfile::TempDir {
    assert!(GUIDES.contains(&guide), "{guide}");
    let (wrong, home) = run(&read(guide)).await;
    assert!(wrong.is_empty(), "{guide}.md: {}", wrong.join("\n"));
    home
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_asking_in_words() {
    check("asking-in-words").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_calling_the_api() {
    check("calling-the-api").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_scanning_dates() {
    check("scanning-dates").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_spending_less() {
    check("spending-less").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_rate_parity() {
    check("rate-parity").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_alerts_on_a_phone() {
    check("alerts-on-a-phone").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_monitoring_and_webhooks() {
    check("monitoring-and-webhooks").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_running_for_others() {
    check("running-for-others").await;
}

/// README's session is checked like a guide. Its other commands, for a fresh machine, are marked `console`.
#[tokio::test(flavor = "multi_thread")]
async fn readme_shows_real_output() {
    let readme = folder().join("../../README.md");
    let (wrong, _) = run(&std::fs::read_to_string(readme).unwrap()).await;
    assert!(wrong.is_empty(), "README.md: {}", wrong.join("\n"));
}

/// Its statement is run by the test `history::verdict`.
#[tokio::test(flavor = "multi_thread")]
async fn commands_of_is_that_a_good_price() {
    check("is-that-a-good-price").await;
}

/// DuckDB is not run here: each column that a query names must be in the exported file.
#[tokio::test(flavor = "multi_thread")]
async fn commands_and_columns_of_asking_the_history() {
    let home = check("asking-the-history").await;
    let file = std::fs::File::open(home.path().join("fares.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    assert!(reader.metadata().file_metadata().num_rows() >= 12);
    let schema = reader.metadata().file_metadata().schema();
    let columns: BTreeSet<&str> = schema
        .get_fields()
        .iter()
        .map(|field| field.name())
        .collect();
    let guide = read("asking-the-history");
    let queries: Vec<_> = blocks(&guide)
        .into_iter()
        .filter(|(_, info, _)| *info == "sql")
        .map(|(_, _, query)| query)
        .collect();
    assert_eq!(queries.len(), 4);
    for query in queries {
        assert!(query.contains("FROM 'fares.parquet'"));
        let names = names_in(&query);
        assert!(
            names.contains("search_status") || names.contains("verdict"),
            "{names:?}"
        );
        let unknown: Vec<_> = names
            .iter()
            .filter(|name| !columns.contains(name.as_str()))
            .collect();
        assert!(
            unknown.is_empty(),
            "{unknown:?} are no columns: {columns:?}"
        );
    }
}

/// The columns that a query names: words in lower case that are no functions, no new names and no
/// text. SQL's own words are in upper case.
fn names_in(query: &str) -> BTreeSet<String> {
    let unquoted: String = query.split('\'').step_by(2).collect::<Vec<_>>().join(" ");
    let mut names = BTreeSet::new();
    let mut new_names = BTreeSet::new();
    let mut before = "";
    let mut rest = unquoted.as_str();
    while let Some(begin) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        rest = &rest[begin..];
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.chars().any(|c| c.is_ascii_lowercase()) && !after.starts_with('(') {
            let names = if before == "AS" {
                &mut new_names
            } else {
                &mut names
            };
            names.insert(word.to_owned());
        }
        before = word;
        rest = after;
    }
    names.retain(|name| !new_names.contains(name));
    names
}

/// The harness itself: a wrong command, a wrong exit code and a wrong output are found.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_command_in_a_guide_is_found() {
    let guide = "```sh\necho API 7 State\n```\n```text\n API … State\n```\n\
        ```sh\nfarescan scan oneway TLV LHR --departure 2030-01\n```\n\
        ```sh\nfarescan quota\n```\n```text\n nothing of this\n```\n\
        ```sh exit=3\nfarescan quota >/dev/null\n```\n";
    let (wrong, _) = run(guide).await;
    let lines: Vec<_> = wrong
        .iter()
        .filter_map(|wrong| wrong.split(':').next())
        .collect();
    assert_eq!(
        lines,
        ["line 7", "line 7", "line 10", "line 16"],
        "{wrong:#?}"
    );
}

#[test]
fn shown_lines_stand_for_what_may_differ() {
    for (shown, found) in [
        (
            "Cheapest: 184 USD, 2027-01-27, …",
            "Cheapest: 1,203 USD, 2031-12-01, El Al",
        ),
        (
            "scn_01a2 is completed: 31 ok",
            "scn_01a20592e19473a98696c13f953c355b is completed: 28 ok",
        ),
        (
            "│ DE ┆ 222 ┆ +15.6 % ┆ real ┆ …",
            "│ DE     ┆ 97 ┆ +2 % ┆ real   ┆ Twin │",
        ),
        (
            "5 searches instead of 15. 5 % chance",
            "4 searches instead of 15. 3 % chance",
        ),
    ] {
        assert!(fits(shown, found), "{shown}");
    }
    for (shown, found) in [
        ("Cheapest: 184 USD", "Cheapest: 184 USD, Israir"),
        ("scn_01a2 is completed", "scn_01a2 is incomplete"),
        ("a … c", "a b d"),
        (
            "5 searches instead of 30. 5 % chance",
            "4 searches instead of 15. 3 % chance",
        ),
    ] {
        assert!(!fits(shown, found), "{shown}");
    }
}
