//! The locks of a scan: its lane, then items, then its row.
//!
//! Every transaction takes the locks of one caller in this order, leaving out those that it does
//! not need: the caller's fingerprints (`tenant_keys`), its submissions (`lock_submissions`), its
//! monitors and webhooks, its lanes, items, the history of its products (`series`, `latest_prices`,
//! in the order of their keys), scans, and the row of `tenants` last. A submission, a record of
//! calls (`open_calls`, `record_calls`, then `store::acceptance`), abandoned claims and a relocation
//! therefore wait for each other and never deadlock. There are three exceptions, where the database
//! ends one of two transactions, and it is tried again: the removal of an unaccepted caller may meet
//! a late refusal, a call whose row a failover lost locks its scan first (`restore_calls`), and an
//! evaluation that searches prices once more, which has read its scan, may meet the scan's deletion.

use jiff::Timestamp;
use jiff_sqlx::{Date, ToSqlx as _};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::wake_lane;
use crate::contract::Api;
use crate::contract::scans::{PauseReason, Priority, RetryRequest, ScanStatus};
use crate::ids::{GrantId, ItemId, ScanId, TenantId};
use crate::scans::sequence::Sequence;

/// A scan locked by the transaction of `conn`, after its lane and its items. Only this type and
/// [`DeletionLock`] lock the row of a scan, and every function that changes a stored scan requires
/// one of them. So the lock order is fixed: the lane, items in the order of their ids, the scan.
/// There are no deadlocks, and no call begins after a cancel has returned.
pub(in crate::scans) struct LockedScan<'t> {
    conn: &'t mut PgConnection,
    tenant: TenantId,
    id: ScanId,
    sequence_start: i64,
    /// Some of its locked items need a request. Not those that wait for the decision of a question,
    /// which may end it.
    pub(in crate::scans) needs_requests: bool,
    pub(in crate::scans) row: LockedScanRow,
}

/// The row of a locked scan.
pub(in crate::scans) struct LockedScanRow {
    pub(in crate::scans) status: ScanStatus,
    pub(in crate::scans) status_reason: Option<PauseReason>,
    pub(in crate::scans) priority: Priority,
    pub(in crate::scans) requests_spent: i32,
    pub(in crate::scans) max_requests: Option<i32>,
    pub(in crate::scans) max_attempts: i16,
    /// All its items have ended, so no call is in flight.
    pub(in crate::scans) finished: bool,
    pub(in crate::scans) grant_id: Option<Uuid>,
}

/// A locked item that has ended.
pub(in crate::scans) struct EndedItem {
    pub(in crate::scans) item_id: Uuid,
    pub(in crate::scans) first_date: Option<Date>,
}

impl<'t> LockedScan<'t> {
    /// Wakes and locks the lane, then locks the items that have not been sent, so that no call of
    /// them begins, then the scan; `None`: there is no such scan.
    pub(in crate::scans) async fn lock(
        conn: &'t mut PgConnection,
        tenant: TenantId,
        id: ScanId,
    ) -> sqlx::Result<Option<Self>> {
        let Some(sequence_start) = wake_lane_of(conn, tenant, id).await? else {
            return Ok(None);
        };
        let needs_requests = lock_open_items(conn, tenant, id).await?;
        Ok(lock_row(conn, tenant, id).await?.map(|row| Self {
            conn,
            tenant,
            id,
            sequence_start,
            needs_requests,
            row,
        }))
    }

    /// As [`Self::lock`], but locks the ended items that a retry selects.
    pub(in crate::scans) async fn lock_ended(
        conn: &'t mut PgConnection,
        tenant: TenantId,
        id: ScanId,
        request: &RetryRequest,
    ) -> sqlx::Result<Option<(Self, Vec<EndedItem>)>> {
        let Some(sequence_start) = wake_lane_of(conn, tenant, id).await? else {
            return Ok(None);
        };
        let items = lock_ended_items(conn, tenant, id, request).await?;
        let locked = lock_row(conn, tenant, id).await?.map(|row| Self {
            conn,
            tenant,
            id,
            sequence_start,
            needs_requests: !items.is_empty(),
            row,
        });
        Ok(locked.map(|scan| (scan, items)))
    }

    /// As [`Self::lock`], but locks those of the given items that still have the answer of the given
    /// time, with a price.
    pub(in crate::scans) async fn lock_answered(
        conn: &'t mut PgConnection,
        tenant: TenantId,
        id: ScanId,
        answered: &[(ItemId, Timestamp)],
    ) -> sqlx::Result<Option<(Self, Vec<EndedItem>)>> {
        let Some(sequence_start) = wake_lane_of(conn, tenant, id).await? else {
            return Ok(None);
        };
        let items = lock_answered_items(conn, tenant, id, answered).await?;
        let locked = lock_row(conn, tenant, id).await?.map(|row| Self {
            conn,
            tenant,
            id,
            sequence_start,
            needs_requests: !items.is_empty(),
            row,
        });
        Ok(locked.map(|scan| (scan, items)))
    }

    /// The transaction that holds the locks.
    pub(in crate::scans) fn conn(&mut self) -> &mut PgConnection {
        self.conn
    }

    /// The tenant of the scan.
    pub(in crate::scans) fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// The id of the scan.
    pub(in crate::scans) fn id(&self) -> ScanId {
        self.id
    }

    /// The sequence numbers for its items that become pending now.
    pub(in crate::scans) fn sequence(&self) -> Sequence {
        Sequence::new(self.sequence_start, self.row.priority)
    }
}

