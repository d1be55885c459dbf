//! Grants: a marketplace key sealed for one scan or monitor, or a webhook secret sealed the same
//! way.
//!
//! XChaCha20-Poly1305 with a random 24-byte nonce. The associated data bind version, ring key,
//! tenant, purpose, grant and expiry, so a row that was moved or changed does not open
//! (security.md, rule 2). The first byte of the ciphertext is the version of this format.

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use jiff::Timestamp;
use rand::Rng as _;
use zeroize::Zeroizing;

use super::master_keys::Keyring;
use crate::ids::{GrantId, TenantId};
use crate::search::CallerKey;

/// Format of the ciphertext and its associated data.
const VERSION: u8 = 1;

/// Why a key is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// For one scan, until it ends.
    Scan,
    /// For the runs of one monitor, until its caller pauses or deletes it.
    Monitor,
    /// Not a caller's key: the secret that signs a webhook's deliveries.
    Webhook,
    /// The URL of a webhook, which often contains a secret.
    WebhookUrl,
}

impl Purpose {
    /// Its value in the column `key_grants.purpose`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Monitor => "monitor",
            Self::Webhook => "webhook",
            Self::WebhookUrl => "webhook_url",
        }
    }

    /// Parses a value of the column `key_grants.purpose`.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Scan, Self::Monitor, Self::Webhook, Self::WebhookUrl]
            .into_iter()
            .find(|purpose| purpose.as_str() == word)
    }
}

/// The data that a sealed key is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantTerms {
    /// Whose key it is.
    pub tenant: TenantId,
    /// The grant's own id.
    pub grant: GrantId,
    /// Why it is stored.
    pub purpose: Purpose,
    /// When it is wiped at the latest, in whole microseconds, the database's precision.
    pub expires_at: Timestamp,
}

/// A key as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedKey {
    /// The ring key that sealed it.
    pub key_id: String,
    /// 24 random bytes.
    pub nonce: Vec<u8>,
    /// The version byte and the ciphertext with its tag.
    pub ciphertext: Vec<u8>,
}

/// Why a sealed key does not open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    /// The ring lacks the key that sealed it.
    #[error("the master key has no entry `{0}`, which sealed this grant")]
    KeyMissing(String),
    /// The row was moved or changed, or is of an unknown version.
    #[error("the grant was moved or changed since it was sealed")]
    Altered,
}

impl GrantTerms {
    /// Seals `key` under the ring's primary.
    pub fn seal(&self, ring: &Keyring, key: &CallerKey) -> SealedKey {
        self.seal_secret(ring, key.expose().as_bytes())
    }

    /// Seals any secret under the ring's primary.
    pub fn seal_secret(&self, ring: &Keyring, secret: &[u8]) -> SealedKey {
        let primary = ring.primary();
        let mut nonce = [0; 24];
        rand::rng().fill_bytes(&mut nonce);
        let bound = self.associated_data(&primary.id);
        let message = Payload {
            msg: secret,
            aad: &bound,
        };
        let sealed = XChaCha20Poly1305::new((&*primary.sealing).into())
            .encrypt(&XNonce::from(nonce), message)
            .expect("sealing fails for messages over 256 GiB only, secrets are short");
        let ciphertext = [&[VERSION], sealed.as_slice()].concat();
        SealedKey {
            key_id: primary.id.clone(),
            nonce: nonce.to_vec(),
            ciphertext,
        }
    }

    /// Opens what [`GrantTerms::seal`] made under the same terms.
    ///
    /// # Errors
    /// When the ring lacks the key, or anything differs from what was sealed.
    pub fn open(&self, ring: &Keyring, sealed: &SealedKey) -> Result<CallerKey, UnsealError> {
        let opened = self.open_secret(ring, sealed)?;
        std::str::from_utf8(&opened)
            .map(CallerKey::new)
            .map_err(|_| UnsealError::Altered)
    }

