//! `farescan why`: the story of one search: when it was claimed, sent, answered and stored, what it
//! cost, and why it has no price.

use std::io::Write;

use farescan_sheets::item;
use farescan_sheets::numbers::counted;
use jiff::civil::Date;

use super::Failure;
use super::client::{ClientArgs, ServiceSession};
use super::exit::CommandEnd;
use super::format::{clock, zone};
use super::ids;
use super::pages::{Query, rows};
use super::render::sheet;
use crate::wrap::{for_stdout, note};
use farescan_contract::ids::{ItemId, ScanId};
use farescan_contract::scans::ItemState;
use farescan_contract::{Attempt, AttemptPage, Item, Scan, SearchStatus};

/// Settings of `why`.
#[derive(Debug, clap::Args)]
pub struct WhyArgs {
    /// Item: its id; or a scan: its id, the beginning of it, or `@last`; a date is one of `@last`
    #[arg(value_name = "ITEM", default_value = "@last")]
    item: String,
    /// With a scan, values of the search: `2027-02-04 CDG` [default: every search without a
    /// complete answer]
    #[arg(value_name = "VALUE")]
    values: Vec<String>,
    /// Say how the price compares with your own past prices
    #[arg(long)]
    verdict: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Prints the story of an item, or lists the items that it may mean.
pub async fn run(mut args: WhyArgs) -> Result<(), Failure> {
    if args.item.parse::<Date>().is_ok() {
        let date = std::mem::replace(&mut args.item, "@last".to_owned());
        args.values.insert(0, date);
    }
    let session = args.client.open()?;
    if let Ok(id) = args.item.parse::<ItemId>() {
        return one(&session, id, args.verdict).await;
    }
    if args.item.starts_with("itm_") {
        return Err(CommandEnd::usage(format!(
            "found {:?}; expected a whole item id, or a scan and values of the search, such as `@last 2027-02-04`",
            args.item
        )));
    }
    let id = ids::find::<ScanId>(&session.client, &args.item).await?;
    let scan: Scan = session.client.get(&format!("/v1/scans/{id}")).await?;
    let items: Vec<Item> = rows(
        &session.client,
        &format!("/v1/scans/{id}/items?limit=500"),
        None,
    )
    .await?;
    let found: Vec<&Item> = items
        .iter()
        .filter(|item| is_meant(item, &args.values))
        .collect();
    match found.as_slice() {
        [] if args.values.is_empty() => {
            note!("Every search of {id} has a complete answer.");
            Ok(())
        }
        [] => Err(format!("no search of {id} has {}", args.values.join(" and ")).into()),
        [found] if args.verdict => one(&session, found.id, true).await,
        [found] => story(&session, found).await,
        several => list(&session, &scan, several),
    }
}

/// The story of an item that is read anew.
async fn one(session: &ServiceSession, id: ItemId, is_judged: bool) -> Result<(), Failure> {
    let path = Query::new(format!("/v1/items/{id}"))
        .with("history_verdict", is_judged.then_some(true))
        .path();
    let answer = session.client.ask(&path).await?;
    story(session, &answer.read()?).await
}

/// Whether an item has all of the values, or without values, no complete answer.
fn is_meant(item: &Item, values: &[String]) -> bool {
    if values.is_empty() {
        return item.state == ItemState::Failed
            || matches!(
                item.search_status,
                Some(SearchStatus::Degraded | SearchStatus::Partial)
            );
    }
    values.iter().all(|value| {
        item.search.values().any(|field| match field.as_str() {
            Some(text) => text.eq_ignore_ascii_case(value),
            None => {
                serde_json::from_str::<serde_json::Value>(value).is_ok_and(|value| value == *field)
            }
        })
    })
}

fn list(session: &ServiceSession, scan: &Scan, items: &[&Item]) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    if session.json {
        for item in items {
            writeln!(out, "{}", serde_json::to_string(item)?)?;
        }
        return Ok(());
    }
    let items: Vec<_> = items.iter().copied().cloned().collect();
    let table = sheet::table(&item::table(scan, &items), session.screen);
    writeln!(out, "{table}")?;
    note!("`farescan why ITEM` tells the story of one of them.");
    Ok(())
}

async fn story(session: &ServiceSession, item: &Item) -> Result<(), Failure> {
    let answer = session
        .client
        .ask(&format!("/v1/items/{}/attempts", item.id))
        .await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", serde_json::to_string(item)?)?;
        let attempts: serde_json::Value = answer.read()?;
        for attempt in attempts["data"].as_array().into_iter().flatten() {
            writeln!(out, "{attempt}")?;
        }
        return Ok(());
    }
    let attempts: AttemptPage = answer.read()?;
    writeln!(out, "{} of {}", item.id, item.scan_id)?;
    for (field, value) in &item.search {
        writeln!(
            out,
            "  {field}: {}",
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        )?;
    }
    writeln!(out, "\n{}", sheet::figures(&item::figures(item)))?;
    if let Some(notice) = item::notice(item) {
        let notice = sheet::notice(&notice, item.scan_id);
        writeln!(out, "\n{}", for_stdout(&notice))?;
    }
    for attempt in &attempts.data {
        print_attempt(&mut out, attempt)?;
    }
    if attempts.data.is_empty() {
        writeln!(out, "\nNothing was sent for it, so it cost nothing.")?;
    }
    note!("Times in {}.", zone());
    Ok(())
}

fn print_attempt(out: &mut impl Write, attempt: &Attempt) -> Result<(), Failure> {
    writeln!(out, "\nAttempt {}  {}", attempt.number, attempt.id)?;
    writeln!(out, "  recorded and sent  {}", clock(attempt.started_at))?;
    match attempt.ended_at {
        Some(ended) => {
            let latency = attempt.latency_ms.map(item::latency);
            let latency = latency.map_or_else(String::new, |took| format!(" after {took}"));
            writeln!(out, "  answered, stored   {}{latency}", clock(ended))?;
        }
        None => writeln!(out, "  not answered yet")?,
    }
    let http = attempt.http_status.map_or_else(
        || "no HTTP answer".to_owned(),
        |status| format!("HTTP {status}"),
    );
    let status = attempt
        .search_status
        .map(|status| format!(", search {status}"))
        .unwrap_or_default();
    let reason = attempt
        .reason
        .as_deref()
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    writeln!(
        out,
        "  {http}{status}{reason}; {} billed",
        counted(attempt.requests_spent, "request")
    )?;
    for (name, value) in &attempt.search_headers {
        writeln!(out, "  {name}: {value}")?;
    }
    if let Some(error) = &attempt.error {
        writeln!(out, "  error: {error}")?;
    }
    Ok(())
}
