//! The body of an answer as unparsed JSON text.
//!
//! Most bodies are forwarded and stored without being parsed. `upstream::classify` validates them;
//! `contract::offer` extracts the offers.

use std::fmt;

use bytes::Bytes;
use serde_json::Value;

/// Validated JSON text. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct AnswerBody(Bytes);

impl AnswerBody {
    /// Wraps a text that the caller has validated, or that was validated before it was stored.
    pub fn from_checked(text: impl Into<Bytes>) -> Self {
        Self(text.into())
    }

    pub fn text(&self) -> &Bytes {
        &self.0
    }

    /// Parses the text, for callers that change it.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.0).unwrap_or_default()
    }
}

impl From<Value> for AnswerBody {
    fn from(value: Value) -> Self {
        Self(value.to_string().into())
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// The body's field in a stored outcome: always null, because the body has a column of its own.
pub(super) mod stored_separately {
    use serde::de::IgnoredAny;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::AnswerBody;

    pub(in crate::search) fn serialize<S: Serializer>(
        _: &AnswerBody,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }

    pub(in crate::search) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<AnswerBody, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| AnswerBody::from_checked("null"))
    }
}
