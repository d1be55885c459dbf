//! Whether the reader of an address wants its mails (channels.md, rules 19 to 25; decision 59).
//!
//! ```text
//!  ask ─► a mail with a code ─► confirm ─► messages ─► withdraw, from any of them ─► ask …
//! ```
//!
//! A code is made by the try that mails it, and only its keyed digest is stored. A link that unsubscribes
//! is a keyed digest as well, of the address's present confirmation: no table has it, and it ends with
//! that. Not here: what the mails say (`notices`), their sending ([`mail`](super::mail)).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use sqlx::PgPool;
use uuid::Uuid;

use super::store::CONFIRM_EVENT;
use super::store::consent as store;
use super::store::endpoints::fail_pending;
use super::store::mailed;
use super::{EndpointLock, EndpointOwner, Outgoing, endpoint, enqueue};
use crate::commands::CommandError;
use crate::contract::channels::{CODE_ALPHABET, CODE_CHARS};
use crate::contract::webhooks::DeliveryReason;
use crate::ids::{ChannelId, Kind, TenantId};
use crate::notices;
use crate::tenants::Keyring;
use crate::tenants::proof::{self, PROOF_BYTES};

/// How long a code is valid.
pub const CODE_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// How many wrong codes end a code: of 2^40 codes, a hundred guesses a day find one in 30 million years.
pub const MAX_WRONG_CODES: i16 = 5;
/// The shortest time between two codes of a channel.
const ASK_INTERVAL: SignedDuration = SignedDuration::from_mins(1);
/// The most codes of a caller in a day: they go to people who may not have asked for them.
pub const MAX_CODES_A_DAY: i32 = 20;
/// The most codes of an address within seven days, over all callers, while none is entered: whoever has many
/// keys could otherwise mail a stranger as often.
const MAX_CODES_OF_ADDRESS: i64 = 3;

/// What became of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeVerdict {
    /// The address is confirmed, now or before.
    Confirmed,
    /// It is another code. Commit: it is counted.
    Wrong,
}

/// Ends what was confirmed, and mails a code to the address of a locked channel. Until it is confirmed the
/// channel is switched off, and its pending messages fail.
///
/// # Errors
/// `LimitExceeded` within a minute of the channel's last code, after [`MAX_CODES_A_DAY`] of the caller, and
/// after three of the address or while its reader wants none. Roll back then.
pub async fn ask(
    lock: &mut EndpointLock<'_>,
    ring: &Keyring,
    address: &str,
    now: Timestamp,
) -> Result<(), CommandError> {
    let EndpointOwner::Channel(channel) = lock.owner() else {
        return Err(Kind::Channel.into());
    };
    let last = store::lock_asked_at(lock).await?;
    let left = last.map(|last| {
        ASK_INTERVAL
            .saturating_sub(now.duration_since(last))
            .min(ASK_INTERVAL)
    });
    if let Some(wait) = left.and_then(|left| std::time::Duration::try_from(left).ok())
        && !wait.is_zero()
    {
        let seconds = wait.as_secs().max(1);
        return Err(CommandError::LimitExceeded {
            message: format!("an address gets at most one code a minute; retry after {seconds} s"),
            retry_after: wait,
        });
    }
    if let Some(wait) = store::count_code(lock, MAX_CODES_A_DAY).await? {
        return Err(CommandError::LimitExceeded {
            message: format!(
                "this account has had {MAX_CODES_A_DAY} codes mailed within a day; retry after {} s",
                wait.as_secs().max(1)
            ),
            retry_after: wait,
        });
    }
    let digests = address_digests(ring, address);
    if let Some(wait) = mailed::count_code(lock, &digests, MAX_CODES_OF_ADDRESS).await? {
        return Err(CommandError::LimitExceeded {
            message: format!(
                "an address gets at most {MAX_CODES_OF_ADDRESS} codes within 7 days while none of them is entered, and none if its reader \
                 wants none; retry after {} s",
                wait.as_secs().max(1)
            ),
            retry_after: wait,
        });
    }
    store::begin(lock, now).await?;
    fail_pending(lock, DeliveryReason::EndpointOff, now).await?;
    let message = notices::confirmation(channel, now);
    enqueue(lock, &Outgoing::new(CONFIRM_EVENT), &message, now).await?;
    Ok(())
}

/// Mails another code to the address of a locked channel.
///
/// # Errors
/// As [`ask`].
pub async fn ask_again(
    lock: &mut EndpointLock<'_>,
    ring: &Keyring,
    now: Timestamp,
) -> Result<(), CommandError> {
    let address = endpoint::url(lock, ring, now).await?;
    ask(lock, ring, &address, now).await
}

