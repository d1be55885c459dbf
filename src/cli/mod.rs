//! The command line: one file per command. A command reads its settings, calls the module that does
//! the work and prints the result.

mod age;
mod alerts;
mod amount;
mod client;
mod commands;
mod compare;
mod completions;
mod config;
mod control;
mod dates;
mod deliveries;
mod demo;
mod env_file;
mod exit;
mod export;
mod for_terminal;
mod format;
mod healthcheck;
mod hints;
mod history;
mod ids;
mod interrupt;
mod keys;
mod layout;
mod login;
mod man;
mod marketplace;
mod memory;
mod migrate;
mod monitors;
mod openapi;
mod pages;
mod partial_file;
mod progress;
mod question;
mod quota;
mod render;
mod report;
mod request;
mod retry;
mod rotate_key;
mod sandbox;
mod scan;
mod scans;
mod search;
mod serve;
mod settings;
mod subject;
mod tenants;
mod terminal;
mod usage;
mod verify;
mod watch;
mod why;
mod worker;
mod wrap;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};

/// What does this trip cost on which date, in which market, and is that a good price?
#[derive(Debug, Parser)]
#[command(
    name = "farescan",
    version,
    about,
    max_term_width = 110,
    after_help = "Examples:\n  farescan demo\n  farescan scan oneway TLV LHR --depart 2027-02\n\nExit codes:\n    0  done\n    1  failed\n    2  invalid arguments; nothing was sent\n    3  a search or scan is incomplete\n    4  refused before anything was spent: a budget, a quota, or your answer\n  130  Ctrl-C"
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
    Client(commands::ClientCommand),
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

/// A command's error: its message is printed for the user.
type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Cli {
    /// Parses the command line. Wrong usage ends the process with 2; its error also names the
    /// environment variable, because clap names only the flag, which the user may not have given.
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| with_hint(with_variable_name(error)).exit())
    }

    /// Runs the command. The exit code is 0, or 1 with the reason on standard error.
    pub async fn run(self) -> ExitCode {
        match Box::pin(self.execute()).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => report::exit_code(&failure),
        }
    }

    async fn execute(self) -> Result<(), Failure> {
        if let Some(file) = &self.env_file {
            return Err(env_file::start_again(file));
        }
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
            Command::Client(command) => interrupt::until_interrupted(command.run()).await,
        }
    }
}

/// Adds the command that a word means which is none.
fn with_hint(mut error: clap::Error) -> clap::Error {
    let is_about_words = matches!(
        error.kind(),
        ErrorKind::InvalidSubcommand | ErrorKind::ArgumentConflict | ErrorKind::UnknownArgument
    );
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        // No value of these commands looks like an option.
        tips.retain(|tip| !tip.to_string().contains("as a value, use '-- "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    let args: Vec<String> = std::env::args_os()
        .skip(1)
        .filter_map(|word| word.into_string().ok())
        .collect();
    if let Some(command) = hints::hint(&args).filter(|_| is_about_words) {
        let hint = format!("try `{command}`");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![hint.into()]),
        );
    }
    error
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

#[cfg(test)]
mod tests {
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
