//! Sheets as lines.

use farescan_contract::ids::ScanId;
use farescan_sheets::sheet::{Figure, NextStep, Notice, Sheet, Value};

use crate::format::time;

/// The title, the facts and the figures.
pub fn lines(sheet: &Sheet) -> String {
    let facts: Vec<_> = sheet.facts.iter().map(value).collect();
    let (facts, figures) = (facts.join(" · "), figures(&sheet.figures));
    format!("{}\n{facts}\n{figures}", sheet.title)
}

/// Figures below each other.
pub fn figures(figures: &[Figure]) -> String {
    let width = figures.iter().map(|figure| figure.label.len()).max();
    let width = width.unwrap_or_default();
    let lines = figures
        .iter()
        .map(|of| format!("{:<width$}  {}", of.label, figure(of)));
    lines.collect::<Vec<_>>().join("\n")
}

/// A figure, and what it means.
pub fn figure(figure: &Figure) -> String {
    let unit = figure.unit.iter().map(|unit| format!(" {unit}"));
    let notes = figure.notes.iter().map(|note| format!(", {}", value(note)));
    std::iter::once(value(&figure.value))
        .chain(unit)
        .chain(notes)
        .collect()
}

fn value(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Strong(text) | Value::Price(_, text) => text.clone(),
        Value::Absent(word) => (*word).to_owned(),
        Value::Time(what, at) => format!("{what} {}", time(*at)),
        Value::Implausible(item, price, text) => format!("({price}) of {item} {text}"),
        Value::Verdict(verdict) => format!("by your past prices {}", verdict.in_words()),
        Value::Tag(tag) => format!("#{tag}"),
    }
}

/// A notice about a scan, and the commands for what can be done about it.
pub fn notice(notice: &Notice, scan: ScanId) -> String {
    let commands = notice.next.iter().map(|next| match next {
        NextStep::Resume => format!("`farescan resume {scan}` continues it"),
        NextStep::RaiseLimit => {
            format!("`farescan resume {scan} --max-requests NUMBER` raises the limit")
        }
        NextStep::CheckKey => "`farescan verify` checks the key".to_owned(),
        NextStep::ReadQuota => {
            "`farescan quota` shows what is left and when the next period begins".to_owned()
        }
        NextStep::ReadReasons => format!("`farescan why {scan}` shows the reasons"),
        NextStep::AskAgain => format!("`farescan retry {scan}` shows its cost"),
    });
    let commands: Vec<_> = commands.collect();
    let next = if commands.is_empty() {
        ""
    } else {
        "\n  next: "
    };
    format!(
        "{} {}{next}{}",
        notice.lead,
        notice.text,
        commands.join("\n        ")
    )
}
