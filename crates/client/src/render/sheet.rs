//! Sheets as lines. Their texts may come from a file or from the marketplace, so each is made visible.

use farescan_contract::ids::ScanId;
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
    let facts: Vec<_> = sheet.facts.iter().map(value).collect();
    let parts = [
        visible(&sheet.title).into_string(),
        facts.join(" · "),
        figures(&sheet.figures),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// The same with its sections, which have tables.
pub fn whole(sheet: &Sheet, screen: Screen) -> String {
    let sections = sheet.sections.iter().map(|of| section(of, screen));
    let parts = std::iter::once(for_stdout(&lines(sheet))).chain(sections);
    parts.collect::<Vec<_>>().join("\n\n") + "\n"
}

/// Only its texts are broken: a table fits, and its styles must not be torn.
fn section(section: &Section, screen: Screen) -> String {
    let sentence = section.sentence.iter();
    let sentence = sentence.map(|sentence| visible(sentence).into_string());
    let of_figures = (!section.figures.is_empty()).then(|| figures(&section.figures));
    let notices = section.notices.iter().map(said);
    let texts = std::iter::once(section.title.to_owned()).chain(sentence);
    let texts = texts.chain(of_figures).chain(notices);
    let of_table = section.table.as_ref().map(|of| table(of, screen));
    let parts = texts.map(|text| for_stdout(&text)).chain(of_table);
    parts.collect::<Vec<_>>().join("\n")
}

/// A table as wide as the screen at most. The resource of each row is its first column.
pub fn table(table: &Table, screen: Screen) -> String {
    let of = table.rows.iter().filter_map(|row| row.of.as_ref());
    let kind = of.clone().next().map(|of| Column::text(of.kind()));
    let mut ids = shortened(of.map(Link::id)).into_iter();
    let has_ids = kind.is_some();
    let columns = kind.into_iter().chain(table.columns.iter().cloned());
    let mut list = ListTable::new(columns.collect::<Vec<_>>());
    for row in &table.rows {
        let id = row.of.as_ref().and_then(|_| ids.next());
        let id = has_ids.then(|| Text::from(id.unwrap_or_default()));
        let cells = row.cells.iter().map(cell);
        list.row(id.into_iter().chain(cells).collect::<Vec<_>>());
    }
    list.render(screen)
}

/// The values of a cell in one line. A sign for what is not there would keep its column.
fn cell(cell: &Cell) -> Text {
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
    std::iter::once(value(&figure.value))
        .chain(unit)
        .chain(notes)
        .collect()
}

fn visible(text: &str) -> VisibleText {
    VisibleText::one_line(text)
}

/// A value in one line.
pub fn value(value: &Value) -> String {
    let text = match value {
        Value::Link(to, None) | Value::Link(to @ Link::Offer(_), _) => to.id(),
        Value::Text(text)
        | Value::Strong(text)
        | Value::Muted(text)
        | Value::Word(_, text)
        | Value::Code(text)
        | Value::Link(_, Some(text)) => text.clone(),
        Value::Count(number) => count(*number),
        Value::Money(price, currency) => amount_in(*price, currency.as_deref()),
        Value::Absent(word) => (*word).to_owned(),
        Value::Time("", at) | Value::Zoned(at, _) => time(*at),
        Value::Time(what, at) => format!("{what} {}", time(*at)),
        Value::Implausible(item, price, text) => {
            format!("({price}) {text}; `farescan why {item}` shows it")
        }
        Value::Verdict(verdict) => format!("by your past prices {}", verdict.in_words()),
        Value::Tag(tag) => format!("#{tag}"),
        Value::Series(_, prices, _) => sparkline(prices),
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
}
