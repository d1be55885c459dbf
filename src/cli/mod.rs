//! The command line: one file per command. A command reads its settings, calls the module that does
//! the work and prints the result.

mod client;
mod config;
mod demo;
mod healthcheck;
mod keys;
mod marketplace;
mod memory;
mod migrate;
mod progress;
mod render;
mod sandbox;
mod serve;
mod tenants;
mod worker;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, Parser, Subcommand};

/// What does this trip cost on which date, in which market, and is that a good price?
#[derive(Debug, Parser)]
#[command(name = "farescan", version, about, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a demo on this machine: a month of fares, a hotel from five markets
    Demo(demo::DemoArgs),
    /// Run the gateway and the job API, with a worker in the same process
    Serve(serve::ServeArgs),
    /// Run a worker alone, for a `serve --no-worker`
    Worker(worker::WorkerArgs),
    /// Run the marketplace simulator alone
    Sandbox(sandbox::SandboxArgs),
    /// Bring the database's tables up to date
    Migrate(migrate::MigrateArgs),
    /// Show or set the marketplace of the database
    #[command(subcommand)]
    Marketplace(marketplace::MarketplaceCommand),
    /// Create and replace the master key
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Restore a caller's access, or move a caller to another installation
    #[command(subcommand)]
    Tenants(tenants::TenantsCommand),
    /// Show the settings
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Check whether a process on this machine is ready; exits with 0 or 1
    Healthcheck(healthcheck::HealthcheckArgs),
}

/// A command's error: its message is printed for the user.
type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Cli {
    /// Parses the command line. Wrong usage ends the process with 2; its error also names the
    /// environment variable, because clap names only the flag, which the user may not have given.
    #[must_use]
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| with_variable_name(error).exit())
    }

    /// Runs the command. The exit code is 0, or 1 with the reason on standard error.
    pub async fn run(self) -> ExitCode {
        match self.execute().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => exit_code(failure),
        }
    }

    async fn execute(self) -> Result<(), Failure> {
        memory::protect()?;
        match self.command {
            Command::Demo(args) => demo::run(args).await,
            Command::Serve(args) => serve::run(args).await,
            Command::Worker(args) => worker::run(args).await,
            Command::Sandbox(args) => sandbox::run(args).await,
            Command::Migrate(args) => migrate::run(args).await,
            Command::Marketplace(command) => marketplace::run(command).await,
            Command::Keys(keys) => keys::run(keys).await,
            Command::Tenants(tenants) => tenants::run(tenants).await,
            Command::Config(config) => config::run(&config),
            Command::Healthcheck(args) => healthcheck::run(args).await,
        }
    }
}

/// The exit code of a process that SIGPIPE ends: 128 and its number.
const BY_SIGPIPE: u8 = 141;

/// Prints a failure and returns its exit code. It prints nothing for a closed pipe, as of
/// `demo | head`, where SIGPIPE would have ended the process silently.
fn exit_code(failure: Failure) -> ExitCode {
    if let Some(signal) = failure.downcast_ref::<EndedBySignal>() {
        return ExitCode::from(signal.code);
    }
    let io = failure.downcast_ref::<std::io::Error>();
    if io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
        return ExitCode::from(BY_SIGPIPE);
    }
    anstream::eprintln!("farescan: {failure}");
    ExitCode::FAILURE
}

/// A signal ended the command; the exit code shows it to the shell.
#[derive(Debug, thiserror::Error)]
#[error("ended by a signal")]
struct EndedBySignal {
    /// 130 for SIGINT, 143 for SIGTERM.
    code: u8,
}

/// Adds the environment variable of the setting that the error is about.
fn with_variable_name(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let flag = flag
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned();
    let variable = Cli::command()
        .get_subcommands()
        .find_map(|command| variable_of(command, &flag));
    if let Some(variable) = variable {
        let hint = format!("the environment variable {variable} also sets `{flag}`");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![hint.into()]),
        );
    }
    error
}

/// The environment variable of a flag of this command or its subcommands.
fn variable_of(command: &clap::Command, flag: &str) -> Option<String> {
    let here = command.get_arguments().find(|arg| {
        flag.strip_prefix("--")
            .is_some_and(|flag| arg.get_long() == Some(flag))
    });
    let variable = here
        .and_then(|arg| arg.get_env())
        .map(|variable| variable.to_string_lossy().into_owned());
    variable.or_else(|| {
        command
            .get_subcommands()
            .find_map(|command| variable_of(command, flag))
    })
}
