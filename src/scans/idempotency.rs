//! A repeated POST does its work once (scans.md, rules 21 to 24).
//!
//! The scope is the caller and the path. Bodies are compared as canonical JSON. Only successful
//! responses are stored, for 48 hours. The key's row is inserted in the transaction of the work
//! itself, so that concurrent equal requests wait for the first one and return its response.

use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;

use super::{RequestContext, ScanError, store};
use crate::contract::{ValidationError, ValidationErrors, shorten};
use crate::ids::TenantId;
use crate::tenants;

/// How long a response is stored.
const RETENTION: SignedDuration = SignedDuration::from_hours(48);
/// The longest key, in characters.
pub const MAX_IDEMPOTENCY_KEY: usize = 255;

/// A caller's `Idempotency-Key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Reads the header's value.
    ///
    /// # Errors
    /// When it is empty, over 255 characters, or not visible ASCII.
    pub fn parse(bytes: &[u8]) -> Result<Self, ValidationErrors> {
        let text = String::from_utf8_lossy(bytes);
        if (1..=MAX_IDEMPOTENCY_KEY).contains(&bytes.len())
            && bytes.iter().all(u8::is_ascii_graphic)
        {
            return Ok(Self(text.into_owned()));
        }
        let expected =
            format!("1 to {MAX_IDEMPOTENCY_KEY} visible ASCII characters without white space");
        Err(ValidationError::new("Idempotency-Key", &text.into(), expected).into())
    }
}

/// A POST that creates or spends, with its optional key.
pub(crate) struct IdempotentRequest<'a> {
    path: String,
    /// Of the body; unused without a key.
    digest: [u8; 32],
    key: Option<&'a IdempotencyKey>,
}

impl<'a> IdempotentRequest<'a> {
    pub(crate) fn new(
        path: String,
        body: &Map<String, Value>,
        key: Option<&'a IdempotencyKey>,
    ) -> Self {
        Self {
            path,
            digest: if key.is_some() { digest(body) } else { [0; 32] },
            key,
        }
    }

    /// The stored response, if this POST is a repetition. Call it before the request is checked: a
    /// repetition succeeds even if its dates have passed since.
    pub(crate) async fn find_response<T: DeserializeOwned>(
        &self,
        context: RequestContext<'_>,
    ) -> Result<Option<T>, ScanError> {
        let Some(IdempotencyKey(key)) = self.key else {
            return Ok(None);
        };
        let mut conn = context.pool.acquire().await?;
        let Some(tenant) =
            tenants::store::find(&mut conn, context.ring, context.key, context.now).await?
        else {
            return Ok(None);
        };
        let stored = store::stored_response(
            &mut conn,
            tenant,
            &self.path,
            key,
            retained_since(context.now),
        )
        .await?;
        stored.map(|stored| self.replay(stored)).transpose()
    }

    /// Reserves the key in the transaction of the work. `Some`: the response of a concurrent
    /// request that was faster.
    pub(crate) async fn reserve<T: DeserializeOwned>(
        &self,
        conn: &mut PgConnection,
        tenant: TenantId,
        now: Timestamp,
    ) -> Result<Option<T>, ScanError> {
        let Some(IdempotencyKey(key)) = self.key else {
            return Ok(None);
        };
        if store::reserve_key(
            conn,
            tenant,
            &self.path,
            key,
            &self.digest,
            now,
            retained_since(now),
        )
        .await?
        {
            return Ok(None);
        }
        let stored = store::stored_response(conn, tenant, &self.path, key, retained_since(now))
            .await?
            .ok_or(sqlx::Error::RowNotFound)?;
        self.replay(stored).map(Some)
    }

