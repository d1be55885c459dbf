//! `POST /v1/account/rotate-key` (security.md, rule 10).
//!
//! The body contains a secret, so errors show neither its values nor unknown field names.

use super::endpoint::Api;
use super::field::FieldValue;
use super::key::{MAX_KEY_BYTES, parse_key};
use super::read_body::{MAX_DEPTH, read_object};
use super::request_body::request_body;
use super::validation::{ValidationError, ValidationErrors};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use zeroize::Zeroizing;

/// A marketplace key in a body. `Debug` and serialization hide it; dropping it wipes the memory.
#[derive(Clone, PartialEq, Eq)]
pub struct NewKey(Zeroizing<String>);

impl NewKey {
    /// The key's text, only for its fingerprint and for sealing.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewKey([not shown])")
    }
}

impl FieldValue for NewKey {
    fn expected() -> Cow<'static, str> {
        format!(
            "a marketplace key of 1 to {MAX_KEY_BYTES} visible ASCII characters without white space, no example's placeholder"
        )
        .into()
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        let key = value
            .as_str()
            .and_then(|text| parse_key(text.as_bytes()).ok());
        key.map(|key| Self(Zeroizing::new(key.to_owned())))
            .ok_or_else(|| ValidationError::secret("", Self::expected()).into())
    }

    /// A placeholder: the key is never written.
    fn to_value(&self) -> Value {
        "[not shown]".into()
    }

    fn schema() -> Schema {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(MAX_KEY_BYTES))
            .pattern(Some("^[!-~]+$"))
            .write_only(true)
            .into()
    }
}

request_body! {
    /// Body of `POST /v1/account/rotate-key`.
    pub struct RotateKeyRequest for "rotate-key" {
        required {
            /// The new key. It must not own anything here yet.
            new_key: NewKey;
        }
        optional {}
        example { "new_key": "an-example-of-a-key" }
    }
}

impl RotateKeyRequest {
    /// Reads a whole body.
    ///
    /// # Errors
    /// All validation errors, without any value of the body.
    pub fn from_bytes(body: &[u8]) -> Result<Self, ValidationErrors> {
        let read = read_object(body, MAX_DEPTH).and_then(|body| Self::from_body(&body));
        read.map_err(|errors| errors.redacted(&["body", "new_key"]))
    }
}

/// The result of a rotation. The new key owns everything that the old key owned: scans, their
/// answers, the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"rotated_at": "2026-12-01T08:00:00Z", "held_keys": 3, "lanes_resumed": ["flights"]})))]
pub struct KeyRotation {
    /// Time of the rotation.
    pub rotated_at: Timestamp,
    /// Number of stored keys of live scans that were replaced: their next searches use the new key.
    pub held_keys: u32,
    /// Resumed lanes that were paused because the old key was rejected or not subscribed.
    pub lanes_resumed: Vec<Api>,
}
