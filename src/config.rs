//! What an operator may set: one small struct per concern, each field with its environment variable.
//!
//! Here is only the reading; the module that a setting belongs to decides what it means.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

pub use crate::upstream::UpstreamConfig;

/// Where the service listens. Port 0 picks a free one; the log line `listening` names it.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Listening")]
pub struct HttpConfig {
    /// Address of the API, its description and its docs page
    #[arg(long, env = "FARESCAN_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    pub listen: SocketAddr,
}

/// Where health, readiness and metrics are; every process has them.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Listening")]
pub struct AdminConfig {
    /// Address of health, readiness and metrics, for operators only [default: 127.0.0.1:9090, or a free port where that is taken]
    #[arg(long, env = "FARESCAN_ADMIN_LISTEN", value_name = "ADDRESS", value_parser = address)]
    pub admin_listen: Option<SocketAddr>,
}

impl AdminConfig {
    /// Where it listens when nothing is set. The port is given up to another process that has it, so that a second one starts too.
    pub const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "allowed: an IP address and a port, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080"
            .to_owned()
    })
}

/// How fast one caller may send requests to our own routes (`crate::http`).
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitConfig {
    /// Requests a second that one caller may send to scans, history and account, in the long run
    #[arg(long, env = "FARESCAN_REQUESTS_PER_SECOND", value_name = "COUNT", default_value_t = Self::PER_SECOND)]
    pub requests_per_second: NonZeroU32,

    /// Requests that one caller may send at once
    #[arg(long, env = "FARESCAN_REQUEST_BURST", value_name = "COUNT", default_value_t = Self::BURST)]
    pub request_burst: NonZeroU32,
}

impl LimitConfig {
    /// Far above what a client sends that waits for its answers.
    pub const PER_SECOND: NonZeroU32 = NonZeroU32::new(50).unwrap();
    /// Five hundred that watch one scan may all begin at once, twice.
    pub const BURST: NonZeroU32 = NonZeroU32::new(1_000).unwrap();
}

impl Default for LimitConfig {
    fn default() -> Self {
        Self {
            requests_per_second: Self::PER_SECOND,
            request_burst: Self::BURST,
        }
    }
}

/// What is logged, and how.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Logs")]
pub struct LogConfig {
    /// What is logged: a level, or directives such as `info,farescan=debug`
    #[arg(
        id = "log",
        long = "log",
        env = "FARESCAN_LOG",
        value_name = "FILTER",
        default_value = "info"
    )]
    pub filter: String,

    /// Lines for people or for programs [default: text on a terminal, else json]
    #[arg(
        id = "log_format",
        long = "log-format",
        env = "FARESCAN_LOG_FORMAT",
        value_name = "FORMAT"
    )]
    pub format: Option<LogFormat>,
}

/// How a log line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Where the data lives. Without a URL the program keeps a private Postgres of its own (`crate::db::embedded`).
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Database")]
pub struct DatabaseConfig {
    /// A running Postgres 15 or newer; unset: an embedded one. Prefer the variable, a flag shows in the process list
    #[arg(
        id = "database_url",
        long = "database-url",
        env = "DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub url: Option<SecretString>,

    /// File with the password for the URL, which then holds none: a container's secret
    #[arg(long, env = "FARESCAN_DATABASE_PASSWORD_FILE", value_name = "FILE")]
    pub database_password_file: Option<PathBuf>,

    /// A replica of it, from which the history and its exports are read; the password file is its too. Prefer the variable
    #[arg(
        id = "read_database_url",
        long = "read-database-url",
        env = "FARESCAN_READ_DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub read_url: Option<SecretString>,

    /// Folder of the embedded Postgres [default: /var/lib/farescan for root, else the user's data folder]
    #[arg(long, env = "FARESCAN_DATA_DIR", value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,

    /// Folder with the programs `postgres` and `initdb` for the embedded Postgres [default: searched]
    #[arg(long, env = "FARESCAN_PG_BIN", value_name = "FOLDER")]
    pub pg_bin: Option<PathBuf>,