    /// Opens what [`GrantTerms::seal_secret`] made under the same terms.
    ///
    /// # Errors
    /// When the ring lacks the key, or anything differs from what was sealed.
    pub fn open_secret(
        &self,
        ring: &Keyring,
        sealed: &SealedKey,
    ) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        let ring_key = ring
            .key(&sealed.key_id)
            .ok_or_else(|| UnsealError::KeyMissing(sealed.key_id.clone()))?;
        let nonce: [u8; 24] = sealed
            .nonce
            .as_slice()
            .try_into()
            .map_err(|_| UnsealError::Altered)?;
        let Some((&VERSION, ciphertext)) = sealed.ciphertext.split_first() else {
            return Err(UnsealError::Altered);
        };
        let bound = self.associated_data(&ring_key.id);
        XChaCha20Poly1305::new((&*ring_key.sealing).into())
            .decrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: ciphertext,
                    aad: &bound,
                },
            )
            .map(Zeroizing::new)
            .map_err(|_| UnsealError::Altered)
    }

    /// Version, key id, tenant, purpose, grant id, expiry. Each text follows its length, so that no
    /// two terms have the same bytes.
    fn associated_data(&self, key_id: &str) -> Vec<u8> {
        let mut data = vec![VERSION];
        for text in [key_id, self.purpose.as_str()] {
            data.extend((text.len() as u64).to_be_bytes());
            data.extend(text.as_bytes());
        }
        data.extend(self.tenant.uuid().as_bytes());
        data.extend(self.grant.uuid().as_bytes());
        data.extend(self.expires_at.as_microsecond().to_be_bytes());
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(entries: &str) -> Keyring {
        let entry = |id: &str| format!("{id}:{}", format!("{:02x}", id.as_bytes()[0]).repeat(32));
        Keyring::parse(&entries.split(' ').map(entry).collect::<Vec<_>>().join(",")).unwrap()
    }

    fn terms() -> GrantTerms {
        GrantTerms {
            tenant: TenantId::new(),
            grant: GrantId::new(),
            purpose: Purpose::Scan,
            expires_at: "2027-01-01T00:00:00.123456Z".parse().unwrap(),
        }
    }

    #[test]
    fn a_sealed_key_opens_after_the_primary_changed() {
        let (key, terms) = (CallerKey::new("canary-0123456789"), terms());
        let sealed = terms.seal(&ring("a"), &key);
        assert_eq!(
            terms.open(&ring("a"), &sealed).unwrap().expose(),
            key.expose()
        );
        assert_eq!(
            terms.open(&ring("b a"), &sealed).unwrap().expose(),
            key.expose()
        );
        assert_eq!(
            terms.open(&ring("b"), &sealed).unwrap_err(),
            UnsealError::KeyMissing("a".to_owned())
        );
        assert_ne!(
            terms.seal(&ring("a"), &key),
            sealed,
            "every seal has a nonce of its own"
        );
        assert!(!sealed.ciphertext.windows(6).any(|bytes| bytes == b"canary"));
    }

    #[test]
    fn a_row_that_was_moved_does_not_open() {
        let (ring, terms) = (ring("a"), terms());
        let sealed = terms.seal(&ring, &CallerKey::new("canary"));
        for (moved, what) in [
            (
                GrantTerms {
                    tenant: TenantId::new(),
                    ..terms
                },
                "another tenant",
            ),
            (
                GrantTerms {
                    grant: GrantId::new(),
                    ..terms
                },
                "another grant",
            ),
            (
                GrantTerms {
                    purpose: Purpose::Webhook,
                    ..terms
                },
                "another purpose, of no key",
            ),
            (
                GrantTerms {
                    purpose: Purpose::Monitor,
                    ..terms
                },
                "another purpose",
            ),
            (
                GrantTerms {
                    expires_at: "2027-01-01T00:00:00.123457Z".parse().unwrap(),
                    ..terms
                },
                "a later expiry",
            ),
        ] {
            assert_eq!(
                moved.open(&ring, &sealed).unwrap_err(),
                UnsealError::Altered,
                "{what}"
            );
        }
    }

    #[test]
    fn a_row_that_was_changed_does_not_open() {
        let (ring, terms) = (ring("a b"), terms());
        let sealed = terms.seal(&ring, &CallerKey::new("canary"));
        let mut changed = vec![SealedKey {
            key_id: "b".to_owned(),
            ..sealed.clone()
        }];
        for index in 0..sealed.ciphertext.len() {
            let mut ciphertext = sealed.ciphertext.clone();
            ciphertext[index] ^= 1;
            changed.push(SealedKey {
                ciphertext,
                ..sealed.clone()
            });
        }
        for index in 0..sealed.nonce.len() {
            let mut nonce = sealed.nonce.clone();
            nonce[index] ^= 1;
            changed.push(SealedKey {
                nonce,
                ..sealed.clone()
            });
        }
        changed.push(SealedKey {
            nonce: Vec::new(),
            ciphertext: Vec::new(),
            ..sealed
        });
        for row in changed {
            assert_eq!(
                terms.open(&ring, &row).unwrap_err(),
                UnsealError::Altered,
                "{row:?}"
            );
        }
    }
}
