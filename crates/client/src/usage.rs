//! `farescan usage`: what was asked, what it cost, and when the plans end.

use std::io::Write as _;

use farescan_sheets::numbers::count;
use jiff::civil::Date;

use super::Failure;
use super::client::ClientArgs;
use super::dates::today;
use super::pages::{Query, check_key_is_known, collect, print_lines};
use super::render::{CellTone, Column, ListTable, Text};
use crate::wrap::note;
use farescan_contract::Api;
use farescan_contract::usage::{Usage, UsageCounts, UsageGroup, UsageRow};
use farescan_contract::visible_text::escape_hidden;

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
        Column::text(args.by.title()),
        Column::text("API").rank(1),
        Column::number("Asked").rank(1),
        Column::number("Billed"),
        Column::number("Reused").rank(1),
        Column::number("Not needed").rank(1),
        Column::number("Searches").rank(2),
        Column::number("ok").rank(3),
        Column::number("empty").rank(3),
        Column::number("partial").rank(3),
        Column::number("degraded").rank(2),
        Column::number("none").rank(4),
    ]);
    for row in &rows {
        let key = match (&row.key, args.by) {
            (Some(key), UsageGroup::Scan | UsageGroup::Monitor) if key == "single" => {
                "single searches".to_owned()
            }
            (Some(key), _) => key.clone(),
            (None, _) => "(deleted or none)".to_owned(),
        };
        table.row(cells(key, row.api, &row.counts));
    }
    for api in Api::ALL {
        let counts = first.totals.of(*api).counts;
        if counts != UsageCounts::default() {
            let row = cells("Total", *api, &counts);
            table.row(row.map(|text| Text::new(text.text, CellTone::Best)));
        }
    }
    let mut out = anstream::stdout();
    writeln!(out, "{}", table.render(session.screen))?;
    for api in Api::ALL {
        let money = first.totals.of(*api).money;
        if let Some(money) = money.filter(|_| !rows.is_empty()) {
            note!(
                "{api}: {} USD billed and {} USD saved, at {} USD for each included request of the plan {}.",
                money.billed_usd,
                money.saved_usd,
                money.usd_per_request,
                money.plan
            );
        }
        if let Some(forecast) = first.forecast.of(*api) {
            note!("{}", escape_hidden(&forecast.sentence()));
        }
    }
    note!(
        "Searches from {} to {} (UTC), single ones included. `farescan quota` shows what is left.",
        first.since,
        first.until
    );
    Ok(())
}

fn cells(key: impl Into<Text>, api: Api, counts: &UsageCounts) -> [Text; 12] {
    let number = |value: u64| Text::from(count(value));
    let by = counts.search_status;
    [
        key.into(),
        Text::from(api.as_str().to_owned()),
        number(counts.asked),
        number(counts.billed),
        number(counts.reused),
        number(counts.not_needed),
        number(counts.attempts),
        number(by.ok),
        number(by.empty),
        number(by.partial),
        number(by.degraded),
        number(by.none),
    ]
}
