//! The stored answer that a synchronous search may take (gateway.md, rules 54 and 58).

use std::time::Duration;

use tokio::time::timeout;

use super::AppState;
use super::error::ApiError;
use crate::contract::ErrorType;
use crate::contract::scans::MaxAgeSeconds;
use crate::scans::recorded_search::{self, AgedOutcome};
use crate::search::{CallerKey, Search};
use crate::tenants;

/// How long the look-up may take; then the search is made.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(500);

/// The youngest stored answer to an equal search, if it is at most `oldest` old.
///
/// # Errors
/// When this service stores nothing, or the database does not answer in time.
pub async fn find(
    app: &AppState,
    key: &CallerKey,
    search: &Search,
    oldest: MaxAgeSeconds,
) -> Result<Option<AgedOutcome>, ApiError> {
    let (ring, pool, now) = (&app.custody()?.ring, &app.pools()?.reads, app.now()?);
    // A look-up is a query of this caller like any other; a search is not.
    app.check_rate_limit(key)?;
    let found = async {
        let _permits = app.concurrency.request(key, false).await?;
        let (connection, tenant) =
            tenants::store::find_with_connection(pool, ring, key, now).await?;
        drop(connection);
        match tenant {
            None => Ok(None),
            Some(tenant) => {
                let found =
                    recorded_search::find_answer(pool, tenant, search.request(), oldest, now);
                Ok::<_, ApiError>(found.await?)
            }
        }
    };
    match timeout(LOOKUP_TIMEOUT, found).await {
        Ok(found) => found,
        Err(_) => {
            tracing::info!("looking for a stored answer took too long");
            Err(ApiError::new(
                ErrorType::Unavailable,
                "the stored answers could not be read in time; try again later",
            ))
        }
    }
}
