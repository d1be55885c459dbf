//! The same POST twice does its work once (jobs-api, "Idempotency-Key").
//!
//! The scope is the caller and the path; bodies are compared as canonical JSON; only successes are kept, for 48 hours. The key's row is
//! made in the transaction of the work itself, so that equal requests that come at once wait for the first and then give its answer.

use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;

use super::{Desk, ScanError, store};
use crate::contract::{Fault, Faults, shorten};
use crate::ids::TenantId;
use crate::tenants;

/// How long an answer is given again.
const KEPT: SignedDuration = SignedDuration::from_hours(48);
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
    pub fn parse(bytes: &[u8]) -> Result<Self, Faults> {
        let text = String::from_utf8_lossy(bytes);
        if (1..=MAX_IDEMPOTENCY_KEY).contains(&bytes.len())
            && bytes.iter().all(u8::is_ascii_graphic)
        {
            return Ok(Self(text.into_owned()));
        }
        let allowed =
            format!("1 to {MAX_IDEMPOTENCY_KEY} visible ASCII characters without white space");
        Err(Fault::new("Idempotency-Key", &text.into(), allowed).into())
    }
}

/// A POST that creates or spends.
pub(crate) struct Post<'a> {
    path: String,
    /// Of the body; without a key nobody compares it.
    digest: [u8; 32],
    key: Option<&'a IdempotencyKey>,
}

impl<'a> Post<'a> {
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

    /// The answer that was given before, if this POST is a repetition. Looked up before the request is checked: what was fine once is
    /// given again, also after its dates have passed.
    pub(crate) async fn repeated<T: DeserializeOwned>(
        &self,
        desk: Desk<'_>,
    ) -> Result<Option<T>, ScanError> {
        let Some(IdempotencyKey(key)) = self.key else {
            return Ok(None);
        };
        let mut conn = desk.pool.acquire().await?;
        let Some(tenant) = tenants::store::find(&mut conn, desk.ring, desk.key, desk.now).await?
        else {
            return Ok(None);
        };
        let kept =
            store::kept_answer(&mut conn, tenant, &self.path, key, kept_since(desk.now)).await?;
        kept.map(|kept| self.again(kept)).transpose()
    }

    /// Takes the key for the work of this transaction. `Some`: another was faster; its answer.
    pub(crate) async fn take<T: DeserializeOwned>(
        &self,
        conn: &mut PgConnection,
        tenant: TenantId,
        now: Timestamp,
    ) -> Result<Option<T>, ScanError> {
        let Some(IdempotencyKey(key)) = self.key else {
            return Ok(None);
        };
        if store::take_key(
            conn,
            tenant,
            &self.path,
            key,
            &self.digest,
            now,
            kept_since(now),
        )
        .await?
        {
            return Ok(None);
        }
        let kept = store::kept_answer(conn, tenant, &self.path, key, kept_since(now))
            .await?
            .ok_or(sqlx::Error::RowNotFound)?;
        self.again(kept).map(Some)
    }

    /// Keeps the answer for repetitions; in the transaction that did the work.
    pub(crate) async fn keep<T: Serialize>(
        &self,
        conn: &mut PgConnection,
        tenant: TenantId,
        answer: &T,
    ) -> Result<(), ScanError> {
        let Some(IdempotencyKey(key)) = self.key else {
            return Ok(());
        };
        let answer =
            serde_json::to_string(answer).map_err(|error| sqlx::Error::Encode(error.into()))?;
        Ok(store::keep_answer(conn, tenant, &self.path, key, &answer).await?)
    }

    fn again<T: DeserializeOwned>(&self, kept: store::KeptAnswer) -> Result<T, ScanError> {
        if kept.body_digest != self.digest {
            let key = self
                .key
                .map(|IdempotencyKey(key)| shorten(key))
                .unwrap_or_default();
            return Err(ScanError::IdempotencyMismatch(key));
        }
        let answer = kept.response.ok_or(sqlx::Error::RowNotFound)?;
        Ok(serde_json::from_value(answer).map_err(|error| sqlx::Error::Decode(error.into()))?)
    }
}

fn kept_since(now: Timestamp) -> Timestamp {
    now.checked_sub(KEPT).unwrap_or(Timestamp::MIN)
}

/// Of a body as canonical JSON, written part by part: a copy of it would be many times as large as its text.
fn digest(body: &Map<String, Value>) -> [u8; 32] {
    let mut hasher = Hasher(Sha256::new());
    // Neither the names and values of JSON nor the hasher can fail.
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

/// The same JSON with the fields of every object in the order of their names.
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
    fn a_digest_is_that_of_the_canonical_text() {
        let body = json!({"b": [{"d": 2, "c": "\u{e9}\n"}, 1.50, null, []], "a": {}});
        let canonical = r#"{"a":{},"b":[{"c":"é\n","d":2},1.5,null,[]]}"#;
        assert_eq!(digest(body), <[u8; 32]>::from(Sha256::digest(canonical)));
    }

    #[test]
    fn bodies_are_equal_whatever_the_order_of_their_fields() {
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
    fn a_key_is_visible_text() {
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
                    .starts_with("`Idempotency-Key` holds")
            );
        }
    }
}
