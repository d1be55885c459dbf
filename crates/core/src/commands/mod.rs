//! What the commands on scans, monitors, webhooks and accounts share: the context of a request, the
//! reasons to refuse it, and idempotency (`Idempotency-Key`).

mod idempotency;
mod store;

use std::time::Duration;

use jiff::Timestamp;
use sqlx::{PgConnection, PgPool, Postgres, Transaction};

use crate::contract::ValidationErrors;
use crate::db;
use crate::ids::{Kind, TenantId};
use crate::search::CallerKey;
use crate::tenants::acceptance::NotAccepted;
use crate::tenants::{self, Keyring};

pub use idempotency::IdempotentRequest;
pub use idempotency::{IDEMPOTENCY_RETENTION, IdempotencyKey, MAX_IDEMPOTENCY_KEY};

/// The caller and the time of a request, with the resources needed to handle it.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// The database.
    pub pool: &'a PgPool,
    /// Identifies the caller by its key, and seals the key.
    pub ring: &'a Keyring,
    /// The caller's key.
    pub key: &'a CallerKey,
    /// When the request came.
    pub now: Timestamp,
}

impl RequestContext<'_> {
    /// The caller's tenant, as by [`tenants::store::find`].
    pub async fn find_tenant(self, conn: &mut PgConnection) -> sqlx::Result<Option<TenantId>> {
        tenants::store::find(conn, self.ring, self.key, self.now).await
    }

    /// Begins a transaction of a caller with a tenant; without one the command fails with `unknown`.
    pub async fn begin(
        self,
        unknown: impl Into<CommandError>,
    ) -> Result<(Transaction<'static, Postgres>, TenantId), CommandError> {
        let mut tx = db::begin(self.pool).await?;
        let found = self.find_tenant(&mut tx).await?;
        Ok((tx, found.ok_or_else(|| unknown.into())?))
    }

    /// As [`Self::begin`], for a command that seals the caller's key: a rotation waits for it.
    pub async fn begin_locked(
        self,
        unknown: impl Into<CommandError>,
    ) -> Result<(Transaction<'static, Postgres>, TenantId), CommandError> {
        let mut tx = db::begin(self.pool).await?;
        let found = tenants::store::find_and_lock(&mut tx, self.ring, self.key, self.now).await?;
        Ok((tx, found.ok_or_else(|| unknown.into())?))
    }
}

/// The response of an idempotent POST.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayable<T> {
    /// The response body.
    pub response: T,
    /// It is the stored response to an earlier request with the same `Idempotency-Key` and body.
    pub replayed: bool,
}

impl From<Kind> for CommandError {
    /// There is no such one.
    fn from(kind: Kind) -> Self {
        Self::NotFound(kind)
    }
}

/// Why a command failed. Nothing was stored, except possibly after [`Self::CommitFailed`].
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The request is invalid.
    #[error(transparent)]
    ValidationErrors(#[from] ValidationErrors),
    /// The resource does not exist, or it is another caller's.
    #[error("there is no such {}", .0.noun())]
    NotFound(Kind),
    /// The monitor does not exist, has no webhook, or is another caller's.
    #[error("there is no such monitor, or it has no webhook")]
    NoWebhook,
    /// The state of the resource does not allow the command.
    #[error("{0}")]
    InvalidState(String),
    /// The `Idempotency-Key` was used with another body.
    #[error(
        "the Idempotency-Key `{0}` was used with another body; use a new key for a new request"
    )]
    IdempotencyMismatch(String),
    /// The caller has reached a limit.
    #[error("{message}")]
    LimitExceeded {
        /// Names the limit.
        message: String,
        /// How long to wait before the next try.
        retry_after: Duration,
    },
    /// This process plans as many scans as it can.
    #[error("this service is planning too many scans; nothing was stored; retry after Retry-After")]
    Busy,
    /// The marketplace has not accepted the caller's key yet.
    #[error(transparent)]
    NotAccepted(#[from] NotAccepted),
    /// A defect of this service.
    #[error("{0}")]
    Internal(String),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// The commit failed, so it is unknown whether the work is stored.
    #[error(transparent)]
    CommitFailed(sqlx::Error),
}
