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
use sqlx::{PgConnection, Postgres, Transaction};

use super::{CommandError, Replayable, RequestContext, store};
use crate::contract::{ValidationError, ValidationErrors, shorten};
use crate::ids::TenantId;

/// How long a response is stored (scans.md, rule 22).
pub const IDEMPOTENCY_RETENTION: SignedDuration = SignedDuration::from_hours(48);
/// The longest key, in characters.
pub const MAX_IDEMPOTENCY_KEY: usize = 255;

/// A caller's `Idempotency-Key`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
pub struct IdempotentRequest<'a> {
    path: String,
    /// Of the body; unused without a key.
    digest: [u8; 32],
    key: Option<&'a IdempotencyKey>,
}

impl<'a> IdempotentRequest<'a> {
    pub fn new(path: String, body: &Map<String, Value>, key: Option<&'a IdempotencyKey>) -> Self {
        Self {
            path,
            digest: if key.is_some() { digest(body) } else { [0; 32] },
            key,
        }
    }

    /// The stored response, if this POST is a repetition. Call it before the request is checked: a
    /// repetition succeeds even if its dates have passed since.
    pub async fn find_response<T: DeserializeOwned>(
        &self,
        context: RequestContext<'_>,
    ) -> Result<Option<Replayable<T>>, CommandError> {
        if self.key.is_none() {
            return Ok(None);
        }
        let mut conn = context.pool.acquire().await?;
        let tenant = context.find_tenant(&mut conn).await?;
        self.find_response_of(&mut conn, tenant, context.now).await
    }

    /// As [`Self::find_response`], where the caller was looked up already.
    pub async fn find_response_of<T: DeserializeOwned>(
        &self,
        conn: &mut PgConnection,
        tenant: Option<TenantId>,
        now: Timestamp,
    ) -> Result<Option<Replayable<T>>, CommandError> {
        let (Some(IdempotencyKey(key)), Some(tenant)) = (self.key, tenant) else {
            return Ok(None);
        };
        let since = retained_since(now);
        let stored = store::stored_response(conn, tenant, &self.path, key, since).await?;
        stored.map(|stored| self.replay(stored)).transpose()
    }

    /// Returns the stored response of a repetition, or does the work, as by [`Self::run`]. A caller without a
    /// tenant gets `unknown`.
    pub async fn carry_out<T: Serialize + DeserializeOwned>(
        &self,
        context: RequestContext<'_>,
        unknown: impl Into<CommandError>,
        work: impl AsyncFnOnce(&mut PgConnection, TenantId) -> Result<T, CommandError>,
    ) -> Result<Replayable<T>, CommandError> {
        if let Some(replay) = self.find_response(context).await? {
            return Ok(replay);
        }
        let (tx, tenant) = context.begin_locked(unknown).await?;
        let work = async |conn: &mut PgConnection| work(conn, tenant).await;
        self.run(context, tx, tenant, work).await
    }

    /// Does the work and commits it with its response, for repetitions. If a concurrent equal
    /// request was faster, it returns the response of that one.
    ///
    /// `work` gets the transaction `tx` of `tenant`, which must be locked. The row of the key is
    /// locked after the tenant and before everything that `work` locks.
    pub async fn run<T: Serialize + DeserializeOwned>(
        &self,
        context: RequestContext<'_>,
        mut tx: Transaction<'static, Postgres>,
        tenant: TenantId,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, CommandError>,
    ) -> Result<Replayable<T>, CommandError> {
        if let Some(replay) = self.reserve(&mut tx, tenant, context.now).await? {
            return Ok(replay);
        }
        let response = work(&mut tx).await?;
        if let Some(IdempotencyKey(key)) = self.key {
            let response = serde_json::to_string(&response)
                .map_err(|error| sqlx::Error::Encode(error.into()))?;
            store::store_response(&mut tx, tenant, &self.path, key, &response).await?;
        }
        tx.commit().await.map_err(CommandError::CommitFailed)?;
        Ok(Replayable {
            response,
            replayed: false,
        })
    }

    /// Reserves the key. `Some`: the response of a concurrent request that was faster.
    async fn reserve<T: DeserializeOwned>(
        &self,
        conn: &mut PgConnection,
        tenant: TenantId,
        now: Timestamp,
    ) -> Result<Option<Replayable<T>>, CommandError> {
        let Some(IdempotencyKey(key)) = self.key else {
            return Ok(None);
        };
        let since = retained_since(now);
        if store::reserve_key(conn, tenant, &self.path, key, &self.digest, now, since).await? {
            return Ok(None);
        }
        let stored = store::stored_response(conn, tenant, &self.path, key, since)
            .await?
            .ok_or(sqlx::Error::RowNotFound)?;
        self.replay(stored).map(Some)
    }

    fn replay<T: DeserializeOwned>(
        &self,
        stored: store::StoredResponse,
    ) -> Result<Replayable<T>, CommandError> {
        if stored.body_digest != self.digest {
            let key = self
                .key
                .map(|IdempotencyKey(key)| shorten(key))
                .unwrap_or_default();
            return Err(CommandError::IdempotencyMismatch(key));
        }
        let response = stored.response.ok_or(sqlx::Error::RowNotFound)?;
        Ok(Replayable {
            response: serde_json::from_value(response)
                .map_err(|error| sqlx::Error::Decode(error.into()))?,
            replayed: true,
        })
    }
}

fn retained_since(now: Timestamp) -> Timestamp {
    now.checked_sub(IDEMPOTENCY_RETENTION)
        .unwrap_or(Timestamp::MIN)
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
