//! One change of many scans: pauses every monitor and scan of a caller, resumes what the caller has
//! paused, cancels the scans that have not ended, or asks the incomplete ones again. A run goes on
//! when its browser leaves, and past what cannot be changed; the service's stop ends it after the
//! command that it is in.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use farescan_sheets::numbers::counted;
use maud::{Markup, html};
use serde_json::{Map, json};
use tokio::sync::watch;
use tracing::Instrument as _;

use crate::links;
use crate::session::Session;
use farescan_core::app::error::ApiError;
use farescan_core::commands::{CommandError, IdempotencyKey};
use farescan_core::contract::monitors::{Monitor, MonitorPause, MonitorStatus, MonitorsQuery};
use farescan_core::contract::scans::{PauseReason, Scan};
use farescan_core::ids::{MonitorId, ScanId, TenantId};
use farescan_core::monitors;
use farescan_core::scans;
use farescan_core::scans::undecided::UndecidedScan;

const PAGE_LIMIT: &str = "200";
/// After as many failures a run ends: each may have waited for the database.
const MAX_FAILURES: usize = 20;

/// What a run does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum BulkChange {
    /// Of the active monitors, and of the scans that have not ended.
    Pause,
    /// Of the monitors and scans that their caller has paused.
    Resume,
    /// Of these scans, which the page counted.
    Cancel(Vec<ScanId>),
    AskAgain(AskAgain),
}

/// What may be asked again, as the page said it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AskAgain {
    /// The scans that the page counted.
    pub(super) scans: Vec<ScanId>,
    /// The most searches of all of them together.
    pub(super) max_searches: u64,
    /// So that the same form asks each scan once.
    pub(super) once: IdempotencyKey,
}

impl BulkChange {
    /// What has been done to something that it changed.
    const fn done(&self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Cancel(_) => "cancelled",
            Self::AskAgain(_) => "asked again",
        }
    }

    const fn has_monitors(&self) -> bool {
        matches!(self, Self::Pause | Self::Resume)
    }
}

/// What a run has done.
#[derive(Debug, Clone, Default)]
struct BulkReport {
    monitors: u64,
    scans: u64,
    /// That are made again.
    searches: u64,
    failures: Vec<BulkFailure>,
    /// Why the rest was not tried.
    ended_early: Option<&'static str>,
}

/// What could not be changed, and why.
#[derive(Debug, Clone)]
struct BulkFailure {
    name: String,
    path: String,
    reason: String,
}

/// A caller's run of one change.
type RunKey = (TenantId, BulkChange);

/// The runs of this process: at most one of each caller and change.
#[derive(Debug, Clone, Default)]
pub(super) struct BulkRuns(Arc<Mutex<HashMap<RunKey, watch::Receiver<BulkProgress>>>>);

/// `None` until the run ends.
type BulkProgress = Option<Arc<BulkReport>>;

impl BulkRuns {
    /// Runs once for the caller and waits for the end, on which the run does not depend. While
    /// another run is underway, which may have passed what was resumed since, this one follows it;
    /// presses meanwhile share it. The report is of both.
    ///
    /// # Errors
    /// When the run panicked.
    async fn run_or_follow(
        &self,
        session: &Arc<Session>,
        key: &RunKey,
    ) -> Result<Arc<BulkReport>, ApiError> {
        let (first, is_own) = self.begin_or_join(session, key);
        let before = report_of(first).await?;
        if is_own {
            return Ok(before);
        }
        let (next, _) = self.begin_or_join(session, key);
        Ok(Arc::new(report_of(next).await?.after(&before)))
    }

    /// A run, and whether it was begun here.
    fn begin_or_join(
        &self,
        session: &Arc<Session>,
        key: &RunKey,
    ) -> (watch::Receiver<BulkProgress>, bool) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(underway) = runs.get(key) {
            return (underway.clone(), false);
        }
        let (sender, receiver) = watch::channel(None);
        runs.insert(key.clone(), receiver.clone());
        let entry = RunEntry {
            runs: self.clone(),
            key: key.clone(),
        };
        // With the session's permits: the run counts as a request of its caller until it ends.
        let session = Arc::clone(session);
        let (tenant, change) = key.clone();
        let run = async move {
            let report = BulkReport::of_run(&session, tenant, &change).await;
            let failures = report.failures.len();
            tracing::info!(
                monitors = report.monitors,
                scans = report.scans,
                failures,
                ?change,
                "changed many scans of a caller"
            );
            // First, so that a press after the end begins another run.
            drop(entry);
            sender.send_replace(Some(Arc::new(report)));
        };
        tokio::spawn(run.in_current_span());
        (receiver, true)
    }
}

async fn report_of(
    mut progress: watch::Receiver<BulkProgress>,
) -> Result<Arc<BulkReport>, ApiError> {
    let ended = progress.wait_for(Option::is_some).await;
    let report = ended.ok().and_then(|report| report.clone());
    report.ok_or_else(|| ApiError::internal("a change of many scans ended without a report"))
}

