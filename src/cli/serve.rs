//! `farescan serve`: the gateway, the job API and, without `--no-worker`, a worker.

use std::io::IsTerminal as _;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::past::add_past;
use super::trial::{pace, sandbox_options, sandbox_upstream, start_sandbox, use_sandbox_folder};
use crate::config::{
    AdminConfig, ChannelConfig, DatabaseConfig, HttpConfig, LogConfig, MasterKeyConfig, PaceConfig,
    RateLimitConfig, UpstreamConfig, WebhookConfig, WorkerConfig,
};
use crate::db::clock::Clock;
use crate::logging;
use crate::sandbox::{DEMO_KEY, DayShift};
use crate::service::{Service, Settings};
use farescan_client::Failure;

/// Settings of `serve`.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// Start a marketplace simulator and use it; no search is billed
    #[arg(long)]
    sandbox: bool,
    /// Run no worker: `farescan worker` processes do the searches of scans
    #[arg(long)]
    no_worker: bool,
    #[command(flatten)]
    http: HttpConfig,
    #[command(flatten)]
    admin: AdminConfig,
    #[command(flatten)]
    limits: RateLimitConfig,
    #[command(flatten)]
    upstream: UpstreamConfig,
    #[command(flatten)]
    pub(super) database: DatabaseConfig,
    #[command(flatten)]
    keys: MasterKeyConfig,
    #[command(flatten)]
    pace: PaceConfig,
    #[command(flatten)]
    worker: WorkerConfig,
    #[command(flatten)]
    webhooks: WebhookConfig,
    #[command(flatten)]
    channels: ChannelConfig,
    #[command(flatten)]
    log: LogConfig,
}

/// Runs until SIGTERM or SIGINT; a second one ends at once.
pub async fn run(mut args: ServeArgs) -> Result<(), Failure> {
    // Somebody tries things out: what the log says to an operator would hide the three addresses.
    let is_trial = args.sandbox
        && std::io::stderr().is_terminal()
        && args.log.filter.is_none()
        && args.log.format.is_none();
    if is_trial {
        args.log.filter = Some("warn".to_owned());
    }
    logging::init(&args.log)?;
    let stop = CancellationToken::new();
    if args.sandbox {
        let address = start_sandbox(sandbox_options(), DayShift::default(), stop.clone()).await?;
        args.pace = pace(args.pace);
        if args.upstream.flights_url.is_some() || args.upstream.hotels_url.is_some() {
            tracing::warn!("--sandbox overrides FARESCAN_FLIGHTS_URL and FARESCAN_HOTELS_URL");
        }
        let search_timeout_seconds = args.upstream.search_timeout_seconds;
        args.upstream = UpstreamConfig {
            search_timeout_seconds,
            ..sandbox_upstream(address)?
        };
        use_sandbox_folder(&mut args.database)?;
        tracing::info!(
            "searches go to the sandbox at http://{address}, whose front page has its keys, such as sandbox-demo; nothing is billed"
        );
    }
    // A sandbox with a database of its own, so that nothing invented is stored beside real prices.
    let has_past = args.sandbox && args.database.url().is_none();
    let settings = Settings {
        http: Some(args.http),
        admin: args.admin,
        limits: args.limits,
        upstream: args.upstream,
        database: args.database,
        keys: args.keys,
        pace: args.pace,
        webhooks: args.webhooks,
        channels: args.channels,
        worker: (!args.no_worker).then_some(args.worker),
        clock: Clock::default(),
    };
    // Before the service reports that it listens: a signal sent then needs its handler.
    stop_on_signal(stop.clone(), ExitSignal::default());
    let service = Service::start(settings, stop.clone()).await?;
    if has_past {
        tokio::select! {
            added = add_past(&service, Timestamp::now()) => {
                // Searches work without it.
                if let Err(error) = added { tracing::warn!(%error, "this trial begins without prices of the past"); }
            }
            () = stop.cancelled() => {}
        }
    }
    if let Some(address) = service.address().filter(|_| is_trial) {
        anstream::eprintln!(
            "dashboard    http://{address}/\ndescription  http://{address}/docs\n\
             key          {DEMO_KEY} (the sandbox's: prices are invented, nothing is billed; Ctrl-C stops it)"
        );
    }
    Ok(service.run().await?)
}

/// The signal that ended the process, if any.
#[derive(Clone, Debug, Default)]
pub struct ExitSignal(Arc<OnceLock<u8>>);

impl ExitSignal {
    /// 130 for SIGINT, 143 for SIGTERM.
    pub fn code(&self) -> Option<u8> {
        self.0.get().copied()
    }
}

/// Installs signal handlers: the first SIGTERM or SIGINT is recorded and cancels `stop`, the second
/// ends the process.
#[expect(
    clippy::disallowed_methods,
    reason = "the second signal must end the process; the next start adopts a running server"
)]
pub fn stop_on_signal(stop: CancellationToken, noted: ExitSignal) {
    let (Ok(mut term), Ok(mut int)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        tracing::error!(
            "signal handlers could not be installed; end the process with SIGKILL, recorded work is safe"
        );
        return;
    };
    tokio::spawn(async move {
        let mut next = async || tokio::select! { _ = term.recv() => 143, _ = int.recv() => 130 };
        let _: Result<(), u8> = noted.0.set(next().await);
        tracing::info!(
            "shutting down: no new call starts, calls in flight are finished and recorded; a second signal ends the process at once"
        );
        stop.cancel();
        std::process::exit(next().await.into());
    });
}
