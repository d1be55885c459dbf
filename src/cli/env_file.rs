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
        let variable = variable(line).map_err(|()| {
            format!(
                "{FLAG}: line {} of {} is no setting; expected NAME=value, or a comment after #",
                number + 1,
                file.display()
            )
        })?;
        variables.extend(variable);
    }
    Ok(variables)
}

/// The name and value of a line; `None` for a blank line and a comment. As a shell and Docker Compose
/// read it: quotes around the value are no part of it, and neither is a comment after it.
fn variable(line: &str) -> Result<Option<(String, String)>, ()> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
    let (name, value) = line.split_once('=').ok_or(())?;
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name
            .bytes()
            .next()
            .is_some_and(|first| !first.is_ascii_digit());
    if !is_name || value.contains('\0') {
        return Err(());
    }
    let value = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let (value, rest) = value[1..].split_once(quote).ok_or(())?;
            if !(rest.trim().is_empty() || rest.trim_start().starts_with('#')) {
                return Err(());
            }
            value
        }
        _ => value.split(" #").next().unwrap_or_default().trim(),
    };
    Ok(Some((name.to_owned(), value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_setting_a_comment_or_an_error() {
        let set = |name: &str, value: &str| Ok(Some((name.to_owned(), value.to_owned())));
        for (line, expected) in [
            ("", Ok(None)),
            ("  # A=1", Ok(None)),
            ("A=1", set("A", "1")),
            ("export A_1=x y # why", set("A_1", "x y")),
            ("A=", set("A", "")),
            ("A=#1", set("A", "#1")),
            ("A='x # y' # why", set("A", "x # y")),
            ("A=\"p=q\"", set("A", "p=q")),
            ("A", Err(())),
            ("1A=1", Err(())),
            ("A B=1", Err(())),
            ("=1", Err(())),
            ("A='x", Err(())),
            ("A='x'y", Err(())),
        ] {
            assert_eq!(variable(line), expected, "{line}");
        }
    }
}