/// Removes a run when it ends, also by a panic.
struct RunEntry {
    runs: BulkRuns,
    key: RunKey,
}

impl Drop for RunEntry {
    fn drop(&mut self) {
        let mut runs = self.runs.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.remove(&self.key);
    }
}

impl BulkReport {
    /// With what the run before has done.
    fn after(&self, before: &Self) -> Self {
        Self {
            monitors: self.monitors + before.monitors,
            scans: self.scans + before.scans,
            searches: self.searches + before.searches,
            ..self.clone()
        }
    }

    /// Monitors first, so that none begins another scan.
    async fn of_run(session: &Session, tenant: TenantId, change: &BulkChange) -> Self {
        let mut report = Self::default();
        if change.has_monitors() {
            report.change_monitors(session, tenant, change).await;
        }
        if report.ended_early.is_none() {
            report.change_scans(session, tenant, change).await;
        }
        report
    }

    async fn change_monitors(&mut self, session: &Session, tenant: TenantId, change: &BulkChange) {
        let ids = match monitors_to(session, tenant, change).await {
            Ok(ids) => ids,
            Err(error) => {
                return self.add_failure("The list of monitors", links::MONITORS, &error);
            }
        };
        for id in ids {
            if self.must_end(session) {
                return;
            }
            let done = change_monitor(session, id, change).await;
            self.monitors += self.count(done, id.to_string(), links::monitor(id));
        }
    }

    /// A run of a monitor may begin after the list was read, so it is read until there is nothing new.
    async fn change_scans(&mut self, session: &Session, tenant: TenantId, change: &BulkChange) {
        let mut tried = HashSet::new();
        loop {
            let mut new = match scans_to(session, tenant, change).await {
                Ok(scans) => scans,
                Err(error) => return self.add_failure("The list of scans", "/scans", &error),
            };
            new.retain(|scan| tried.insert(scan.id));
            if new.is_empty() {
                return;
            }
            for scan in new {
                if self.must_end(session) || self.is_over(change, &scan) {
                    return;
                }
                let done = change_scan(session, &scan, change).await;
                self.searches += done.as_ref().map_or(0, |done| done.searches_again);
                let done = done.map(|done| done.was_changed);
                self.scans += self.count(done, scan.id.to_string(), links::of(scan.id));
            }
        }
    }

    /// Whether the searches of this scan are more than the page said.
    fn is_over(&mut self, change: &BulkChange, scan: &ScanToChange) -> bool {
        let BulkChange::AskAgain(limits) = change else {
            return false;
        };
        let is_over = self.searches + scan.searches > limits.max_searches;
        if is_over {
            self.ended_early = Some("More searches are incomplete now than the page showed.");
        }
        is_over
    }

    fn must_end(&mut self, session: &Session) -> bool {
        self.ended_early = if session.app().stop.is_cancelled() {
            Some("The service is being stopped.")
        } else if self.failures.len() >= MAX_FAILURES {
            Some("Too much could not be changed.")
        } else {
            None
        };
        self.ended_early.is_some()
    }

    /// 1 if it was changed. A failure is noted.
    fn count(&mut self, done: Result<bool, ApiError>, name: String, path: String) -> u64 {
        match done {
            Ok(was_changed) => was_changed.into(),
            Err(error) => {
                self.add_failure(name, path, &error);
                0
            }
        }
    }

    fn add_failure(&mut self, name: impl Into<String>, path: impl Into<String>, error: &ApiError) {
        self.failures.push(BulkFailure {
            name: name.into(),
            path: path.into(),
            reason: error.message().to_owned(),
        });
    }
}

/// Runs the change for the session's caller and says what it has done.
///
/// # Errors
/// When the run panicked.
pub(super) async fn run_for_notice(
    runs: &BulkRuns,
    session: &Arc<Session>,
    change: &BulkChange,
) -> Result<Markup, ApiError> {
    let report = match session.tenant() {
        Some(tenant) => {
            runs.run_or_follow(session, &(tenant, change.clone()))
                .await?
        }
        None => Arc::default(),
    };
    Ok(notice(&report, change))
}

fn notice(report: &BulkReport, change: &BulkChange) -> Markup {
    let done = change.done();
    let scans = counted(report.scans, "scan");
    html! {
        div class="notice" role="status" {
            @if change.has_monitors() { (counted(report.monitors, "monitor")) " and " }
            @if matches!(change, BulkChange::AskAgain(_)) { (counted(report.searches, "search")) " of " }
            (scans) " " (done) "."
        }
        @if !report.failures.is_empty() || report.ended_early.is_some() {
            div class="notice bad" role="alert" {
                p {
                    @if !report.failures.is_empty() { b { (report.failures.len()) " could not be " (done) ". " } }
                    @if let Some(reason) = report.ended_early { (reason) " The rest was not tried. " }
                    @if change.has_monitors() { "What is left goes on as it was: press the button again, or open their pages." }
                    @else { "What is left stays as it was: " a href=(links::OVERVIEW) { "Home" } " has the button with its new numbers." }
                }
                ul {
                    @for failure in &report.failures {
                        li { a href=(failure.path) { (failure.name) } ": " (failure.reason) }
                    }
                }
            }
        }
    }
}

