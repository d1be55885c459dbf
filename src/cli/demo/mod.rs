//! `farescan demo`: sandbox, embedded Postgres and service in one process, a story told through the API, then left running.

mod folder;
mod story;

use std::io::{IsTerminal as _, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::story::{Story, Told};
use super::client::ApiClient;
use super::serve::{Signal, end_signal, in_data_folder, sandbox_upstream, start_sandbox};
use super::{Failure, Signalled};
use crate::config::{
    AdminConfig, DatabaseConfig, HttpConfig, KeysConfig, LimitConfig, LogConfig, PaceConfig,
    WebhookConfig, WorkerConfig,
};
use crate::db::clock::Clock;
use crate::sandbox::SandboxOptions;
use crate::service::{Service, Settings};
use crate::telemetry;

/// The sandbox's key for the demo: an unlimited plan whose 13ths are degraded on the first ask.
const KEY: &str = "sandbox-demo";
/// Its folder in the data folder.
const FOLDER: &str = "demos";
/// The sandbox answers in a tenth of the time that the real engines take.
const LATENCY: f64 = 0.1;
/// The demo's own pace: the sandbox's plan has no limit, and nobody wants to wait half a minute for a month.
const PER_MINUTE: u32 = 1_200;

/// Settings of the demo. Neither a database nor keys nor a marketplace: what an environment for real work names is not the demo's to use.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// End after the story instead of staying up
    #[arg(long)]
    exit: bool,
    #[command(flatten)]
    http: HttpConfig,
    #[command(flatten)]
    admin: AdminConfig,
    /// Folder in which the demo makes one of its own for its embedded Postgres [default: /var/lib/farescan for root, else the user's data
    /// folder]
    #[arg(long, env = "FARESCAN_DATA_DIR", value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Folder with the programs `postgres` and `initdb` [default: searched]
    #[arg(long, env = "FARESCAN_PG_BIN", value_name = "FOLDER")]
    pg_bin: Option<PathBuf>,
}

/// Tells the story, then runs until SIGTERM or SIGINT.
pub async fn run(args: Args) -> Result<(), Failure> {
    telemetry::start(&LogConfig {
        filter: "warn".to_owned(),
        format: None,
    })?;
    // Before anything is made: a port that cannot be had is told at once.
    let listen = free(args.http.listen).await?;
    let folder = folder::take(&in_data_folder(args.data_dir.clone(), FOLDER)?)?;
    let mut out = anstream::stdout();
    writeln!(
        out,
        "Starting a simulated marketplace, a database and the service …\n\n   data         {}",
        folder.path.display()
    )?;
    let (stop, exit) = (CancellationToken::new(), args.exit);
    let service = start(args, listen, folder.path.clone(), &stop).await?;
    let address = service
        .address()
        .ok_or("the demo's service does not listen")?;
    let running = tokio::spawn(service.run());
    let signal = Signal::default();
    end_signal(stop.clone(), signal.clone());
    let base = format!("http://{address}");
    let shown = tokio::select! {
        shown = show(&mut out, &base, &folder.path, exit) => shown,
        () = stop.cancelled() => Ok(()),
    };
    if exit || shown.is_err() {
        stop.cancel();
    }
    running.await??;
    shown?;
    match signal.code() {
        None => Ok(()),
        Some(code) => {
            // Below the `^C` that the terminal shows.
            if std::io::stderr().is_terminal() {
                anstream::eprintln!();
            }
            Err(Signalled { code }.into())
        }
    }
}

/// The story, and what the reader may do then.
async fn show(out: &mut impl Write, base: &str, folder: &Path, exit: bool) -> Result<(), Failure> {
    let colour = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    let client = ApiClient::new(base, KEY)?;
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    writeln!(
        out,
        "   service      {base}\n   description  {base}/docs\n   key          {KEY}\n"
    )?;
    let told = Story {
        client: &client,
        out: &mut *out,
        colour,
        today,
    }
    .tell()
    .await?;
    let folder = folder.display();
    if exit {
        writeln!(
            out,
            "\n   The data stay in {folder},\n   which may be deleted. Without --exit the service stays up to be tried."
        )?;
        return Ok(());
    }
    what_next(out, base, &told)?;
    writeln!(
        out,
        "\n   The service stays up; Ctrl-C ends it. The data stay in {folder},\n   which may be deleted then."
    )?;
    Ok(())
}

/// The sandbox and a service that asks it. What the demo stores lies apart from what a real service stores.
async fn start(
    args: Args,
    listen: SocketAddr,
    folder: PathBuf,
    stop: &CancellationToken,
) -> Result<Service, Failure> {
    let options = SandboxOptions {
        latency_factor: LATENCY,
        ..SandboxOptions::default()
    };
    let marketplace = start_sandbox(options, stop.clone()).await?;
    let upstream = sandbox_upstream(marketplace)?;
    let database = DatabaseConfig {
        data_dir: Some(folder),
        pg_bin: args.pg_bin,
        ..DatabaseConfig::default()
    };
    let settings = Settings {
        http: Some(HttpConfig { listen }),
        admin: args.admin,
        limits: LimitConfig::default(),
        upstream,
        database,
        keys: KeysConfig::default(),
        pace: PaceConfig {
            flights_per_minute: PER_MINUTE,
            hotels_per_minute: PER_MINUTE,
            ..PaceConfig::default()
        },
        webhooks: WebhookConfig::default(),
        worker: Some(WorkerConfig::default()),
        clock: Clock::default(),
    };
    Ok(Service::start(settings, stop.clone()).await?)
}

/// The address, or the same one with a free port where another process has it: a first look should not end at somebody else's port 8080.
async fn free(wanted: SocketAddr) -> Result<SocketAddr, Failure> {
    match TcpListener::bind(wanted).await {
        Ok(_) => Ok(wanted),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Ok(SocketAddr::new(wanted.ip(), 0))
        }
        Err(error) => Err(format!("cannot listen on {wanted}: {error}").into()),
    }
}

/// What the reader may do now, as lines to copy.
fn what_next(out: &mut impl Write, base: &str, told: &Told) -> Result<(), Failure> {
    let Told {
        fares,
        hotel,
        route,
        first,
    } = told;
    let curl = format!("curl -sw '\\n' -H 'x-api-key: {KEY}'");
    writeln!(
        out,
        "\n4. Yours to try\n\n   \
         open  {base}/docs\n\n   \
         # the three cheapest dates, from what is stored: costs nothing\n   \
         {curl} '{base}/v1/scans/{fares}/items?sort=price&limit=3'\n   \
         # the price history that the scans left\n   \
         {curl} '{base}/v1/history/flights?{route}&limit=5'\n   \
         # what became of the hotel, market by market\n   \
         {curl} '{base}/v1/scans/{hotel}/items'\n   \
         # one live search\n   \
         {curl} {base}/v1/flights/oneway -d '{{\"from_airport\":\"TLV\",\"to_airport\":\"LHR\",\"departure_date\":\"{first}\",\"limit\":1}}'"
    )?;
    Ok(())
}
