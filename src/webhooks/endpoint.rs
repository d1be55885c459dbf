//! A monitor's webhook: opened, moved, switched on again, given a new secret, closed.
//!
//! Every function that changes it works in the transaction of a [`MonitorLock`]. A URL was checked by the [`Guard`](super::Guard)
//! before.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use sqlx::PgConnection;

use super::sign::Secret;
use super::store::endpoints as store;
use super::{MonitorLock, WebhookError};
use crate::contract::webhooks::{ShownSecret, Webhook};
use crate::db;
use crate::ids::{GrantId, MonitorId, TenantId};
use crate::tenants::store::{insert_grant, remove_grants, replace_grant};
use crate::tenants::{GrantTerms, Keyring, Purpose, open_secrets};

/// How long the old secret signs beside the new one (jobs-api, "Monitors").
pub const OVERLAP: SignedDuration = SignedDuration::from_hours(24);
/// The most secrets that one endpoint signs with: three rotations in a day.
const MOST_SECRETS: usize = 4;
/// When a secret that nobody replaces ends: not in the life of this program.
const NEVER: Timestamp = Timestamp::constant(253_370_764_800, 0);

/// Opens a monitor's webhook; its secret is shown now and never again.
///
/// # Errors
/// When it has one already, or the database does not answer.
pub async fn open(
    lock: &mut MonitorLock<'_>,
    ring: &Keyring,
    url: &str,
    now: Timestamp,
) -> Result<ShownSecret, WebhookError> {
    let secret = Secret::random();
    let grant = keep(lock, ring, &secret, now).await?;
    store::insert(lock, url, grant, now).await?;
    Ok(secret.shown())
}

/// Moves it. What is pending goes to the new place, at its own time; one that was switched off is on again. What fails at the old place from
/// now on is no failure of the new one.
///
/// # Errors
/// [`WebhookError::NoEndpoint`], or when the database does not answer.
pub async fn change_url(lock: &mut MonitorLock<'_>, url: &str) -> Result<(), WebhookError> {
    found(store::change_url(lock, url).await?)
}

/// Switches it on again, with a clean slate. What failed meanwhile stays failed until it is sent again. On one that is on it changes nothing.
///
/// # Errors
/// [`WebhookError::NoEndpoint`], or when the database does not answer.
pub async fn enable(lock: &mut MonitorLock<'_>) -> Result<(), WebhookError> {
    found(store::enable(lock).await?)
}

/// Closes it: its secrets are destroyed, and what is pending has failed. What was delivered stays on record. Again is fine.
///
/// # Errors
/// When the database does not answer.
pub async fn close(lock: &mut MonitorLock<'_>, now: Timestamp) -> Result<(), WebhookError> {
    // The endpoint's row first: whoever is at a delivery of it has it locked.
    store::remove(lock).await?;
    Ok(store::fail_pending(lock, now).await?)
}

/// A new secret, shown now and never again; and until when the old one signs too.
///
/// # Errors
/// [`WebhookError::NoEndpoint`]; `InvalidState` when it was given too many within a day; when the old one does not open.
pub async fn rotate_secret(
    lock: &mut MonitorLock<'_>,
    ring: &Keyring,
    now: Timestamp,
) -> Result<(ShownSecret, Timestamp), WebhookError> {
    let tenant = lock.tenant();
    let named = store::lock_secrets(lock)
        .await?
        .ok_or(WebhookError::NoEndpoint)?;
    let held = open_secrets(lock.conn(), ring, tenant, &named, now)
        .await
        .map_err(|error| match error {
            crate::tenants::GrantError::Database(error) => error.into(),
            error => WebhookError::Secret(error.to_string()),
        })?;
    if held.len() >= MOST_SECRETS {
        let message = "this webhook was given three new secrets within a day, and still signs with each of them; wait for the \
                       first of them to end";
        return Err(WebhookError::InvalidState(message.to_owned()));
    }
    let old_until = db::kept_time(now.checked_add(OVERLAP).unwrap_or(NEVER));
    if let Some(old) = held.first() {
        let terms = GrantTerms {
            tenant,
            grant: old.grant,
            purpose: Purpose::Webhook,
            expires_at: old_until,
        };
        replace_grant(lock.conn(), &terms, &terms.seal_secret(ring, &old.secret)).await?;
    }
    let secret = Secret::random();
    let mut kept = vec![keep(lock, ring, &secret, now).await?];
    kept.extend(held.iter().map(|held| held.grant));
    let ended: Vec<_> = named
        .into_iter()
        .filter(|grant| !kept.contains(grant))
        .collect();
    remove_grants(lock.conn(), tenant, &ended).await?;
    store::change_secrets(lock, &kept).await?;
    Ok((secret.shown(), old_until))
}

/// What a monitor shows of it; `None`: it has none.
///
/// # Errors
/// When the database does not answer.
pub async fn show(
    conn: &mut PgConnection,
    tenant: TenantId,
    monitor: MonitorId,
) -> sqlx::Result<Option<Webhook>> {
    Ok(store::show(conn, tenant, &[monitor])
        .await?
        .pop()
        .map(|(_, webhook)| webhook))
}

/// The webhooks of those monitors that have one.
///
/// # Errors
/// When the database does not answer.
pub async fn show_all(
    conn: &mut PgConnection,
    tenant: TenantId,
    monitors: &[MonitorId],
) -> sqlx::Result<HashMap<MonitorId, Webhook>> {
    Ok(store::show(conn, tenant, monitors)
        .await?
        .into_iter()
        .collect())
}

async fn keep(
    lock: &mut MonitorLock<'_>,
    ring: &Keyring,
    secret: &Secret,
    now: Timestamp,
) -> sqlx::Result<GrantId> {
    let terms = GrantTerms {
        tenant: lock.tenant(),
        grant: GrantId::new(),
        purpose: Purpose::Webhook,
        expires_at: NEVER,
    };
    insert_grant(
        lock.conn(),
        &terms,
        &terms.seal_secret(ring, secret.bytes()),
        now,
    )
    .await?;
    Ok(terms.grant)
}

fn found(found: bool) -> Result<(), WebhookError> {
    if found {
        Ok(())
    } else {
        Err(WebhookError::NoEndpoint)
    }
}
