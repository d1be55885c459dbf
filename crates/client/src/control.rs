//! `farescan pause`, `resume` and `cancel`: stops and continues a scan.

use std::collections::HashSet;
use std::io::Write as _;

use farescan_contract::ids::ScanId;
use farescan_sheets::numbers::counted;
use farescan_sheets::scan::{NEW_SCANS_RUN, line};
use reqwest::Method;
use serde::de::IgnoredAny;
use serde_json::json;

use super::Failure;
use super::client::{ClientArgs, ServiceSession};
use super::exit::CommandEnd;
use super::ids;
use super::pages::{page_limit, print_nothing, rows};
use super::question::Confirmation;
use crate::wrap::note;
use farescan_contract::monitors::{Monitor, MonitorPause, MonitorStatus};
use farescan_contract::scans::PauseReason;
use farescan_contract::{Scan, ScanStatus};

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

/// A paused scan, or everything that is paused.
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    /// Scan: its id, the beginning of it, or `@last`
    #[arg(value_name = "SCAN")]
    scan: Option<String>,
    /// Resume each scan and each monitor that you have paused
    #[arg(long, conflicts_with_all = ["scan", "max_requests"])]
    all: bool,
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
    scan: Option<String>,
    /// Cancel each scan that has not ended; monitors go on
    #[arg(long, conflicts_with = "scan")]
    all: bool,
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
        ));
    }
    let session = args.client.open()?;
    let Some(scan) = &args.scan else {
        return pause_all(&session).await;
    };
    let id = ids::find::<ScanId>(&session.client, scan).await?;
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
        change(session, &format!("/v1/monitors/{}", monitor.id), "pause").await?;
    }
    // A scan may change its status between two of the lists and be in neither, so they are read
    // until there is nothing new.
    let (mut tried, mut paused) = (HashSet::new(), 0);
    loop {
        let mut new = live_scans(session).await?;
        new.retain(|scan| {
            scan.status_reason != Some(PauseReason::ByCaller) && tried.insert(scan.id)
        });
        if new.is_empty() {
            break;
        }
        for scan in new {
            let path = format!("/v1/scans/{}", scan.id);
            paused += u64::from(change(session, &path, "pause").await?);
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
        "{} and {} paused. {NEW_SCANS_RUN} `farescan resume --all` continues them, `farescan resume SCAN` and `farescan monitors resume MONITOR` one.",
        counted(u64::try_from(monitors.len())?, "monitor"),
        counted(paused, "scan")
    );
    Ok(())
}

/// The scans that have not ended.
async fn live_scans(session: &ServiceSession) -> Result<Vec<Scan>, Failure> {
    let mut scans = Vec::new();
    for status in [ScanStatus::Queued, ScanStatus::Running, ScanStatus::Paused] {
        let path = format!("/v1/scans?limit={}&status={status}", page_limit(None));
        scans.extend(rows::<Scan>(&session.client, &path, None).await?);
    }
    // One that changes its status meanwhile may be in two of the lists.
    let mut seen = HashSet::new();
    scans.retain(|scan| seen.insert(scan.id));
    Ok(scans)
}

