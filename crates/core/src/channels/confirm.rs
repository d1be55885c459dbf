//! Confirms the address of a channel, and ends that (channels.md, rules 20 to 24).

use serde_json::{Map, Value};
use sqlx::PgPool;
use tokio::sync::Semaphore;

use super::{read, store};
use crate::commands::{CommandError, RequestContext};
use crate::contract::channels::{Channel, ChannelConfirmation, ChannelKind};
use crate::contract::{ValidationError, ValidationErrors};
use crate::db;
use crate::ids::{ChannelId, Kind};
use crate::tenants::Keyring;
use crate::webhooks::consent::{self, CodeVerdict, MAX_WRONG_CODES, NoCodesLink, UnsubscribeLink};
use crate::webhooks::{EndpointLock, EndpointOwner, Guard, LockFor};
use jiff::Timestamp;

/// Requests without a key that use the database at a time: the holder of one link can repeat it at will.
static UNSUBSCRIBING: Semaphore = Semaphore::const_new(4);

/// Mails no code to the address of a link for a year. Whoever has the link may do so. Idempotent.
///
/// # Errors
/// `NotFound` if this service has not made the link.
pub async fn forbid_codes(pool: &PgPool, ring: &Keyring, link: &str) -> Result<(), CommandError> {
    let link = NoCodesLink::open(ring, link).ok_or(Kind::Channel)?;
    let _permit = UNSUBSCRIBING.acquire().await.ok();
    Ok(link.forbid(pool).await?)
}

/// Compares the code of a body with the one that was mailed; without one mails another. A channel that is
/// confirmed stays so.
///
/// # Errors
/// `ValidationErrors`, also for a wrong code, which is counted; `NotFound`; `InvalidState` if the channel
/// has no address, if no code is valid, or if another is asked for an address that is confirmed;
/// `LimitExceeded`.
pub async fn confirm(
    context: RequestContext<'_>,
    guard: Guard,
    id: ChannelId,
    body: &Map<String, Value>,
) -> Result<Channel, CommandError> {
    let given = ChannelConfirmation::from_body(body)?;
    let (mut tx, tenant) = context.begin_locked(Kind::Channel).await?;
    let (mut lock, stored) = store::lock(&mut tx, tenant, id, LockFor::Change).await?;
    if stored.kind != ChannelKind::Email {
        let message = format!("a channel of kind `{}` needs no confirmation", stored.kind);
        return Err(CommandError::InvalidState(message));
    }
    match given.code {
        None if consent::is_confirmed(&mut lock).await? => {
            let message = "the address of this channel is confirmed already";
            return Err(CommandError::InvalidState(message.to_owned()));
        }
        None => {
            guard
                .check_kind(stored.kind)
                .map_err(ValidationErrors::from)?;
            consent::ask_again(&mut lock, context.ring, context.now).await?;
        }
        Some(code) => {
            let verdict = consent::confirm(&mut lock, context.ring, code.as_str(), context.now);
            if verdict.await? == CodeVerdict::Wrong {
                tx.commit().await?;
                let expected =
                    format!("the code of the newest mail; {MAX_WRONG_CODES} wrong ones end it");
                return Err(
                    ValidationErrors::from(ValidationError::secret("code", expected)).into(),
                );
            }
        }
    }
    let answer = read::read_back(lock.conn(), tenant, id).await?;
    tx.commit().await?;
    Ok(answer)
}

/// Ends the confirmation that a link of a mail names: the channel is paused until its address is confirmed
/// again. Whoever has the link may do so. `false`: it has ended already.
///
/// # Errors
/// `NotFound` if this service has not made the link.
pub async fn unsubscribe(
    pool: &PgPool,
    ring: &Keyring,
    link: &str,
    now: Timestamp,
) -> Result<bool, CommandError> {
    let link = UnsubscribeLink::open(ring, link).ok_or(Kind::Channel)?;
    // Never closed.
    let _permit = UNSUBSCRIBING.acquire().await.ok();
    // Most repetitions are of links that have ended: they take no lock.
    if !consent::is_current(pool, &link).await? {
        return Ok(false);
    }
    let mut tx = db::begin(pool).await?;
    let owner = EndpointOwner::Channel(link.channel);
    let lock = EndpointLock::acquire(&mut tx, link.tenant, owner, LockFor::Webhook).await?;
    let is_ended = match lock {
        Some(mut lock) => consent::withdraw(&mut lock, link.confirmed_at, now).await?,
        None => false,
    };
    tx.commit().await?;
    Ok(is_ended)
}
