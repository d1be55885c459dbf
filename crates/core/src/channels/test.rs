//! Sends a test to a channel.

use serde_json::Map;
use sqlx::PgConnection;

use super::store;
use crate::commands::{
    CommandError, IdempotencyKey, IdempotentRequest, Replayable, RequestContext,
};
use crate::contract::webhooks::Delivery;
use crate::ids::{ChannelId, Kind, TenantId};
use crate::notices::test_message;
use crate::webhooks::{LockFor, resend};

/// The type of a test.
pub const TEST_EVENT: &str = "channel.test";

/// Sends a test to a channel, once, also in its quiet hours. Its delivery shows the result.
///
/// # Errors
/// `NotFound`; `InvalidState` while it is paused; `LimitExceeded` within a minute of the last test;
/// `IdempotencyMismatch`.
pub async fn send_test(
    context: RequestContext<'_>,
    id: ChannelId,
    key: Option<&IdempotencyKey>,
) -> Result<Replayable<Delivery>, CommandError> {
    let path = format!("/v1/channels/{id}/test");
    let idempotent = IdempotentRequest::new(path, &Map::new(), key);
    let work = async |conn: &mut PgConnection, tenant: TenantId| {
        let (mut lock, stored) = store::lock(conn, tenant, id, LockFor::Webhook).await?;
        let message = test_message(id, &stored.name, context.now);
        resend::enqueue_test(&mut lock, TEST_EVENT, &message, context.now)
            .await?
            .ok_or(CommandError::NotFound(Kind::Channel))
    };
    idempotent.carry_out(context, Kind::Channel, work).await
}
