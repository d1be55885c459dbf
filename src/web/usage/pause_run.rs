//! Pauses every monitor and scan of a caller. A run goes on when its browser leaves, and past what
//! cannot be paused; the service's stop ends it after the command that it is in.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tracing::Instrument as _;

use crate::commands::CommandError;
use crate::contract::ScanStatus;
use crate::contract::monitors::{MonitorStatus, MonitorsQuery};
use crate::contract::scans::{PauseReason, ScansQuery};
use crate::http::error::ApiError;
use crate::ids::{MonitorId, ScanId, TenantId};
use crate::monitors;
use crate::scans;
use crate::web::links;
use crate::web::parts;
use crate::web::session::Session;

const PAGE_LIMIT: &str = "200";
/// After as many failures a run ends: each may have waited for the database.
const MAX_FAILURES: usize = 20;

/// What a run has done.
#[derive(Debug, Clone, Default)]
pub(super) struct PauseReport {
    pub(super) monitors: u64,
    pub(super) scans: u64,
    pub(super) failures: Vec<PauseFailure>,
    /// Why the rest was not tried.
    pub(super) ended_early: Option<&'static str>,
}

/// What could not be paused, and why.
#[derive(Debug, Clone)]
pub(super) struct PauseFailure {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) reason: String,
}

/// The runs of this process: at most one of each caller.
#[derive(Debug, Clone, Default)]
pub(super) struct PauseRuns(Arc<Mutex<HashMap<TenantId, watch::Receiver<PauseProgress>>>>);

/// `None` until the run ends.
type PauseProgress = Option<Arc<PauseReport>>;

impl PauseRuns {
    /// Runs once for the caller and waits for the end, on which the run does not depend. While
    /// another run is underway, which may have passed what was resumed since, this one follows it;
    /// presses meanwhile share it. The report is of both.
    ///
    /// # Errors
    /// When the run panicked.
    pub(super) async fn run_or_follow(
        &self,
        session: &Arc<Session>,
        tenant: TenantId,
    ) -> Result<Arc<PauseReport>, ApiError> {
        let (first, is_own) = self.begin_or_join(session, tenant);
        let before = report_of(first).await?;
        if is_own {
            return Ok(before);
        }
        let (next, _) = self.begin_or_join(session, tenant);
        Ok(Arc::new(report_of(next).await?.after(&before)))
    }

