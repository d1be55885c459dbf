//! What an operator may set: one small struct per concern, each field with its environment variable.
//!
//! Here is only the reading; the module that a setting belongs to decides what it means.

use std::path::PathBuf;

use secrecy::SecretString;

/// Where the data lives. Without a URL the program keeps a private Postgres of its own (`crate::db::embedded`).
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Database")]
pub struct DatabaseConfig {
    /// A running Postgres 15 or newer; unset: an embedded one. Prefer the variable, a flag shows in the process list
    #[arg(id = "database_url", long = "database-url", env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub url: Option<SecretString>,

    /// Folder of the embedded Postgres [default: /var/lib/farescan for root, else the user's data folder]
    #[arg(long, env = "FARESCAN_DATA_DIR", value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,

    /// Folder with the programs `postgres` and `initdb` for the embedded Postgres [default: searched]
    #[arg(long, env = "FARESCAN_PG_BIN", value_name = "FOLDER")]
    pub pg_bin: Option<PathBuf>,

    /// Connections that this process may hold in its pool; leases and listeners come on top
    #[arg(
        id = "database_connections",
        long = "database-connections",
        env = "FARESCAN_DATABASE_CONNECTIONS",
        value_name = "COUNT",
        default_value_t = Self::DEFAULT_CONNECTIONS,
        value_parser = clap::value_parser!(u32).range(2..=90)
    )]
    pub max_connections: u32,
}

impl DatabaseConfig {
    /// Enough for 64 workers, whose transactions take milliseconds while their searches take seconds.
    pub const DEFAULT_CONNECTIONS: u32 = 20;
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        Self { url: None, data_dir: None, pg_bin: None, max_connections: Self::DEFAULT_CONNECTIONS }
    }
}

/// The pace of a caller's lanes until its plan is known, used when a lane is made (engine, "Learning the pace").
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

    /// Searches of one caller and API at the same time
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
