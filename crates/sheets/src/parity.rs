//! The markets of a monitor over its runs: how often each one differs from the baseline.

use farescan_contract::monitors::{ParityHistory, RunParity};
use farescan_contract::scans::{MarketParity, MarketReport};
use rust_decimal::Decimal;

use crate::numbers::{count, counted, signed_percent};
use crate::sheet::{Cell, Column, Link, Section, Table, TableRow, Tone, Value};

/// A market as it is shown: `DE`.
pub fn market_name(market: &str) -> String {
    market.to_uppercase()
}

/// What the comparison is of.
pub fn sentence(history: &ParityHistory) -> String {
    let baseline = market_name(&history.baseline);
    match history.runs.len() as u64 {
        0 => format!("No run has compared anything with {baseline} yet."),
        runs => format!(
            "Each stay compared with {baseline} in {}.",
            counted(runs, "run")
        ),
    }
}

/// What counts as a difference.
pub const RULE: &str = "A difference is real if it is larger than the noise, by which prices of one market differ from each other.";

/// What a run says of its markets: `1 of 3 markets differs from US`, `no market differs from US, 2 unknown`.
pub fn summary(report: &MarketReport) -> String {
    let baseline = market_name(&report.baseline);
    let known = report
        .markets
        .iter()
        .filter(|market| is_known(market))
        .count();
    let differing = report
        .markets
        .iter()
        .filter(|market| differs(market))
        .count();
    let words = match (differing, known) {
        (_, 0) => return format!("no market could be compared with {baseline}"),
        (0, _) => format!("no market differs from {baseline}"),
        (1, _) => format!(
            "1 of {} differs from {baseline}",
            counted(known as u64, "market")
        ),
        _ => format!("{differing} of {known} markets differ from {baseline}"),
    };
    match report.markets.len() - known {
        0 => words,
        unknown => format!("{words}, {unknown} unknown"),
    }
}

fn is_known(market: &MarketParity) -> bool {
    market.difference_percent.is_some()
}

fn differs(market: &MarketParity) -> bool {
    market.cheaper + market.dearer > 0
}

/// The markets of a report, below what a difference is.
pub fn section(report: &MarketReport) -> Section {
    let columns = [
        Column::text("Market"),
        Column::text(format!("Against {}", market_name(&report.baseline))),
    ];
    let rows = report.markets.iter().map(|market| {
        let name = vec![market_name(&market.market).into()];
        (None, [name, stays_of(market)])
    });
    Section {
        sentence: Some(RULE.to_owned()),
        table: Some(Table::new("Markets", columns, rows)),
        ..Section::new("Markets")
    }
}

/// The markets of a report as lines of text, those that differ first; at most so many, then how many are left.
pub fn lines(report: &MarketReport, most: usize) -> Vec<String> {
    let (differing, others): (Vec<_>, Vec<_>) =
        report.markets.iter().partition(|market| differs(market));
    let all = differing.into_iter().chain(others);
    let mut lines: Vec<_> = all.take(most).map(line).collect();
    if let Some(left) = report
        .markets
        .len()
        .checked_sub(most)
        .filter(|left| *left > 0)
    {
        lines.push(format!("and {}", counted(left as u64, "more market")));
    }
    lines
}

/// A market in a line of text: `DE: −12.5 %, 3 of 4 cheaper, noise 1.2 %`.
fn line(market: &MarketParity) -> String {
    let name = market_name(&market.market);
    let Some(differences) = &market.difference_percent else {
        return format!("{name}: unknown");
    };
    let known = market.cheaper + market.dearer + market.same;
    let words = match market.cheaper + market.dearer {
        0 => "same".to_owned(),
        _ => gap_words(market, known),
    };
    let noise = market.noise_percent.map(percent);
    let noise = noise.map_or_else(String::new, |noise| format!(", noise {noise}"));
    format!(
        "{name}: {}, {words}{noise}",
        signed_percent(differences.median)
    )
}

