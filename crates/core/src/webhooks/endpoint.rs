//! Commands on a monitor's webhook: open, move, switch on, rotate the secret, close; and on the
//! endpoint of a channel.
//!
//! Every command runs in the transaction of a [`MonitorLock`] or [`EndpointLock`]. The caller has checked the URL with
//! the [`Guard`](super::Guard).

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use sqlx::PgConnection;

use super::guard::host;
use super::sign::Secret;
use super::store::endpoints as store;
use super::{EndpointLock, MonitorLock};
use crate::commands::CommandError;
use crate::contract::channels::ChannelKind;
use crate::contract::monitors::{ShownSecret, Webhook};
use crate::contract::webhooks::DeliveryReason;
use crate::db;
use crate::ids::{GrantId, Kind, MonitorId, TenantId};
use crate::tenants::store::{insert_grant, remove_grants, replace_grant};
use crate::tenants::{GrantError, GrantTerms, Keyring, OpenedSecret, Purpose, open_secrets};

/// How long the old secret also signs after a rotation (monitors.md, rule 72).
pub const SECRET_OVERLAP: SignedDuration = SignedDuration::from_hours(24);
/// The most secrets of one endpoint: it allows three rotations in a day.
const MAX_SECRETS: usize = 4;
/// The expiry of a secret that is not rotated: in effect, never.
const NEVER: Timestamp = Timestamp::constant(253_370_764_800, 0);
/// The hosts under which tries at the operator's mail server and relay are counted; no URL has them.
const MAIL_HOST: &str = "smtp:";
const RELAY_HOST: &str = "apprise:";

/// Opens a monitor's webhook. Returns its secret, which is never shown again.
///
/// # Errors
/// When the monitor has one already.
pub async fn open(
    lock: &mut MonitorLock<'_>,
    ring: &Keyring,
    url: &str,
    now: Timestamp,
) -> Result<ShownSecret, CommandError> {
    let secret = Secret::random();
    let mut lock = lock.endpoint();
    let grant = seal(&mut lock, ring, Purpose::Webhook, secret.bytes(), now).await?;
    insert(&mut lock, ring, None, url, &[grant], now).await?;
    Ok(secret.shown())
}

/// Opens a new channel's endpoint, with its token if it has one.
pub async fn open_channel(
    lock: &mut EndpointLock<'_>,
    ring: &Keyring,
    kind: ChannelKind,
    url: &str,
    token: Option<&str>,
    now: Timestamp,
) -> Result<(), CommandError> {
    let mut grants = Vec::new();
    if let Some(token) = token {
        grants.push(seal(lock, ring, Purpose::Webhook, token.as_bytes(), now).await?);
    }
    Ok(insert(lock, ring, Some(kind), url, &grants, now).await?)
}

async fn insert(
    lock: &mut EndpointLock<'_>,
    ring: &Keyring,
    kind: Option<ChannelKind>,
    url: &str,
    secrets: &[GrantId],
    now: Timestamp,
) -> sqlx::Result<()> {
    let sealed_url = seal(lock, ring, Purpose::WebhookUrl, url.as_bytes(), now).await?;
    store::insert(
        lock,
        kind,
        sealed_url,
        counted_host(url).as_deref(),
        secrets,
        now,
    )
    .await
}

/// The host of a target, by which tries in flight are counted.
fn counted_host(target: &str) -> Option<String> {
    match target.split_once("://") {
        None if target.contains('@') => Some(MAIL_HOST.to_owned()),
        Some((scheme, _)) if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) => {
            Some(RELAY_HOST.to_owned())
        }
        _ => host(target),
    }
}

/// Replaces a channel's token, or removes it.
pub async fn change_token(
    lock: &mut EndpointLock<'_>,
    ring: &Keyring,
    token: Option<&str>,
    now: Timestamp,
) -> Result<(), CommandError> {
    let old = store::lock_secrets(lock).await?;
    let old = old.ok_or(Kind::Channel)?;
    let mut new = Vec::new();
    if let Some(token) = token {
        new.push(seal(lock, ring, Purpose::Webhook, token.as_bytes(), now).await?);
    }
    let tenant = lock.tenant();
    remove_grants(lock.conn(), tenant, &old).await?;
    Ok(store::change_secrets(lock, &new).await?)
}

