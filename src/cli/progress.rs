//! A running scan's progress: a bar on standard error if that is a terminal, nothing elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::Failure;
use super::client::ApiClient;
use crate::contract::{Scan, ScanStatus};
use crate::ids::ScanId;

/// Polling interval of a running scan.
const REFRESH: Duration = Duration::from_millis(150);

/// Polls a scan until it ends or pauses.
///
/// # Errors
/// The service does not answer or refuses the request.
pub async fn follow(client: &ApiClient, id: ScanId) -> Result<Scan, Failure> {
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("   [{bar:20}] {pos}/{len} searches  {msg}")?
            .progress_chars("=> "),
    );
    loop {
        let scan: Scan = client.get(&format!("/v1/scans/{id}")).await?;
        show(&bar, &scan);
        if !matches!(scan.status, ScanStatus::Queued | ScanStatus::Running) {
            bar.finish();
            return Ok(scan);
        }
        tokio::time::sleep(REFRESH).await;
    }
}

fn show(bar: &ProgressBar, scan: &Scan) {
    let items = scan.items;
    let ended = items.total - items.pending - items.running;
    bar.set_length(u64::from(items.total));
    bar.set_position(u64::from(ended));
    bar.set_message(summary(scan));
}

/// The counts that are not zero, in words.
pub fn summary(scan: &Scan) -> String {
    let items = scan.items;
    let counts = [
        (items.running, "in flight"),
        (items.ok, "ok"),
        (items.empty, "empty"),
        (items.partial, "partial"),
        (items.degraded, "degraded"),
        (items.failed, "failed"),
        (items.cancelled, "cancelled"),
    ];
    let parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    parts.join(", ")
}
