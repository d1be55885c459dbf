//! `--env-file FILE`: settings from a file in the format of `.env.example`.
//!
//! The process replaces itself by one with these variables: clap reads the environment while it
//! parses, and no environment of a running process is changed.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::Failure;

/// The flag, before the command.
const FLAG: &str = "--env-file";

/// Starts this command line again with the variables of `file`; returns only if that fails. A
/// variable that is set already keeps its value.
pub fn start_again(file: &Path) -> Failure {
    match variables(file) {
        Ok(variables) => replace(&variables),
        Err(failure) => failure,
    }
}

fn replace(variables: &[(String, String)]) -> Failure {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return format!("{FLAG}: the program is not found: {error}").into(),
    };
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let set = variables
        .iter()
        .filter(|(name, _)| std::env::var_os(name).is_none());
    let error = Command::new(program)
        .arg0(name)
        .args(without_flag(words))
        .envs(set.map(|(name, value)| (name, value)))
        .exec();
    format!("{FLAG}: the program cannot be started again: {error}").into()
}

/// The words without the flag and its value. No other option stands before the command.
fn without_flag(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<_> = words.collect();
    let is_separate = words.first().is_some_and(|word| word == FLAG);
    words.drain(..if is_separate { 2 } else { 1 });
    words
}

fn variables(file: &Path) -> Result<Vec<(String, String)>, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("{FLAG}: {}: {error}", file.display()))?;
    let mut variables = Vec::new();
    for (number, line) in text.lines().enumerate() {
        // The line is not shown: it may hold a secret.
        let refused = |wrong: WrongLine| {
            let line = format!("{FLAG}: line {} of {}", number + 1, file.display());
            match wrong {
                WrongLine::NoSetting => {
                    format!("{line} is no setting; expected NAME=value, or a comment after #")
                }
                WrongLine::IsExpanded(name) => format!(
                    "{line}: {name} has a $ or a backslash, which a shell replaces; use single quotes, or write the value out"
                ),
            }
        };
        variables.extend(variable(line).map_err(refused)?);
    }
    Ok(variables)
}

/// Why a line is refused.
#[derive(Debug, PartialEq, Eq)]
enum WrongLine {
    NoSetting,
    /// A shell and Docker Compose would replace a part of this variable's value.
    IsExpanded(String),
}

/// The name and value of a line; `None` for a blank line and a comment. As a shell and Docker Compose
/// read it: quotes around the value are no part of it, and neither is a comment after it. What they
/// would replace is refused.
fn variable(line: &str) -> Result<Option<(String, String)>, WrongLine> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
    let (name, value) = line.split_once('=').ok_or(WrongLine::NoSetting)?;
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name
            .bytes()
            .next()
            .is_some_and(|first| !first.is_ascii_digit());
    if !is_name || value.contains('\0') {
        return Err(WrongLine::NoSetting);
    }
    let quote = value.chars().next().filter(|first| "\"'".contains(*first));
    let (value, rest) = match quote {
        Some(quote) => value[1..].split_once(quote).ok_or(WrongLine::NoSetting)?,
        None => (value.split(" #").next().unwrap_or_default().trim(), ""),
    };
    if quote != Some('\'') && value.contains(['$', '\\']) {
        return Err(WrongLine::IsExpanded(name.to_owned()));
    }
    if !(rest.trim().is_empty() || rest.trim_start().starts_with('#')) {
        return Err(WrongLine::NoSetting);
    }
    Ok(Some((name.to_owned(), value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_setting_a_comment_or_an_error() {
        let set = |name: &str, value: &str| Ok(Some((name.to_owned(), value.to_owned())));
        let no_setting = || Err(WrongLine::NoSetting);
        let is_expanded = |name: &str| Err(WrongLine::IsExpanded(name.to_owned()));
        for (line, expected) in [
            ("", Ok(None)),
            ("  # A=1", Ok(None)),
            ("A=1", set("A", "1")),
            ("export A_1=x y # why", set("A_1", "x y")),
            ("A=", set("A", "")),
            ("A=#1", set("A", "#1")),
            ("A='x # y' # why", set("A", "x # y")),
            ("A=\"p=q\"", set("A", "p=q")),
            ("A='$x\\y'", set("A", "$x\\y")),
            ("A=1 # $x", set("A", "1")),
            ("A=$x", is_expanded("A")),
            ("A=x\\y", is_expanded("A")),
            ("A=\"x$y\"", is_expanded("A")),
            ("A=\"x\\\"y\"", is_expanded("A")),
            ("A", no_setting()),
            ("1A=1", no_setting()),
            ("A B=1", no_setting()),
            ("=1", no_setting()),
            ("A='x", no_setting()),
            ("A='x'y", no_setting()),
        ] {
            assert_eq!(variable(line), expected, "{line}");
        }
    }
}
