//! What `demo` and `serve --sandbox` share: a sandbox in the process, its settings, and a folder of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use reqwest::Url;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::{DatabaseConfig, PaceConfig, UpstreamConfig};
use crate::db::embedded::default_home;
use crate::sandbox::{self, DayShift, SandboxOptions};
use farescan_client::Failure;

/// A sandbox's embedded database has its own subfolder, so that invented and real prices never mix.
const SANDBOX_FOLDER: &str = "sandbox";

/// The sandbox's delays, relative to those of the real engines.
const LATENCY: f64 = 0.1;
/// The pace of a trial. The sandbox's plan has no rate window; with the default pace, a month of flights
/// would take half a minute, and one hotel in three markets twelve.
const SEARCHES_PER_MINUTE: u32 = 1_200;

/// The sandbox of a trial.
pub fn sandbox_options() -> SandboxOptions {
    SandboxOptions {
        latency_factor: LATENCY,
        ..SandboxOptions::default()
    }
}

/// The pace of a trial; what was set to something else than the default stays.
pub fn pace(set: PaceConfig) -> PaceConfig {
    let of = |set, default| {
        if set == default {
            SEARCHES_PER_MINUTE
        } else {
            set
        }
    };
    PaceConfig {
        flights_per_minute: of(set.flights_per_minute, PaceConfig::FLIGHTS_PER_MINUTE),
        hotels_per_minute: of(set.hotels_per_minute, PaceConfig::HOTELS_PER_MINUTE),
        ..set
    }
}

/// Starts the sandbox on a free loopback port; `stop` ends it.
pub async fn start_sandbox(
    options: SandboxOptions,
    days: DayShift,
    stop: CancellationToken,
) -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let serving = sandbox::serve_with_days(listener, options, days, stop.cancelled_owned());
    tokio::spawn(serving);
    Ok(address)
}

/// The marketplace settings of a sandbox, without any from the environment.
pub fn sandbox_upstream(address: SocketAddr) -> Result<UpstreamConfig, Failure> {
    let url: Url = format!("http://{address}").parse()?;
    Ok(UpstreamConfig {
        is_sandbox: true,
        ..UpstreamConfig::at(url.clone(), url)
    })
}

/// Moves the embedded database to the sandbox's subfolder.
pub fn use_sandbox_folder(database: &mut DatabaseConfig) -> Result<(), Failure> {
    if database.url().is_none() {
        database.data_dir = Some(data_subfolder(database.data_dir.take(), SANDBOX_FOLDER)?);
    }
    Ok(())
}

/// A subfolder of the set or default data folder.
pub fn data_subfolder(set: Option<PathBuf>, name: &str) -> Result<PathBuf, Failure> {
    let data = set.map_or_else(default_home, Ok)?;
    Ok(data.join(name))
}
