//! The body of an answer, as the text that came.
//!
//! Most of what happens to it is being passed on and being stored, so it is not taken apart for that. Not here: the check that it is JSON of
//! the right kind (`upstream::wire`), which offers are in it (`contract::offers`).

use std::fmt;

use bytes::Bytes;
use serde_json::Value;

/// JSON text that has been checked. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct AnswerBody(Bytes);

impl AnswerBody {
    /// A text that was checked by whoever calls this, or before it was stored.
    #[must_use]
    pub fn checked(text: impl Into<Bytes>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &Bytes {
        &self.0
    }

    /// What the text says, taken apart: for the few who change it.
    #[must_use]
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

/// The body's place in an outcome that is kept: it is stored apart, so nothing of it stands there.
pub(super) mod apart {
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
        IgnoredAny::deserialize(deserializer).map(|_| AnswerBody::checked("null"))
    }
}
