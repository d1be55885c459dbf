//! `farescan pause`, `resume` and `cancel`: stops and continues a scan.

use std::collections::HashSet;
use std::io::Write as _;

use farescan_sheets::numbers::counted;
use farescan_sheets::scan::line;
use reqwest::Method;
use serde_json::json;

use super::Failure;
use super::client::{ClientArgs, ServiceSession};
use super::exit::CommandEnd;
use super::ids;
use super::pages::{page_limit, print_nothing, rows};
use super::question::Confirmation;
use crate::wrap::note;
use farescan_contract::monitors::{Monitor, MonitorStatus};
use farescan_contract::scans::PauseReason;
use farescan_contract::{ErrorType, Scan, ScanStatus};

/// A scan, or everything.
#[derive(Debug, clap::Args)]
pub struct ScanPauseArgs {
    /// Scan: its id, the beginning of it, or `@last`
    #[arg(value_name = "SCAN")]
    scan: Option<String>,
    /// Pause each scan that has not ended, and each monitor
    #[arg(long, conflicts_with = "scan")]
    all: bool,
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

/// Pauses a scan: no new search begins. It stops spending, so it does not ask.
pub async fn pause(args: ScanPauseArgs) -> Result<(), Failure> {
    if args.scan.is_none() && !args.all {
        return Err(CommandEnd::usage(
            "no scan is named\n  next: `farescan pause @last`, or `farescan pause --all` for each scan and monitor",
        )
        .into());
    }
    let session = args.client.open()?;
    let Some(scan) = &args.scan else {
        return pause_all(&session).await;
    };
    let id = ids::scan(&session.client, scan).await?;
    send(&session, &format!("/v1/scans/{id}/pause"), None).await
}

/// Pauses monitors first, so that none begins another scan.
async fn pause_all(session: &ServiceSession) -> Result<(), Failure> {
    let limit = page_limit(None);
    let path = format!(
        "/v1/monitors?limit={limit}&status={}",
        MonitorStatus::Active
    );
    let monitors: Vec<Monitor> = rows(&session.client, &path, None).await?;
    for monitor in &monitors {
        print_paused(session, &format!("/v1/monitors/{}", monitor.id)).await?;
    }
    // A scan may change its status between two of the lists and be in neither, so they are read
    // until there is nothing new.
    let (mut tried, mut paused) = (HashSet::new(), 0);
    loop {
        let mut new = live_scans(session).await?;
        new.retain(|scan| tried.insert(scan.id));
        if new.is_empty() {
            break;
        }
        for scan in new {
            paused += u64::from(print_paused(session, &format!("/v1/scans/{}", scan.id)).await?);
        }
    }
    if monitors.is_empty() && paused == 0 {
        return print_nothing(
            &session.client,
            "Nothing to pause: no scan waits or runs, and no monitor is active.",
        )
        .await;
    }
    note!(
        "{} and {} paused. `farescan resume SCAN` and `farescan monitors resume MONITOR` continue one.",
        counted(u64::try_from(monitors.len())?, "monitor"),
        counted(paused, "scan")
    );
    Ok(())
}

/// The scans that have not ended and that their caller has not paused.
async fn live_scans(session: &ServiceSession) -> Result<Vec<Scan>, Failure> {
    let mut scans = Vec::new();
    for status in [ScanStatus::Queued, ScanStatus::Running, ScanStatus::Paused] {
        let path = format!("/v1/scans?limit={}&status={status}", page_limit(None));
        scans.extend(rows::<Scan>(&session.client, &path, None).await?);
    }
    scans.retain(|scan| scan.status_reason != Some(PauseReason::ByCaller));
    Ok(scans)
}

/// Pauses a monitor or scan at this path. `false`: it has ended or was deleted meanwhile.
async fn print_paused(session: &ServiceSession, path: &str) -> Result<bool, Failure> {
    let paused = session
        .client
        .send(Method::POST, &format!("{path}/pause"), None::<&()>, None)
        .await;
    let answer = match paused {
        Ok(answer) => answer,
        Err(error)
            if matches!(
                error.error_type(),
                Some(ErrorType::InvalidState | ErrorType::NotFound)
            ) =>
        {
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
    } else {
        let id = path.rsplit('/').next().unwrap_or(path);
        writeln!(out, "{id} is paused")?;
    }
    Ok(true)
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
        .send(Method::POST, path, body.as_ref(), None)
        .await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
        return Ok(());
    }
    let scan: Scan = answer.read()?;
    writeln!(out, "{}", line(&scan))?;
    Ok(())
}
