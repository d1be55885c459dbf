//! Validation errors of a request.
//!
//! Here: one [`ValidationError`] per invalid field and the bounded collection [`ValidationErrors`],
//! which becomes the message of a 400 `invalid_request` (gateway.md, rule 6). Not here: reading
//! (`read_body`), HTTP statuses (`error`).

use serde_json::Value;
use std::fmt;

/// One invalid field: its path, the found value and the expected one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidationError {
    /// The path from the top of the body: `departure_date`, `passengers[2]`, `sweep.nights[0]`.
    /// Unknown names are shortened like values.
    pub path: String,
    /// The value as JSON, shortened to [`MAX_FOUND_CHARS`]; `None` when the field is missing.
    pub found: Option<String>,
    /// What the field accepts, in words that complete "expected …".
    pub expected: String,
    /// The body has no field of this name. `expected` then begins with [`NO_SUCH_FIELD`].
    is_unknown_field: bool,
}

/// Every error of one body, in the order of its fields (gateway.md, rule 6: all of them, not the
/// first alone).
///
/// Errors past [`MAX_REPORTED_ERRORS`] are counted and dropped, so that a hostile body cannot make
/// a huge response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValidationErrors {
    errors: Vec<ValidationError>,
    omitted: usize,
}

/// The longest echo of a caller's value or field name, in characters.
pub const MAX_FOUND_CHARS: usize = 80;
/// How `expected` begins where the body has no field of the name.
const NO_SUCH_FIELD: &str = "no such field in ";
/// Replaces a secret value in a message.
const NOT_SHOWN: &str = "a value that is not shown";
/// Replaces an unknown name that may be a secret.
const NAME_NOT_SHOWN: &str = "(a name that is not shown)";
/// The most errors that one message lists.
pub const MAX_REPORTED_ERRORS: usize = 100;

impl ValidationError {
    /// An error at `path` about `value`. `path` may be empty: the caller then prefixes its own
    /// name. A value that may be a secret is not shown: a key in the wrong field must not come back
    /// in a message that somebody logs.
    pub fn new(path: impl AsRef<str>, value: &Value, expected: impl Into<String>) -> Self {
        if is_secret(path.as_ref(), value) {
            return Self::secret(path, expected);
        }
        Self::with_found(path, shorten_display(value), expected)
    }

    /// An error about a secret, whose value is not shown.
    pub fn secret(path: impl AsRef<str>, expected: impl Into<String>) -> Self {
        Self::with_found(path, NOT_SHOWN, expected)
    }

    /// An error whose found value is already text for the message.
    pub fn with_found(
        path: impl AsRef<str>,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self {
            found: Some(found.into()),
            ..Self::missing(path, expected)
        }
    }

    /// A required field that is absent or null (gateway.md, rule 7).
    pub fn missing(path: impl AsRef<str>, expected: impl Into<String>) -> Self {
        Self {
            path: shorten(path.as_ref()),
            found: None,
            expected: expected.into(),
            is_unknown_field: false,
        }
    }

    /// A field that `body_name` does not have; `hint` names the fields that it has.
    pub(crate) fn unknown_field(name: &str, value: &Value, body_name: &str, hint: &str) -> Self {
        Self {
            is_unknown_field: true,
            ..Self::new(name, value, format!("{NO_SUCH_FIELD}{body_name}; {hint}"))
        }
    }
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, expected, .. } = self;
        let hint = expected.strip_prefix(NO_SUCH_FIELD);
        match (&self.found, hint) {
            (_, Some(hint)) if self.is_unknown_field => {
                write!(f, "unknown field `{path}` in {hint}")
            }
            (Some(found), _) => write!(f, "`{path}`: found {found}; expected {expected}"),
            (None, _) => write!(f, "`{path}` is missing; expected {expected}"),
        }
    }
}

impl ValidationErrors {
    /// Adds one error.
    pub fn push(&mut self, error: ValidationError) {
        self.push_lazily(|| error);
    }

    /// Adds one error, which is built only while the list is not full.
    pub fn push_lazily(&mut self, error: impl FnOnce() -> ValidationError) {
        if self.errors.len() < MAX_REPORTED_ERRORS {
            self.errors.push(error());
        } else {
            self.omitted += 1;
        }
    }

    /// Adds all errors of another list.
    pub fn merge(&mut self, other: ValidationErrors) {
        self.omitted += other.omitted;
        for error in other.errors {
            self.push(error);
        }
    }

    /// The same errors one level further out: `[2]` under `passengers` is `passengers[2]`, `nights`
    /// under `sweep` is `sweep.nights`.
    #[must_use]
    pub fn prefix(mut self, path: &str) -> Self {
        let (path, is_secret) = (shorten(path), is_secret_name(path));
        for error in &mut self.errors {
            let dot = match error.path.chars().next() {
                None | Some('[') => "",
                Some(_) => ".",
            };
            if is_secret {
                error.found = error.found.take().map(|_| NOT_SHOWN.to_owned());
            }
            error.path = format!("{path}{dot}{}", error.path);
        }
        self
    }