    /// A run, and whether it was begun here.
    fn begin_or_join(
        &self,
        session: &Arc<Session>,
        tenant: TenantId,
    ) -> (watch::Receiver<PauseProgress>, bool) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(underway) = runs.get(&tenant) {
            return (underway.clone(), false);
        }
        let (sender, receiver) = watch::channel(None);
        runs.insert(tenant, receiver.clone());
        let entry = RunEntry {
            runs: self.clone(),
            tenant,
        };
        // With the session's permits: the run counts as a request of its caller until it ends.
        let session = Arc::clone(session);
        let run = async move {
            let report = PauseReport::of_run(&session, tenant).await;
            let failures = report.failures.len();
            tracing::info!(
                monitors = report.monitors,
                scans = report.scans,
                failures,
                "paused everything of a caller"
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
    mut progress: watch::Receiver<PauseProgress>,
) -> Result<Arc<PauseReport>, ApiError> {
    let ended = progress.wait_for(Option::is_some).await;
    let report = ended.ok().and_then(|report| report.clone());
    report.ok_or_else(|| ApiError::internal("pausing everything ended without a report"))
}

/// Removes a run when it ends, also by a panic.
struct RunEntry {
    runs: PauseRuns,
    tenant: TenantId,
}

impl Drop for RunEntry {
    fn drop(&mut self) {
        let mut runs = self.runs.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.remove(&self.tenant);
    }
}

impl PauseReport {
    /// With what the run before has paused.
    fn after(&self, before: &Self) -> Self {
        Self {
            monitors: self.monitors + before.monitors,
            scans: self.scans + before.scans,
            ..self.clone()
        }
    }

    /// Monitors first, so that none begins another scan.
    async fn of_run(session: &Session, tenant: TenantId) -> Self {
        let mut report = Self::default();
        match active_monitors(session, tenant).await {
            Ok(ids) => {
                for id in ids {
                    if report.must_end(session) {
                        return report;
                    }
                    let path = links::monitor(id);
                    let done = pause_monitor(session, id).await;
                    report.monitors += report.count(done, id.to_string(), path);
                }
            }
            Err(error) => report.add_failure("The list of monitors", links::MONITORS, &error),
        }
        // A scan may change its status between two of the lists and be in neither, so they are read
        // until there is nothing new.
        let mut tried = HashSet::new();
        loop {
            let mut new = match live_scans(session, tenant).await {
                Ok(live) => live,
                Err(error) => {
                    report.add_failure("The list of scans", "/scans", &error);
                    return report;
                }
            };
            new.retain(|id| tried.insert(*id));
            if new.is_empty() {
                return report;
            }
            for id in new {
                if report.must_end(session) {
                    return report;
                }
                let path = parts::scan_path(id);
                let done = pause_scan(session, id).await;
                report.scans += report.count(done, id.to_string(), path);
            }
        }
    }

    fn must_end(&mut self, session: &Session) -> bool {
        self.ended_early = if session.app().stop.is_cancelled() {
            Some("The service is being stopped.")
        } else if self.failures.len() >= MAX_FAILURES {
            Some("Too much could not be paused.")
        } else {
            None
        };
        self.ended_early.is_some()
    }

    /// 1 if it was paused. A failure is noted.
    fn count(&mut self, done: Result<bool, ApiError>, name: String, path: String) -> u64 {
        match done {
            Ok(was_paused) => was_paused.into(),
            Err(error) => {
                self.add_failure(name, path, &error);
                0
            }
        }
    }

    fn add_failure(&mut self, name: impl Into<String>, path: impl Into<String>, error: &ApiError) {
        self.failures.push(PauseFailure {
            name: name.into(),
            path: path.into(),
            reason: error.message().to_owned(),
        });
    }
}

async fn pause_monitor(session: &Session, id: MonitorId) -> Result<bool, ApiError> {
    was_paused(monitors::control::pause::pause(session.context()?, id).await)
}

async fn pause_scan(session: &Session, id: ScanId) -> Result<bool, ApiError> {
    was_paused(scans::control::pause::pause(session.context()?, id).await)
}

/// `false` if it has ended or was deleted meanwhile.
fn was_paused<T>(done: Result<T, CommandError>) -> Result<bool, ApiError> {
    match done {
        Ok(_) => Ok(true),
        Err(CommandError::InvalidState(_) | CommandError::NoScan | CommandError::NoMonitor) => {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

async fn active_monitors(session: &Session, tenant: TenantId) -> Result<Vec<MonitorId>, ApiError> {
    let context = session.context()?;
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let status = MonitorStatus::Active.as_str();
        let pairs = [("status", status), ("limit", PAGE_LIMIT)];
        let cursor_pair = cursor.as_deref().map(|cursor| ("cursor", cursor));
        let query = MonitorsQuery::from_query(pairs.into_iter().chain(cursor_pair))?;
        let pool = session.pool()?;
        let page =
            monitors::read::monitors(pool, context.ring, tenant, &query, context.now).await?;
        found.extend(page.data.iter().map(|monitor| monitor.id));
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(found),
        }
    }
}

/// The scans that have not ended and that their caller has not paused.
async fn live_scans(session: &Session, tenant: TenantId) -> Result<Vec<ScanId>, ApiError> {
    let mut found = Vec::new();
    for status in [ScanStatus::Queued, ScanStatus::Running, ScanStatus::Paused] {
        let mut cursor = None::<String>;
        loop {
            let pairs = [("status", status.as_str()), ("limit", PAGE_LIMIT)];
            let cursor_pair = cursor.as_deref().map(|cursor| ("cursor", cursor));
            let query = ScansQuery::from_query(pairs.into_iter().chain(cursor_pair))?;
            let page = scans::read::scans(session.pool()?, tenant, &query).await?;
            let live = page.data.iter();
            found.extend(
                live.filter(|scan| scan.status_reason != Some(PauseReason::ByCaller))
                    .map(|scan| scan.id),
            );
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
    }
    Ok(found)
}
