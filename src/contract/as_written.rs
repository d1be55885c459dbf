//! JSON that goes on as it was written.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// An object that nobody needs to take apart on its way from the database to its reader: taken apart, a page of them would be ten times
/// as large in memory.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AsWritten(Box<RawValue>);

impl From<Box<RawValue>> for AsWritten {
    fn from(text: Box<RawValue>) -> Self {
        Self(text)
    }
}

/// The same text.
impl PartialEq for AsWritten {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}
