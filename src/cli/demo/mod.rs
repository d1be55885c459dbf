//! `farescan demo`: sandbox, embedded Postgres and service in one process, a story told through the API, then left running.

mod story;

use std::net::SocketAddr;

use anstream::AutoStream;
use jiff::Zoned;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::story::{Story, Told};
use super::Failure;
use super::client::ApiClient;
use super::serve::{end_signal, sandbox_upstream};
use crate::config::{DatabaseConfig, HttpConfig};
use crate::db;
use crate::sandbox::SandboxOptions;
use crate::service::{Service, Settings};

/// The sandbox's key for the demo: an unlimited plan whose 13ths are degraded on the first ask.
const KEY: &str = "sandbox-demo";
/// The sandbox answers in a tenth of the time that the real engines take.
const LATENCY: f64 = 0.1;
/// The demo's own pace: the sandbox's plan has no limit.
const PER_MINUTE: u32 = 1_200;

/// Settings of the demo.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    http: HttpConfig,
    #[command(flatten)]
    database: DatabaseConfig,
    /// End after the story instead of staying up
    #[arg(long)]
    exit: bool,
}

/// Runs the demo until it is told to end.
pub async fn run(args: Args) -> Result<(), Failure> {
    todo!()
}
