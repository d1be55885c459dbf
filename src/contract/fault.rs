//! What is wrong with a request, said so that its sender can mend it.
//!
//! Here: one [`Fault`] per wrong field and the bounded collection [`Faults`] that becomes the message of a
//! 400 `invalid_request` (contract 6). Not here: reading (`read`), HTTP statuses (`error`).

use serde_json::Value;
use std::fmt;

/// One field that cannot be accepted: where, what it held, what would have been accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The field's path from the top of the body: `departure_date`, `passengers[2]`, `sweep.nights[0]`. Names that the
    /// caller made up are shortened like values.
    pub path: String,
    /// The value as JSON, shortened to [`MAX_HELD_CHARS`]; `None` when the field is missing.
    pub held: Option<String>,
    /// What is accepted there, in words.
    pub allowed: String,
}

/// Every fault of one body, in the order of its fields (contract 6: all of them, not the first alone).
///
/// Bounded: faults past [`MAX_LISTED`] are counted, not kept, so that a hostile body cannot make a huge answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Faults {
    listed: Vec<Fault>,
    unlisted: usize,
}

/// The longest echo of a caller's value or field name, in characters.
pub const MAX_HELD_CHARS: usize = 80;
/// What a message says in the place of a secret.
const NOT_SHOWN: &str = "a value that is not shown";
/// And in the place of a name.
const NAME_NOT_SHOWN: &str = "(a name that is not shown)";
/// The most faults that one message lists.
pub const MAX_LISTED: usize = 100;

impl Fault {
    /// A fault at `path` about `value`. `path` may be empty: the reader above then puts its own name there. What may be a secret is not
    /// shown: a caller's key that stands in the wrong field must not come back in a message that somebody logs.
    pub fn new(path: impl AsRef<str>, value: &Value, allowed: impl Into<String>) -> Self {
        if is_secret(path.as_ref(), value) {
            return Self::secret(path, allowed);
        }
        Self {
            path: shorten(path.as_ref()),
            held: Some(shortened(value)),
            allowed: allowed.into(),
        }
    }

    /// A fault about a value that must not be shown: a secret.
    pub fn secret(path: impl AsRef<str>, allowed: impl Into<String>) -> Self {
        Self {
            path: shorten(path.as_ref()),
            held: Some(NOT_SHOWN.to_owned()),
            allowed: allowed.into(),
        }
    }

    /// A required field that is not there (or is null, which is the same: contract 7).
    pub fn missing(path: impl AsRef<str>, allowed: impl Into<String>) -> Self {
        Self {
            path: shorten(path.as_ref()),
            held: None,
            allowed: allowed.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.held {
            Some(held) => write!(f, "`{}` holds {held}; allowed: {}", self.path, self.allowed),
            None => write!(f, "`{}` is missing; allowed: {}", self.path, self.allowed),
        }
    }
}

impl Faults {
    /// Adds one fault.
    pub fn push(&mut self, fault: Fault) {
        self.push_with(|| fault);
    }

    /// Adds one fault that is only worked out while there is room for it.
    pub fn push_with(&mut self, fault: impl FnOnce() -> Fault) {
        if self.listed.len() < MAX_LISTED {
            self.listed.push(fault());
        } else {
            self.unlisted += 1;
        }
    }

    /// Adds all faults of another reader.
    pub fn merge(&mut self, other: Faults) {
        self.unlisted += other.unlisted;
        for fault in other.listed {
            self.push(fault);
        }
    }

    /// The same faults one level further out: `[2]` under `passengers` is `passengers[2]`, `nights` under
    /// `sweep` is `sweep.nights`.
    #[must_use]
    pub fn prefix(mut self, path: &str) -> Self {
        let (path, is_secret) = (shorten(path), is_secret_name(path));
        for fault in &mut self.listed {
            let dot = match fault.path.chars().next() {
                None | Some('[') => "",
                Some(_) => ".",
            };
            if is_secret {
                fault.held = fault.held.take().map(|_| NOT_SHOWN.to_owned());
            }
            fault.path = format!("{path}{dot}{}", fault.path);
        }
        self
    }

