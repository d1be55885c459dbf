//! `farescan demo`: runs sandbox, embedded Postgres and service in one process, shows some API
//! requests and their results, then keeps the service running.

mod folder;
mod monitor;
mod walkthrough;

use std::io::{IsTerminal as _, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::walkthrough::{Walkthrough, WalkthroughScans};
use super::past::{DAYS, add_past};
use super::serve::{ExitSignal, stop_on_signal};
use super::trial::{data_subfolder, pace, sandbox_options, sandbox_upstream, start_sandbox};
use crate::config::{
    AdminConfig, ChannelConfig, DatabaseConfig, HttpConfig, LogConfig, MasterKeyConfig, PaceConfig,
    RateLimitConfig, WebhookConfig, WorkerConfig,
};
use crate::db::DbError;
use crate::db::clock::Clock;
use crate::db::embedded::EmbeddedError;
use crate::logging;
use crate::sandbox::{DEMO_KEY, DayShift};
use crate::service::{Service, ServiceError, Settings, bind_api};
use farescan_client::Failure;
use farescan_client::client::ApiClient;
use farescan_client::exit::EndedBySignal;
use farescan_client::terminal::Screen;

/// A plan without a rate window, with searches on a 13th degraded on the first call.
const KEY: &str = DEMO_KEY;
/// The demos' folder in the data folder.
const FOLDER: &str = "demos";
/// A slow machine's database may be late for a while; the walkthrough waits for it.
const BUSY_RETRIES: u32 = 30;

/// Settings of `demo`. It takes no database, keys or marketplace, so that it never uses those of an
/// environment for real work. Its mail server may be a real one: only who adds a channel gets a mail.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// Exit after the demo instead of keeping the service running
    #[arg(long)]
    exit: bool,
    /// Show the whole body of each request
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    http: HttpConfig,
    #[command(flatten)]
    admin: AdminConfig,
    #[command(flatten)]
    channels: ChannelConfig,
    /// Folder in which the demo creates a subfolder for its embedded Postgres
    /// [default: /var/lib/farescan for root, else the user's data folder]
    #[arg(long, env = "FARESCAN_DATA_DIR", value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Folder with the programs `postgres` and `initdb` [default: searched]
    #[arg(long, env = "FARESCAN_PG_BIN", value_name = "FOLDER")]
    pg_bin: Option<PathBuf>,
}

/// Runs the walkthrough, then the service until SIGTERM or SIGINT.
pub async fn run(args: DemoArgs) -> Result<(), Failure> {
    logging::init(&LogConfig {
        // A signal cancels commits whose rollback the server then reports as a notice.
        filter: Some("warn,sqlx::postgres::notice=error".to_owned()),
        format: None,
    })?;
    // First, so that an unusable address fails at once.
    let listener = available_listener(args.http.listen).await?;
    let folder = folder::acquire(&data_subfolder(args.data_dir.clone(), FOLDER)?)?;
    let mut out = anstream::stdout();
    writeln!(
        out,
        "Starting a simulated marketplace, a database and the service …\n\n   data         {}",
        folder.path.display()
    )?;
    let (stop, exit, is_verbose) = (CancellationToken::new(), args.exit, args.verbose);
    let days = DayShift::default();
    let service = start(args, listener, folder.path.clone(), days.clone(), &stop)
        .await
        .map_err(|failure| name_folder(failure, &folder.path))?;
    add_past(&service, Timestamp::now()).await?;
    let address = service
        .address()
        .ok_or("the demo's service does not listen")?;
    let running = tokio::spawn(service.run());
    let signal = ExitSignal::default();
    stop_on_signal(stop.clone(), signal.clone());
    let base = format!("http://{}", reachable(address));
    let shown = tokio::select! {
        shown = run_walkthrough(&mut out, &base, &folder.path, days, (exit, is_verbose)) => shown,
        () = stop.cancelled() => Ok(()),
    };
    // A request of the walkthrough may fail because the service stops.
    let shown = if stop.is_cancelled() { Ok(()) } else { shown };
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
            Err(EndedBySignal { code }.into())
        }
    }
}

/// Where a person reaches a service that listens on `address`: a container's listens on every one.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Runs the walkthrough and prints the next steps.
async fn run_walkthrough(
    out: &mut impl Write,
    base: &str,
    folder: &Path,
    days: DayShift,
    (exit, is_verbose): (bool, bool),
) -> Result<(), Failure> {
    let client = ApiClient::new(base, KEY)?.with_busy_retries(BUSY_RETRIES);
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    writeln!(
        out,
        "   service      {base}\n   description  {base}/docs\n   key          {KEY}\n   history      invented prices of the last {DAYS} days\n"
    )?;
    let scans = Walkthrough {
        client: &client,
        out: &mut *out,
        screen: Screen::detect(),
        today,
        days,
        is_verbose,
    }
    .run_all()
    .await?;
    let folder = folder.display();
    if exit {
        writeln!(
            out,
            "\n   The data stay in {folder},\n   which may be deleted. Without --exit the service keeps running."
        )?;
        return Ok(());
    }
    print_next_steps(out, base, &scans)?;
    writeln!(
        out,
        "\n   The service is running; Ctrl-C stops it. The data stay in {folder},\n   which may be deleted then.\n\n   \
         Look at all of it in the dashboard, where one button signs you in:\n\n   {base}/"
    )?;
    Ok(())
}

