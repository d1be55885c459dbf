//! `farescan monitors`: scans on a schedule.

mod backtest;
mod channels;
mod control;
mod create;
mod edit;
mod list;
mod parity;
mod show;
mod watch;
mod webhook;

pub use channels::ChannelOptions;
pub use create::create as create_from;
pub use list::table;

use super::Failure;

/// Lists monitors, or does something with one.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MonitorsArgs {
    #[command(subcommand)]
    command: Option<MonitorsCommand>,
    #[command(flatten)]
    list: list::MonitorListArgs,
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
enum MonitorsCommand {
    /// Create a monitor: its cost of a month first
    Create(Box<create::CreateArgs>),
    /// Show what a monitor would have reported in the past days, at no cost
    Backtest(Box<backtest::BacktestArgs>),
    /// Show a monitor with its last runs
    #[command(
        after_help = "Examples:\n  farescan monitors show @last\n  farescan monitors show mon_01a203c0e342 --json | jq .forecast"
    )]
    Show(show::MonitorShowArgs),
    /// Change the name, times, scan, watch, rules, webhook or limits of a monitor
    #[command(
        after_help = "Examples:\n  farescan monitors edit @last --max-requests-per-month 500\n  farescan monitors edit mon_01a203c0e342 --cron \"30 7 * * mon-fri\" --alert price_below=150 --yes"
    )]
    Edit(Box<edit::EditArgs>),
    /// Compare the markets of a monitor over its runs
    #[command(
        after_help = "Examples:\n  farescan monitors parity @last\n  farescan monitors parity mon_01a203c0e342 --baseline us --runs 26"
    )]
    Parity(parity::ParityArgs),
    /// Test a monitor's webhook, switch it on, or give it a new secret
    #[command(
        subcommand,
        after_help = "Examples:\n  farescan monitors webhook test @last\n  farescan monitors webhook rotate-secret @last"
    )]
    Webhook(webhook::WebhookCommand),
    /// Pause a monitor; its stored key is destroyed
    #[command(
        after_help = "Examples:\n  farescan monitors pause @last\n  farescan monitors pause mon_01a203c0e342 --json"
    )]
    Pause(control::MonitorPauseArgs),
    /// Continue a paused monitor
    #[command(
        after_help = "Examples:\n  farescan monitors resume @last\n  farescan monitors resume mon_01a203c0e342 --yes"
    )]
    Resume(control::CommandArgs),
    /// Run a monitor now
    #[command(
        after_help = "Examples:\n  farescan monitors run @last\n  farescan monitors run mon_01a203c0e342 --yes && farescan watch @last"
    )]
    Run(control::CommandArgs),
    /// Delete a monitor; its scans and prices stay
    #[command(
        after_help = "Examples:\n  farescan monitors delete mon_01a203c0e342\n  farescan monitors delete @last --yes"
    )]
    Delete(control::CommandArgs),
}

/// Runs a command on monitors.
pub async fn run(args: MonitorsArgs) -> Result<(), Failure> {
    match args.command {
        None => list::run(args.list).await,
        Some(MonitorsCommand::Create(args)) => create::run(*args).await,
        Some(MonitorsCommand::Backtest(args)) => backtest::run(*args).await,
        Some(MonitorsCommand::Show(args)) => show::run(args).await,
        Some(MonitorsCommand::Edit(args)) => edit::run(*args).await,
        Some(MonitorsCommand::Parity(args)) => parity::run(args).await,
        Some(MonitorsCommand::Webhook(command)) => webhook::run(command).await,
        Some(MonitorsCommand::Pause(args)) => control::pause(args).await,
        Some(MonitorsCommand::Resume(args)) => control::resume(args).await,
        Some(MonitorsCommand::Run(args)) => control::run_now(args).await,
        Some(MonitorsCommand::Delete(args)) => control::delete(args).await,
    }
}