/// A scan locked with all its items, to be deleted. Its lane is not locked, because no item becomes
/// pending.
pub(in crate::scans) struct DeletionLock<'t> {
    pub(in crate::scans) conn: &'t mut PgConnection,
    pub(in crate::scans) tenant: TenantId,
    pub(in crate::scans) id: ScanId,
    pub(in crate::scans) items: Vec<LockedItem>,
    pub(in crate::scans) row: LockedScanRow,
}

/// A locked item of any state.
pub(in crate::scans) struct LockedItem {
    pub(in crate::scans) item_id: Uuid,
    pub(in crate::scans) endpoint: String,
    pub(in crate::scans) body: Value,
}

impl<'t> DeletionLock<'t> {
    /// Locks all items, then the scan; `None`: there is no such scan.
    pub(in crate::scans) async fn lock(
        conn: &'t mut PgConnection,
        tenant: TenantId,
        id: ScanId,
    ) -> sqlx::Result<Option<Self>> {
        let items = lock_items(conn, tenant, id).await?;
        Ok(lock_row(conn, tenant, id).await?.map(|row| Self {
            conn,
            tenant,
            id,
            items,
            row,
        }))
    }

    pub(in crate::scans) fn item_ids(&self) -> Vec<Uuid> {
        self.items.iter().map(|item| item.item_id).collect()
    }

    pub(in crate::scans) fn grant(&self) -> Option<GrantId> {
        self.row.grant_id.map(GrantId::from)
    }
}

/// The API of a scan's searches; `None`: there is no such scan.
pub(in crate::scans) async fn api_of(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
) -> sqlx::Result<Option<Api>> {
    sqlx::query_scalar!(
        "select api from scans where tenant_id = $1 and scan_id = $2",
        tenant.uuid(),
        id.uuid()
    )
    .fetch_optional(conn)
    .await
}

/// Wakes and locks the lane of a scan. Returns the first sequence number for new items.
async fn wake_lane_of(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
) -> sqlx::Result<Option<i64>> {
    match api_of(conn, tenant, id).await? {
        Some(api) => wake_lane(conn, tenant, api).await.map(Some),
        None => Ok(None),
    }
}

async fn lock_row(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
) -> sqlx::Result<Option<LockedScanRow>> {
    sqlx::query_as!(
        LockedScanRow,
        r#"select status, status_reason, priority, requests_spent, max_requests, max_attempts, finished_at is not null as "finished!", grant_id
           from scans where tenant_id = $1 and scan_id = $2 for no key update"#,
        tenant.uuid(),
        id.uuid(),
    )
    .fetch_optional(conn)
    .await
}

/// Returns whether some of the items need a request.
async fn lock_open_items(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
) -> sqlx::Result<bool> {
    let needs_requests = sqlx::query_scalar!(
        r#"with locked as materialized (
               select state from scan_items
               where tenant_id = $1 and scan_id = $2 and state in ('pending', 'claimed', 'delayed', 'held', 'deferred')
               order by item_id for no key update)
           select coalesce(bool_or(l.state <> 'deferred' or t.find is null), false) as "needs!"
           from locked l left join scan_strategies t on t.tenant_id = $1 and t.scan_id = $2"#,
        tenant.uuid(),
        id.uuid(),
    );
    needs_requests.fetch_one(conn).await
}

async fn lock_ended_items(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
    request: &RetryRequest,
) -> sqlx::Result<Vec<EndedItem>> {
    let statuses: Vec<String> = request
        .search_status
        .as_slice()
        .iter()
        .map(|status| status.as_str().to_owned())
        .collect();
    let reasons: Option<Vec<String>> = request.reasons.as_ref().map(|reasons| {
        reasons
            .as_slice()
            .iter()
            .map(|reason| reason.as_str().to_owned())
            .collect()
    });
    sqlx::query_as!(
        EndedItem,
        "select item_id, first_date from scan_items
         where tenant_id = $1 and scan_id = $2
           and (state = 'done' and search_status = any ($3) or state = 'failed' and 'failed' = any ($3))
           and ($4::text[] is null or reason = any ($4))
         order by item_id for no key update",
        tenant.uuid(),
        id.uuid(),
        &statuses,
        reasons.as_deref(),
    )
    .fetch_all(conn)
    .await
}

async fn lock_answered_items(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
    answered: &[(ItemId, Timestamp)],
) -> sqlx::Result<Vec<EndedItem>> {
    let items: Vec<_> = answered.iter().map(|(item, _)| item.uuid()).collect();
    let times: Vec<_> = answered.iter().map(|(_, at)| at.to_sqlx()).collect();
    sqlx::query_as!(
        EndedItem,
        "select i.item_id, i.first_date
         from scan_items i join unnest($3::uuid[], $4::timestamptz[]) as x (item_id, observed_at) on x.item_id = i.item_id
         where i.tenant_id = $1 and i.scan_id = $2 and i.state = 'done' and i.search_status in ('ok', 'partial')
           and i.best_price is not null and i.observed_at = x.observed_at
         order by i.item_id for no key update of i",
        tenant.uuid(),
        id.uuid(),
        &items,
        &times as _,
    )
    .fetch_all(conn)
    .await
}

async fn lock_items(
    conn: &mut PgConnection,
    tenant: TenantId,
    id: ScanId,
) -> sqlx::Result<Vec<LockedItem>> {
    sqlx::query_as!(
        LockedItem,
        r#"select i.item_id, i.body,
                  (select s.endpoint from scans s where s.tenant_id = i.tenant_id and s.scan_id = i.scan_id) as "endpoint!"
           from scan_items i where i.tenant_id = $1 and i.scan_id = $2 order by i.item_id for update"#,
        tenant.uuid(),
        id.uuid(),
    )
    .fetch_all(conn)
    .await
}
