//! The commands that call a running service, or need none.

use super::Failure;
use super::{
    alerts, ask, channels, compare, completions, control, deliveries, export, find, history, login,
    man, monitors, quota, retry, rotate_key, scan, scans, search, settings, usage, verify, watch,
    why,
};

/// A command as a client.
#[derive(Debug, clap::Subcommand)]
pub enum ClientCommand {
    /// Ask in words: what was read and its cost first, then the cheapest
    #[command(
        after_help = "Examples:\n  farescan ask \"tel aviv london march below 150\"\n  farescan ask tel aviv to paris or rome, 4-14 march --all\n  farescan ask hotel Arts Barcelona, 3 nights in february, us de gb\n  farescan ask TLV LHR march below 150 --watch --yes\n\n`farescan tel aviv london march` asks the same."
    )]
    Ask(Box<ask::AskArgs>),
    /// Find scans and monitors by a name, label, tag, airport or hotel, or show what an id names
    #[command(
        after_help = "Examples:\n  farescan find spring\n  farescan find hotel arts\n  farescan find scn_01a203c0e342\n\n`farescan scn_01a203c0e342` shows it as well."
    )]
    Find(find::FindArgs),
    /// Search once, at the price of one request
    #[command(
        subcommand,
        after_help = "Examples:\n  farescan search oneway TLV LHR 2027-02-04\n  farescan search hotels Barcelona --checkin 2027-02-04 --nights 3"
    )]
    Search(search::SearchCommand),
    /// Find the cheapest date, night or market: the cost first, then a calendar
    #[command(
        after_help = "Examples:\n  farescan scan oneway TLV LHR,CDG --depart 2027-02 --weekdays thu,fri --max-stops 0\n  farescan scan file.json --yes --detach"
    )]
    Scan(Box<scan::ScanArgs>),
    /// List the stored scans, or show one
    #[command(
        after_help = "Examples:\n  farescan scans --status incomplete\n  farescan scans show @last"
    )]
    Scans(scans::ScansArgs),
    /// Follow a running scan to its end and show its results
    #[command(
        after_help = "Examples:\n  farescan watch @last\n  farescan watch scn_01a203c0e342 --csv > fares.csv"
    )]
    Watch(watch::WatchArgs),
    /// Search again only what is missing in a scan: the cost first
    #[command(
        after_help = "Examples:\n  farescan retry @last\n  farescan retry scn_01a203c0e342 --reasons blocked_page --yes"
    )]
    Retry(retry::RetryArgs),
    /// Stop spending: pause a scan, or all scans and monitors
    #[command(after_help = "Examples:\n  farescan pause @last\n  farescan pause --all")]
    Pause(control::ScanPauseArgs),
    /// Continue a paused scan, or all that you have paused
    #[command(
        after_help = "Examples:\n  farescan resume @last\n  farescan resume --all\n  farescan resume scn_01a203c0e342 --max-requests 80 --yes"
    )]
    Resume(control::ResumeArgs),
    /// Cancel a scan for good; what was searched stays
    #[command(
        after_help = "Examples:\n  farescan cancel @last\n  farescan cancel scn_01a203c0e342 --yes\n  farescan cancel --all"
    )]
    Cancel(control::CancelArgs),
    /// Compare two scans cell by cell
    #[command(
        after_help = "Examples:\n  farescan compare scn_01a203c0e342 @last\n  farescan compare scn_01a203c0e342 scn_01a2043c678c --all --json"
    )]
    Compare(compare::CompareArgs),
    /// Tell why a price is missing: each attempt of a search with reason and cost
    #[command(
        after_help = "Examples:\n  farescan why @last 2027-02-13\n  farescan why itm_01a1f9e6c4ba7208b43b19af227af764"
    )]
    Why(why::WhyArgs),
    /// Export a scan to a file: CSV, NDJSON or Parquet
    #[command(
        after_help = "Examples:\n  farescan export @last -o fares.parquet\n  farescan export scn_01a203c0e342 --format ndjson | jq .best_price"
    )]
    Export(export::ExportArgs),
    /// Show known prices and how they changed, at no cost
    #[command(
        subcommand,
        after_help = "Examples:\n  farescan history oneway TLV LHR --depart 2027-02\n  farescan history series TLV LHR --depart 2027-02-04"
    )]
    History(history::HistoryCommand),
    /// Repeat scans on a schedule, with alerts
    #[command(
        after_help = "Examples:\n  farescan monitors\n  farescan monitors create oneway TLV LHR 2027-02 --alert new_low"
    )]
    Monitors(monitors::MonitorsArgs),
    /// List the alerts of monitors, or show one
    #[command(
        after_help = "Examples:\n  farescan alerts --type price_below\n  farescan alerts show @last"
    )]
    Alerts(alerts::AlertsArgs),
    /// List where you hear of alerts, add a channel, or test one
    #[command(after_help = "Examples:\n  farescan channels\n  farescan channels phone")]
    Channels(channels::ChannelsArgs),
    /// List the deliveries to webhooks, show one, or send one again
    #[command(
        after_help = "Examples:\n  farescan deliveries --status failed\n  farescan deliveries resend @last"
    )]
    Deliveries(deliveries::DeliveriesArgs),
    /// Show what is left of the plans and the pace of scans, or set own limits
    #[command(
        after_help = "Examples:\n  farescan quota\n  farescan quota set flights --keep-in-reserve 200"
    )]
    Quota(quota::QuotaArgs),
    /// Show what holds for all of your work, or set it: the age of answers, stored searches
    #[command(after_help = "Examples:\n  farescan settings\n  farescan settings set --max-age 6h")]
    Settings(settings::SettingsArgs),
    /// Show what scans and monitors have spent this month, or since a day
    #[command(
        after_help = "Examples:\n  farescan usage\n  farescan usage --by monitor --since 2027-01-01"
    )]
    Usage(usage::UsageArgs),
    /// Check the key: one request to each API
    #[command(after_help = "Examples:\n  farescan verify\n  farescan verify --api flights --json")]
    Verify(verify::VerifyArgs),
    /// Store the key for a service
    #[command(
        after_help = "Examples:\n  farescan login\n  farescan login --profile work --url https://fares.example.com\n\nThe key is asked for without echo, or read from a pipe. It is never an argument."
    )]
    Login(login::LoginArgs),
    /// Move everything that the key owns to a new key
    #[command(
        after_help = "Examples:\n  farescan rotate-key\n  farescan rotate-key --yes < new.key\n\nThe new key is asked for without echo, or read from a pipe. It is never an argument."
    )]
    RotateKey(rotate_key::RotateKeyArgs),
    /// Print the completions for a shell
    #[command(
        after_help = "Examples:\n  farescan completions bash > ~/.local/share/bash-completion/completions/farescan\n  farescan completions zsh > ~/.zfunc/_farescan"
    )]
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write all pages into a folder
    #[command(
        after_help = "Examples:\n  farescan man --out ~/.local/share/man/man1\n  farescan man | man -l -"
    )]
    Man(man::ManArgs),
}

