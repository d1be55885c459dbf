//! JSON that is passed on unparsed.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A JSON value as text, from the database to the client. Parsed, a page of them would take ten
/// times as much memory.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawJson(Box<RawValue>);

impl From<Box<RawValue>> for RawJson {
    fn from(text: Box<RawValue>) -> Self {
        Self(text)
    }
}

impl RawJson {
    /// Its text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Parses it.
    ///
    /// # Errors
    /// When it is not a `T`.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.as_str())
    }
}

/// Equal if the text is equal.
impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}