/// Starts the sandbox and a service that calls it. The demo's data folder is separate from that of
/// a real service.
async fn start(
    args: DemoArgs,
    listener: TcpListener,
    folder: PathBuf,
    days: DayShift,
    stop: &CancellationToken,
) -> Result<Service, Failure> {
    let marketplace = start_sandbox(sandbox_options(), days, stop.clone()).await?;
    let upstream = sandbox_upstream(marketplace)?;
    let database = DatabaseConfig {
        data_dir: Some(folder),
        pg_bin: args.pg_bin,
        ..DatabaseConfig::default()
    };
    let settings = Settings {
        http: Some(args.http),
        admin: args.admin,
        limits: RateLimitConfig::default(),
        upstream,
        database,
        keys: MasterKeyConfig::default(),
        pace: pace(PaceConfig::default()),
        webhooks: WebhookConfig::default(),
        channels: args.channels,
        worker: Some(WorkerConfig::default()),
        clock: Clock::default(),
    };
    Ok(Service::start_with_listener(listener, settings, stop.clone()).await?)
}

/// Names the folder if another version of farescan created its database: a demo's data may be
/// deleted, which the cause alone does not say. Without a Postgres it says which command can do
/// without one here.
fn name_folder(failure: Failure, folder: &Path) -> Failure {
    match failure.downcast_ref() {
        Some(ServiceError::Database(DbError::Embedded(
            cause @ EmbeddedError::NoBinaries { .. },
        ))) => {
            format!("{cause}. The demo itself uses no DATABASE_URL: `farescan serve --sandbox` does")
                .into()
        }
        Some(ServiceError::Database(DbError::Migrate(cause))) => format!(
            "another version of farescan created the demo's database in {folder} ({cause}): delete that folder, which holds only the demo's data, or set FARESCAN_DATA_DIR to another one",
            folder = folder.display()
        )
        .into(),
        _ => failure,
    }
}

/// A listener at the wanted address, or at a free port if another process uses that one. It is kept:
/// another demo may want the same address meanwhile.
async fn available_listener(wanted: SocketAddr) -> Result<TcpListener, Failure> {
    match bind_api(wanted).await {
        Err(ServiceError::Listen { error, .. })
            if error.kind() == std::io::ErrorKind::AddrInUse =>
        {
            Ok(bind_api(SocketAddr::new(wanted.ip(), 0)).await?)
        }
        bound => Ok(bound?),
    }
}

/// Prints pages and commands to try next.
fn print_next_steps(
    out: &mut impl Write,
    base: &str,
    scans: &WalkthroughScans,
) -> Result<(), Failure> {
    let WalkthroughScans {
        fares,
        hotel,
        route,
        first,
        retried,
        watched,
    } = scans;
    let monitor = watched.monitor;
    writeln!(
        out,
        "\n5. Pages of the dashboard\n\n   \
         # the route with its prices of the last months\n   {base}/prices/flights?{route}\n   \
         # a search in words\n   {base}/ask\n   \
         # the month, with the retried date\n   {base}/scans/{fares}\n   \
         # the hotel by market\n   {base}/scans/{hotel}\n   \
         # the monitor with its prices, rules and runs\n   {base}/monitors/{monitor}"
    )?;
    if let Some(alert) = watched.alert {
        writeln!(
            out,
            "   # the alert with what it was based on\n   {base}/alerts/{alert}"
        )?;
    }
    // As it was started, so that the lines can be copied.
    let program = std::env::args()
        .next()
        .unwrap_or_else(|| "farescan".to_owned());
    writeln!(
        out,
        "\n6. Commands\n\n   \
         export FARESCAN_URL={base} FARESCAN_API_KEY={KEY}\n   \
         {program} why {fares} {retried}\n   \
         {program} history oneway TLV LHR --depart {}\n   \
         {program} tel aviv LHR next month below 150\n   \
         {program} search oneway TLV LHR {first}\n   \
         {program} --help",
        first.strftime("%Y-%m")
    )?;
    let curl = format!("curl -sw '\\n' -H 'x-api-key: {KEY}'");
    writeln!(
        out,
        "\n7. The same by HTTP; {base}/docs describes all of it\n\n   \
         # the three cheapest dates, from stored results, at no cost\n   \
         {curl} '{base}/v1/scans/{fares}/items?sort=price&limit=3'\n   \
         # the price history of the scans\n   \
         {curl} '{base}/v1/history/flights?{route}&limit=5'\n   \
         # one live search\n   \
         {curl} {base}/v1/flights/oneway -d '{{\"from_airport\":\"TLV\",\"to_airport\":\"LHR\",\"departure_date\":\"{first}\",\"limit\":1}}'"
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_led_to_an_address_that_a_browser_can_open() {
        for (listens, shown) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("192.0.2.7:80", "192.0.2.7:80"),
        ] {
            let address = reachable(listens.parse().unwrap());
            assert_eq!(address, shown.parse().unwrap());
        }
    }
}
