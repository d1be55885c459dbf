//! `farescan monitors show`: one monitor, its rules and its last slots.

use std::io::Write as _;

use super::watch;
use crate::Failure;
use crate::client::{ClientArgs, ServiceResponse, ServiceSession};
use crate::format::zone;
use crate::ids;
use crate::render::sheet;
use crate::wrap::note;
use farescan_contract::monitors::{Monitor, MonitorForecast, MonitorSlot, SlotPage};
use farescan_contract::scans::{StrategyProgress, WatchProgress};
use farescan_contract::{ErrorType, Scan};
use farescan_sheets::monitor::{self, Runs};
use farescan_sheets::numbers::{self, counted};
use farescan_sheets::sheet::Sheet;

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
    let session = args.client.open()?;
    let id = ids::monitor(&session.client, &args.monitor).await?;
    let answer = session.client.ask(&format!("/v1/monitors/{id}")).await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
        return Ok(());
    }
    let monitor: Monitor = answer.read()?;
    let slots: SlotPage = session
        .client
        .get(&format!("/v1/monitors/{id}/slots?limit={SLOTS}"))
        .await?;
    let watch = last_watch(&session, &monitor, &slots.data).await?;
    write!(
        out,
        "{}",
        describe(&session, &monitor, &slots.data, watch.as_ref())
    )?;
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
    match session
        .client
        .get::<Scan>(&format!("/v1/scans/{scan}"))
        .await
    {
        Ok(scan) => Ok(match scan.strategy {
            Some(StrategyProgress::Watch(watch)) => Some(watch),
            _ => None,
        }),
        Err(error) if error.error_type() == Some(ErrorType::NotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Prints a monitor that was created or changed, with a new secret of its webhook.
pub(super) fn print_changed(
    session: &ServiceSession,
    answer: &ServiceResponse,
) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
        return Ok(());
    }
    let monitor: Monitor = answer.read()?;
    write!(out, "{}", describe(session, &monitor, &[], None))?;
    if let Some(secret) = &monitor.webhook_secret {
        writeln!(out, "secret    {}", secret.0.as_str())?;
        note!("The secret signs the deliveries to the webhook. It is shown this once: keep it.");
    }
    Ok(())
}

fn describe(
    session: &ServiceSession,
    of: &Monitor,
    slots: &[MonitorSlot],
    watch: Option<&WatchProgress>,
) -> String {
    let runs = Runs { runs: &[], watch };
    let shown = Sheet {
        sections: monitor::sections(of, slots),
        ..monitor::sheet(of, runs)
    };
    format!("{}  {}", of.id, sheet::whole(&shown, session.screen))
}

/// `30 runs of 31 to 62 requests: 930 to 1,860 requests a month`.
pub(super) fn forecast_line(forecast: &MonitorForecast) -> String {
    format!(
        "{} of {}: {} a month",
        counted(forecast.slots, "run"),
        numbers::request_range(forecast.requests_per_run),
        numbers::request_range(forecast.requests_per_month)
    )
}
