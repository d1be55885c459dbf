//! Callers and their stored keys (security.md, rules 1 to 10).
//!
//! A keyed digest of the marketplace key identifies its caller ([`fingerprint`]). farescan stores
//! the key itself only for submitted work, sealed in a grant ([`sealed_key`]), and destroys it when the
//! work ends. Digest and seal use the master key, a ring of keys with a primary ([`master_keys`]). A
//! key that no marketplace has accepted yet may do little ([`acceptance`]). [`store`] reads and
//! writes tenants and grants. [`rewrap`] seals grants under a new primary, [`rotate`] under another
//! key of the caller; [`relocate`] moves a caller to another installation. [`BrowserSession`] is the
//! key sealed for a cookie of the dashboard, which no table stores. [`proof`] makes digests that only
//! this service can make. `api` finds the key in a request; `upstream` sends it.

pub mod acceptance;
mod browser_session;
mod fingerprint;
pub mod master_keys;
pub mod proof;
pub mod relocate;
pub mod rewrap;
pub mod rotate;
mod sealed_key;
pub mod store;

pub use browser_session::{BrowserSession, SessionError, TOKEN_BYTES};
pub use fingerprint::Fingerprint;
pub use master_keys::{Keyring, KeyringError};
pub use sealed_key::{GrantTerms, Purpose, SealedKey};
pub use store::{GrantError, OpenedSecret, open_grant, open_secrets};
