//! What each program of farescan does before and after its command: it parses the arguments, reads
//! `--env-file`, protects its memory, and prints how the command failed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use super::interrupt::until_interrupted;
use super::{ClientCommand, Failure, ask, env_file, hints, ids, memory, report};

/// The end of a program's help.
pub const EXIT_CODES: &str = "\n\nExit codes:\n    0  done\n    1  failed\n    2  invalid arguments; nothing was sent\n    3  a search or scan is incomplete\n    4  refused before anything was spent: a budget, a quota, or your answer\n  130  Ctrl-C";

/// What `--version` prints. A packaged program also names its commit and that commit's date, such as
/// `0.1.0 (adfbf909b4c1 2026-11-26)`: `script/package` sets the variable for its build.
pub const VERSION: &str = match option_env!("FARESCAN_BUILD") {
    Some(build) => build,
    None => env!("CARGO_PKG_VERSION"),
};

/// What does this trip cost on which date, in which market, and is that a good price?
#[derive(Debug, Parser)]
#[command(
    name = "farescan",
    version = VERSION,
    about,
    max_term_width = 110,
    after_help = format!("Examples:\n  farescan login\n  farescan scan oneway TLV LHR --depart 2027-02{EXIT_CODES}")
)]
pub struct ClientProgram {
    /// File with settings, such as .env, for every command; variables that are set already win
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    #[command(subcommand)]
    command: ClientCommand,
}

impl ClientProgram {
    /// Parses the command line and runs its command.
    pub async fn run() -> ExitCode {
        let program = parse::<Self>();
        let command = until_interrupted(program.command.run(Self::command()));
        Box::pin(run(program.env_file, command)).await
    }
}

/// Parses the command line. Wrong usage ends the process with 2; its error also names the
/// environment variable, because clap names only the flag, which the user may not have given.
pub fn parse<P: Parser>() -> P {
    let args = of_id(std::env::args_os().collect());
    P::try_parse_from(&args)
        .or_else(|error| {
            as_question(&error, &P::command(), args).map_or(Err(error), P::try_parse_from)
        })
        .unwrap_or_else(|error| with_hint(with_variable_name(error, &P::command())).exit())
}

/// The arguments, with the command that shows an id where the id stands without a command.
fn of_id(mut args: Vec<OsString>) -> Vec<OsString> {
    let first = first_word(&args);
    let rest = args.get(first + 1).and_then(|word| word.to_str());
    let is_alone = rest.is_none_or(|next| next.starts_with('-'));
    let word = args.get(first).filter(|_| is_alone).cloned();
    let word = word.as_ref().and_then(|word| word.to_str());
    if let Some(command) = word.and_then(ids::command_of) {
        args.splice(first..=first, command.into_iter().map(OsString::from));
    }
    args
}

/// The arguments as those of `ask`, if they are words of a question: not if the first word is a
/// command or has a hint to one that is no scan. After a mistyped command they must be read completely.
fn as_question(
    error: &clap::Error,
    program: &clap::Command,
    mut args: Vec<OsString>,
) -> Option<Vec<OsString>> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let first = first_word(&args);
    let words = args.iter().skip(first).map(|word| word.to_str());
    let words = words.map_while(|word| word.filter(|word| !word.starts_with('-')));
    let words: Vec<_> = words.collect();
    let word = words.first()?;
    let hint = hints::hint(&[(*word).to_owned()]);
    let is_other = hint.is_some_and(|command| !command.starts_with("farescan scan"));
    if program.find_subcommand(word).is_some()
        || is_other
        || !ask::is_question(&words.join(" "), is_typo(word, program))
    {
        return None;
    }
    args.insert(first, "ask".into());
    Some(args)
}

/// Whether a word is a command but for two letters, or one of four letters but for one. Shorter words
/// would often be: `tel` is nearly `help`.
fn is_typo(word: &str, program: &clap::Command) -> bool {
    let most_edits = match word.chars().count() {
        0..=3 => return false,
        4 => 1,
        _ => 2,
    };
    let is_near = |name: &str| strsim::osa_distance(name, word) <= most_edits;
    program
        .get_subcommands()
        .any(|command| is_near(command.get_name()))
}

