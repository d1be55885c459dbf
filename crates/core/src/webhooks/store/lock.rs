//! The lock of a monitor or a channel, which protects its endpoint and its deliveries.

use std::fmt;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::ids::{ChannelId, MonitorId, TenantId};

/// A monitor locked by the transaction of `conn`. This type is the only way to lock a monitor's
/// row, and every function that locks or changes its webhook requires it. So the lock order is
/// fixed: monitor, webhook, the endpoints of its channels in the order of their ids, deliveries.
///
/// A delivery references its monitor. A transaction that locked the webhook first would deadlock:
/// inserting a delivery waits for the monitor, whose holder waits for the webhook. The deliverer's
/// functions (`lease_messages`, `end_try`) lock webhooks and deliveries but never a monitor. They
/// update each row only once, because a second update in a transaction makes Postgres check the
/// foreign key and so lock the monitor.
pub struct MonitorLock<'t> {
    conn: &'t mut PgConnection,
    tenant: TenantId,
    monitor: MonitorId,
}

/// Where deliveries go: the webhook of a monitor, or a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointOwner {
    /// A monitor, for its webhook.
    Monitor(MonitorId),
    /// A channel.
    Channel(ChannelId),
}

impl EndpointOwner {
    /// The id of the endpoint.
    pub(in crate::webhooks) fn uuid(self) -> Uuid {
        match self {
            Self::Monitor(id) => id.uuid(),
            Self::Channel(id) => id.uuid(),
        }
    }
}

/// An endpoint whose owner is locked by the transaction of `conn`. A transaction locks its monitor
/// first and then channels, in the order of their ids.
pub struct EndpointLock<'t> {
    conn: &'t mut PgConnection,
    tenant: TenantId,
    owner: EndpointOwner,
}

impl<'t> EndpointLock<'t> {
    /// Locks the owner of an endpoint until the end of the transaction; `None` if it does not exist.
    pub async fn acquire(
        conn: &'t mut PgConnection,
        tenant: TenantId,
        owner: EndpointOwner,
        purpose: LockFor,
    ) -> sqlx::Result<Option<Self>> {
        let is_locked = match owner {
            EndpointOwner::Monitor(id) => MonitorLock::acquire(&mut *conn, tenant, id, purpose)
                .await?
                .is_some(),
            EndpointOwner::Channel(id) => lock_channel(conn, tenant, id, purpose).await?,
        };
        Ok(is_locked.then_some(Self {
            conn,
            tenant,
            owner,
        }))
    }

    /// The transaction that holds the lock.
    pub fn conn(&mut self) -> &mut PgConnection {
        self.conn
    }

    /// The tenant of the endpoint.
    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// Whose endpoint it is.
    pub fn owner(&self) -> EndpointOwner {
        self.owner
    }
}

async fn lock_channel(
    conn: &mut PgConnection,
    tenant: TenantId,
    channel: ChannelId,
    purpose: LockFor,
) -> sqlx::Result<bool> {
    let (of, id) = (tenant.uuid(), channel.uuid());
    let locked =
        match purpose {
            LockFor::Webhook => {
                sqlx::query!(
                    "select from channels where tenant_id = $1 and channel_id = $2 for key share",
                    of,
                    id
                )
                .execute(conn)
                .await?
            }
            LockFor::Change => sqlx::query!(
                "select from channels where tenant_id = $1 and channel_id = $2 for no key update",
                of,
                id
            )
            .execute(conn)
            .await?,
            LockFor::Deletion => {
                sqlx::query!(
                    "select from channels where tenant_id = $1 and channel_id = $2 for update",
                    of,
                    id
                )
                .execute(conn)
                .await?
            }
        };
    Ok(locked.rows_affected() == 1)
}

/// The purpose of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockFor {
    /// To change its endpoint or its deliveries; conflicts only with a deletion.
    Webhook,
    /// To change its own row or its slots.
    Change,
    /// To delete it with everything that references it.
    Deletion,
}

impl<'t> MonitorLock<'t> {
    /// Locks a monitor until the end of the transaction; `None` if it does not exist.
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

    /// Locks a monitor for a change without waiting; `None` if it does not exist or another
    /// transaction holds the lock.
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

    /// Its webhook.
    pub fn endpoint(&mut self) -> EndpointLock<'_> {
        EndpointLock {
            conn: self.conn,
            tenant: self.tenant,
            owner: EndpointOwner::Monitor(self.monitor),
        }
    }

    /// The tenant of the monitor.
    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// The id of the monitor.
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

impl fmt::Debug for EndpointLock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointLock")
            .field("tenant", &self.tenant)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}