impl ClientCommand {
    /// Runs the command. `program` is the whole command line, for its manual pages and completions.
    pub async fn run(self, program: clap::Command) -> Result<(), Failure> {
        match self {
            Self::Ask(args) => ask::run(*args).await,
            Self::Find(args) => find::run(args, program).await,
            Self::Search(command) => search::run(command).await,
            Self::Scan(args) => scan::run(*args).await,
            Self::Scans(args) => scans::run(args).await,
            Self::Watch(args) => watch::run(args).await,
            Self::Retry(args) => retry::run(args).await,
            Self::Pause(args) => control::pause(args).await,
            Self::Resume(args) => control::resume(args).await,
            Self::Cancel(args) => control::cancel(args).await,
            Self::Compare(args) => compare::run(args).await,
            Self::Why(args) => why::run(args).await,
            Self::Export(args) => export::run(args).await,
            Self::History(command) => history::run(command).await,
            Self::Monitors(args) => monitors::run(args).await,
            Self::Alerts(args) => alerts::run(args).await,
            Self::Channels(args) => channels::run(args).await,
            Self::Deliveries(args) => deliveries::run(args).await,
            Self::RotateKey(args) => rotate_key::run(args).await,
            Self::Completions(args) => completions::run(&args, program),
            Self::Man(args) => man::run(&args, program),
            Self::Quota(args) => quota::run(args).await,
            Self::Settings(args) => settings::run(args).await,
            Self::Usage(args) => usage::run(args).await,
            Self::Verify(args) => verify::run(args).await,
            Self::Login(args) => login::run(&args),
        }
    }
}
