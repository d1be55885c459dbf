//! Each row of the tables of `words.md` says what its words are read as. `FARESCAN_RECORD=1` writes what
//! they are read as now.

use std::fmt::Write as _;
use std::path::Path;

use super::TODAY;
use crate::{Reading, read};

const PAGE: &str = include_str!("../../words.md");
/// The least examples of the page.
const EXAMPLES: usize = 200;
const REFUSED: usize = 10;

/// What a text is read as: its words, or why it is refused.
fn answer(reading: &Reading) -> (bool, String) {
    match &reading.result {
        Ok(question) => (true, question.words()),
        Err(refusals) => {
            let mut text = String::new();
            for refusal in refusals {
                let separator = if text.is_empty() { "" } else { " · " };
                let words = if refusal.words.is_empty() {
                    String::new()
                } else {
                    format!("{}: ", refusal.words)
                };
                _ = write!(text, "{separator}{words}{}", refusal.says);
                let choices: Vec<_> = refusal
                    .choices
                    .iter()
                    .map(|choice| choice.text.as_str())
                    .collect();
                if !choices.is_empty() {
                    _ = write!(text, " [{}]", choices.join("; "));
                }
            }
            (false, text)
        }
    }
}

#[test]
fn every_example_of_the_page_is_read_as_it_says() {
    let records = std::env::var_os("FARESCAN_RECORD").is_some();
    let (mut read_count, mut refused_count) = (0, 0);
    let (mut page, mut differ) = (String::new(), Vec::new());
    let mut expects_question = true;
    for line in PAGE.lines() {
        if line.starts_with("## ") {
            expects_question = !line.contains("refused");
        }
        let cells = line
            .strip_prefix("| `")
            .and_then(|row| row.split_once("` |"));
        let Some((words, expected)) = cells else {
            _ = writeln!(page, "{line}");
            continue;
        };
        let (is_question, found) = answer(&read(words, TODAY));
        let expected = expected
            .trim()
            .trim_end_matches('|')
            .trim()
            .trim_matches('`');
        if is_question != expects_question || found != expected {
            differ.push(format!("{words}\n  page:  {expected}\n  found: {found}"));
        }
        *(if is_question {
            &mut read_count
        } else {
            &mut refused_count
        }) += 1;
        let tick = if is_question { "`" } else { "" };
        _ = writeln!(page, "| `{words}` | {tick}{found}{tick} |");
    }
    if records {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("words.md");
        std::fs::write(path, page).expect("the page is written");
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(read_count >= EXAMPLES, "{read_count}");
    assert!(refused_count >= REFUSED, "{refused_count}");
}
