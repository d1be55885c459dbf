//! Settings: one struct for each concern, each field with its environment variable.
//!
//! Here: parsing only; the module that uses a setting defines its meaning.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use secrecy::{ExposeSecret as _, SecretString};

pub use crate::upstream::UpstreamConfig;

/// Where the service listens. Port 0 chooses a free port; the log line `listening` shows it.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Listening")]
pub struct HttpConfig {
    /// Address of the API, its OpenAPI description and its docs page
    #[arg(long, env = "FARESCAN_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    pub listen: SocketAddr,

    /// Addresses or networks of proxies whose `X-Forwarded-For` names the client, separated by commas
    #[arg(long, env = "FARESCAN_TRUSTED_PROXIES", value_name = "ADDRESSES", value_delimiter = ',', value_parser = network)]
    pub trusted_proxies: Vec<IpNet>,
}

/// Where health, readiness and metrics are served; every process has them.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Listening")]
pub struct AdminConfig {
    /// Address of health, readiness and metrics, for operators only [default: 127.0.0.1:9090, or a
    /// free port where that is taken]
    #[arg(long, env = "FARESCAN_ADMIN_LISTEN", value_name = "ADDRESS", value_parser = address)]
    pub admin_listen: Option<SocketAddr>,
}

impl AdminConfig {
    /// The default address. If another process uses the port, a free one is chosen.
    pub const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);
}

fn network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let address = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(|_| address()).map_err(|_| {
        "expected an IP address or a network, such as 10.0.0.5 or 10.0.0.0/8".to_owned()
    })
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an IP address and a port, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080"
            .to_owned()
    })
}

/// The rate limit of one caller for scans, history and account (`app::rate_limit`).
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct RateLimitConfig {
    /// Sustained requests per second of one caller to scans, history and account
    #[arg(long, env = "FARESCAN_REQUESTS_PER_SECOND", value_name = "COUNT", default_value_t = Self::PER_SECOND)]
    pub requests_per_second: NonZeroU32,

    /// Burst of requests of one caller
    #[arg(long, env = "FARESCAN_REQUEST_BURST", value_name = "COUNT", default_value_t = Self::BURST)]
    pub request_burst: NonZeroU32,
}

impl RateLimitConfig {
    /// Far above what a client needs that waits for its responses.
    pub const PER_SECOND: NonZeroU32 = NonZeroU32::new(50).unwrap();
    /// Five hundred clients may start to watch one scan at once, twice.
    pub const BURST: NonZeroU32 = NonZeroU32::new(1_000).unwrap();
}

impl Default for RateLimitConfig {
    fn default() -> Self {
        Self {
            requests_per_second: Self::PER_SECOND,
            request_burst: Self::BURST,
        }
    }
}

/// Filter and format of the log.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Logs")]
pub struct LogConfig {
    /// Log filter: a level, or directives such as `info,farescan=debug` [default: info; warn for
    /// `serve --sandbox` on a terminal]
    #[arg(id = "log", long = "log", env = "FARESCAN_LOG", value_name = "FILTER")]
    pub filter: Option<String>,

    /// Log format: text for people, json for programs [default: text on a terminal, else json]
    #[arg(
        id = "log_format",
        long = "log-format",
        env = "FARESCAN_LOG_FORMAT",
        value_name = "FORMAT"
    )]
    pub format: Option<LogFormat>,
}

impl LogConfig {
    /// The filter where none is set.
    pub const DEFAULT: &str = "info";
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The database. Without a URL the program runs an embedded Postgres (`crate::db::embedded`).
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Database")]
pub struct DatabaseConfig {
    /// URL of a running Postgres 15 or newer; unset: an embedded one. Prefer the variable: a flag
    /// shows in the process list
    #[arg(
        id = "database_url",
        long = "database-url",
        env = "DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub url: Option<SecretString>,

    /// File with the password of the URL, which then has none, such as a container's secret
    #[arg(long, env = "FARESCAN_DATABASE_PASSWORD_FILE", value_name = "FILE")]
    pub database_password_file: Option<PathBuf>,

    /// URL of a replica for reading the history and its exports; the password file applies to it
    /// too. Prefer the variable
    #[arg(
        id = "read_database_url",
        long = "read-database-url",
        env = "FARESCAN_READ_DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub read_url: Option<SecretString>,

    /// Folder of the embedded Postgres [default: /var/lib/farescan for root, else the user's data
    /// folder]
    #[arg(long, env = "FARESCAN_DATA_DIR", value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,

    /// Folder with the programs `postgres` and `initdb` for the embedded Postgres [default:
    /// searched in the usual places]
    #[arg(long, env = "FARESCAN_PG_BIN", value_name = "FOLDER")]
    pub pg_bin: Option<PathBuf>,

