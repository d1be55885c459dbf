//! Notifications of one channel, on a connection of its own. LISTEN needs a session, so a pooler in
//! transaction mode cannot carry it.

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Between two attempts to connect.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// How long the end waits until the connection is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// What happens to a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenEvent<'a> {
    /// Notifications arrive from now on; earlier ones may have been missed.
    Connected,
    /// A notification, with its payload.
    Notified(&'a str),
    /// No notification arrives until the next `Connected`.
    Disconnected,
}

/// Calls `on_event` for each notification of `channel` until `stop`, and reconnects when the
/// connection breaks. It returns once the connection is closed, so that the server may be stopped
/// then.
pub async fn listen(
    options: PgConnectOptions,
    channel: &str,
    stop: &CancellationToken,
    mut on_event: impl FnMut(ListenEvent<'_>),
) {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect_lazy_with(options);
    let listening = async {
        loop {
            if let Err(error) = listen_on_connection(&pool, channel, &mut on_event).await {
                tracing::debug!(%error, channel, "listening for notifications was interrupted; reconnecting");
            }
            on_event(ListenEvent::Disconnected);
            sleep(RECONNECT_DELAY).await;
        }
    };
    stop.run_until_cancelled(listening).await;
    // The dropped listener returns its connection in a task of its own; closing the pool waits for it.
    let _: Result<(), _> = timeout(CLOSE_TIMEOUT, pool.close()).await;
}

/// Listens until the connection is lost.
async fn listen_on_connection(
    pool: &PgPool,
    channel: &str,
    on_event: &mut impl FnMut(ListenEvent<'_>),
) -> sqlx::Result<()> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(channel).await?;
    on_event(ListenEvent::Connected);
    while let Some(notification) = listener.try_recv().await? {
        on_event(ListenEvent::Notified(notification.payload()));
    }
    Ok(())
}