/// Compares a code with the one that was mailed last, and switches the channel on if it is that.
///
/// # Errors
/// `InvalidState` if no code is valid.
pub async fn confirm(
    lock: &mut EndpointLock<'_>,
    ring: &Keyring,
    code: &str,
    now: Timestamp,
) -> Result<CodeVerdict, CommandError> {
    let EndpointOwner::Channel(channel) = lock.owner() else {
        return Err(Kind::Channel.into());
    };
    let mailed = store::lock_code(lock).await?;
    let mailed = mailed.ok_or(Kind::Channel)?;
    if mailed.is_confirmed {
        return Ok(CodeVerdict::Confirmed);
    }
    let is_valid =
        mailed.until.is_some_and(|until| now < until) && mailed.failures < MAX_WRONG_CODES;
    let Some(digest) = mailed.digest.filter(|_| is_valid) else {
        return Err(CommandError::InvalidState(format!(
            "no code of this channel is valid: a code ends after 24 hours, {MAX_WRONG_CODES} wrong ones or a new one, and is valid once \
             its mail is sent; POST /v1/channels/{channel}/confirm with {{}} mails another"
        )));
    };
    if !is_code(ring, lock.tenant(), channel, code, &digest) {
        store::count_wrong(lock).await?;
        return Ok(CodeVerdict::Wrong);
    }
    let address = endpoint::url(lock, ring, now).await?;
    mailed::forget_codes(lock, &address_digests(ring, &address)).await?;
    store::confirm(lock, now).await?;
    // A second copy of the mail with the code.
    fail_pending(lock, DeliveryReason::EndpointOff, now).await?;
    Ok(CodeVerdict::Confirmed)
}

/// Whether the address of a locked channel is confirmed.
pub async fn is_confirmed(lock: &mut EndpointLock<'_>) -> sqlx::Result<bool> {
    let mailed = store::lock_code(lock).await?;
    Ok(mailed.is_some_and(|mailed| mailed.is_confirmed))
}

/// A new code.
pub(super) fn new_code() -> String {
    let random: [u8; CODE_CHARS] = rand::random();
    let one = |byte: u8| char::from(CODE_ALPHABET[usize::from(byte) % CODE_ALPHABET.len()]);
    random.map(one).into_iter().collect()
}

/// What is stored of a code.
pub(super) fn code_digest(
    ring: &Keyring,
    tenant: TenantId,
    channel: ChannelId,
    code: &str,
) -> [u8; PROOF_BYTES] {
    proof::make(ring, "code", &code_parts(&(tenant, channel), code))
}

/// What a code belongs to, and itself.
fn code_parts<'a>((tenant, channel): &'a (TenantId, ChannelId), code: &'a str) -> [&'a [u8]; 3] {
    [tenant.as_bytes(), channel.as_bytes(), code.as_bytes()]
}

fn is_code(
    ring: &Keyring,
    tenant: TenantId,
    channel: ChannelId,
    code: &str,
    digest: &[u8],
) -> bool {
    proof::check(ring, "code", &code_parts(&(tenant, channel), code), digest)
}

/// What is stored of an address whose codes are counted, under each key of the ring.
fn address_digests(ring: &Keyring, address: &str) -> Vec<Vec<u8>> {
    let address = address.to_ascii_lowercase();
    proof::make_all(ring, "address", &[address.as_bytes()])
}

/// Whether the reader of an address wants no code.
pub(super) async fn is_refused(pool: &PgPool, ring: &Keyring, address: &str) -> sqlx::Result<bool> {
    mailed::is_refused(pool, &address_digests(ring, address)).await
}

/// The link by which the reader of an address forbids further codes: what its row is found by, and a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoCodesLink([u8; PROOF_BYTES]);

impl NoCodesLink {
    /// The end of the link: 43 characters.
    pub(super) fn seal(ring: &Keyring, address: &str) -> String {
        let address = address.to_ascii_lowercase();
        let digest = proof::make(ring, "address", &[address.as_bytes()]);
        let proof = proof::make(ring, "no-codes", &[&digest]);
        URL_SAFE_NO_PAD.encode([digest, proof].concat())
    }

    /// Reads the end of a link; `None` if this service has not made it. Needs no database.
    pub fn open(ring: &Keyring, text: &str) -> Option<Self> {
        if text.len() > 4 * PROOF_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (digest, proof) = bytes.split_first_chunk::<PROOF_BYTES>()?;
        proof::check(ring, "no-codes", &[digest], proof).then_some(Self(*digest))
    }

    /// Mails no code to the address for a year. Idempotent.
    pub async fn forbid(self, pool: &PgPool) -> sqlx::Result<()> {
        mailed::refuse(pool, &self.0).await
    }
}

/// What a link that unsubscribes names: a confirmation of a channel's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsubscribeLink {
    /// Whose channel it is.
    pub tenant: TenantId,
    /// The channel.
    pub channel: ChannelId,
    /// When its address was confirmed, in whole microseconds.
    pub confirmed_at: Timestamp,
}

const ID_BYTES: usize = 16;
const TIME_BYTES: usize = 8;