/// Pauses, resumes or cancels a monitor or scan at this path. `false`: it has ended or was deleted meanwhile.
async fn change(session: &ServiceSession, path: &str, verb: &str) -> Result<bool, Failure> {
    let answer = match session.command(&format!("{path}/{verb}"), false).await {
        Ok(answer) => answer,
        Err(error) if error.is_past() => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    if session.read_or_print::<IgnoredAny>(&answer)?.is_some() {
        let id = path.rsplit('/').next().unwrap_or(path);
        let done = if verb == "cancel" {
            "cancelled".to_owned()
        } else {
            format!("{verb}d")
        };
        writeln!(anstream::stdout(), "{id} is {done}")?;
    }
    Ok(true)
}

/// Continues a scan, after the number of searches that are left.
pub async fn resume(args: ResumeArgs) -> Result<(), Failure> {
    if args.scan.is_none() && !args.all {
        return Err(CommandEnd::usage(
            "no scan is named\n  next: `farescan resume @last`, or `farescan resume --all` for each scan and monitor",
        ));
    }
    let session = args.client.open()?;
    let Some(scan) = &args.scan else {
        return resume_all(&session, args.confirmation).await;
    };
    let id = ids::find::<ScanId>(&session.client, scan).await?;
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

/// Resumes what the caller has paused, monitors last: they begin new scans.
async fn resume_all(session: &ServiceSession, confirmation: Confirmation) -> Result<(), Failure> {
    let limit = page_limit(None);
    let path = format!("/v1/scans?limit={limit}&status={}", ScanStatus::Paused);
    let mut scans: Vec<Scan> = rows(&session.client, &path, None).await?;
    scans.retain(|scan| scan.status_reason == Some(PauseReason::ByCaller));
    let path = format!(
        "/v1/monitors?limit={limit}&status={}",
        MonitorStatus::Paused
    );
    let mut monitors: Vec<Monitor> = rows(&session.client, &path, None).await?;
    monitors.retain(|monitor| monitor.status_reason == Some(MonitorPause::ByCaller));
    if scans.is_empty() && monitors.is_empty() {
        let nothing = "Nothing to resume: you have paused no scan and no monitor.";
        return print_nothing(&session.client, nothing).await;
    }
    let left: u64 = scans.iter().map(|scan| u64::from(scan.items.pending)).sum();
    let (of_scans, of_monitors) = (scans.len() as u64, monitors.len() as u64);
    let question = format!(
        "Continue {} with {}, one request or more each, and {}?",
        counted(of_scans, "scan"),
        counted(left, "search"),
        counted(of_monitors, "monitor")
    );
    confirmation.ask(session.screen, &question).await?;
    for scan in &scans {
        change(session, &format!("/v1/scans/{}", scan.id), "resume").await?;
    }
    for monitor in &monitors {
        change(session, &format!("/v1/monitors/{}", monitor.id), "resume").await?;
    }
    Ok(())
}

/// Cancels a scan, or every one: what was searched stays.
pub async fn cancel(args: CancelArgs) -> Result<(), Failure> {
    if args.scan.is_none() && !args.all {
        return Err(CommandEnd::usage(
            "no scan is named\n  next: `farescan cancel @last`, or `farescan cancel --all` for each that has not ended",
        ));
    }
    let session = args.client.open()?;
    let Some(scan) = &args.scan else {
        return cancel_all(&session, args.confirmation).await;
    };
    let id = ids::find::<ScanId>(&session.client, scan).await?;
    let scan: Scan = session.client.get(&format!("/v1/scans/{id}")).await?;
    let question = format!(
        "Cancel {id} for good? {} not made yet; what was searched stays.",
        counted(scan.items.pending, "search")
    );
    args.confirmation.ask(session.screen, &question).await?;
    send(&session, &format!("/v1/scans/{id}/cancel"), None).await
}

/// Cancels the scans that had not ended when it asked.
async fn cancel_all(session: &ServiceSession, confirmation: Confirmation) -> Result<(), Failure> {
    let scans = live_scans(session).await?;
    if scans.is_empty() {
        let nothing = "Nothing to cancel: no scan waits, runs or is paused.";
        return print_nothing(&session.client, nothing).await;
    }
    let left: u64 = scans.iter().map(|scan| u64::from(scan.items.pending)).sum();
    let question = format!(
        "Cancel {} for good? {} not made yet; what was searched stays, and monitors go on.",
        counted(scans.len() as u64, "scan"),
        counted(left, "search")
    );
    confirmation.ask(session.screen, &question).await?;
    for scan in &scans {
        change(session, &format!("/v1/scans/{}", scan.id), "cancel").await?;
    }
    Ok(())
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
    if let Some(scan) = session.read_or_print(&answer)? {
        writeln!(anstream::stdout(), "{}", line(&scan))?;
    }
    Ok(())
}
