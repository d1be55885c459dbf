//! `farescan monitors`: all of them.

use std::io::Write as _;

use crate::Failure;
use crate::client::ClientArgs;
use crate::format::{time_or, zone};
use crate::ids;
use crate::pages::{Query, page_limit, print_lines, print_nothing, rows};
use crate::render::{CellTone, Column, ListTable, Text};
use crate::wrap::note;
use farescan_contract::monitors::{Monitor, MonitorStatus, SlotOutcome};
use farescan_sheets::numbers::count;

/// Which monitors.
#[derive(Debug, clap::Args)]
pub(super) struct MonitorListArgs {
    /// Only monitors in this status: `active` or `paused`
    #[arg(long, value_name = "STATUS")]
    status: Option<MonitorStatus>,
    #[command(flatten)]
    client: ClientArgs,
}

/// Prints a row for each monitor.
pub(super) async fn run(args: MonitorListArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let path = Query::new("/v1/monitors")
        .with("status", args.status)
        .with("limit", Some(page_limit(None)))
        .path();
    if session.json {
        return print_lines(&session, &path).await;
    }
    let monitors: Vec<Monitor> = rows(&session.client, &path, None).await?;
    if monitors.is_empty() {
        return print_nothing(
            &session.client,
            "No monitors. `farescan monitors create --help` has two examples.",
        )
        .await;
    }
    let mut table = ListTable::new([
        Column::text("Monitor"),
        Column::text("Name"),
        Column::text("Status"),
        Column::text("Schedule").rank(3),
        Column::text("Next").rank(1),
        Column::text("Last").rank(2),
        Column::number("This month").rank(4),
    ]);
    let shortened = ids::shortened(monitors.iter().map(|monitor| monitor.id));
    for (monitor, id) in monitors.iter().zip(shortened) {
        let last = monitor.last_slot.as_ref().map(|slot| {
            let tone = match slot.outcome {
                SlotOutcome::Ran | SlotOutcome::Late => CellTone::Plain,
                _ => CellTone::Warning,
            };
            Text::new(slot.outcome.to_string(), tone)
        });
        let month = monitor.requests;
        let limit = month
            .max_per_month
            .map(|max| format!(" of {}", count(max)))
            .unwrap_or_default();
        table.row([
            id.into(),
            monitor.name.clone().into(),
            status(monitor),
            format!("{} {}", monitor.schedule.cron, monitor.schedule.timezone).into(),
            time_or(monitor.next_slot, "–").into(),
            last.unwrap_or_default(),
            format!("{}{limit}", count(month.this_month)).into(),
        ]);
    }
    writeln!(anstream::stdout(), "{}", table.render(session.screen))?;
    note!("Times in {}.", zone());
    Ok(())
}

/// The status with its reason.
pub(super) fn status(monitor: &Monitor) -> Text {
    match (monitor.status, monitor.status_reason) {
        (MonitorStatus::Active, _) => Text::new("active", CellTone::Good),
        (MonitorStatus::Paused, Some(reason)) => {
            Text::new(format!("paused ({reason})"), CellTone::Warning)
        }
        (MonitorStatus::Paused, None) => Text::new("paused", CellTone::Warning),
    }
}
