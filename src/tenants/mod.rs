//! Who calls, and the keys that are held for them (security.md, "Keys").
//!
//! A caller is known by a fingerprint of the marketplace key ([`fingerprint`]); the key itself is held only for ordered work, sealed
//! in a grant ([`grant`]), and destroyed when the work ends. Both hang on the master key, a ring of keys with a primary ([`keyring`]).
//! A key that no marketplace has accepted yet may do little ([`acceptance`]). [`store`] keeps tenants and grants, [`rewrap`] moves them to
//! a new primary, [`rotate`] to another key of the caller, [`relocate`] to another installation. Not here: where a
//! request carries its key (`http`), sending it on (`upstream`).

pub mod acceptance;
mod fingerprint;
mod grant;
pub mod keyring;
pub mod relocate;
pub mod rewrap;
pub mod rotate;
pub mod store;

pub use fingerprint::Fingerprint;
pub use grant::{GrantTerms, Purpose, SealedKey};
pub use keyring::{Keyring, KeyringError};
pub use store::{GrantError, HeldSecret, open_grant, open_secrets};
