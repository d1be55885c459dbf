//! `farescan usage`: what scans have spent.

use std::io::Write as _;

use jiff::civil::Date;

use super::Failure;
use super::client::ClientArgs;
use super::dates::today;
use super::format::count;
use super::pages::{Query, check_key_is_known, collect, print_lines};
use super::render::{Column, ListTable, Text, Tone};
use crate::cli::wrap::note;
use crate::contract::usage::{AttemptCounts, Usage, UsageGroup, UsageRow};

/// Settings of `usage`.
#[derive(Debug, clap::Args)]
pub struct UsageArgs {
    /// Group by `day`, `endpoint`, `scan` or `monitor`
    #[arg(long, value_name = "GROUP", default_value = "day")]
    by: UsageGroup,
    /// First day, UTC [default: the first of this month]
    #[arg(long, value_name = "DATE")]
    since: Option<Date>,
    /// Last day, UTC [default: today]
    #[arg(long, value_name = "DATE")]
    until: Option<Date>,
    #[command(flatten)]
    client: ClientArgs,
}

/// Prints the usage.
pub async fn run(args: UsageArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let since = args
        .since
        .unwrap_or_else(|| args.until.unwrap_or_else(today).first_of_month());
    let path = Query::new("/v1/usage")
        .with("group", Some(args.by))
        .with("since", Some(since))
        .with("until", args.until)
        .path();
    if session.json {
        return print_lines(&session, &path).await;
    }
    let (first, rows): (Usage, Vec<UsageRow>) = collect(&session.client, &path, None).await?;
    if rows.is_empty() {
        check_key_is_known(&session.client).await?;
    }
    let mut table = ListTable::new([
        Column::text(title(args.by)),
        Column::number("Requests"),
        Column::number("Searches"),
        Column::number("ok").rank(1),
        Column::number("empty").rank(2),
        Column::number("partial").rank(3),
        Column::number("degraded").rank(1),
        Column::number("none").rank(4),
        Column::number("reused").rank(1),
    ]);
    for row in &rows {
        let key = row
            .key
            .clone()
            .unwrap_or_else(|| "(deleted or none)".to_owned());
        table.row(cells(
            key,
            row.requests,
            row.attempts,
            &row.search_status,
            row.avoided,
        ));
    }
    let total = &first.totals;
    let row = cells(
        "Total",
        total.requests,
        total.attempts,
        &total.search_status,
        total.avoided,
    );
    table.row(row.map(|text| Text::new(text.text, Tone::Best)));
    let mut out = anstream::stdout();
    writeln!(out, "{}", table.render(session.screen))?;
    note!(
        "Scans and monitors from {} to {} (UTC); single searches only where they are stored. `farescan quota` shows what is left.",
        first.since,
        first.until
    );
    Ok(())
}

fn title(group: UsageGroup) -> &'static str {
    match group {
        UsageGroup::Day => "Day",
        UsageGroup::Endpoint => "Endpoint",
        UsageGroup::Scan => "Scan",
        UsageGroup::Monitor => "Monitor",
    }
}

fn cells(
    key: impl Into<Text>,
    requests: u64,
    attempts: u64,
    by: &AttemptCounts,
    avoided: u64,
) -> [Text; 9] {
    let number = |value: u64| Text::from(count(value));
    [
        key.into(),
        number(requests),
        number(attempts),
        number(by.ok),
        number(by.empty),
        number(by.partial),
        number(by.degraded),
        number(by.none),
        number(avoided),
    ]
}