async fn change_monitor(
    session: &Session,
    id: MonitorId,
    change: &BulkChange,
) -> Result<bool, ApiError> {
    use monitors::control::{pause, resume};
    let context = session.context()?;
    let pace = &session.custody()?.pace;
    match change {
        BulkChange::Pause => was_changed(pause::pause(context, id).await),
        _ => was_changed(resume::resume(context, pace, id, None).await),
    }
}

/// What became of a scan.
#[derive(Default)]
struct ScanChange {
    was_changed: bool,
    searches_again: u64,
}

async fn change_scan(
    session: &Session,
    scan: &ScanToChange,
    change: &BulkChange,
) -> Result<ScanChange, ApiError> {
    use scans::control::{pause, resume};
    let (context, id) = (session.context()?, scan.id);
    let was_changed = match change {
        BulkChange::Pause => was_changed(pause::pause(context, id).await),
        BulkChange::Resume => was_changed(resume::resume(context, id, &Map::new(), None).await),
        BulkChange::Cancel(_) => was_changed(scans::cancel::cancel(context, id).await),
        BulkChange::AskAgain(limits) => return ask_again(session, scan, limits).await,
    };
    Ok(ScanChange {
        was_changed: was_changed?,
        searches_again: 0,
    })
}

async fn ask_again(
    session: &Session,
    scan: &ScanToChange,
    limits: &AskAgain,
) -> Result<ScanChange, ApiError> {
    let mut body = Map::new();
    body.insert("search_status".to_owned(), json!(["degraded", "partial"]));
    body.insert("max_requests".to_owned(), scan.max_requests.into());
    match scans::retry::retry(session.context()?, scan.id, &body, Some(&limits.once)).await {
        Ok(retried) => Ok(ScanChange {
            was_changed: retried.response.items_retried > 0,
            searches_again: retried.response.items_retried.into(),
        }),
        // This form has asked it again before, and it is incomplete again since.
        Err(CommandError::IdempotencyMismatch(_)) => Ok(ScanChange::default()),
        Err(error) => was_changed::<()>(Err(error)).map(|_| ScanChange::default()),
    }
}

/// `false` if it has ended or was deleted meanwhile.
fn was_changed<T>(done: Result<T, CommandError>) -> Result<bool, ApiError> {
    match done {
        Ok(_) => Ok(true),
        Err(CommandError::InvalidState(_) | CommandError::NotFound(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn monitors_to(
    session: &Session,
    tenant: TenantId,
    change: &BulkChange,
) -> Result<Vec<MonitorId>, ApiError> {
    let status = match change {
        BulkChange::Pause => MonitorStatus::Active,
        _ => MonitorStatus::Paused,
    };
    let is_meant = |monitor: &&Monitor| {
        *change == BulkChange::Pause || monitor.status_reason == Some(MonitorPause::ByCaller)
    };
    let context = session.context()?;
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let pairs = [("status", status.as_str()), ("limit", PAGE_LIMIT)];
        let cursor_pair = cursor.as_deref().map(|cursor| ("cursor", cursor));
        let query = MonitorsQuery::from_query(pairs.into_iter().chain(cursor_pair))?;
        let pool = session.pool()?;
        let page =
            monitors::read::monitors(pool, context.ring, tenant, &query, context.now).await?;
        found.extend(page.data.iter().filter(is_meant).map(|monitor| monitor.id));
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(found),
        }
    }
}

/// A scan to change; the numbers are of one to ask again.
struct ScanToChange {
    id: ScanId,
    searches: u64,
    max_requests: u64,
}

async fn scans_to(
    session: &Session,
    tenant: TenantId,
    change: &BulkChange,
) -> Result<Vec<ScanToChange>, ApiError> {
    let pool = session.pool()?;
    if let BulkChange::AskAgain(limits) = change {
        let found = scans::undecided::list(pool, tenant, session.app().now()?).await?;
        let is_meant = |scan: &UndecidedScan| scan.searches > 0 && limits.scans.contains(&scan.id);
        let found = found.into_iter().filter(is_meant);
        let found = found.map(|scan| ScanToChange {
            id: scan.id,
            searches: scan.searches,
            max_requests: scan.requests_spent + scan.searches.saturating_mul(2),
        });
        return Ok(found.collect());
    }
    let is_meant = |scan: &Scan| {
        let is_paused = scan.status_reason == Some(PauseReason::ByCaller);
        match change {
            BulkChange::Pause => !is_paused,
            BulkChange::Resume => is_paused,
            BulkChange::Cancel(counted) => counted.contains(&scan.id),
            BulkChange::AskAgain(_) => false,
        }
    };
    let live = scans::read::live(pool, tenant).await?;
    let meant = live.iter().filter(|scan| is_meant(scan));
    let meant = meant.map(|scan| ScanToChange {
        id: scan.id,
        searches: 0,
        max_requests: 0,
    });
    Ok(meant.collect())
}
