//! `farescan config show`: the settings that `serve` would use here, and the source of each. It
//! hides secrets.

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr as _;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory as _};
use secrecy::ExposeSecret as _;
use sqlx::postgres::PgConnectOptions;

use farescan_client::Failure;

use super::{Cli, serve};
use crate::config::{AdminConfig, DatabaseConfig, LogConfig};
use crate::db;
use crate::db::embedded::default_home;

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub enum ConfigCommand {
    /// Show the settings that `serve` would run with, and where each comes from
    #[command(
        after_help = "Examples:\n  farescan config show\n  farescan config show --listen 127.0.0.1:8181"
    )]
    Show(Box<serve::ServeArgs>),
}

const HIDDEN: &str = "(hidden)";

/// Prints the settings.
pub fn run(config: &ConfigCommand) -> Result<(), Failure> {
    let ConfigCommand::Show(args) = config;
    let database = database(&args.database);
    // Parsed again, because only clap's matches know where a value comes from.
    let matches = Cli::command().get_matches();
    let show = ["config", "show"];
    let (mut command, mut given) = (&Cli::command(), &matches);
    for name in show {
        let found = command
            .find_subcommand(name)
            .zip(given.subcommand_matches(name));
        (command, given) = found.ok_or("these are not the arguments of `config show`")?;
    }
    let mut out = anstream::stdout();
    let mut heading = None;
    for arg in command
        .get_arguments()
        .filter(|arg| arg.get_env().is_some())
    {
        if heading != arg.get_help_heading() {
            heading = arg.get_help_heading();
            writeln!(
                out,
                "{}# {}",
                if arg.get_id() == "listen" { "" } else { "\n" },
                heading.unwrap_or_default()
            )?;
        }
        line(&mut out, arg, given, &database)?;
    }
    Ok(())
}

fn line(
    out: &mut impl Write,
    arg: &Arg,
    given: &ArgMatches,
    database: &str,
) -> std::io::Result<()> {
    let id = arg.get_id().as_str();
    let variable = arg.get_env().unwrap_or_default().to_string_lossy();
    let (value, source) = match given.value_source(id) {
        None => default_of(id, given)
            .map_or_else(|| (String::new(), "unset"), |value| (value, "default")),
        Some(source) => (value(arg, given, database), source_name(source)),
    };
    writeln!(out, "{variable:<34} {value:<44} {source}")
}

fn value(arg: &Arg, given: &ArgMatches, database: &str) -> String {
    match arg.get_id().as_str() {
        "database_url" => database.to_owned(),
        _ if arg.is_hide_env_values_set() => HIDDEN.to_owned(),
        id => given
            .get_raw(id)
            .into_iter()
            .flatten()
            .map(|raw| raw.to_string_lossy())
            .collect::<Vec<_>>()
            .join(","),
    }
}

/// The default of a setting that computes it, so that clap does not know it.
fn default_of(id: &str, given: &ArgMatches) -> Option<String> {
    let data_dir = || {
        given
            .get_one::<PathBuf>("data_dir")
            .cloned()
            .or_else(|| default_home().ok())
    };
    match id {
        "log" => Some(LogConfig::DEFAULT.to_owned()),
        "admin_listen" => Some(AdminConfig::DEFAULT.to_string()),
        "data_dir" => default_home()
            .ok()
            .map(|folder| folder.display().to_string()),
        "spool_dir" => data_dir().map(|folder| folder.join("spool").display().to_string()),
        _ => None,
    }
}

fn source_name(source: ValueSource) -> &'static str {
    match source {
        ValueSource::CommandLine => "flag",
        ValueSource::EnvVariable => "environment",
        _ => "default",
    }
}

/// The database's name, user and address, without the rest of the URL, which may hold secrets.
fn database(config: &DatabaseConfig) -> String {
    let Some(url) = &config.url else {
        return String::new();
    };
    match PgConnectOptions::from_str(url.expose_secret().trim()) {
        Ok(options) => {
            let name = options
                .get_database()
                .unwrap_or_else(|| options.get_username());
            format!(
                "{} as {} on {}",
                name,
                options.get_username(),
                db::server_address(&options)
            )
        }
        Err(_) => format!("{HIDDEN}, and not a Postgres URL"),
    }
}
