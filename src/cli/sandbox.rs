//! `farescan sandbox`: the marketplace simulator alone.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::civil::Date;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::serve::{ExitSignal, stop_on_signal};
use crate::config::LogConfig;
use crate::logging;
use crate::sandbox::scenarios::Scenario;
use crate::sandbox::{self, SandboxClock, SandboxOptions};
use farescan_client::Failure;

/// Settings of `sandbox`.
#[derive(Debug, clap::Args)]
pub struct SandboxArgs {
    /// Address to listen on; port 0 picks a free one
    #[arg(
        long,
        env = "FARESCAN_SANDBOX_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8090"
    )]
    listen: SocketAddr,
    /// Seed of every price, timetable and delay
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Factor of the delays: 1 is as slow as the real engines, 0 answers at once
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    latency: f64,
    /// The current date of the simulation [default: today, UTC]
    #[arg(long, value_name = "DATE")]
    today: Option<Date>,
    /// The time of the simulation and its speed: START, xSPEED or both, such as
    /// 2027-01-04T06:00:00Z,x1440 (a day passes in a minute; x0 stands still). Its answers have it
    /// in `x-sandbox-date` [default: the real time]
    #[arg(long, value_name = "SPEC", conflicts_with = "today")]
    clock: Option<SandboxClock>,
    /// A file with a price process for flights: docs/laboratory.md
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    #[command(flatten)]
    log: LogConfig,
}

/// Runs until SIGTERM or SIGINT.
pub async fn run(args: SandboxArgs) -> Result<(), Failure> {
    logging::init(&args.log)?;
    let scenario = args
        .scenario
        .map(|file| Scenario::read(&file).map(Arc::new))
        .transpose()?;
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", args.listen))?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "listening; its front page lists the keys and the magic values");
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone(), ExitSignal::default());
    let options = SandboxOptions {
        seed: args.seed,
        latency_factor: args.latency,
        today: args.today,
        clock: args.clock,
        scenario,
    };
    Ok(sandbox::serve(listener, options, stop.cancelled_owned()).await?)
}
