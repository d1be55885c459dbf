//! The command line of the whole program: the client's commands and those of operators, one file per
//! command. A command reads its settings, calls the module that does the work and prints the result.

mod config;
mod demo;
mod healthcheck;
mod keys;
mod marketplace;
mod migrate;
mod openapi;
mod past;
mod sandbox;
mod serve;
mod tenants;
mod trial;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use farescan_client::interrupt::until_interrupted;
use farescan_client::{ClientCommand, Failure, program};

/// What does this trip cost on which date, in which market, and is that a good price?
#[derive(Debug, Parser)]
#[command(
    name = "farescan",
    version = program::VERSION,
    about,
    max_term_width = 110,
    after_help = format!("Examples:\n  farescan demo\n  farescan ask tel aviv london march below 150\n  farescan scan oneway TLV LHR --depart 2027-02{}", program::EXIT_CODES)
)]
pub struct Cli {
    /// File with settings, such as .env, for every command; variables that are set already win
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Client(ClientCommand),
    /// Print the description of the API
    #[command(
        after_help = "Examples:\n  farescan openapi > openapi.json\n  farescan openapi | jq '.paths | keys'"
    )]
    Openapi,
    /// Run a demo on this machine: fares of a month, a hotel by market, a monitor with an alert
    #[command(after_help = "Examples:\n  farescan demo\n  farescan demo --exit")]
    Demo(demo::DemoArgs),
    /// Run the gateway and the job API, with a worker in the same process
    #[command(
        after_help = "Examples:\n  farescan serve --sandbox\n  farescan serve --listen 0.0.0.0:8080 --no-worker"
    )]
    Serve(serve::ServeArgs),
    /// Run a worker alone, for a `serve --no-worker`
    #[command(
        after_help = "Examples:\n  farescan worker\n  farescan worker --worker-concurrency 32"
    )]
    Worker(worker::WorkerArgs),
    /// Run the marketplace simulator alone
    #[command(
        after_help = "Examples:\n  farescan sandbox\n  farescan sandbox --listen 127.0.0.1:8091 --latency 0"
    )]
    Sandbox(sandbox::SandboxArgs),
    /// Bring the database's tables up to date
    #[command(
        after_help = "Examples:\n  farescan migrate\n  farescan migrate --database-url postgres://db.example/farescan"
    )]
    Migrate(migrate::MigrateArgs),
    /// Show or set the marketplace of the database
    #[command(
        subcommand,
        after_help = "Examples:\n  farescan marketplace show\n  farescan marketplace set --sandbox"
    )]
    Marketplace(marketplace::MarketplaceCommand),
    /// Create and replace the master key
    #[command(
        subcommand,
        after_help = "Examples:\n  farescan keys new --out master.key\n  farescan keys rewrap"
    )]
    Keys(keys::KeysCommand),
    /// Restore a caller's access, or move a caller to another installation
    #[command(
        subcommand,
        after_help = "Examples:\n  farescan tenants restore --help\n  farescan tenants move --help"
    )]
    Tenants(tenants::TenantsCommand),
    /// Show the settings
    #[command(
        subcommand,
        after_help = "Examples:\n  farescan config show\n  farescan config show --listen 127.0.0.1:8181"
    )]
    Config(config::ConfigCommand),
    /// Check whether a process on this machine is ready; exits with 0 or 1
    #[command(after_help = "Examples:\n  farescan healthcheck\n  farescan healthcheck --live")]
    Healthcheck(healthcheck::HealthcheckArgs),
}

impl Cli {
    /// Parses the command line. Wrong usage ends the process with 2.
    pub fn read() -> Self {
        program::parse()
    }

    /// Runs the command. The exit code is 0, or that of the failure with the reason on standard error.
    pub async fn run(self) -> ExitCode {
        Box::pin(program::run(self.env_file, self.command.run())).await
    }
}

impl Command {
    async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Demo(args) => demo::run(args).await,
            Self::Serve(args) => serve::run(args).await,
            Self::Worker(args) => worker::run(args).await,
            Self::Sandbox(args) => sandbox::run(args).await,
            Self::Migrate(args) => migrate::run(args).await,
            Self::Marketplace(command) => marketplace::run(command).await,
            Self::Keys(keys) => keys::run(keys).await,
            Self::Tenants(tenants) => tenants::run(tenants).await,
            Self::Config(config) => config::run(&config),
            Self::Healthcheck(args) => healthcheck::run(args).await,
            Self::Openapi => openapi::run(),
            Self::Client(command) => Box::pin(until_interrupted(command.run(Cli::command()))).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    /// The words of an example up to a pipe, a redirection or another command.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote, mut is_word) =
            (Vec::new(), String::new(), None, false);
        for c in line.chars().chain([' ']) {
            match quote {
                Some(end) if c == end => quote = None,
                None if matches!(c, '"' | '\'') => (quote, is_word) = (Some(c), true),
                None if c == ' ' => {
                    if is_word || !word.is_empty() {
                        words.push(std::mem::take(&mut word));
                        is_word = false;
                    }
                }
                None if matches!(c, '|' | '<' | '>' | '&') => break,
                Some(_) | None => word.push(c),
            }
        }
        words
    }

    /// Checks a command and its subcommands; adds what is wrong.
    fn check(path: &str, command: &clap::Command, wrong: &mut Vec<String>) {
        let help = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let examples: Vec<_> = help
            .lines()
            .filter_map(|line| line.strip_prefix("  farescan "))
            .collect();
        let about = command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        let is_sentence = !about.is_empty() && !about.contains(". ") && !about.ends_with('.');
        if path != "farescan" && !is_sentence {
            wrong.push(format!("{path}: {about:?} is not one sentence"));
        }
        if examples.len() < 2 {
            wrong.push(format!("{path}: {} examples", examples.len()));
        }
        for example in examples {
            let line = format!("farescan {example}");
            let own = path.strip_prefix("farescan ").unwrap_or_default();
            if !example.starts_with(own) {
                wrong.push(format!("{path}: {line} is of another command"));
            }
            if let Err(error) = Cli::try_parse_from(words(&line))
                && error.kind() != ErrorKind::DisplayHelp
            {
                wrong.push(format!("{path}: {line}: {error}"));
            }
        }
        for subcommand in command.get_subcommands() {
            check(
                &format!("{path} {}", subcommand.get_name()),
                subcommand,
                wrong,
            );
        }
    }

    #[test]
    fn every_help_has_a_sentence_and_two_valid_examples() {
        let mut wrong = Vec::new();
        check("farescan", &Cli::command(), &mut wrong);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
