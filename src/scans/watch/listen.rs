//! The process's one LISTEN connection: channel `farescan_scan`, whose payload is a scan's id.

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::time::sleep;
use uuid::Uuid;

use super::readers::ScanReaders;
use crate::ids::ScanId;

/// Postgres notifies it when a scan changes in a way that its caller can see.
const CHANNEL: &str = "farescan_scan";
/// Between two attempts to connect.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// Forwards notifications to the readers, and reconnects after errors. Never returns.
pub(super) async fn listen(options: PgConnectOptions, readers: &ScanReaders) {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect_lazy_with(options);
    loop {
        if let Err(error) = forward_notifications(&pool, readers).await {
            tracing::debug!(%error, "scan notifications interrupted; reconnecting");
        }
        readers.listening_stopped();
        sleep(RECONNECT_DELAY).await;
    }
}

/// Forwards notifications until the connection breaks.
async fn forward_notifications(pool: &PgPool, readers: &ScanReaders) -> sqlx::Result<()> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    readers.listening_started();
    while let Some(notification) = listener.try_recv().await? {
        if let Ok(id) = notification.payload().parse::<Uuid>() {
            readers.notify(ScanId::from(id));
        }
    }
    Ok(())
}
