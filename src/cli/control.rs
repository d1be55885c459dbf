//! `farescan pause`, `resume` and `cancel`: stops and continues a scan.

use std::io::Write as _;

use serde_json::json;

use super::Failure;
use super::client::{ClientArgs, ServiceSession};
use super::format::counted;
use super::ids;
use super::progress::summary;
use super::question::Confirmation;
use crate::contract::Scan;

/// A scan.
#[derive(Debug, clap::Args)]
pub struct ScanPauseArgs {
    /// Scan: its id, the beginning of it, or `@last`
    #[arg(value_name = "SCAN")]
    scan: String,
    #[command(flatten)]
    client: ClientArgs,
}

/// A paused scan.
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    /// Scan: its id, the beginning of it, or `@last`
    #[arg(value_name = "SCAN")]
    scan: String,
    /// New limit of its billed requests; needed where the old one is spent
    #[arg(long, value_name = "NUMBER")]
    max_requests: Option<u32>,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    client: ClientArgs,
}

/// A scan, and the consent.
#[derive(Debug, clap::Args)]
pub struct CancelArgs {
    /// Scan: its id, the beginning of it, or `@last`
    #[arg(value_name = "SCAN")]
    scan: String,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    client: ClientArgs,
}

/// Pauses a scan: no new search begins.
pub async fn pause(args: ScanPauseArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let id = ids::scan(&session.client, &args.scan).await?;
    send(&session, &format!("/v1/scans/{id}/pause"), None).await
}

/// Continues a scan, after the number of searches that are left.
pub async fn resume(args: ResumeArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let id = ids::scan(&session.client, &args.scan).await?;
    let scan: Scan = session.client.get(&format!("/v1/scans/{id}")).await?;
    let pending = scan.items.pending;
    let question = format!(
        "Continue {id} with {}, one request or more each?",
        counted(pending, "search")
    );
    args.confirmation.ask(session.screen, &question).await?;
    let body = args.max_requests.map(|max| json!({"max_requests": max}));
    send(&session, &format!("/v1/scans/{id}/resume"), body).await
}

/// Cancels a scan: what was searched stays.
pub async fn cancel(args: CancelArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let id = ids::scan(&session.client, &args.scan).await?;
    let scan: Scan = session.client.get(&format!("/v1/scans/{id}")).await?;
    let question = format!(
        "Cancel {id} for good? {} not made yet; what was searched stays.",
        counted(scan.items.pending, "search")
    );
    args.confirmation.ask(session.screen, &question).await?;
    send(&session, &format!("/v1/scans/{id}/cancel"), None).await
}

async fn send(
    session: &ServiceSession,
    path: &str,
    body: Option<serde_json::Value>,
) -> Result<(), Failure> {
    let answer = session
        .client
        .send(reqwest::Method::POST, path, body.as_ref(), None)
        .await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
        return Ok(());
    }
    let scan: Scan = answer.read()?;
    let reason = scan
        .status_reason
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    writeln!(
        out,
        "{} is {}{reason}: {}",
        scan.id,
        scan.status,
        summary(&scan)
    )?;
    Ok(())
}
