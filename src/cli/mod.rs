//! The command line: one file per command. A command reads its settings, calls what does the work and prints for people; nothing is
//! decided here.

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
    /// Show everything at once, on this machine alone: a month of fares, a hotel over five markets
    Demo(demo::Args),
    /// Run the gateway and the job API, with a worker in the same process
    Serve(serve::Args),
    /// Run a worker alone, beside a `serve --no-worker`
    Worker(worker::Args),
    /// Run the marketplace simulator alone
    Sandbox(sandbox::Args),
    /// Bring the database's tables up to date and end
    Migrate(migrate::Args),
    /// Which marketplace the database belongs to
    #[command(subcommand)]
    Marketplace(marketplace::Marketplace),
    /// Make and renew the master key
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Look after callers: give one back what it lost, move one to another installation
    #[command(subcommand)]
    Tenants(tenants::Tenants),
    /// Look at the settings
    #[command(subcommand)]
    Config(config::Config),
    /// Ask a process of this machine whether it is ready; ends with 0 or 1
    Healthcheck(healthcheck::Args),
}

/// What a command ends with when it fails: a sentence for the person at the terminal.
type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Cli {
    /// Reads the command line. Wrong usage ends the process with 2; what a variable may have set is told with the variable's name, because
    /// clap names the flag, which nobody may have written.
    #[must_use]
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| named(error).exit())
    }

    /// Runs the command. The exit code is 0, or 1 with the reason on standard error; wrong usage has already ended with 2.
    pub async fn run(self) -> ExitCode {
        match self.execute().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => ended_by(failure),
        }
    }

    async fn execute(self) -> Result<(), Failure> {
        memory::close()?;
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

/// What a signal ends a process with: 128 and its number.
const BY_SIGPIPE: u8 = 141;

/// The exit code of a failure, whose reason is told. A reader that has gone away, as of `demo | head`, needs none: SIGPIPE would have ended the
/// process without a word.
fn ended_by(failure: Failure) -> ExitCode {
    if let Some(signal) = failure.downcast_ref::<Signalled>() {
        return ExitCode::from(signal.code);
    }
    let io = failure.downcast_ref::<std::io::Error>();
    if io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
        return ExitCode::from(BY_SIGPIPE);
    }
    anstream::eprintln!("farescan: {failure}");
    ExitCode::FAILURE
}

/// Ended by a signal, and so that a shell sees it.
#[derive(Debug, thiserror::Error)]
#[error("ended by a signal")]
struct Signalled {
    /// 130 for SIGINT, 143 for SIGTERM.
    code: u8,
}

/// The same error with the environment variable of the setting that it is about.
fn named(mut error: clap::Error) -> clap::Error {
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
        let told = format!("`{flag}` is also set by the environment variable {variable}");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![told.into()]),
        );
    }
    error
}

/// The variable of a flag, of this command or one of its own.
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