/// Switches an endpoint off at its caller's wish; its pending deliveries fail. Idempotent.
pub async fn switch_off(lock: &mut EndpointLock<'_>, now: Timestamp) -> Result<(), CommandError> {
    store::switch_off(lock, now).await?;
    Ok(store::fail_pending(lock, DeliveryReason::EndpointOff, now).await?)
}

/// Changes the URL and switches the webhook on. Pending deliveries go to the new URL when due.
/// Later failures at the old URL do not count.
///
/// # Errors
/// `NoWebhook`.
pub async fn change_url(
    lock: &mut EndpointLock<'_>,
    ring: &Keyring,
    url: &str,
) -> Result<(), CommandError> {
    let grant = store::change_url(lock, counted_host(url).as_deref())
        .await?
        .ok_or(CommandError::NoWebhook)?;
    let terms = GrantTerms {
        tenant: lock.tenant(),
        grant,
        purpose: Purpose::WebhookUrl,
        expires_at: NEVER,
    };
    let sealed = terms.seal_secret(ring, url.as_bytes());
    Ok(replace_grant(lock.conn(), &terms, &sealed).await?)
}

/// Switches the webhook on and resets its failures. Failed deliveries stay failed unless they are
/// resent. Idempotent.
///
/// # Errors
/// `NoWebhook`.
pub async fn enable(lock: &mut EndpointLock<'_>) -> Result<(), CommandError> {
    require_endpoint(store::enable(lock).await?)
}

/// Closes the webhook: destroys its secrets and fails pending deliveries. Ended deliveries stay.
/// Idempotent.
pub async fn close(lock: &mut MonitorLock<'_>, now: Timestamp) -> Result<(), CommandError> {
    let mut lock = lock.endpoint();
    // The endpoint's row first: it is locked before its deliveries everywhere.
    store::remove(&mut lock).await?;
    Ok(store::fail_pending(&mut lock, DeliveryReason::EndpointClosed, now).await?)
}

/// [`close`] before the deletion of the monitor, which deletes its deliveries. Those to channels are locked by
/// their endpoints: a lease, which locks several endpoints and then a delivery of each, would deadlock with
/// the deletion otherwise.
pub async fn close_for_deletion(
    lock: &mut MonitorLock<'_>,
    now: Timestamp,
) -> Result<(), CommandError> {
    close(lock, now).await?;
    Ok(store::lock_channels_of(lock).await?)
}

/// Rotates the secret. Returns the new one, which is never shown again, and the time until which
/// the old one also signs.
///
/// # Errors
/// `NoWebhook`; `InvalidState` after too many rotations within a day; `Internal` when an old secret cannot be decrypted.
pub async fn rotate_secret(
    lock: &mut MonitorLock<'_>,
    ring: &Keyring,
    now: Timestamp,
) -> Result<(ShownSecret, Timestamp), CommandError> {
    let mut lock = lock.endpoint();
    let lock = &mut lock;
    let tenant = lock.tenant();
    let grants = store::lock_secrets(lock)
        .await?
        .ok_or(CommandError::NoWebhook)?;
    let opened = open_grants(lock, ring, tenant, &grants, now).await?;
    if opened.len() >= MAX_SECRETS {
        let message = "the webhook's secret was rotated three times within a day and all secrets still sign; \
                       retry after the first of them has expired";
        return Err(CommandError::InvalidState(message.to_owned()));
    }
    let old_until = db::truncate_to_micros(now.checked_add(SECRET_OVERLAP).unwrap_or(NEVER));
    if let Some(old) = opened.first() {
        let terms = GrantTerms {
            tenant,
            grant: old.grant,
            purpose: Purpose::Webhook,
            expires_at: old_until,
        };
        replace_grant(lock.conn(), &terms, &terms.seal_secret(ring, &old.secret)).await?;
    }
    let secret = Secret::random();
    let mut remaining = vec![seal(lock, ring, Purpose::Webhook, secret.bytes(), now).await?];
    remaining.extend(opened.iter().map(|opened| opened.grant));
    let ended: Vec<_> = grants
        .into_iter()
        .filter(|grant| !remaining.contains(grant))
        .collect();
    remove_grants(lock.conn(), tenant, &ended).await?;
    store::change_secrets(lock, &remaining).await?;
    Ok((secret.shown(), old_until))
}

