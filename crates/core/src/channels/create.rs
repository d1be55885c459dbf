//! Creates a channel in one transaction.

use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::read;
use super::store::{self, ChannelColumns};
use super::validate::{errors_across, masked};
use crate::commands::{
    CommandError, IdempotencyKey, IdempotentRequest, Replayable, RequestContext,
};
use crate::contract::channels::{Channel, ChannelKind, ChannelRequest};
use crate::contract::{FieldValue as _, ValidationErrors};
use crate::db;
use crate::ids::{ChannelId, TenantId};
use crate::tenants::acceptance::NotAccepted;
use crate::tenants::store::acceptance::find_accepted;
use crate::webhooks::consent;
use crate::webhooks::{EndpointLock, EndpointOwner, Guard, LockFor, endpoint};

/// The most channels of a tenant (security.md, rule 20).
pub const MAX_CHANNELS: i64 = 100;

/// Validates and stores a channel, with its target and token sealed. The guard checks its target. An
/// address gets a code, and the channel is paused until it is confirmed.
///
/// # Errors
/// `ValidationErrors`; `NotAccepted` for a tenant whose key the marketplace has not accepted yet;
/// `InvalidState` at [`MAX_CHANNELS`]; `LimitExceeded` for codes; `IdempotencyMismatch`.
pub async fn create(
    context: RequestContext<'_>,
    guard: Guard,
    body: &Map<String, Value>,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Channel>, CommandError> {
    let idempotent = IdempotentRequest::new("/v1/channels".to_owned(), body, key);
    if let Some(replay) = idempotent.find_response(context).await? {
        return Ok(replay);
    }
    let request = validated(body, guard)?;
    let mut tx = db::begin(context.pool).await?;
    let tenant = find_accepted(&mut tx, context.ring, context.key, context.now)
        .await?
        .ok_or(NotAccepted::Required)?;
    let work = async |conn: &mut PgConnection| {
        store::lock_count(conn, tenant).await?;
        let count = store::count(conn, tenant).await?;
        if count >= MAX_CHANNELS {
            let message = format!(
                "the account has {count} channels and may have at most {MAX_CHANNELS}; delete one first"
            );
            return Err(CommandError::InvalidState(message));
        }
        insert(conn, context, tenant, &request).await
    };
    idempotent.run(context, tx, tenant, work).await
}

fn validated(body: &Map<String, Value>, guard: Guard) -> Result<ChannelRequest, ValidationErrors> {
    let mut errors = ValidationErrors::default();
    let request = ChannelRequest::from_body(body)
        .map_err(|wrong| errors.merge(wrong))
        .ok();
    let kind = body
        .get("kind")
        .and_then(|kind| ChannelKind::read(kind).ok());
    errors.merge(errors_across(kind, body, guard));
    errors.ok_if_empty(|| request)
}

async fn insert(
    conn: &mut PgConnection,
    context: RequestContext<'_>,
    tenant: TenantId,
    request: &ChannelRequest,
) -> Result<Channel, CommandError> {
    let id = ChannelId::new();
    let (least, zone) = (
        request.least_priority_or_default(),
        request.timezone_or_default(),
    );
    let columns = ChannelColumns {
        name: request.name.as_str(),
        shown_url: &masked(request.url.as_str()),
        least_priority: least,
        notify: request.notify.as_ref().map(|notify| notify.to_value()),
        timezone: zone.as_str(),
    };
    store::insert(conn, tenant, id, request.kind, &columns, context.now).await?;
    let owner = EndpointOwner::Channel(id);
    let lock = EndpointLock::acquire(conn, tenant, owner, LockFor::Webhook).await?;
    let mut lock = lock.ok_or(sqlx::Error::RowNotFound)?;
    let token = request.token.as_ref().map(|token| token.as_str());
    endpoint::open_channel(
        &mut lock,
        context.ring,
        request.kind,
        request.url.as_str(),
        token,
        context.now,
    )
    .await?;
    if request.kind == ChannelKind::Email {
        consent::ask(&mut lock, context.ring, request.url.as_str(), context.now).await?;
    }
    Ok(read::read_back(lock.conn(), tenant, id).await?)
}