    /// The same errors of a body that contains a secret. Values are not shown, nor names other than
    /// `known`: the caller may have put the secret in the place of a name.
    #[must_use]
    pub fn redacted(mut self, known: &[&str]) -> Self {
        for error in &mut self.errors {
            error.found = error.found.take().map(|_| NOT_SHOWN.to_owned());
            if !known.contains(&error.path.as_str()) {
                NAME_NOT_SHOWN.clone_into(&mut error.path);
            }
        }
        self
    }

    /// Drops listed errors that `keep` rejects; counted ones stay.
    pub fn retain(&mut self, keep: impl FnMut(&ValidationError) -> bool) {
        self.errors.retain(keep);
    }

    /// Whether there is no error.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// How many errors there are, with those beyond [`MAX_REPORTED_ERRORS`].
    pub fn len(&self) -> usize {
        self.errors.len() + self.omitted
    }

    /// The listed errors.
    pub fn iter(&self) -> std::slice::Iter<'_, ValidationError> {
        self.errors.iter()
    }

    /// The value of `build` if there is no error, else the errors. `build` may return `None` only
    /// where an error was added for the part that it lacks.
    pub fn ok_if_empty<T>(self, build: impl FnOnce() -> Option<T>) -> Result<T, ValidationErrors> {
        match build() {
            Some(whole) if self.is_empty() => Ok(whole),
            _ => Err(self),
        }
    }
}

/// One line: the errors as sentences.
impl fmt::Display for ValidationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut end = "";
        for error in &self.errors {
            write!(f, "{end}{error}")?;
            end = if error.expected.ends_with('?') {
                " "
            } else {
                ". "
            };
        }
        match self.omitted {
            0 => Ok(()),
            more => write!(f, "{end}And {more} more"),
        }
    }
}

impl std::error::Error for ValidationErrors {}

impl From<ValidationError> for ValidationErrors {
    fn from(error: ValidationError) -> Self {
        Self {
            errors: vec![error],
            omitted: 0,
        }
    }
}

impl IntoIterator for ValidationErrors {
    type Item = ValidationError;
    type IntoIter = std::vec::IntoIter<ValidationError>;

    fn into_iter(self) -> Self::IntoIter {
        self.errors.into_iter()
    }
}

impl<'a> IntoIterator for &'a ValidationErrors {
    type Item = &'a ValidationError;
    type IntoIter = std::slice::Iter<'a, ValidationError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Parts of the names of fields whose values are secrets, in lower case.
const SECRET_NAMES: [&str; 5] = ["key", "token", "secret", "auth", "passw"];

/// Whether the value of a field of this name is never shown.
pub(crate) fn is_secret_name(name: &str) -> bool {
    SECRET_NAMES.iter().any(|part| {
        name.as_bytes()
            .windows(part.len())
            .any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
    })
}

/// Whether a value may be a secret, by its name or its content.
pub(crate) fn is_secret(path: &str, value: &Value) -> bool {
    is_secret_name(path) || contains_secret(value)
}

/// Whether a value contains a field with a secret name, or a text that may be a secret.
fn contains_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => is_secret_text(text),
        Value::Array(values) => values.iter().any(contains_secret),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| is_secret_name(name) || contains_secret(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a text is a URL (any part may contain a secret), has `user:password@`, or has a
/// `name=value` pair with a secret name.
fn is_secret_text(text: &str) -> bool {
    let has_user = || {
        text.split_once('@')
            .is_some_and(|(user, _)| user.contains(':'))
    };
    let has_pair = || {
        text.split(['?', '&', ';', ',', ' '])
            .filter_map(|pair| pair.split_once('='))
            .any(|(name, _)| is_secret_name(name))
    };
    text.contains("://") || has_user() || has_pair()
}

/// [`shorten`] of a displayed value, of which only the beginning is written: a list may have
/// thousands of elements.
pub fn shorten_display(value: impl fmt::Display) -> String {
    let mut prefix = PrefixBuffer(String::new());
    // Writing stops with an error once the buffer is full.
    _ = fmt::write(&mut prefix, format_args!("{value}"));
    shorten(&prefix.0)
}

/// Takes the characters that are shown and one more, by which [`shorten`] sees that it has to cut.
struct PrefixBuffer(String);

impl fmt::Write for PrefixBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // A character has at most four bytes.
        let room = (4 * (MAX_FOUND_CHARS + 1)).saturating_sub(self.0.len());
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        if text.len() > room {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

/// A caller's text, safe to echo: at most [`MAX_FOUND_CHARS`] characters and no control characters,
/// which could forge a log line or move a terminal's cursor.
pub fn shorten(text: &str) -> String {
    let safe = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    if text.chars().nth(MAX_FOUND_CHARS).is_none() {
        return text.chars().map(safe).collect();
    }
    let kept = text.chars().take(MAX_FOUND_CHARS - 1).map(safe);
    kept.chain(std::iter::once('…')).collect()
}