/// The secret of a webhook that was never rotated; `None` otherwise, or if there is no webhook.
///
/// # Errors
/// `Internal` when it cannot be decrypted.
pub async fn only_secret(
    lock: &mut MonitorLock<'_>,
    ring: &Keyring,
    now: Timestamp,
) -> Result<Option<ShownSecret>, CommandError> {
    let mut lock = lock.endpoint();
    let lock = &mut lock;
    let tenant = lock.tenant();
    let grants = store::lock_secrets(lock).await?.unwrap_or_default();
    if grants.len() != 1 {
        return Ok(None);
    }
    let mut opened = open_grants(lock, ring, tenant, &grants, now).await?;
    let only = opened.pop();
    Ok(only.map(|only| Secret::from_bytes(only.secret).shown()))
}

/// The target of a channel.
///
/// # Errors
/// `NotFound` if it does not exist.
pub(super) async fn url(
    lock: &mut EndpointLock<'_>,
    ring: &Keyring,
    now: Timestamp,
) -> Result<String, CommandError> {
    let tenant = lock.tenant();
    let grant = store::url_grant(lock).await?;
    let grant = grant.ok_or(Kind::Channel)?;
    let opened = open_grants(lock, ring, tenant, &[grant], now).await?;
    Ok(opened.iter().map(url_of).collect())
}

/// Decrypts the secrets of a webhook or a channel.
async fn open_grants(
    lock: &mut EndpointLock<'_>,
    ring: &Keyring,
    tenant: TenantId,
    grants: &[GrantId],
    now: Timestamp,
) -> Result<Vec<OpenedSecret>, CommandError> {
    let opened = open_secrets(lock.conn(), ring, tenant, grants, now).await;
    opened.map_err(|error| match error {
        GrantError::Database(error) => error.into(),
        error => CommandError::Internal(format!("a secret cannot be decrypted: {error}")),
    })
}

/// The webhook of a monitor, if it has one.
pub async fn show(
    conn: &mut PgConnection,
    ring: &Keyring,
    tenant: TenantId,
    monitor: MonitorId,
    now: Timestamp,
) -> sqlx::Result<Option<Webhook>> {
    let mut shown = show_all(conn, ring, tenant, &[monitor], now).await?;
    Ok(shown.remove(&monitor))
}

/// The webhooks of those monitors that have one, by monitor.
///
/// # Errors
/// `Decode` when a URL cannot be decrypted.
pub async fn show_all(
    conn: &mut PgConnection,
    ring: &Keyring,
    tenant: TenantId,
    monitors: &[MonitorId],
    now: Timestamp,
) -> sqlx::Result<HashMap<MonitorId, Webhook>> {
    let sealed = store::sealed(conn, tenant, monitors).await?;
    let grants: Vec<_> = sealed.iter().map(|(_, grant, _)| *grant).collect();
    let opened = open_secrets(conn, ring, tenant, &grants, now)
        .await
        .map_err(|error| match error {
            GrantError::Database(error) => error,
            error => sqlx::Error::Decode(error.into()),
        })?;
    let urls: HashMap<_, _> = opened
        .iter()
        .map(|opened| (opened.grant, url_of(opened)))
        .collect();
    let webhooks = sealed.into_iter().map(|(monitor, grant, webhook)| {
        let url = urls.get(&grant).cloned().unwrap_or_default();
        (monitor, Webhook { url, ..webhook })
    });
    Ok(webhooks.collect())
}

/// The URL that a grant held.
pub(super) fn url_of(opened: &OpenedSecret) -> String {
    String::from_utf8_lossy(&opened.secret).into_owned()
}

async fn seal(
    lock: &mut EndpointLock<'_>,
    ring: &Keyring,
    purpose: Purpose,
    secret: &[u8],
    now: Timestamp,
) -> sqlx::Result<GrantId> {
    let terms = GrantTerms {
        tenant: lock.tenant(),
        grant: GrantId::new(),
        purpose,
        expires_at: NEVER,
    };
    let sealed = terms.seal_secret(ring, secret);
    insert_grant(lock.conn(), &terms, &sealed, now).await?;
    Ok(terms.grant)
}

fn require_endpoint(found: bool) -> Result<(), CommandError> {
    if found {
        Ok(())
    } else {
        Err(CommandError::NoWebhook)
    }
}
