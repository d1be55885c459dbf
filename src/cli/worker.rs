//! `farescan worker`: a worker alone, for scans that any `serve` process accepted.

use tokio_util::sync::CancellationToken;

use super::serve::{ExitSignal, stop_on_signal};
use crate::config::{
    AdminConfig, ChannelConfig, DatabaseConfig, LogConfig, MasterKeyConfig, PaceConfig,
    RateLimitConfig, UpstreamConfig, WebhookConfig, WorkerConfig,
};
use crate::db::clock::Clock;
use crate::logging;
use crate::service::{Service, Settings};
use farescan_client::Failure;

/// Settings of `worker`.
#[derive(Debug, clap::Args)]
pub struct WorkerArgs {
    #[command(flatten)]
    admin: AdminConfig,
    #[command(flatten)]
    upstream: UpstreamConfig,
    #[command(flatten)]
    database: DatabaseConfig,
    #[command(flatten)]
    keys: MasterKeyConfig,
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
pub async fn run(args: WorkerArgs) -> Result<(), Failure> {
    logging::init(&args.log)?;
    let settings = Settings {
        http: None,
        admin: args.admin,
        limits: RateLimitConfig::default(),
        upstream: args.upstream,
        database: args.database,
        keys: args.keys,
        pace: PaceConfig::default(),
        webhooks: args.webhooks,
        channels: args.channels,
        worker: Some(args.worker),
        clock: Clock::default(),
    };
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone(), ExitSignal::default());
    Ok(Service::start(settings, stop).await?.run().await?)
}
