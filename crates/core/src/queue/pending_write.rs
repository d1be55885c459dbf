//! Passes completed calls to the task that writes them (`result_writer`).

use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::ClaimedItem;
use super::completed_call::CompletedCall;
use super::record::MAX_BATCH_SIZE;
use crate::metrics;

/// Sends completed calls to the task that records them. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct RecordHandle(mpsc::Sender<PendingWrite>);

/// A completed call that is not written yet, and the sender that reports the write.
#[derive(Debug)]
pub(super) struct PendingWrite {
    pub(super) completed: CompletedCall,
    pub(super) claimed_item: ClaimedItem,
    done: oneshot::Sender<()>,
}

impl PendingWrite {
    /// The tenant of the call.
    pub(super) fn caller(&self) -> Uuid {
        self.completed.record.tenant_id
    }

    /// The call is in the database.
    pub(super) fn mark_stored(self) {
        self.claimed_item.mark_stored();
        // The receiver may be gone.
        let _ = self.done.send(());
    }

    /// The call is in the spool.
    pub(super) fn mark_spooled(self) {
        self.claimed_item.mark_spooled();
        let _ = self.done.send(());
    }
}

impl RecordHandle {
    /// A handle, and the receiver for [`run`](super::result_writer::run).
    pub(super) fn new() -> (Self, mpsc::Receiver<PendingWrite>) {
        let (sender, receiver) = mpsc::channel(MAX_BATCH_SIZE);
        (Self(sender), receiver)
    }

    /// Returns when the call is stored or spooled. Until then the claimed item keeps its permit,
    /// which bounds the waiting calls. If the write is impossible, the dropped item counts as lost.
    pub(super) async fn record(&self, completed: CompletedCall, claimed_item: ClaimedItem) {
        let (done, is_done) = oneshot::channel();
        let _waiting = metrics::answer_waiting();
        if self
            .0
            .send(PendingWrite {
                completed,
                claimed_item,
                done,
            })
            .await
            .is_ok()
        {
            // An error means that the write was dropped.
            let _ = is_done.await;
        }
    }
}
