//! Pauses every monitor and scan of a caller, or resumes what the caller has paused. A run goes on
//! when its browser leaves, and past what cannot be changed; the service's stop ends it after the
//! command that it is in.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Map;
use tokio::sync::watch;
use tracing::Instrument as _;

use crate::links;
use crate::session::Session;
use farescan_core::app::error::ApiError;
use farescan_core::commands::CommandError;
use farescan_core::contract::ScanStatus;
use farescan_core::contract::monitors::{Monitor, MonitorPause, MonitorStatus, MonitorsQuery};
use farescan_core::contract::scans::{PauseReason, Scan, ScansQuery};
use farescan_core::ids::{MonitorId, ScanId, TenantId};
use farescan_core::monitors;
use farescan_core::scans;

const PAGE_LIMIT: &str = "200";
/// After as many failures a run ends: each may have waited for the database.
const MAX_FAILURES: usize = 20;

/// What a run does to each monitor and scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PauseOrResume {
    Pause,
    /// Of those that their caller has paused.
    Resume,
}

/// What a run has done.
#[derive(Debug, Clone, Default)]
pub(super) struct PauseReport {
    pub(super) monitors: u64,
    pub(super) scans: u64,
    pub(super) failures: Vec<PauseFailure>,
    /// Why the rest was not tried.
    pub(super) ended_early: Option<&'static str>,
}

/// What could not be changed, and why.
#[derive(Debug, Clone)]
pub(super) struct PauseFailure {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) reason: String,
}

/// A caller's run of one kind.
type RunKey = (TenantId, PauseOrResume);

/// The runs of this process: at most one of each caller and kind.
#[derive(Debug, Clone, Default)]
pub(super) struct PauseRuns(Arc<Mutex<HashMap<RunKey, watch::Receiver<PauseProgress>>>>);

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
        key: RunKey,
    ) -> Result<Arc<PauseReport>, ApiError> {
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
        key: RunKey,
    ) -> (watch::Receiver<PauseProgress>, bool) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(underway) = runs.get(&key) {
            return (underway.clone(), false);
        }
        let (sender, receiver) = watch::channel(None);
        runs.insert(key, receiver.clone());
        let entry = RunEntry {
            runs: self.clone(),
            key,
        };
        // With the session's permits: the run counts as a request of its caller until it ends.
        let session = Arc::clone(session);
        let run = async move {
            let report = PauseReport::of_run(&session, key).await;
            let failures = report.failures.len();
            tracing::info!(
                monitors = report.monitors,
                scans = report.scans,
                failures,
                change = ?key.1,
                "paused or resumed everything of a caller"
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
    report.ok_or_else(|| ApiError::internal("a change of everything ended without a report"))
}

/// Removes a run when it ends, also by a panic.
struct RunEntry {
    runs: PauseRuns,
    key: RunKey,
}

impl Drop for RunEntry {
    fn drop(&mut self) {
        let mut runs = self.runs.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.remove(&self.key);
    }
}

impl PauseReport {
    /// With what the run before has done.
    fn after(&self, before: &Self) -> Self {
        Self {
            monitors: self.monitors + before.monitors,
            scans: self.scans + before.scans,
            ..self.clone()
        }
    }

    /// Monitors first, so that none begins another scan.
    async fn of_run(session: &Session, (tenant, change): RunKey) -> Self {
        let mut report = Self::default();
        match monitors_to(session, tenant, change).await {
            Ok(ids) => {
                for id in ids {
                    if report.must_end(session) {
                        return report;
                    }
                    let path = links::monitor(id);
                    let done = change_monitor(session, id, change).await;
                    report.monitors += report.count(done, id.to_string(), path);
                }
            }
            Err(error) => report.add_failure("The list of monitors", links::MONITORS, &error),
        }
        // A scan may change its status between two of the lists and be in neither, so they are read
        // until there is nothing new.
        let mut tried = HashSet::new();
        loop {
            let mut new = match scans_to(session, tenant, change).await {
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
                let path = links::of(id);
                let done = change_scan(session, id, change).await;
                report.scans += report.count(done, id.to_string(), path);
            }
        }
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
        self.failures.push(PauseFailure {
            name: name.into(),
            path: path.into(),
            reason: error.message().to_owned(),
        });
    }
}

async fn change_monitor(
    session: &Session,
    id: MonitorId,
    change: PauseOrResume,
) -> Result<bool, ApiError> {
    use monitors::control::{pause, resume};
    let context = session.context()?;
    let pace = &session.custody()?.pace;
    match change {
        PauseOrResume::Pause => was_changed(pause::pause(context, id).await),
        PauseOrResume::Resume => was_changed(resume::resume(context, pace, id, None).await),
    }
}

async fn change_scan(
    session: &Session,
    id: ScanId,
    change: PauseOrResume,
) -> Result<bool, ApiError> {
    use scans::control::{pause, resume};
    let context = session.context()?;
    match change {
        PauseOrResume::Pause => was_changed(pause::pause(context, id).await),
        PauseOrResume::Resume => was_changed(resume::resume(context, id, &Map::new(), None).await),
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
    change: PauseOrResume,
) -> Result<Vec<MonitorId>, ApiError> {
    let status = match change {
        PauseOrResume::Pause => MonitorStatus::Active,
        PauseOrResume::Resume => MonitorStatus::Paused,
    };
    let is_meant = |monitor: &&Monitor| {
        change == PauseOrResume::Pause || monitor.status_reason == Some(MonitorPause::ByCaller)
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

/// The scans that have not ended and that their caller has not paused, or those that it has.
async fn scans_to(
    session: &Session,
    tenant: TenantId,
    change: PauseOrResume,
) -> Result<Vec<ScanId>, ApiError> {
    let is_meant = |scan: &&Scan| {
        (scan.status_reason == Some(PauseReason::ByCaller)) == (change == PauseOrResume::Resume)
    };
    let mut found = Vec::new();
    for status in [ScanStatus::Queued, ScanStatus::Running, ScanStatus::Paused] {
        let mut cursor = None::<String>;
        loop {
            let pairs = [("status", status.as_str()), ("limit", PAGE_LIMIT)];
            let cursor_pair = cursor.as_deref().map(|cursor| ("cursor", cursor));
            let query = ScansQuery::from_query(pairs.into_iter().chain(cursor_pair))?;
            let page = scans::read::scans(session.pool()?, tenant, &query).await?;
            let live = page.data.iter();
            found.extend(live.filter(is_meant).map(|scan| scan.id));
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
    }
    Ok(found)
}
