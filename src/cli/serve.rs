//! `farescan serve`: the gateway and the job API, and unless told otherwise a worker, until a signal ends it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use reqwest::Url;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Failure;
use crate::config::{
    AdminConfig, DatabaseConfig, HttpConfig, KeysConfig, LimitConfig, LogConfig, PaceConfig,
    UpstreamConfig, WebhookConfig, WorkerConfig,
};
use crate::db::clock::Clock;
use crate::db::embedded::default_home;
use crate::sandbox::{self, SandboxOptions};
use crate::service::{Service, Settings};
use crate::telemetry;

/// Settings of `serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start a marketplace simulator beside it and use that: nothing is billed to anybody
    #[arg(long)]
    sandbox: bool,
    /// Leave the searches of scans to `farescan worker` processes
    #[arg(long)]
    no_worker: bool,
    #[command(flatten)]
    http: HttpConfig,
    #[command(flatten)]
    admin: AdminConfig,
    #[command(flatten)]
    limits: LimitConfig,
    #[command(flatten)]
    upstream: UpstreamConfig,
    #[command(flatten)]
    pub(super) database: DatabaseConfig,
    #[command(flatten)]
    keys: KeysConfig,
    #[command(flatten)]
    pace: PaceConfig,
    #[command(flatten)]
    worker: WorkerConfig,
    #[command(flatten)]
    webhooks: WebhookConfig,
    #[command(flatten)]
    log: LogConfig,
}

/// The embedded database's folder in the data folder, for a sandbox: what is invented is kept apart from what was seen.
const SANDBOX_FOLDER: &str = "sandbox";

/// Runs until SIGTERM or SIGINT; a second one ends at once.
pub async fn run(mut args: Args) -> Result<(), Failure> {
    telemetry::start(&args.log)?;
    let stop = CancellationToken::new();
    if args.sandbox {
        let address = start_sandbox(SandboxOptions::default(), stop.clone()).await?;
        if args.upstream.flights_url.is_some() || args.upstream.hotels_url.is_some() {
            tracing::warn!(
                "FARESCAN_FLIGHTS_URL and FARESCAN_HOTELS_URL are not used: --sandbox takes their place"
            );
        }
        let search_timeout_seconds = args.upstream.search_timeout_seconds;
        args.upstream = UpstreamConfig {
            search_timeout_seconds,
            ..sandbox_upstream(address)?
        };
        sandbox_folder(&mut args.database)?;
        tracing::info!(
            "searches go to the sandbox at http://{address}, whose front page has its keys, such as sandbox-demo; nothing is billed"
        );
    }
    let settings = Settings {
        http: Some(args.http),
        admin: args.admin,
        limits: args.limits,
        upstream: args.upstream,
        database: args.database,
        keys: args.keys,
        pace: args.pace,
        webhooks: args.webhooks,
        worker: (!args.no_worker).then_some(args.worker),
        clock: Clock::default(),
    };
    // Before it says that it listens: a signal that comes then must find its receiver.
    end_signal(stop.clone(), Signal::default());
    Ok(Service::start(settings, stop).await?.run().await?)
}

/// Starts the sandbox on a free port of this machine; it ends with `stop`.
pub async fn start_sandbox(
    options: SandboxOptions,
    stop: CancellationToken,
) -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(sandbox::serve(listener, options, stop.cancelled_owned()));
    Ok(address)
}

/// The marketplace settings of a sandbox: none of what the environment says of the real one.
pub fn sandbox_upstream(address: SocketAddr) -> Result<UpstreamConfig, Failure> {
    let url: Url = format!("http://{address}").parse()?;
    Ok(UpstreamConfig {
        is_sandbox: true,
        ..UpstreamConfig::at(url.clone(), url)
    })
}

/// Gives the embedded database of a sandbox a folder of its own.
pub fn sandbox_folder(database: &mut DatabaseConfig) -> Result<(), Failure> {
    if database.url().is_none() {
        database.data_dir = Some(in_data_folder(database.data_dir.take(), SANDBOX_FOLDER)?);
    }
    Ok(())
}

/// A folder in the data folder, as set or as it is by default.
pub fn in_data_folder(set: Option<PathBuf>, name: &str) -> Result<PathBuf, Failure> {
    let data = set.map_or_else(default_home, Ok)?;
    Ok(data.join(name))
}

/// Which signal has ended a process, if one has.
#[derive(Clone, Debug, Default)]
pub struct Signal(Arc<OnceLock<u8>>);

impl Signal {
    /// 130 for SIGINT, 143 for SIGTERM.
    pub fn code(&self) -> Option<u8> {
        self.0.get().copied()
    }
}

/// From now on cancels `stop` at the first SIGTERM or SIGINT and notes which, and ends the process at the second.
#[expect(
    clippy::disallowed_methods,
    reason = "the second signal asks for just this; a server left running is adopted"
)]
pub fn end_signal(stop: CancellationToken, noted: Signal) {
    let (Ok(mut term), Ok(mut int)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        tracing::error!(
            "signals cannot be received: end the process by SIGKILL, which loses nothing that is on record"
        );
        return;
    };
    tokio::spawn(async move {
        let mut next = async || tokio::select! { _ = term.recv() => 143, _ = int.recv() => 130 };
        let _: Result<(), u8> = noted.0.set(next().await);
        tracing::info!(
            "ending: no new call starts, calls in flight are recorded first; a second signal ends at once"
        );
        stop.cancel();
        std::process::exit(next().await.into());
    });
}
