//! What a caller has set for all of its work. Not here: whose searches this process stores
//! (`search_recorder`), and the age of a submitted scan (`scans::default_age`).

use super::store;
use crate::commands::{CommandError, RequestContext};
use crate::contract::account_settings::{AccountSettings, AccountSettingsUpdate};
use crate::contract::scans::MaxAgeSeconds;
use crate::db;
use crate::ids::TenantId;
use crate::tenants::acceptance::NotAccepted;
use crate::tenants::store::acceptance::find_accepted;
use crate::tenants::store::find_with_connection;

/// The caller's settings; the defaults if it has set nothing.
pub async fn read(context: RequestContext<'_>) -> sqlx::Result<AccountSettings> {
    let (mut conn, tenant) =
        find_with_connection(context.pool, context.ring, context.key, context.now).await?;
    let Some(tenant) = tenant else {
        return Ok(AccountSettings::default());
    };
    Ok(store::settings(&mut conn, tenant)
        .await?
        .unwrap_or_default())
}

/// Replaces the caller's settings. Returns whose they are, too.
///
/// # Errors
/// `NotAccepted` if the marketplace has not accepted the caller's key yet.
pub async fn replace(
    context: RequestContext<'_>,
    update: &AccountSettingsUpdate,
) -> Result<(TenantId, AccountSettings), CommandError> {
    let settings = AccountSettings {
        record_searches: update.record_searches_or_default(),
        max_age_seconds: update
            .max_age_seconds
            .and_then(MaxAgeSeconds::nonzero)
            .map(MaxAgeSeconds::get),
    };
    let mut tx = db::begin(context.pool).await?;
    let tenant = find_accepted(&mut tx, context.ring, context.key, context.now)
        .await?
        .ok_or(NotAccepted::Required)?;
    store::replace_settings(&mut tx, tenant, settings, context.now).await?;
    tx.commit().await?;
    Ok((tenant, settings))
}
