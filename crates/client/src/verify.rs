//! `farescan verify`: whether the key works, and for which API.

use std::io::Write as _;

use super::Failure;
use super::client::ClientArgs;
use super::exit::{CommandEnd, ExitStatus};
use super::render::{CellTone, Column, ListTable, Text};
use farescan_contract::Api;
use farescan_contract::verify::{VerifyReason, VerifyResponse, VerifyScope};
use farescan_sheets::numbers::count;

/// Settings of `verify`.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// Which APIs: `flights`, `hotels` or `both`; each check is one request to the marketplace
    #[arg(long, value_name = "API", default_value = "both")]
    api: VerifyScope,
    #[command(flatten)]
    client: ClientArgs,
}

/// Checks the key.
pub async fn run(args: VerifyArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let path = format!("/v1/verify?api={}", args.api);
    let Some(verified) = session.read::<VerifyResponse>(&path).await? else {
        return Ok(());
    };
    let mut out = anstream::stdout();
    let mut table = ListTable::new([
        Column::text("API"),
        Column::text("Key"),
        Column::number("Left of the plan"),
    ]);
    for check in &verified.checks {
        let usage = match check.api {
            Api::Flights => verified.api_usage.flights,
            Api::Hotels => verified.api_usage.hotels,
        };
        let left = usage.and_then(|usage| usage.plan_requests_remaining);
        let tone = if check.ok {
            CellTone::Good
        } else {
            CellTone::Bad
        };
        table.row([
            check.api.to_string().into(),
            Text::new(words(check.reason), tone),
            left.map_or_else(|| "–".to_owned(), count).into(),
        ]);
    }
    writeln!(out, "{}", table.render(session.screen))?;
    if verified.valid {
        Ok(())
    } else {
        Err(CommandEnd::silent(ExitStatus::Failed))
    }
}

fn words(reason: VerifyReason) -> &'static str {
    match reason {
        VerifyReason::Subscribed => "works",
        VerifyReason::NotSubscribed => "has no subscription",
        VerifyReason::InvalidKey => "is unknown to the marketplace",
        VerifyReason::QuotaExhausted => "works, but its quota is used up",
    }
}
