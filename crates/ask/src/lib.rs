//! A search in words: `tel aviv london march below 150` as a question of the API.
//!
//! One grammar for the dashboard and the terminal, without a model: what is understood is shown word
//! by word ([`Chip`]), and what is not is refused with what it could mean ([`RefusedWords`]). Nothing is
//! guessed: a default is a chip too. `words.md` in this folder is the grammar with its examples, which
//! a test runs.
//!
//! Everything here is pure: today is an argument. The time is linear in the length of the text, of
//! which at most [`MAX_CHARS`] characters are read.
//!
//! - [`read()`]: from words to a [`Question`]; `clauses` and `dates` read its parts.
//! - [`places`]: airports and cities; [`countries`]: markets and currencies.
//! - [`question`]: the question, and its words ([`Question::words`]).
//! - [`body`]: the bodies of scans and monitors that ask it; [`question_of`]: from a scan back to its words.

mod answer;
pub mod body;
mod clauses;
pub mod countries;
mod dates;
mod from_scan;
mod lexer;
mod monitor_name;
pub mod places;
pub mod question;
mod read;
#[cfg(test)]
mod tests;

pub use answer::{Chip, ChipKind, Reading, RefusedWords, Suggestion};
pub use from_scan::question_of;
pub use question::{Checks, Question, QuestionSubject};
pub use read::{MAX_CHARS, read};
