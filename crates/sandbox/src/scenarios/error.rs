//! What is wrong with a scenario's files.

use std::fmt::Display;
use std::path::{Path, PathBuf};

/// A scenario that cannot be played. Its text names the file and the field or line.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A file cannot be read.
    #[error("{}: {source}", file.display())]
    Unreadable {
        /// The scenario's file or the file of its recorded prices.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML, lacks a field, or has an unknown one; the text shows the line.
    #[error("{0}")]
    Shape(#[from] toml_edit::de::Error),
    /// A field's value is not allowed.
    #[error("{field}: found {found}, expected {expected}")]
    Field {
        /// Its path, such as `sales.share_of_dates`.
        field: String,
        /// Its value.
        found: String,
        /// What is allowed.
        expected: String,
    },
    /// A line of the recorded prices cannot be read.
    #[error("{}, line {line}: {column}: found {found}, expected {expected}", file.display())]
    Line {
        /// The CSV file.
        file: PathBuf,
        /// Counted from 1, the header.
        line: u64,
        /// The column's name.
        column: String,
        /// Its value.
        found: String,
        /// What is allowed.
        expected: String,
    },
    /// An error of the scenario in this file.
    #[error("{}: {problem}", file.display())]
    In {
        /// The scenario's file.
        file: PathBuf,
        /// What is wrong with it.
        problem: Box<ScenarioError>,
    },
}

impl ScenarioError {
    pub(super) fn field(
        field: impl Into<String>,
        found: impl Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::Field {
            field: field.into(),
            found: found.to_string(),
            expected: expected.into(),
        }
    }

    /// The error of a field unless its value is accepted.
    pub(super) fn unless(
        accepted: bool,
        field: &str,
        found: impl Display,
        expected: impl Into<String>,
    ) -> Result<(), Self> {
        if accepted {
            Ok(())
        } else {
            Err(Self::field(field, found, expected))
        }
    }

    /// Adds the scenario's file to an error that does not name a file itself.
    pub(super) fn in_file(self, file: &Path) -> Self {
        match self {
            Self::Shape(_) | Self::Field { .. } => Self::In {
                file: file.to_owned(),
                problem: Box::new(self),
            },
            named => named,
        }
    }
}
