//! `farescan retry`: searches the incomplete items of a scan again, after their cost and the
//! caller's consent.

use std::io::Write as _;

use farescan_contract::ids::ScanId;
use farescan_sheets::numbers::{count, counted};
use farescan_sheets::scan::ask_again;
use serde_json::json;

use super::Failure;
use super::client::{ClientArgs, ServiceSession};
use super::exit::{CommandEnd, ExitStatus};
use super::ids;
use super::pages::{Query, page_limit, rows};
use super::question::Confirmation;
use super::scan::follow::follow;
use super::scan::results::{Form, print};
use crate::wrap::note;
use farescan_contract::quota::Quota;
use farescan_contract::scans::RetryStatus;
use farescan_contract::{Api, RetryAccepted, Scan};

/// Settings of `retry`.
#[derive(Debug, clap::Args)]
pub struct RetryArgs {
    /// Scan: its id, the beginning of it, or `@last`
    #[arg(value_name = "SCAN", default_value = "@last")]
    scan: String,
    /// Which items: `degraded`, `partial`, `failed`, with commas
    #[arg(
        long,
        value_name = "STATUS",
        value_delimiter = ',',
        default_value = "degraded,partial"
    )]
    status: Vec<RetryStatus>,
    /// Only items with one of these reasons: `blocked_page,upstream_timeout`
    #[arg(long, value_name = "REASONS", value_delimiter = ',')]
    reasons: Vec<String>,
    /// New limit of the scan's billed requests
    #[arg(long, value_name = "NUMBER")]
    max_requests: Option<u32>,
    /// Do not wait for the end
    #[arg(long, short)]
    detach: bool,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    client: ClientArgs,
}

/// Shows the cost, asks, retries, follows.
pub async fn run(args: RetryArgs) -> Result<(), Failure> {
    let (session, id) = ids::open::<ScanId>(&args.client, &args.scan).await?;
    let scan: Scan = session.client.get(&format!("/v1/scans/{id}")).await?;
    let items = selected(&session, &scan, &args).await?;
    if items == 0 {
        note!("{id} has no such items: nothing to search again");
        return Ok(());
    }
    let left = left(&session, &scan).await?;
    let left_text = left.map_or_else(String::new, |left| {
        format!("; {} left of the plan", count(left))
    });
    if left.is_some_and(|left| items > left) && args.confirmation.yes {
        return Err(CommandEnd::with(
            ExitStatus::Refused,
            format!(
                "{} again{left_text}: nothing was sent",
                counted(items, "search")
            ),
        ));
    }
    let question = format!("{}{left_text}?", ask_again(items));
    args.confirmation.ask(session.screen, &question).await?;
    let mut body = json!({"search_status": args.status});
    if !args.reasons.is_empty() {
        body["reasons"] = json!(args.reasons);
    }
    if let Some(max) = args.max_requests {
        body["max_requests"] = max.into();
    }
    let path = format!("/v1/scans/{id}/retry");
    let answer = session.create(&path, &body).await?;
    let accepted: RetryAccepted = answer.read()?;
    if accepted.items_skipped > 0 {
        note!(
            "{} not searched: their dates have passed",
            counted(accepted.items_skipped, "item")
        );
    }
    if args.detach {
        if session.json {
            writeln!(anstream::stdout(), "{}", answer.text.trim_end())?;
        }
        note!(
            "{} pending again; `farescan watch {id}`",
            counted(accepted.items_retried, "item")
        );
        return Ok(());
    }
    let scan = follow(&session, id).await?;
    print(&session, &scan, Form::of(session.json, false)).await
}

/// The number of items that the retry would search.
async fn selected(session: &ServiceSession, scan: &Scan, args: &RetryArgs) -> Result<u64, Failure> {
    if args.reasons.is_empty() {
        let items = scan.items;
        let count = |status: &RetryStatus| match status {
            RetryStatus::Partial => items.partial,
            RetryStatus::Degraded => items.degraded,
            RetryStatus::Failed => items.failed,
        };
        return Ok(args.status.iter().map(count).map(u64::from).sum());
    }
    let mut selected = 0;
    for status in &args.status {
        for reason in &args.reasons {
            let is_failed = *status == RetryStatus::Failed;
            let path = Query::new(format!("/v1/scans/{}/items", scan.id))
                .with("limit", Some(page_limit(None)))
                .with("state", is_failed.then_some("failed"))
                .with("search_status", (!is_failed).then_some(status))
                .with("reason", Some(reason))
                .path();
            let items: Vec<serde::de::IgnoredAny> = rows(&session.client, &path, None).await?;
            selected += u64::try_from(items.len())?;
        }
    }
    Ok(selected)
}

/// The requests left of the plan that the scan is billed to.
async fn left(session: &ServiceSession, scan: &Scan) -> Result<Option<u64>, Failure> {
    let quota: Quota = session.client.get("/v1/quota").await?;
    let lane = match scan.endpoint.api() {
        Api::Flights => quota.flights,
        Api::Hotels => quota.hotels,
    };
    Ok(lane.plan_requests_remaining)
}