    /// Database connections of this process's pools; its lease and its listeners take up to five
    /// more
    #[arg(
        id = "database_connections",
        long = "database-connections",
        env = "FARESCAN_DATABASE_CONNECTIONS",
        value_name = "COUNT",
        default_value_t = Self::DEFAULT_CONNECTIONS,
        value_parser = clap::value_parser!(u32).range(4..=90)
    )]
    pub max_connections: u32,

    /// Of those, the connections reserved for the worker, at most half; requests share the rest, a
    /// third of it for writes
    #[arg(
        id = "engine_connections",
        long = "engine-connections",
        env = "FARESCAN_ENGINE_CONNECTIONS",
        value_name = "COUNT",
        default_value_t = Self::ENGINE_CONNECTIONS,
        value_parser = clap::value_parser!(u32).range(2..=45)
    )]
    pub engine_connections: u32,

    /// How long a statement waits for a connection of a pool. Not an option: a request's time limit
    /// is built on it. Tests on a busy machine wait longer.
    #[arg(skip = Self::ACQUIRE_TIMEOUT)]
    pub acquire_timeout: Duration,
}

impl DatabaseConfig {
    /// The URL of an external server, if set.
    pub fn url(&self) -> Option<&SecretString> {
        self.url
            .as_ref()
            .filter(|url| !url.expose_secret().trim().is_empty())
    }

    /// Within it a connection is made or becomes free, unless the database is unavailable.
    pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
    /// Enough for 64 concurrent searches, which take seconds while their transactions take
    /// milliseconds.
    pub const DEFAULT_CONNECTIONS: u32 = 20;
    /// One for each task of the worker: claim, begin, record, keys, abandon, sweeper, retention,
    /// daily pack.
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
            acquire_timeout: Self::ACQUIRE_TIMEOUT,
        }
    }
}

/// The initial pace of a caller's lanes, until the lane learns the caller's plan
/// (engine.md, rule 42).
///
/// The burst is the thirtieth part of the rate, and at least 1.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Pace")]
pub struct PaceConfig {
    /// Flight searches per minute of a caller whose plan is unknown
    #[arg(long, env = "FARESCAN_FLIGHTS_PER_MINUTE", value_name = "COUNT", default_value_t = Self::FLIGHTS_PER_MINUTE,
          value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub flights_per_minute: u32,

    /// Hotel searches per minute of a caller whose plan is unknown
    #[arg(long, env = "FARESCAN_HOTELS_PER_MINUTE", value_name = "COUNT", default_value_t = Self::HOTELS_PER_MINUTE,
          value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub hotels_per_minute: u32,

    /// Initial number of concurrent searches of one caller and API
    #[arg(long, env = "FARESCAN_MAX_IN_FLIGHT", value_name = "COUNT", default_value_t = Self::MAX_IN_FLIGHT,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub max_in_flight: u32,
}

impl PaceConfig {
    /// Within the smallest paid plan (gateway.md, rule 42).
    pub const FLIGHTS_PER_MINUTE: u32 = 60;
    /// Hotel searches take several times as long as flight searches.
    pub const HOTELS_PER_MINUTE: u32 = 20;
    /// What the engine of a small plan accepts at once.
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

/// The worker's concurrency, lease and spool.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Worker")]
pub struct WorkerConfig {
    /// Concurrent searches of this process, over all callers
    #[arg(long, env = "FARESCAN_WORKER_CONCURRENCY", value_name = "COUNT", default_value_t = Self::CONCURRENCY,
          value_parser = clap::value_parser!(u16).range(1..=2_000))]
    pub worker_concurrency: u16,

    /// Seconds without a lease renewal before a process's calls count as lost; the same for every
    /// process of a database
    #[arg(long, env = "FARESCAN_LEASE_SECONDS", value_name = "SECONDS", default_value_t = Self::LEASE_SECONDS,
          value_parser = clap::value_parser!(u32).range(1..=600))]
    pub lease_seconds: u32,

    /// Folder for answers while the database is unavailable [default: `spool` in the data folder]
    #[arg(long, env = "FARESCAN_SPOOL_DIR", value_name = "FOLDER")]
    pub spool_dir: Option<PathBuf>,

    /// Maximum size of the spool in MiB; at four fifths the process starts no new search
    #[arg(long, env = "FARESCAN_SPOOL_MIB", value_name = "MIB", default_value_t = Self::SPOOL_MIB,
          value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub spool_mib: u32,

    #[command(flatten)]
    pub retention: RetentionConfig,
}

impl WorkerConfig {
    /// Searches take seconds, and little CPU and memory.
    pub const CONCURRENCY: u16 = 64;
    /// Six renewals; lost calls appear within one and a half lease lengths.
    pub const LEASE_SECONDS: u32 = 30;
    /// Half a million flight searches: longer than any outage.
    pub const SPOOL_MIB: u32 = 1024;