/// The place of the first argument that is neither an option of the program nor its value.
fn first_word(args: &[OsString]) -> usize {
    let mut place = 1;
    while let Some(option) = args.get(place).and_then(|arg| arg.to_str()) {
        place += match option.strip_prefix("--") {
            None => break,
            Some(option) if option.contains('=') => 1,
            Some(_) => 2,
        };
    }
    place
}

/// Runs a command. The exit code is 0, or that of the failure with the reason on standard error.
pub async fn run(
    env_file: Option<PathBuf>,
    command: impl Future<Output = Result<(), Failure>>,
) -> ExitCode {
    let prepared = match env_file {
        Some(file) => Err(env_file::start_again(&file)),
        None => memory::protect(),
    };
    let ended = match prepared {
        Ok(()) => Box::pin(command).await,
        Err(failure) => Err(failure),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report::exit_code(&failure),
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
fn with_variable_name(mut error: clap::Error, program: &clap::Command) -> clap::Error {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let flag = flag
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned();
    let variable = program
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

    /// The arguments after the program's name as those of `ask`, if they are a question.
    fn question(args: &[&str]) -> Option<String> {
        let args: Vec<OsString> = std::iter::once(&"farescan")
            .chain(args)
            .map(OsString::from)
            .collect();
        let error = ClientProgram::try_parse_from(&args).unwrap_err();
        let args = as_question(&error, &ClientProgram::command(), args)?;
        ClientProgram::try_parse_from(&args).unwrap();
        let words: Vec<_> = args
            .iter()
            .skip(1)
            .map(|arg| arg.to_string_lossy())
            .collect();
        Some(words.join(" "))
    }

    #[test]
    fn an_id_is_shown_by_its_command() {
        for (typed, read) in [
            (
                "scn_01a203c0e342 --json",
                "scans show scn_01a203c0e342 --json",
            ),
            (
                "--env-file x alr_01a203c0e342",
                "--env-file x alerts show alr_01a203c0e342",
            ),
            ("chn_01a203c0e342", "channels"),
            ("find scn_01a203c0e342", "find scn_01a203c0e342"),
            ("scans show scn_01a203c0e342", "scans show scn_01a203c0e342"),
            ("find", "find"),
        ] {
            let line = format!("farescan {typed}");
            let args = of_id(line.split(' ').map(OsString::from).collect());
            let words: Vec<_> = args[1..]
                .iter()
                .map(|word| word.to_string_lossy())
                .collect();
            assert_eq!(words.join(" "), read);
        }
    }

    #[test]
    fn words_are_a_question_unless_a_command_is_meant() {
        for (args, expected) in [
            ("tel aviv london march", Some("ask tel aviv london march")),
            ("tel aviv lodnon march", Some("ask tel aviv lodnon march")),
            ("paris london march", Some("ask paris london march")),
            ("paris lodnon march", Some("ask paris lodnon march")),
            (
                "flights tel aviv london march",
                Some("ask flights tel aviv london march"),
            ),
            (
                "--env-file x tel aviv london march --all",
                Some("--env-file x ask tel aviv london march --all"),
            ),
            (
                "--env-file=x tel aviv london march",
                Some("--env-file=x ask tel aviv london march"),
            ),
            ("serach oneway TLV LHR 2030-02-01", None),
            ("prices TLV LHR march", None),
            ("track TLV LHR march", None),
            ("monitor list", None),
            ("monitors tel aviv", None),
            ("xyzzy", None),
            (
                "cheapest day from tel aviv to london in january",
                Some("ask cheapest day from tel aviv to london in january"),
            ),
            (
                "tel avivv london january",
                Some("ask tel avivv london january"),
            ),
            ("israel london january", Some("ask israel london january")),
        ] {
            let args: Vec<_> = args.split(' ').collect();
            assert_eq!(question(&args).as_deref(), expected, "{args:?}");
        }
    }
}
