//! `farescan usage`: what was asked, what it cost, and when the plans end.

use std::io::Write as _;

use farescan_sheets::usage;
use jiff::civil::Date;

use super::Failure;
use super::client::ClientArgs;
use super::dates::today;
use super::pages::{Query, check_key_is_known, collect, print_lines};
use super::render::sheet::table;
use crate::wrap::note;
use farescan_contract::Api;
use farescan_contract::usage::{Usage, UsageGroup, UsageRow};
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
        return print_lines(&session, &path, None).await;
    }
    let (first, rows): (Usage, Vec<UsageRow>) = collect(&session.client, &path, None).await?;
    if rows.is_empty() {
        check_key_is_known(&session.client).await?;
    }
    let mut out = anstream::stdout();
    writeln!(
        out,
        "{}",
        table(&usage::table(&first, &rows), session.screen)
    )?;
    for api in Api::ALL {
        if let Some(money) = usage::money(*api, first.totals.of(*api)) {
            note!("{money}");
        }
        if let Some(forecast) = first.forecast.of(*api) {
            note!("{}", escape_hidden(&usage::forecast(forecast)));
        }
    }
    note!(
        "Searches from {} to {} (UTC), single ones included. `farescan quota` shows what is left.",
        first.since,
        first.until
    );
    Ok(())
}
