//! JSON that goes on as it was written.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A value that nobody needs to take apart on its way from the database to its reader: taken apart, a page of them would be ten times
/// as large in memory.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AsWritten(Box<RawValue>);

impl From<Box<RawValue>> for AsWritten {
    fn from(text: Box<RawValue>) -> Self {
        Self(text)
    }
}

impl AsWritten {
    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Takes it apart.
    ///
    /// # Errors
    /// When it is no `T`.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.as_str())
    }
}

/// The same text.
impl PartialEq for AsWritten {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}
