//! A running scan's progress on standard error, if that is a terminal: a bar, and above it the
//! calendar as it fills in. Elsewhere nothing. Events of the service say when to read it again; where
//! there are none it is polled.

use std::time::Duration;

use farescan_sheets::numbers::{counted, duration, price};
use farescan_sheets::scan::{ended, outcomes, waits_for_caller};
use farescan_sheets::trip::words;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::client::{ApiClient, ClientError, ScanChanges, ServiceSession};
use super::scan_table;
use super::terminal::Screen;
use super::wrap::for_stderr;
use farescan_contract::ids::ScanId;
use farescan_contract::{Scan, ScanStatus};

/// Polling interval of a scan that ends soon.
const REFRESH: Duration = Duration::from_millis(200);
/// Polling interval of a scan that takes longer than [`SOON_SECONDS`].
const SLOW_REFRESH: Duration = Duration::from_secs(1);
const SOON_SECONDS: u64 = 30;
/// How long each read waits for the end where nothing is shown.
const WAIT_SECONDS: u32 = 30;
/// How long the service may be unavailable: a restart.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the last decision of a strategy may follow the end of its scan: usually a second.
const DECISION_PATIENCE: Duration = Duration::from_secs(10);
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Larger grids are only shown at the end.
const MAX_LIVE_ITEMS: u32 = 1_000;
const BAR_WIDTH: usize = 20;

/// What is shown while a scan runs.
#[derive(Debug, Clone, Copy)]
pub enum View {
    /// Nothing.
    Silent,
    /// A bar.
    Bar,
    /// A bar below the calendar.
    Calendar(Screen),
}

impl View {
    /// What this session's terminal can show.
    pub fn of(session: &ServiceSession) -> Self {
        if session.screen.live {
            Self::Calendar(session.screen)
        } else {
            Self::Silent
        }
    }
}

/// A line on standard error that is redrawn with each message.
pub fn line_of_text() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{msg}") {
        bar.set_style(style);
    }
    bar
}

/// Reads a scan until it has ended, or waits for its caller.
///
/// # Errors
/// The service refuses the request, or is unavailable for longer than [`PATIENCE`].
pub async fn follow(client: &ApiClient, id: ScanId, view: View) -> Result<Scan, ClientError> {
    let bar = match view {
        View::Silent => ProgressBar::hidden(),
        View::Bar | View::Calendar(_) => line_of_text(),
    };
    let followed = poll(client, id, view, &bar).await;
    bar.finish_and_clear();
    followed
}

async fn poll(
    client: &ApiClient,
    id: ScanId,
    view: View,
    bar: &ProgressBar,
) -> Result<Scan, ClientError> {
    let wait = if matches!(view, View::Silent) {
        WAIT_SECONDS
    } else {
        0
    };
    let path = format!("/v1/scans/{id}?wait={wait}");
    let (mut away_since, mut at_rest_since) = (None, None);
    let mut calendar = LiveCalendar::default();
    let mut changes = ScanChanges::new(client, id);
    loop {
        let scan: Scan = match client.get(&path).await {
            Ok(scan) => scan,
            Err(error) if error.is_temporary() => {
                let since = *away_since.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    return Err(error);
                }
                bar.set_message(format!("{}   the service does not answer; the scan itself does not depend on this command", calendar.text));
                changes.disconnect();
                tokio::time::sleep(RETRY_PAUSE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        away_since = None;
        if is_at_rest(&scan) {
            let since = *at_rest_since.get_or_insert_with(Instant::now);
            if !is_decision_due(&scan) || since.elapsed() > DECISION_PATIENCE {
                return Ok(scan);
            }
            tokio::time::sleep(REFRESH).await;
            continue;
        }
        at_rest_since = None;
        if let View::Calendar(screen) = view {
            calendar.update(client, &scan, screen).await;
        }
        bar.set_message(format!("{}{}", calendar.text, for_stderr(&line(&scan))));
        if wait == 0 {
            let is_soon = scan
                .eta_seconds
                .is_none_or(|seconds| seconds <= SOON_SECONDS);
            changes
                .next(if is_soon { REFRESH } else { SLOW_REFRESH })
                .await;
        }
    }
}

/// Whether all searches of a scan have ended, and its strategy has yet to say what it makes of them
/// (scans.md, rule 86).
fn is_decision_due(scan: &Scan) -> bool {
    let is_done = matches!(scan.status, ScanStatus::Completed | ScanStatus::Incomplete);
    let strategy = scan.strategy.as_ref();
    is_done && strategy.is_some_and(|strategy| !strategy.is_decided())
}

/// Whether nothing more happens without the caller.
pub fn is_at_rest(scan: &Scan) -> bool {
    scan.status.is_ended() || waits_for_caller(scan)
}

/// The calendar above the bar.
#[derive(Default)]
struct LiveCalendar {
    text: String,
    /// The ended items of the shown calendar.
    ended: Option<u32>,
}

impl LiveCalendar {
    /// Reads the grid again if an item has ended since. Without an answer the old one stays.
    async fn update(&mut self, client: &ApiClient, scan: &Scan, screen: Screen) {
        let ended = ended(&scan.items);
        if self.ended == Some(ended)
            || scan.items.total > MAX_LIVE_ITEMS
            || !scan_table::has_dates(scan)
        {
            return;
        }
        let Ok(text) = scan_table::render(client, scan, screen).await else {
            return;
        };
        // A taller one would scroll away while it is drawn again.
        if text.lines().count() + 2 <= usize::from(screen.height) {
            self.text = format!("{text}\n");
        }
        self.ended = Some(ended);
    }
}

/// `[=====>    ] 12/28 searches  11 ok, 1 degraded · best 146 USD · 8 s left`
fn line(scan: &Scan) -> String {
    let (ended, total) = (ended(&scan.items), scan.items.total);
    let filled = BAR_WIDTH * usize::try_from(ended).unwrap_or(0)
        / usize::try_from(total.max(1)).unwrap_or(1);
    let bar = format!(
        "{}{}",
        "=".repeat(filled),
        if filled < BAR_WIDTH { ">" } else { "" }
    );
    let mut parts = vec![outcomes(&scan.items)];
    if let Some(best) = &scan.best {
        parts.push(format!("best {}", price(best.price, &best.currency)));
    }
    match (scan.status, scan.status_reason) {
        (ScanStatus::Paused, Some(reason)) => {
            parts.push(format!("waits: {}", words(reason.as_str())));
        }
        _ => parts.extend(
            scan.eta_seconds
                .map(|left| format!("{} left", duration(left))),
        ),
    }
    format!(
        "   [{bar:<BAR_WIDTH$}] {ended}/{}  {}",
        counted(total, "search"),
        parts.join(" · ")
    )
}