    /// The same faults of a body that holds a secret: values are not shown, nor names other than `known`, because what was meant as
    /// a value may stand in the place of a name.
    #[must_use]
    pub fn hidden(mut self, known: &[&str]) -> Self {
        for fault in &mut self.listed {
            fault.held = fault.held.take().map(|_| NOT_SHOWN.to_owned());
            if !known.contains(&fault.path.as_str()) {
                NAME_NOT_SHOWN.clone_into(&mut fault.path);
            }
        }
        self
    }

    /// Keeps those that `keep` says; what is not listed is kept.
    pub fn retain(&mut self, keep: impl FnMut(&Fault) -> bool) {
        self.listed.retain(keep);
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// How many faults there are, those beyond [`MAX_LISTED`] included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.listed.len() + self.unlisted
    }

    /// The listed faults.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.listed.iter()
    }

    /// What `build` makes if nothing is wrong, else the faults. `build` says `None` only where a fault was
    /// pushed for the part that it lacks.
    pub fn or_else_build<T>(self, build: impl FnOnce() -> Option<T>) -> Result<T, Faults> {
        match build() {
            Some(whole) if self.is_empty() => Ok(whole),
            _ => Err(self),
        }
    }
}

/// One line of sentences.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut end = "";
        for fault in &self.listed {
            write!(f, "{end}{fault}")?;
            end = if fault.allowed.ends_with('?') {
                " "
            } else {
                ". "
            };
        }
        match self.unlisted {
            0 => Ok(()),
            more => write!(f, "{end}And {more} more"),
        }
    }
}

impl std::error::Error for Faults {}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self {
            listed: vec![fault],
            unlisted: 0,
        }
    }
}

impl IntoIterator for Faults {
    type Item = Fault;
    type IntoIter = std::vec::IntoIter<Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.listed.into_iter()
    }
}

impl<'a> IntoIterator for &'a Faults {
    type Item = &'a Fault;
    type IntoIter = std::slice::Iter<'a, Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Parts of the names of fields whose values are secrets, in lower case.
const SECRET_NAMES: [&str; 5] = ["key", "token", "secret", "auth", "passw"];

/// Whether what stands under such a name is never shown, whatever field it is.
pub(crate) fn is_secret_name(name: &str) -> bool {
    SECRET_NAMES.iter().any(|part| {
        name.as_bytes()
            .windows(part.len())
            .any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
    })
}

/// Whether a value may be a secret, by its name or by what it holds.
pub(crate) fn is_secret(path: &str, value: &Value) -> bool {
    is_secret_name(path) || holds_secret(value)
}

/// Whether a secret may stand in a value: in a field of a secret's name, or in a text.
fn holds_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => is_secret_text(text),
        Value::Array(values) => values.iter().any(holds_secret),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| is_secret_name(name) || holds_secret(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a text is a URL, which may hold a secret in each of its parts, or a user name with a password, or has a pair of a secret's name.
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

/// The same of what writes a text, of which no more than its beginning is written: a list may have thousands of elements.
pub(crate) fn shortened(value: impl fmt::Display) -> String {
    let mut begin = Beginning(String::new());
    // It fails where the beginning is full.
    _ = fmt::write(&mut begin, format_args!("{value}"));
    shorten(&begin.0)
}

/// Takes the characters that are shown and one more, which says that there are more.
struct Beginning(String);

impl fmt::Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // A character has at most four bytes.
        let room = (4 * (MAX_HELD_CHARS + 1)).saturating_sub(self.0.len());
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        if text.len() > room {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

/// A caller's text, safe to echo: at most [`MAX_HELD_CHARS`] characters and no control characters, which could
/// forge a log line or move a terminal's cursor.
pub(crate) fn shorten(text: &str) -> String {
    let safe = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    if text.chars().nth(MAX_HELD_CHARS).is_none() {
        return text.chars().map(safe).collect();
    }
    let kept = text.chars().take(MAX_HELD_CHARS - 1).map(safe);
    kept.chain(std::iter::once('…')).collect()
}