    /// Connections that this process may hold in its pools; its lease and its listeners take up to five more
    #[arg(
        id = "database_connections",
        long = "database-connections",
        env = "FARESCAN_DATABASE_CONNECTIONS",
        value_name = "COUNT",
        default_value_t = Self::DEFAULT_CONNECTIONS,
        value_parser = clap::value_parser!(u32).range(3..=90)
    )]
    pub max_connections: u32,

    /// Of those, the engine's own: no request takes them. At most half of all; the rest is for requests, a third of it for those that write
    #[arg(
        id = "engine_connections",
        long = "engine-connections",
        env = "FARESCAN_ENGINE_CONNECTIONS",
        value_name = "COUNT",
        default_value_t = Self::ENGINE_CONNECTIONS,
        value_parser = clap::value_parser!(u32).range(1..=45)
    )]
    pub engine_connections: u32,
}

impl DatabaseConfig {
    /// The URL of a server of one's own, if one is set.
    #[must_use]
    pub fn url(&self) -> Option<&SecretString> {
        self.url
            .as_ref()
            .filter(|url| !url.expose_secret().trim().is_empty())
    }

    /// Enough for 64 workers, whose transactions take milliseconds while their searches take seconds.
    pub const DEFAULT_CONNECTIONS: u32 = 20;
    /// The engine's tasks that use the database at the same time: claim, begin, record, keys, give-ups, sweep, retention, packing.
    pub const ENGINE_CONNECTIONS: u32 = 8;
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        Self {
            url: None,
            database_password_file: None,
            read_url: None,
            data_dir: None,
            pg_bin: None,
            max_connections: Self::DEFAULT_CONNECTIONS,
            engine_connections: Self::ENGINE_CONNECTIONS,
        }
    }
}

/// The pace of a caller's lanes until its plan is known, used when a lane is made; from then on the lane learns (engine, "Learning the
/// pace").
///
/// The burst is the thirtieth part of the rate, and at least 1.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Pace")]
pub struct PaceConfig {
    /// Flight searches a minute for a caller whose plan is not known
    #[arg(long, env = "FARESCAN_FLIGHTS_PER_MINUTE", value_name = "COUNT", default_value_t = Self::FLIGHTS_PER_MINUTE,
          value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub flights_per_minute: u32,

    /// Hotel searches a minute for a caller whose plan is not known
    #[arg(long, env = "FARESCAN_HOTELS_PER_MINUTE", value_name = "COUNT", default_value_t = Self::HOTELS_PER_MINUTE,
          value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub hotels_per_minute: u32,

    /// Searches of one caller and API at the same time, to begin with
    #[arg(long, env = "FARESCAN_MAX_IN_FLIGHT", value_name = "COUNT", default_value_t = Self::MAX_IN_FLIGHT,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub max_in_flight: u32,
}

impl PaceConfig {
    /// Within the smallest plan of the specification.
    pub const FLIGHTS_PER_MINUTE: u32 = 60;
    /// Hotel searches take several times as long as flight searches.
    pub const HOTELS_PER_MINUTE: u32 = 20;
    /// What a small plan's engine takes at once.
    pub const MAX_IN_FLIGHT: u32 = 8;
}

impl Default for PaceConfig {
    fn default() -> Self {
        Self {
            flights_per_minute: Self::FLIGHTS_PER_MINUTE,
            hotels_per_minute: Self::HOTELS_PER_MINUTE,
            max_in_flight: Self::MAX_IN_FLIGHT,
        }
    }
}

/// The worker: how much it does at once, and its clocks.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Worker")]
pub struct WorkerConfig {
    /// Searches of this process at the same time, over all callers
    #[arg(long, env = "FARESCAN_WORKER_CONCURRENCY", value_name = "COUNT", default_value_t = Self::CONCURRENCY,
          value_parser = clap::value_parser!(u16).range(1..=2_000))]
    pub worker_concurrency: u16,

    /// Seconds that a process may be silent before its calls count as lost; every process of a database has the same
    #[arg(long, env = "FARESCAN_LEASE_SECONDS", value_name = "SECONDS", default_value_t = Self::LEASE_SECONDS,
          value_parser = clap::value_parser!(u32).range(1..=600))]
    pub lease_seconds: u32,

    /// Folder for answers that the database cannot take [default: `spool` in the data folder]
    #[arg(long, env = "FARESCAN_SPOOL_DIR", value_name = "FOLDER")]
    pub spool_dir: Option<PathBuf>,

    /// The most MiB of such answers that a process keeps; from four fifths on it begins no new search
    #[arg(long, env = "FARESCAN_SPOOL_MIB", value_name = "MIB", default_value_t = Self::SPOOL_MIB,
          value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub spool_mib: u32,

    /// How long what was stored is kept
    #[command(flatten)]
    pub retention: RetentionConfig,
}

