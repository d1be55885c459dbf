//! From a listener to requests: connections, with bounds on how long a request's head may take and how long a client may read nothing,
//! and an end that waits for the requests in flight.

use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

/// How long the head of a request may take to arrive, and how long an idle connection is kept (security, "Limits").
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may leave an answer unread: a download that nobody takes, or a client that has gone without a word. Far above what a
/// slow line needs for the next bytes.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the end waits for requests in flight: as long as a search may take (engine, "Shutdown"). A download that takes longer breaks
/// off.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(200);
/// What a listener waits when the system has no more files for it.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// Serves until it is told to stop; ends when the requests in flight have been answered, or have had their time.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    serve_within(listener, router, stop, HEAD_TIMEOUT, STALL_TIMEOUT).await;
}

async fn serve_within(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
    head_timeout: Duration,
    stall_timeout: Duration,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head_timeout);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(stall_timeout);
    let connections = GracefulShutdown::new();
    while let Some(stream) = stop.run_until_cancelled(accept(&listener)).await {
        let service = TowerToHyperService::new(router.clone());
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(stall_timeout));
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(Box::pin(stream)), service).into_owned();
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
    drop(listener);
    if timeout(DRAIN_TIMEOUT, connections.shutdown()).await.is_err() {
        tracing::warn!("some requests were still in flight at the end");
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are written whole; waiting to join them with others only delays them.
                _ = stream.set_nodelay(true);
                return stream;
            }
            Err(error) => {
                tracing::warn!(%error, "no connection could be accepted");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use futures::stream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n";

    async fn start(router: Router, head_timeout: Duration) -> (TcpStream, CancellationToken, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let server = tokio::spawn(serve_within(listener, router, stop.clone(), head_timeout, Duration::from_millis(200)));
        (TcpStream::connect(address).await.unwrap(), stop, server)
    }

    #[tokio::test]
    async fn a_head_that_does_not_come_ends_the_connection() {
        let (mut client, _stop, _server) = start(Router::new(), Duration::from_millis(100)).await;
        client.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert!(!rest.starts_with(b"HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_let_go() {
        let (held, released) = oneshot::channel::<()>();
        let held = std::sync::Arc::new(std::sync::Mutex::new(Some(held)));
        let endless = get(move || {
            let held = held.lock().unwrap().take();
            async move {
                Body::from_stream(stream::repeat_with(move || {
                    _ = &held;
                    Ok::<_, std::io::Error>(vec![0_u8; 64 * 1024])
                }))
            }
        });
        let (mut client, _stop, _server) = start(Router::new().route("/", endless), HEAD_TIMEOUT).await;
        client.write_all(REQUEST).await.unwrap();
        assert!(released.await.is_err(), "the body is dropped while the client is still there");
        drop(client);
    }

    #[tokio::test]
    async fn the_end_waits_for_requests_in_flight() {
        let (entered, inside) = oneshot::channel();
        let (finish, finished) = oneshot::channel::<()>();
        let gate = std::sync::Mutex::new(Some((entered, finished)));
        let gate = std::sync::Arc::new(gate);
        let slow = get(move || {
            let (entered, finished) = gate.lock().unwrap().take().unwrap();
            async move {
                entered.send(()).unwrap();
                finished.await.unwrap();
                "answered"
            }
        });
        let (mut client, stop, server) = start(Router::new().route("/", slow), HEAD_TIMEOUT).await;
        client.write_all(REQUEST).await.unwrap();
        inside.await.unwrap();
        stop.cancel();
        assert!(!server.is_finished());
        finish.send(()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("answered"), "{answer}");
        server.await.unwrap();
    }
}
