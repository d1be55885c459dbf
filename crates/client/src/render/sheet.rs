//! Sheets as lines. Their texts may come from a file or from the marketplace, so each is made visible.

use std::fmt::Display;
use std::io::Write as _;

use farescan_contract::ids::{Kind, ScanId};
use farescan_contract::visible_text::VisibleText;
use farescan_sheets::numbers::{amount_in, count};
use farescan_sheets::sheet::{
    Cell, Column, Figure, Link, NextStep, Notice, Section, Sheet, Table, Tone, Value,
};

use super::{CellTone, ListTable, Text, sparkline};
use crate::format::time;
use crate::ids::shortened;
use crate::terminal::Screen;
use crate::wrap::for_stdout;

/// The title, the facts and the figures.
pub fn lines(sheet: &Sheet) -> String {
    let facts: Vec<_> = sheet.facts.iter().map(named).collect();
    let (facts, figures) = (facts.join(" · "), figures(&sheet.figures));
    format!("{}\n{facts}\n{figures}", visible(&sheet.title))
}

/// Prints a resource with its id and its sections.
///
/// # Errors
/// When the output is closed.
pub fn print_sheet(id: &impl Display, sheet: &Sheet, screen: Screen) -> std::io::Result<()> {
    let text = format!("{id}  {}", whole(sheet, screen));
    writeln!(anstream::stdout(), "{}", for_stdout(&text))
}

/// A sheet with its sections.
fn whole(sheet: &Sheet, screen: Screen) -> String {
    let head = lines(sheet).trim_end().to_owned();
    let sections = sheet.sections.iter().map(|of| section(of, screen));
    let parts = std::iter::once(head).chain(sections);
    parts.collect::<Vec<_>>().join("\n\n")
}