    /// Stores the response for repetitions, in the transaction of the work.
    pub(crate) async fn store_response<T: Serialize>(
        &self,
        conn: &mut PgConnection,
        tenant: TenantId,
        response: &T,
    ) -> Result<(), ScanError> {
        let Some(IdempotencyKey(key)) = self.key else {
            return Ok(());
        };
        let response =
            serde_json::to_string(response).map_err(|error| sqlx::Error::Encode(error.into()))?;
        Ok(store::store_response(conn, tenant, &self.path, key, &response).await?)
    }

    fn replay<T: DeserializeOwned>(&self, stored: store::StoredResponse) -> Result<T, ScanError> {
        if stored.body_digest != self.digest {
            let key = self
                .key
                .map(|IdempotencyKey(key)| shorten(key))
                .unwrap_or_default();
            return Err(ScanError::IdempotencyMismatch(key));
        }
        let response = stored.response.ok_or(sqlx::Error::RowNotFound)?;
        Ok(serde_json::from_value(response).map_err(|error| sqlx::Error::Decode(error.into()))?)
    }
}

fn retained_since(now: Timestamp) -> Timestamp {
    now.checked_sub(RETENTION).unwrap_or(Timestamp::MIN)
}

/// The digest of a body as canonical JSON. It is streamed, because a sorted copy of the body would
/// take many times the size of its text.
fn digest(body: &Map<String, Value>) -> [u8; 32] {
    let mut hasher = Hasher(Sha256::new());
    // Neither serialising JSON values nor the hasher can fail.
    _ = serde_json::to_writer(&mut hasher, &CanonicalObject(body));
    hasher.0.finalize().into()
}

struct Hasher(Sha256);

impl std::io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Serialises JSON with the fields of every object sorted by name.
struct Canonical<'a>(&'a Value);

struct CanonicalObject<'a>(&'a Map<String, Value>);

impl Serialize for Canonical<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(object) => CanonicalObject(object).serialize(serializer),
            Value::Array(values) => serializer.collect_seq(values.iter().map(Canonical)),
            other => other.serialize(serializer),
        }
    }
}

impl Serialize for CanonicalObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields: Vec<_> = self.0.iter().collect();
        fields.sort_unstable_by_key(|(name, _)| *name);
        serializer.collect_map(
            fields
                .into_iter()
                .map(|(name, value)| (name, Canonical(value))),
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest(body: Value) -> [u8; 32] {
        let Value::Object(body) = body else {
            panic!("an object")
        };
        super::digest(&body)
    }

    #[test]
    fn a_digest_is_the_sha256_of_the_canonical_json() {
        let body = json!({"b": [{"d": 2, "c": "\u{e9}\n"}, 1.50, null, []], "a": {}});
        let canonical = r#"{"a":{},"b":[{"c":"é\n","d":2},1.5,null,[]]}"#;
        assert_eq!(digest(body), <[u8; 32]>::from(Sha256::digest(canonical)));
    }

    #[test]
    fn body_digests_ignore_the_order_of_fields() {
        let body = digest(json!({"a": 1, "b": [{"c": 1, "d": 2}]}));
        assert_eq!(body, digest(json!({"b": [{"d": 2, "c": 1}], "a": 1})));
        for other in [
            json!({"a": 1, "b": []}),
            json!({"a": "1", "b": [{"c": 1, "d": 2}]}),
            json!({"a": 1, "b": [{"d": 1, "c": 2}]}),
        ] {
            assert_ne!(body, digest(other));
        }
    }

    #[test]
    fn a_key_is_1_to_255_visible_ascii_characters() {
        assert!(
            IdempotencyKey::parse(b"a-key").is_ok() && IdempotencyKey::parse(&[b'k'; 255]).is_ok()
        );
        for bad in [
            &b""[..],
            b"a key",
            b"k\x7f",
            "schlüssel".as_bytes(),
            &[b'k'; 256],
        ] {
            assert!(
                IdempotencyKey::parse(bad)
                    .unwrap_err()
                    .to_string()
                    .starts_with("`Idempotency-Key`: found")
            );
        }
    }
}
