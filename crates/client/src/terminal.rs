//! The terminal: its width, whether it shows colours, and whether somebody can answer a question.

use std::io::{IsTerminal as _, stderr, stdin, stdout};

/// The width where standard output is no terminal.
const PIPE_WIDTH: u16 = 120;
/// Narrower terminals get lines that they wrap.
const MIN_WIDTH: u16 = 40;

/// What can be shown where.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Columns of standard output.
    pub width: u16,
    /// Lines of the terminal of standard error.
    pub height: u16,
    /// Whether standard output shows colours.
    pub colour: bool,
    /// Whether standard error is a terminal that can redraw lines.
    pub live: bool,
    /// Whether somebody reads standard error and can answer on standard input.
    pub interactive: bool,
}

impl Screen {
    /// The screen of this process: NO_COLOR, CLICOLOR and TERM decide on colours, COLUMNS or the
    /// terminal on the width.
    pub fn detect() -> Self {
        let is_dumb = std::env::var("TERM").map_or(true, |term| term == "dumb");
        let columns = std::env::var("COLUMNS")
            .ok()
            .and_then(|text| text.parse().ok());
        let out = terminal_size::terminal_size_of(stdout());
        let width = columns.or(out.map(|(width, _)| width.0));
        let height = terminal_size::terminal_size_of(stderr()).map_or(24, |(_, height)| height.0);
        Self {
            width: width.unwrap_or(PIPE_WIDTH).max(MIN_WIDTH),
            height,
            colour: anstream::AutoStream::choice(&stdout()) != anstream::ColorChoice::Never,
            live: stderr().is_terminal() && !is_dumb,
            interactive: stderr().is_terminal() && stdin().is_terminal(),
        }
    }
}