    /// The maximum size of the spool in bytes.
    pub fn spool_bytes(&self) -> u64 {
        u64::from(self.spool_mib) * 1024 * 1024
    }

    /// The length of a lease.
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

/// How long data is kept; 0: without limit. Workers remove older data, partitioned tables by whole
/// months.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Retention")]
pub struct RetentionConfig {
    /// Days to keep whole answers; 0: without limit. They are removed by months, so up to a month
    /// later
    #[arg(long, env = "FARESCAN_ANSWER_RETENTION_DAYS", value_name = "DAYS", default_value_t = Self::ANSWER_DAYS,
          value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub answer_retention_days: u32,

    /// Days to keep scans after their end, with their items, attempts and answers; 0: without limit
    #[arg(long, env = "FARESCAN_SCAN_RETENTION_DAYS", value_name = "DAYS", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub scan_retention_days: u32,

    /// Months to keep observations, the price history; 0: without limit
    #[arg(long, env = "FARESCAN_OBSERVATION_RETENTION_MONTHS", value_name = "MONTHS", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=1_200))]
    pub observation_retention_months: u32,

    /// Days to keep alerts and slots of monitors; 0: without limit. Slots of this month and the
    /// last one are always kept
    #[arg(long, env = "FARESCAN_ALERT_RETENTION_DAYS", value_name = "DAYS", default_value_t = Self::ALERT_DAYS,
          value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub alert_retention_days: u32,

    /// Seconds between two retention passes, which create partitions and remove old data
    #[arg(long, env = "FARESCAN_UPKEEP_SECONDS", value_name = "SECONDS", default_value_t = Self::UPKEEP_SECONDS,
          value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub upkeep_seconds: u32,
}

impl RetentionConfig {
    /// A quarter: questions about an answer come soon.
    pub const ANSWER_DAYS: u32 = 90;
    /// A year: long enough to compare alerts with the same season.
    pub const ALERT_DAYS: u32 = 365;
    /// Far more often than a partition is needed; a pass without work costs a millisecond.
    pub const UPKEEP_SECONDS: u32 = 60;

    /// The time between two passes.
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

/// Which webhook URLs are accepted (`crate::webhooks`).
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Webhooks")]
pub struct WebhookConfig {
    /// Accept webhooks at http URLs, any port and 127.0.0.1: for tests only, never in production
    #[arg(long, env = "FARESCAN_WEBHOOKS_ALLOW_INSECURE")]
    pub webhooks_allow_insecure: bool,
}

/// What messages to channels contain (`crate::notices`).
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Channels")]
pub struct ChannelConfig {
    /// The URL under which people reach the dashboard: messages to channels link to the alert's page
    #[arg(long, env = "FARESCAN_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub public_url: Option<String>,

    /// The mail server of channels of kind `email`: smtp://USER:PASSWORD@HOST:587 or smtps://…; without one there are none
    #[arg(
        long,
        env = "FARESCAN_SMTP_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub smtp_url: Option<SecretString>,

    /// The sender of their mails, such as "Fares <fares@example.com>"
    #[arg(long, env = "FARESCAN_SMTP_FROM", value_name = "ADDRESS")]
    pub smtp_from: Option<String>,

    /// The server of the Apprise API that messages of kind `apprise` go through; without one there are none
    #[arg(
        long,
        env = "FARESCAN_APPRISE_URL",
        hide_env_values = true,
        value_name = "URL",
        value_parser = public_url
    )]
    pub apprise_url: Option<String>,
}

/// An http or https URL without a query.
fn public_url(text: &str) -> Result<String, String> {
    let url = reqwest::Url::parse(text).map_err(|error| error.to_string())?;
    if matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none()
    {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err(
            "expected an http or https URL without a query, such as https://fares.example.com"
                .to_owned(),
        )
    }
}

/// The master key that encrypts the callers' keys while their scans run (`crate::tenants`).
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Keys")]
pub struct MasterKeyConfig {
    /// File with the keyring of master keys [default: created beside the embedded database]
    #[arg(long, env = "FARESCAN_MASTER_KEY_FILE", value_name = "FILE")]
    pub master_key_file: Option<PathBuf>,

    /// Accept a key file that its group can read (mode 0440), such as a secret mounted for a group
    #[arg(long, env = "FARESCAN_MASTER_KEY_GROUP_READABLE")]
    pub master_key_group_readable: bool,

    /// The keyring itself; prefer the file: a flag shows in the process list
    #[arg(
        long,
        env = "FARESCAN_MASTER_KEY",
        hide_env_values = true,
        value_name = "RING"
    )]
    pub master_key: Option<SecretString>,
}
