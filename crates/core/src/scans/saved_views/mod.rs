//! Saved views: a caller's named filters of the list of scans.
//!
//! A view is the query of a URL under a name, and nothing else: what it lists is read anew each
//! time. Not here: what the filters mean (`dashboard::scans`).

mod store;

use sqlx::PgPool;

use super::lock_submissions;
use crate::commands::{CommandError, RequestContext};
use crate::contract::ValidationError;
use crate::ids::TenantId;

/// The most views of a caller: more would not fit above a list.
pub const MAX_VIEWS: i64 = 20;
/// The longest name, in characters.
pub const MAX_NAME_CHARS: usize = 60;
/// The longest query, in characters.
const MAX_QUERY_CHARS: usize = 1_000;

/// Filters under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedView {
    /// Unique for its caller.
    pub name: String,
    /// The encoded query of the list's URL.
    pub query: String,
}

/// The views of a caller by name.
pub async fn list(pool: &PgPool, tenant: TenantId) -> sqlx::Result<Vec<SavedView>> {
    store::list(pool, tenant).await
}

/// Saves a view, or replaces the caller's view of this name.
///
/// # Errors
/// `ValidationErrors` for a name or query that is empty or too long; `InvalidState` for a caller
/// with [`MAX_VIEWS`] others, or one who has not submitted anything yet.
pub async fn save(context: RequestContext<'_>, view: &SavedView) -> Result<(), CommandError> {
    check_text("name", &view.name, MAX_NAME_CHARS)?;
    check_text("query", &view.query, MAX_QUERY_CHARS)?;
    let (mut tx, tenant) = context
        .begin_locked(CommandError::InvalidState(
            "there is nothing to filter: submit a scan first".to_owned(),
        ))
        .await?;
    // Two saves at once must not exceed the maximum.
    lock_submissions(&mut tx, tenant).await?;
    if !store::save(&mut tx, tenant, view, MAX_VIEWS, context.now).await? {
        return Err(CommandError::InvalidState(format!(
            "there are {MAX_VIEWS} saved views already: delete one first"
        )));
    }
    tx.commit().await?;
    Ok(())
}

/// Deletes the caller's view of this name, if there is one.
pub async fn delete(pool: &PgPool, tenant: TenantId, name: &str) -> sqlx::Result<()> {
    store::delete(pool, tenant, name).await
}

fn check_text(field: &str, text: &str, max: usize) -> Result<(), CommandError> {
    if (1..=max).contains(&text.chars().count()) && !text.chars().any(char::is_control) {
        return Ok(());
    }
    let expected = format!("text of 1 to {max} characters without control characters");
    Err(CommandError::ValidationErrors(
        ValidationError::new(field, &text.into(), expected).into(),
    ))
}
