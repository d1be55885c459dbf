//! Lines for people: broken between words where a terminal is narrower than they are. What a pipe
//! gets stays as it is.

use std::io::{IsTerminal as _, stderr, stdout};

use textwrap::{Options, WordSeparator};

/// Stands for a blank of a command in backticks, which is not broken.
const KEPT_BLANK: &str = "\u{a0}";

/// Prints lines to standard error. The macro `note!` formats them.
pub fn print_note(text: &str) {
    anstream::eprintln!("{}", for_stderr(text));
}

/// Formats like `format!` and prints it as lines for people to standard error.
macro_rules! note {
    ($($text:tt)*) => { $crate::wrap::print_note(&format!($($text)*)) };
}
pub(super) use note;

/// The text as the terminal of standard error shows it.
pub fn for_stderr(text: &str) -> String {
    let size = stderr()
        .is_terminal()
        .then(|| terminal_size::terminal_size_of(stderr()));
    broken(text, size.flatten())
}

/// The text as the terminal of standard output shows it.
pub fn for_stdout(text: &str) -> String {
    let size = stdout()
        .is_terminal()
        .then(|| terminal_size::terminal_size_of(stdout()));
    broken(text, size.flatten())
}

type Size = (terminal_size::Width, terminal_size::Height);

fn broken(text: &str, size: Option<Size>) -> String {
    match size {
        Some((width, _)) if width.0 > 0 => wrap(text, width.0.into()),
        _ => text.to_owned(),
    }
}

/// Breaks each line at blanks outside of commands; what follows is indented below it.
pub fn wrap(text: &str, width: usize) -> String {
    let lines = text.split('\n').map(|line| {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        let indent = " ".repeat(blanks + 2);
        let kept: Vec<_> = line
            .split('`')
            .enumerate()
            .map(|(part, text)| match part % 2 {
                0 => text.to_owned(),
                _ => text.replace(' ', KEPT_BLANK),
            })
            .collect();
        let options = Options::new(width)
            .word_separator(WordSeparator::AsciiSpace)
            .break_words(false)
            .subsequent_indent(&indent);
        textwrap::fill(&kept.join("`"), options).replace(KEPT_BLANK, " ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_break_between_words_and_never_in_a_command() {
        let text = "short\n  next: `farescan scan oneway TLV LHR` shows its cost, and more";
        assert_eq!(
            wrap(text, 40),
            "short\n  next: `farescan scan oneway TLV LHR`\n    shows its cost, and more"
        );
        assert_eq!(wrap(text, 100), text);
        let long = "x".repeat(50);
        assert_eq!(wrap(&long, 40), long, "one word stays whole");
    }
}
