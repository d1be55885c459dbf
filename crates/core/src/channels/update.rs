//! Updates a channel: a field of the patch replaces the stored one, an absent field stays.

use serde_json::{Map, Value};

use super::store::{self, ChannelColumns};
use super::validate::{errors_across, masked};
use super::{read, send};
use crate::commands::{CommandError, RequestContext};
use crate::contract::channels::{Channel, ChannelKind, ChannelPatch, ChannelStatus};
use crate::contract::{FieldValue as _, ValidationErrors};
use crate::ids::{ChannelId, Kind};
use crate::webhooks::resend::unconfirmed;
use crate::webhooks::{Guard, LockFor, consent, endpoint};

/// Updates a channel. Pending messages go to a new target when they are due; those to an address fail,
/// because a new one has to be confirmed. Held messages get the time of new settings.
///
/// # Errors
/// `ValidationErrors`; `NotFound`; `InvalidState` if a channel whose address is not confirmed is to be
/// active; `LimitExceeded` for codes.
pub async fn update(
    context: RequestContext<'_>,
    guard: Guard,
    id: ChannelId,
    body: &Map<String, Value>,
) -> Result<Channel, CommandError> {
    let patch = ChannelPatch::from_body(body)?;
    let (mut tx, tenant) = context.begin_locked(Kind::Channel).await?;
    let (mut lock, stored) = store::lock(&mut tx, tenant, id, LockFor::Change).await?;
    let errors: ValidationErrors = errors_across(Some(stored.kind), body, guard);
    errors.ok_if_empty(|| Some(()))?;
    let is_given = |name: &str| body.contains_key(name);
    let shown_url = patch.url.as_ref().map(|url| masked(url.as_str()));
    let notify = if is_given("notify") {
        patch.notify.as_ref().map(|notify| notify.to_value())
    } else {
        stored.notify.clone()
    };
    let columns = ChannelColumns {
        name: patch
            .name
            .as_ref()
            .map_or(&stored.name, |name| name.as_str()),
        shown_url: shown_url.as_ref().unwrap_or(&stored.shown_url),
        least_priority: patch.least_priority.unwrap_or(stored.least_priority),
        timezone: patch
            .timezone
            .as_ref()
            .map_or(&stored.timezone, |zone| zone.as_str()),
        notify,
    };
    let moves_held = columns.notify != stored.notify || columns.timezone != stored.timezone;
    store::update(&mut lock, id, &columns, context.now).await?;
    if let Some(url) = &patch.url {
        endpoint::change_url(&mut lock, context.ring, url.as_str()).await?;
    }
    if is_given("token") {
        let token = patch.token.as_ref().map(|token| token.as_str());
        endpoint::change_token(&mut lock, context.ring, token, context.now).await?;
    }
    let is_address = stored.kind == ChannelKind::Email;
    if let Some(url) = patch.url.as_ref().filter(|_| is_address) {
        consent::ask(&mut lock, context.ring, url.as_str(), context.now).await?;
    }
    let is_open = !is_address || consent::is_confirmed(&mut lock).await?;
    match patch.status {
        Some(ChannelStatus::Active) if !is_open => {
            return Err(CommandError::InvalidState(unconfirmed(id, "unconfirmed")));
        }
        Some(ChannelStatus::Active) => endpoint::enable(&mut lock).await?,
        // It is paused already, and its code is on its way.
        Some(ChannelStatus::Paused) if !is_open => {}
        Some(ChannelStatus::Paused) => endpoint::switch_off(&mut lock, context.now).await?,
        None => {}
    }
    if moves_held {
        send::notify_changed(&mut lock, id, context.now).await?;
    }
    let answer = read::read_back(lock.conn(), tenant, id).await?;
    tx.commit().await?;
    Ok(answer)
}