impl WorkerConfig {
    /// Searches take seconds and little of this machine.
    pub const CONCURRENCY: u16 = 64;
    /// Six renewals; lost calls are shown within one and a half of it.
    pub const LEASE_SECONDS: u32 = 30;
    /// Half a million fares searches: no outage lasts as long.
    pub const SPOOL_MIB: u32 = 1024;

    /// How many bytes the spool may hold.
    #[must_use]
    pub fn spool_bytes(&self) -> u64 {
        u64::from(self.spool_mib) * 1024 * 1024
    }

    /// How long a lease is.
    #[must_use]
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds.into())
    }
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            worker_concurrency: Self::CONCURRENCY,
            lease_seconds: Self::LEASE_SECONDS,
            spool_dir: None,
            spool_mib: Self::SPOOL_MIB,
            retention: RetentionConfig::default(),
        }
    }
}

/// How long what was stored is kept; 0: for good. Workers take away what is older, by whole months where it is partitions.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Retention")]
pub struct RetentionConfig {
    /// Days that whole answers are kept; 0 for good. They go by months, so some are kept up to a month longer
    #[arg(long, env = "FARESCAN_ANSWER_RETENTION_DAYS", value_name = "DAYS", default_value_t = Self::ANSWER_DAYS,
          value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub answer_retention_days: u32,

    /// Days that scans are kept after their end, with their items, attempts and answers; 0 for good
    #[arg(long, env = "FARESCAN_SCAN_RETENTION_DAYS", value_name = "DAYS", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub scan_retention_days: u32,

    /// Months that observations are kept, the price history; 0 for good
    #[arg(long, env = "FARESCAN_OBSERVATION_RETENTION_MONTHS", value_name = "MONTHS", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=1_200))]
    pub observation_retention_months: u32,

    /// Days that alerts are kept, and what became of the slots of monitors; 0 for good. Slots of this month and the last one always stay
    #[arg(long, env = "FARESCAN_ALERT_RETENTION_DAYS", value_name = "DAYS", default_value_t = Self::ALERT_DAYS,
          value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub alert_retention_days: u32,

    /// Seconds between two looks at what is to be made ahead or taken away
    #[arg(long, env = "FARESCAN_UPKEEP_SECONDS", value_name = "SECONDS", default_value_t = Self::UPKEEP_SECONDS,
          value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub upkeep_seconds: u32,
}

impl RetentionConfig {
    /// A quarter: what is asked again about an answer is asked soon.
    pub const ANSWER_DAYS: u32 = 90;
    /// A year: who wonders what a monitor told looks as far back as to the same season.
    pub const ALERT_DAYS: u32 = 365;
    /// Far more often than a partition is needed, and a look that finds nothing costs a millisecond.
    pub const UPKEEP_SECONDS: u32 = 60;

    /// How long it is to the next look.
    #[must_use]
    pub fn upkeep(&self) -> Duration {
        Duration::from_secs(self.upkeep_seconds.into())
    }
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            answer_retention_days: Self::ANSWER_DAYS,
            scan_retention_days: 0,
            observation_retention_months: 0,
            alert_retention_days: Self::ALERT_DAYS,
            upkeep_seconds: Self::UPKEEP_SECONDS,
        }
    }
}

/// Where webhooks may be (`crate::webhooks`).
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Webhooks")]
pub struct WebhookConfig {
    /// Lets webhooks be at http, at every port and at 127.0.0.1: for trying things out, never where others have keys
    #[arg(long, env = "FARESCAN_WEBHOOKS_ALLOW_INSECURE")]
    pub webhooks_allow_insecure: bool,
}

/// The master key that seals the callers' keys while their scans run (`crate::tenants`).
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Keys")]
pub struct KeysConfig {
    /// File with the ring of master keys [default: made beside the embedded database]
    #[arg(long, env = "FARESCAN_MASTER_KEY_FILE", value_name = "FILE")]
    pub master_key_file: Option<PathBuf>,

    /// Lets the file's group read it too (mode 0440): a secret that is mounted for a group
    #[arg(long, env = "FARESCAN_MASTER_KEY_GROUP_READABLE")]
    pub master_key_group_readable: bool,

    /// The ring itself; prefer the file, a flag shows in the process list
    #[arg(
        long,
        env = "FARESCAN_MASTER_KEY",
        hide_env_values = true,
        value_name = "RING"
    )]
    pub master_key: Option<SecretString>,
}
