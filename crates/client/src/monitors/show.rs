//! `farescan monitors show`: one monitor, its rules and its last slots.

use std::io::Write as _;

use farescan_contract::ids::MonitorId;
use farescan_sheets::monitor;

use super::watch;
use crate::Failure;
use crate::client::{ClientArgs, ServiceSession};
use crate::format::zone;
use crate::ids;
use crate::render::sheet::print_sheet;
use crate::wrap::note;
use farescan_contract::monitors::{Monitor, MonitorSlot, SlotPage};
use farescan_contract::scans::{StrategyProgress, WatchProgress};
use farescan_contract::{ErrorType, Scan};

/// The shown slots.
const SLOTS: u16 = 10;

/// One monitor.
#[derive(Debug, clap::Args)]
pub(super) struct MonitorShowArgs {
    /// Monitor: its id, the beginning of it, or `@last`
    #[arg(value_name = "MONITOR", default_value = "@last")]
    monitor: String,
    #[command(flatten)]
    client: ClientArgs,
}

/// Prints the monitor.
pub(super) async fn run(args: MonitorShowArgs) -> Result<(), Failure> {
    let (session, id) = ids::open::<MonitorId>(&args.client, &args.monitor).await?;
    let Some(of) = session
        .read::<Monitor>(&format!("/v1/monitors/{id}"))
        .await?
    else {
        return Ok(());
    };
    let path = format!("/v1/monitors/{id}/slots?limit={SLOTS}");
    let slots: SlotPage = session.client.get(&path).await?;
    let watch = last_watch(&session, &of, &slots.data).await?;
    let sheet = monitor::sheet(&of, &slots.data, watch.as_ref());
    print_sheet(&id, &sheet, session.screen)?;
    note!("Times in {}.", zone());
    Ok(())
}

/// What the newest run says of a monitor that watches. A run whose scan was deleted says nothing.
async fn last_watch(
    session: &ServiceSession,
    monitor: &Monitor,
    slots: &[MonitorSlot],
) -> Result<Option<WatchProgress>, Failure> {
    let newest = slots.iter().find_map(|slot| slot.scan_id);
    let Some(scan) = newest.filter(|_| watch::is_watch(monitor)) else {
        return Ok(None);
    };
    let path = format!("/v1/scans/{scan}");
    match session.client.get::<Scan>(&path).await {
        Ok(scan) => Ok(match scan.strategy {
            Some(StrategyProgress::Watch(watch)) => Some(watch),
            _ => None,
        }),
        Err(error) if error.error_type() == Some(ErrorType::NotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Prints a monitor that was created or changed, with a new secret of its webhook; nothing if it is printed
/// as JSON.
pub(super) fn print_changed(
    session: &ServiceSession,
    monitor: Option<Monitor>,
) -> Result<(), Failure> {
    let Some(of) = monitor else {
        return Ok(());
    };
    print_sheet(&of.id, &monitor::sheet(&of, &[], None), session.screen)?;
    if let Some(secret) = &of.webhook_secret {
        writeln!(anstream::stdout(), "secret    {}", secret.0.as_str())?;
        note!("The secret signs the deliveries to the webhook. It is shown this once: keep it.");
    }
    Ok(())
}