/// A part of a sheet below its title.
pub fn section(section: &Section, screen: Screen) -> String {
    let sentence = section
        .sentence
        .iter()
        .map(|text| visible(text).to_string());
    let notices = section.notices.iter().map(said);
    let has_rows = |rows: &&Table| !rows.rows.is_empty();
    let rows = section
        .table
        .iter()
        .filter(has_rows)
        .map(|rows| table(rows, screen));
    let parts = std::iter::once(section.title.to_owned())
        .chain(sentence)
        .chain(notices);
    let parts = parts.chain([figures(&section.figures)]).chain(rows);
    parts
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// A table as wide as the screen at most. The resource of each row is its first column.
pub fn table(table: &Table, screen: Screen) -> String {
    let of = table.rows.iter().filter_map(|row| row.of.as_ref());
    let kind = of.clone().next().map(|of| Column::text(of.title()));
    let is_of_items = of.clone().next().is_some_and(|of| of.is_of(Kind::Item));
    let ids = of.map(Link::id);
    // An item is named by its whole id.
    let ids: Vec<_> = if is_of_items {
        ids.collect()
    } else {
        shortened(ids)
    };
    let mut ids = ids.into_iter();
    let has_ids = kind.is_some();
    let columns = kind.into_iter().chain(table.columns.iter().cloned());
    let list = ListTable::new(columns.collect::<Vec<_>>());
    let mut list = if has_ids { list.with_ids() } else { list };
    for row in &table.rows {
        let id = row.of.as_ref().and_then(|_| ids.next());
        let id = has_ids.then(|| Text::from(id.unwrap_or_default()));
        let cells = row.cells.iter().map(cell);
        list.row(id.into_iter().chain(cells).collect::<Vec<_>>());
    }
    list.render(screen)
}

/// The values of a cell in one line. A sign for what is not there would keep its column.
pub fn cell(cell: &Cell) -> Text {
    let shown = cell.iter().filter(|part| **part != Value::Absent("–"));
    let tone = cell.iter().find_map(|part| match part {
        Value::Word(tone, _) => Some(cell_tone(*tone)),
        _ => None,
    });
    let texts: Vec<_> = shown.map(value).collect();
    Text::new(texts.join(" "), tone.unwrap_or_default())
}

const fn cell_tone(tone: Tone) -> CellTone {
    match tone {
        Tone::Plain | Tone::Info => CellTone::Plain,
        Tone::Good => CellTone::Good,
        Tone::Warn => CellTone::Warning,
        Tone::Bad => CellTone::Bad,
    }
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
    let unit = figure.unit.iter().map(|unit| format!(" {}", visible(unit)));
    let notes = figure.notes.iter().map(|note| format!(", {}", value(note)));
    let text = cell_tone(figure.tone).line(&named(&figure.value));
    std::iter::once(text).chain(unit).chain(notes).collect()
}

fn visible(text: &str) -> VisibleText {
    VisibleText::one_line(text)
}

/// A value, of a monitor with its id: names are not unique.
fn named(of: &Value) -> String {
    let id = match of {
        Value::Link(to, Some(_)) if to.is_of(Kind::Monitor) => Some(to.id()),
        _ => None,
    };
    let id = id.map_or_else(String::new, |id| format!(" ({id})"));
    format!("{}{id}", value(of))
}

fn value(value: &Value) -> String {
    let text = match value {
        Value::Link(Link::Offer(url), _) => url.clone(),
        Value::Text(text)
        | Value::Strong(text)
        | Value::Muted(text)
        | Value::Word(_, text)
        | Value::Progress(_, text)
        | Value::Code(text)
        | Value::Link(_, Some(text)) => text.clone(),
        Value::Link(to, None) => to.id(),
        Value::Count(number) => count(*number),
        Value::Money(price, currency) => amount_in(*price, currency.as_deref()),
        Value::Absent(word) => (*word).to_owned(),
        Value::Time("", at) | Value::Zoned(at, _) => time(*at),
        Value::Series(_, prices, currency) => format!("{} {currency}", sparkline(prices)),
        Value::Time(what, at) => format!("{what} {}", time(*at)),
        Value::Implausible(item, price, text) => {
            format!("({price}) {text}; `farescan why {item}` shows it")
        }
        Value::Verdict(verdict) => format!("by your past prices {}", verdict.in_words()),
        Value::Tag(tag) => format!("#{tag}"),
    };
    visible(&text).to_string()
}

/// What a notice says.
pub fn said(notice: &Notice) -> String {
    format!("{} {}", visible(&notice.lead), visible(&notice.text))
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
    format!("{}{next}{}", said(notice), commands.join("\n        "))
}

#[cfg(test)]
mod tests {
    use farescan_sheets::sheet::Tone;

    use super::*;

    /// security.md, rule 32: a title may come from a file, a message from the marketplace.
    #[test]
    fn no_text_of_a_sheet_commands_the_terminal() {
        let hostile = "\u{1b}]52;c;cm0\u{7}\u{202e}a\rb\nc";
        let mut figure = Figure::new("Cheapest", hostile).note(Value::Tag(hostile.to_owned()));
        figure.unit = Some(hostile.to_owned());
        let held = Notice {
            tone: Tone::Warn,
            lead: hostile.to_owned(),
            text: hostile.to_owned(),
            next: &[],
        };
        let sheet = Sheet {
            title: hostile.to_owned(),
            facts: vec![Value::Strong(hostile.to_owned())],
            figures: vec![figure],
            notices: vec![held.clone()],
            ..Sheet::default()
        };
        let shown = lines(&sheet) + &notice(&held, ScanId::new());
        for hidden in ['\u{1b}', '\u{7}', '\u{202e}', '\r'] {
            assert!(!shown.contains(hidden), "{}", shown.escape_debug());
        }
        assert_eq!(shown.lines().count(), 3, "{}", shown.escape_debug());
    }

    #[test]
    fn only_the_value_of_a_figure_has_its_colour() {
        let left = Figure::new("Left of the plan", "0").note("reported");
        assert_eq!(figure(&left), "0, reported");
        let used_up = left.tone(Tone::Bad);
        assert_eq!(figure(&used_up), "\u{1b}[31m0\u{1b}[0m, reported");
    }
}