impl UnsubscribeLink {
    /// The end of the link: 75 characters.
    pub fn seal(&self, ring: &Keyring) -> String {
        let named = self.bytes();
        let proof = proof::make(ring, "unsubscribe", &[&named]);
        URL_SAFE_NO_PAD.encode([named.as_slice(), &proof].concat())
    }

    /// Reads the end of a link; `None` if this service has not made it. Needs no database.
    pub fn open(ring: &Keyring, text: &str) -> Option<Self> {
        if text.len() > 2 * (2 * ID_BYTES + TIME_BYTES + PROOF_BYTES) {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (named, proof) = bytes.split_at_checked(2 * ID_BYTES + TIME_BYTES)?;
        if !proof::check(ring, "unsubscribe", &[named], proof) {
            return None;
        }
        let (tenant, rest) = named.split_first_chunk::<ID_BYTES>()?;
        let (channel, time) = rest.split_first_chunk::<ID_BYTES>()?;
        let time = i64::from_be_bytes(time.try_into().ok()?);
        Some(Self {
            tenant: Uuid::from_bytes(*tenant).into(),
            channel: Uuid::from_bytes(*channel).into(),
            confirmed_at: Timestamp::from_microsecond(time).ok()?,
        })
    }

    fn bytes(&self) -> Vec<u8> {
        let time = self.confirmed_at.as_microsecond().to_be_bytes();
        [
            self.tenant.uuid().as_bytes().as_slice(),
            self.channel.uuid().as_bytes(),
            &time,
        ]
        .concat()
    }
}

/// Whether the confirmation that a link names has not ended.
pub async fn is_current(pool: &PgPool, link: &UnsubscribeLink) -> sqlx::Result<bool> {
    store::is_current(pool, link.tenant, link.channel, link.confirmed_at).await
}

/// Ends the confirmation that a link names and fails what is pending; `false`: it has ended already.
pub async fn withdraw(
    lock: &mut EndpointLock<'_>,
    confirmed_at: Timestamp,
    now: Timestamp,
) -> Result<bool, CommandError> {
    let is_ended = store::withdraw(lock, confirmed_at, now).await?;
    if is_ended {
        fail_pending(lock, DeliveryReason::EndpointOff, now).await?;
    }
    Ok(is_ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(ids: &str) -> Keyring {
        let entry = |id: &str| format!("{id}:{}", format!("{:02x}", id.as_bytes()[0]).repeat(32));
        Keyring::parse(&ids.split(' ').map(entry).collect::<Vec<_>>().join(",")).unwrap()
    }

    #[test]
    fn a_link_opens_under_its_ring_alone_and_not_changed() {
        let link = UnsubscribeLink {
            tenant: TenantId::new(),
            channel: ChannelId::new(),
            confirmed_at: "2026-12-01T08:00:00.123456Z".parse().unwrap(),
        };
        let text = link.seal(&ring("a"));
        assert_eq!(text.len(), 75);
        assert_eq!(UnsubscribeLink::open(&ring("b a"), &text), Some(link));
        assert_eq!(UnsubscribeLink::open(&ring("b"), &text), None);
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 1;
            let changed = URL_SAFE_NO_PAD.encode(changed);
            assert_eq!(UnsubscribeLink::open(&ring("a"), &changed), None, "{index}");
        }
        for other in [
            "",
            "x",
            &text[..40],
            &format!("{text}AAAA"),
            &"A".repeat(5_000),
        ] {
            assert_eq!(UnsubscribeLink::open(&ring("a"), other), None);
        }
    }

    #[test]
    fn a_link_against_codes_names_no_address() {
        let text = NoCodesLink::seal(&ring("a"), "Reader@Example.com");
        assert_eq!(text.len(), 43);
        assert_eq!(text, NoCodesLink::seal(&ring("a"), "reader@example.com"));
        let digests = address_digests(&ring("b a"), "READER@example.com");
        let opened = NoCodesLink::open(&ring("b a"), &text).unwrap();
        assert_eq!(opened.0.as_slice(), digests[1]);
        assert_eq!(NoCodesLink::open(&ring("b"), &text), None);
        let other = if text.starts_with('A') { "B" } else { "A" };
        for wrong in [
            "",
            "x",
            &text[..42],
            &format!("{other}{}", &text[1..]),
            &"A".repeat(5_000),
        ] {
            assert_eq!(NoCodesLink::open(&ring("a"), wrong), None, "{wrong}");
        }
    }

    #[test]
    fn codes_are_random_and_belong_to_their_channel() {
        let (tenant, channel) = (TenantId::new(), ChannelId::new());
        let (one, other) = (new_code(), new_code());
        assert_eq!(one.len(), CODE_CHARS);
        assert_ne!(one, other);
        let digest = code_digest(&ring("a"), tenant, channel, &one);
        assert!(is_code(&ring("b a"), tenant, channel, &one, &digest));
        assert!(!is_code(&ring("a"), tenant, channel, &other, &digest));
        assert!(!is_code(
            &ring("a"),
            tenant,
            ChannelId::new(),
            &one,
            &digest
        ));
    }
}
