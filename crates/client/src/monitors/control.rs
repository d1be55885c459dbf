//! `farescan monitors pause`, `resume`, `run` and `delete`.

use std::io::Write as _;

use farescan_sheets::monitor::{self, forecast_line};
use farescan_sheets::numbers;

use crate::Failure;
use crate::client::{ClientArgs, ServiceSession};
use crate::format::time_or;
use crate::ids;
use crate::question::Confirmation;
use crate::render::sheet::cell;
use crate::wrap::note;
use farescan_contract::Scan;
use farescan_contract::ids::MonitorId;
use farescan_contract::monitors::Monitor;

/// A monitor.
#[derive(Debug, clap::Args)]
pub(super) struct MonitorPauseArgs {
    /// Monitor: its id, the beginning of it, or `@last`
    #[arg(value_name = "MONITOR")]
    pub(super) monitor: String,
    #[command(flatten)]
    pub(super) client: ClientArgs,
}

/// A monitor, and the consent.
#[derive(Debug, clap::Args)]
pub(super) struct CommandArgs {
    /// Monitor: its id, the beginning of it, or `@last`
    #[arg(value_name = "MONITOR")]
    pub(super) monitor: String,
    #[command(flatten)]
    pub(super) confirmation: Confirmation,
    #[command(flatten)]
    pub(super) client: ClientArgs,
}

/// Stops the spending of a monitor. It costs nothing, so it does not ask.
pub(super) async fn pause(args: MonitorPauseArgs) -> Result<(), Failure> {
    let (session, id) = ids::open::<MonitorId>(&args.client, &args.monitor).await?;
    print_monitor(&session, &format!("/v1/monitors/{id}/pause")).await
}

pub(super) async fn resume(args: CommandArgs) -> Result<(), Failure> {
    let (session, monitor) = open(&args).await?;
    let forecast = monitor
        .forecast
        .as_ref()
        .map_or("its runs spend requests again".to_owned(), forecast_line);
    let question = format!("Continue {:?}? {forecast}.", monitor.name);
    args.confirmation.ask(session.screen, &question).await?;
    print_monitor(&session, &format!("/v1/monitors/{}/resume", monitor.id)).await
}

pub(super) async fn run_now(args: CommandArgs) -> Result<(), Failure> {
    let (session, monitor) = open(&args).await?;
    let cost = monitor
        .forecast
        .as_ref()
        .map_or("some requests".to_owned(), |forecast| {
            numbers::request_range(forecast.requests_per_run)
        });
    let question = format!("Run {:?} now, for {cost}?", monitor.name);
    args.confirmation.ask(session.screen, &question).await?;
    let path = format!("/v1/monitors/{}/run", monitor.id);
    let answer = session.command(&path, true).await?;
    if let Some(Scan { id, .. }) = session.read_or_print(&answer)? {
        writeln!(anstream::stdout(), "{id}")?;
        note!("`farescan watch {id}` shows its progress and its results");
    }
    Ok(())
}

pub(super) async fn delete(args: CommandArgs) -> Result<(), Failure> {
    let (session, monitor) = open(&args).await?;
    let question = format!(
        "Delete {:?} for good? Its scans and prices stay.",
        monitor.name
    );
    args.confirmation.ask(session.screen, &question).await?;
    let path = format!("/v1/monitors/{}", monitor.id);
    session.delete(&path).await?;
    note!("{} is deleted", monitor.id);
    Ok(())
}

async fn open(args: &CommandArgs) -> Result<(ServiceSession, Monitor), Failure> {
    let (session, id) = ids::open::<MonitorId>(&args.client, &args.monitor).await?;
    let monitor = session.client.get(&format!("/v1/monitors/{id}")).await?;
    Ok((session, monitor))
}

async fn print_monitor(session: &ServiceSession, path: &str) -> Result<(), Failure> {
    let answer = session.command(path, false).await?;
    if let Some(of) = session.read_or_print::<Monitor>(&answer)? {
        let state = cell(&vec![monitor::state(&of)]).text;
        let next = time_or(of.next_slot, "–");
        writeln!(anstream::stdout(), "{} is {state}; next {next}", of.id)?;
    }
    Ok(())
}