/// Each market over all runs.
pub fn markets(history: &ParityHistory) -> Table {
    let columns = [
        Column::text("Market"),
        Column::number("Same price"),
        Column::number("Cheaper"),
        Column::number("More expensive"),
        Column::number("Unknown").rank(2),
        Column::number("Median"),
        Column::number("Lowest to highest").rank(1),
        Column::number("Noise"),
    ];
    let rows = history.markets.iter().map(|market| {
        let share = market.same_percent.map(percent);
        let differences = market.difference_percent.as_ref();
        let median = differences.map(|range| signed_percent(range.median));
        let range = differences.map(|range| {
            let [lowest, highest] = [range.lowest, range.highest].map(signed_percent);
            format!("{lowest} to {highest}")
        });
        let cells: [Cell; 8] = [
            vec![market_name(&market.market).into()],
            texts(share),
            differing(market.cheaper),
            differing(market.dearer),
            vec![count(market.unknown).into()],
            texts(median),
            texts(range),
            texts(market.noise_percent.map(percent)),
        ];
        (None, cells)
    });
    Table::new("Markets over all runs", columns, rows)
}

/// Each run with its markets, the newest first. The cell of a run opens its scan.
pub fn runs(history: &ParityHistory) -> Table {
    let mut columns = vec![Column::text("Run")];
    let names = history.markets.iter().map(|market| &market.market);
    columns.extend(
        names
            .clone()
            .map(|market| Column::text(market_name(market))),
    );
    let rows = history.runs.iter().map(|run| {
        let mut cells = vec![vec![Value::Time("", run.slot)]];
        cells.extend(names.clone().map(|market| stays(run, market)));
        TableRow {
            of: Some(Link::of(run.scan_id)),
            cells,
        }
    });
    Table {
        name: "Markets run by run",
        columns,
        rows: rows.collect(),
    }
}

/// The stays of a market in a run.
fn stays(run: &RunParity, market: &str) -> Cell {
    let found = run.markets.iter().find(|found| found.market == market);
    found.map_or_else(Cell::new, stays_of)
}

/// The difference of a market in a run, how many of its stays differ, and the noise.
fn stays_of(found: &MarketParity) -> Cell {
    let known = found.cheaper + found.dearer + found.same;
    let Some(differences) = &found.difference_percent else {
        return vec![Value::Absent("unknown")];
    };
    let word = if found.cheaper + found.dearer == 0 {
        Value::Word(Tone::Good, "same".to_owned())
    } else {
        Value::Word(Tone::Bad, gap_words(found, known))
    };
    let noise = found
        .noise_percent
        .map(|noise| format!("noise {}", percent(noise)));
    let noise = noise.map(Value::Text);
    let cell = [signed_percent(differences.median).into(), word];
    cell.into_iter().chain(noise).collect()
}

/// `cheaper`, `3 of 4 more expensive`, `1 cheaper, 2 more expensive of 4`.
fn gap_words(market: &MarketParity, known: u32) -> String {
    let (cheaper, dearer) = (market.cheaper, market.dearer);
    match (cheaper, dearer) {
        (_, 0) if cheaper == known => "cheaper".to_owned(),
        (0, _) if dearer == known => "more expensive".to_owned(),
        (_, 0) => format!("{cheaper} of {known} cheaper"),
        (0, _) => format!("{dearer} of {known} more expensive"),
        _ => format!("{cheaper} cheaper, {dearer} more expensive of {known}"),
    }
}

fn percent(share: Decimal) -> String {
    format!("{} %", share.round_dp(1).normalize())
}

fn differing(stays: u32) -> Cell {
    let tone = if stays == 0 { Tone::Plain } else { Tone::Bad };
    match tone {
        Tone::Plain => vec![count(stays).into()],
        tone => vec![Value::Word(tone, count(stays))],
    }
}

fn texts(text: Option<String>) -> Cell {
    text.map(Value::Text).into_iter().collect()
}
