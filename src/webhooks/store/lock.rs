//! The lock of a monitor, under which its webhook and its deliveries are changed.

use std::fmt;

use sqlx::PgConnection;

use crate::ids::{MonitorId, TenantId};

/// A monitor that the transaction of `conn` has locked. It is the only way to lock a monitor's row, and every function that locks or
/// changes its webhook takes one, so the order is always the same: the monitor, its webhook, its deliveries.
///
/// A delivery refers to its monitor. A transaction that locked the webhook first would wait at the insert of a delivery for one that has
/// locked the monitor and waits for the webhook. The functions of the deliverer (`take_deliveries`, `end_try`) lock webhooks and
/// deliveries, and never a monitor: they update each row once, because Postgres checks the foreign keys of a row, and so locks its monitor,
/// at the second update in one transaction.
pub struct MonitorLock<'t> {
    conn: &'t mut PgConnection,
    tenant: TenantId,
    monitor: MonitorId,
}

/// What a monitor is locked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockFor {
    /// Its webhook or its deliveries change, and it must stay: waits for a deletion alone.
    Webhook,
    /// Its own row changes, or one of its slots.
    Change,
    /// It goes, with all that refers to it.
    Deletion,
}

impl<'t> MonitorLock<'t> {
    /// Locks a monitor until the end of the transaction; `None`: there is none.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn acquire(
        conn: &'t mut PgConnection,
        tenant: TenantId,
        monitor: MonitorId,
        purpose: LockFor,
    ) -> sqlx::Result<Option<Self>> {
        let (of, id) = (tenant.uuid(), monitor.uuid());
        let locked = match purpose {
            LockFor::Webhook => {
                sqlx::query!(
                    "select from monitors where tenant_id = $1 and monitor_id = $2 for key share",
                    of,
                    id
                )
                .execute(&mut *conn)
                .await?
            }
            LockFor::Change => sqlx::query!(
                "select from monitors where tenant_id = $1 and monitor_id = $2 for no key update",
                of,
                id
            )
            .execute(&mut *conn)
            .await?,
            LockFor::Deletion => {
                sqlx::query!(
                    "select from monitors where tenant_id = $1 and monitor_id = $2 for update",
                    of,
                    id
                )
                .execute(&mut *conn)
                .await?
            }
        };
        Ok((locked.rows_affected() == 1).then_some(Self {
            conn,
            tenant,
            monitor,
        }))
    }

    /// Locks a monitor for a change without waiting; `None`: there is none, or another transaction has locked it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn try_acquire(
        conn: &'t mut PgConnection,
        tenant: TenantId,
        monitor: MonitorId,
    ) -> sqlx::Result<Option<Self>> {
        let locked = sqlx::query!(
            "select from monitors where tenant_id = $1 and monitor_id = $2 for no key update skip locked",
            tenant.uuid(),
            monitor.uuid(),
        );
        let locked = locked.execute(&mut *conn).await?.rows_affected() == 1;
        Ok(locked.then_some(Self {
            conn,
            tenant,
            monitor,
        }))
    }

    /// The transaction that holds the lock.
    pub fn conn(&mut self) -> &mut PgConnection {
        self.conn
    }

    /// Whose monitor it is.
    #[must_use]
    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// Which monitor it is.
    #[must_use]
    pub fn monitor(&self) -> MonitorId {
        self.monitor
    }
}

impl fmt::Debug for MonitorLock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonitorLock")
            .field("tenant", &self.tenant)
            .field("monitor", &self.monitor)
            .finish_non_exhaustive()
    }
}
