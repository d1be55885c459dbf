//! The process's one ear: `farescan_scan`, whose payload is a scan's id.

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::time::sleep;
use uuid::Uuid;

use super::readers::Readers;
use crate::ids::ScanId;

/// Said when something changed that a caller can see.
const CHANNEL: &str = "farescan_scan";
/// Between two tries to reach a database that is away.
const AWAY_PAUSE: Duration = Duration::from_secs(1);

/// Passes on what is said, for ever.
pub(super) async fn listen(options: PgConnectOptions, readers: &Readers) {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect_lazy_with(options);
    loop {
        if let Err(error) = pass_on(&pool, readers).await {
            tracing::debug!(%error, "no notifications of scans for now");
        }
        readers.deaf();
        sleep(AWAY_PAUSE).await;
    }
}

/// Passes notifications on until the connection breaks.
async fn pass_on(pool: &PgPool, readers: &Readers) -> sqlx::Result<()> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    readers.hears();
    while let Some(notification) = listener.try_recv().await? {
        if let Ok(id) = notification.payload().parse::<Uuid>() {
            readers.said(ScanId::from(id));
        }
    }
    Ok(())
}
