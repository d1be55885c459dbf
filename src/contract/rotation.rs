//! `POST /v1/account/rotate-key` on the wire (jobs-api, "Account"; security.md, "Keys").
//!
//! The body holds a secret, so nothing of it is ever shown: no fault holds a value, and none a name that is not ours.

use super::declare::request;
use super::endpoint::Api;
use super::fault::{Fault, Faults};
use super::field::FieldValue;
use super::key::{MAX_KEY_BYTES, read_key};
use super::read::{MAX_DEPTH, read_object};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use zeroize::Zeroizing;

/// A marketplace key in a body. Not printed, not written on, wiped from memory when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct NewKey(Zeroizing<String>);

impl NewKey {
    /// The key's text: for its fingerprint and for sealing, for nothing else.
    #[must_use]
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
    fn allowed() -> Cow<'static, str> {
        format!(
            "a marketplace key of 1 to {MAX_KEY_BYTES} visible ASCII characters without white space, no example's placeholder"
        )
        .into()
    }

    fn read(value: &Value) -> Result<Self, Faults> {
        let key = value
            .as_str()
            .and_then(|text| read_key(text.as_bytes()).ok());
        key.map(|key| Self(Zeroizing::new(key.to_owned())))
            .ok_or_else(|| Fault::secret("", Self::allowed()).into())
    }

    /// Whatever is written of a body, the key is not.
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

request! {
    /// Body of `POST /v1/account/rotate-key`.
    pub struct RotateKeyRequest for "rotate-key" {
        required {
            /// The key that takes over. It may own nothing here yet.
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
    /// Every fault of it, none of which shows anything that was sent.
    pub fn from_bytes(body: &[u8]) -> Result<Self, Faults> {
        let read = read_object(body, MAX_DEPTH).and_then(|body| Self::from_body(&body));
        read.map_err(|faults| faults.hidden(&["body", "new_key"]))
    }
}

/// What passed from the old key to the new one. Everything else that the old key owned did too: scans, their answers, the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"rotated_at": "2026-12-01T08:00:00Z", "held_keys": 3, "lanes_resumed": ["flights"]})))]
pub struct KeyRotation {
    /// When.
    pub rotated_at: Timestamp,
    /// Keys held for live scans that were sealed anew: their next searches go with the new key.
    pub held_keys: u32,
    /// Lanes that had stopped because the old key was rejected or not subscribed, and go on.
    pub lanes_resumed: Vec<Api>,
}
