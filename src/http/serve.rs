//! From a listener to requests: connections of HTTP/1, with bounds on how many there are, how long a request's head may take and how long a
//! client may read nothing, and an end that waits for the requests in flight.
//!
//! HTTP/2 is not spoken: what ends TLS in front of a service speaks HTTP/1 to it, and a second protocol on a port that strangers reach needs
//! every bound a second time (docs/decisions/0030).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::connections::{Activity, Connections, Evicted, Received, Sent, Slot};
use super::stream::Stream;
use crate::files;

/// How long the head of a request may take to arrive, from the first moment of a connection or from the answer before (security,
/// "Limits").
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a head.
pub(super) const HEAD_BYTES: usize = 128 * 1024;
/// How long a client may leave an answer unread: a download that nobody takes, or a client that has gone without a word. Far above what a
/// slow line needs for the next bytes.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the end waits for requests in flight: as long as a search may take (engine, "Shutdown"). A download that takes longer breaks
/// off.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(200);
/// What a listener waits when the system has no more files for it.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// The most connections of the API, however many files there may be.
const MOST_CONNECTIONS: usize = 10_000;
/// And the fewest.
const LEAST_CONNECTIONS: usize = 32;
/// The most connections of the admin listener: a few who watch.
const ADMIN_CONNECTIONS: usize = 64;
/// Files that the API leaves for everything else: the database, calls of scans, webhooks, the spool, the admin listener.
const OTHER_FILES: u64 = 256;
/// Files of one connection: its own, and one to the marketplace for its search.
const FILES_EACH: u64 = 2;

/// What a listener puts up with.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    connections: usize,
    head: Duration,
    stall: Duration,
}

/// Serves the API until it is told to stop; ends when the requests in flight have been answered, or have had their time.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    serve_within(
        listener,
        router,
        stop,
        Bounds::of(connections_within(files::limit())),
    )
    .await;
}

/// The same for the admin listener.
pub async fn serve_admin(listener: TcpListener, router: Router, stop: CancellationToken) {
    serve_within(listener, router, stop, Bounds::of(ADMIN_CONNECTIONS)).await;
}

impl Bounds {
    const fn of(connections: usize) -> Self {
        Self {
            connections,
            head: HEAD_TIMEOUT,
            stall: STALL_TIMEOUT,
        }
    }
}

/// How many connections so many files allow.
fn connections_within(files: u64) -> usize {
    let connections =
        usize::try_from(files.saturating_sub(OTHER_FILES) / FILES_EACH).unwrap_or(MOST_CONNECTIONS);
    connections.clamp(LEAST_CONNECTIONS, MOST_CONNECTIONS)
}

async fn serve_within(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
    bounds: Bounds,
) {
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.head)
        .max_buf_size(HEAD_BYTES);
    let (connections, graceful) = (
        Connections::new(bounds.connections),
        GracefulShutdown::new(),
    );
    while let Some((stream, slot)) = stop
        .run_until_cancelled(accept(&listener, &connections))
        .await
    {
        let (router, activity) = (router.clone(), slot.activity());
        let service =
            service_fn(move |request| answer(router.clone(), request, Arc::clone(&activity)));
        let stream = TokioIo::new(Stream::new(stream, bounds.stall));
        let connection = graceful.watch(builder.serve_connection(stream, service));
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = slot.evicted() => tracing::debug!("a connection that waited for its client was evicted"),
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended early");
                    }
                }
            }
        });
    }
    drop(listener);
    if timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were still in flight at the end");
    }
}

async fn answer(
    router: Router,
    request: Request<Incoming>,
    activity: Arc<Activity>,
) -> Result<axum::http::Response<Sent>, Evicted> {
    let (parts, body) = request.into_parts();
    let body = Body::new(Received::new(body, Arc::clone(&activity))?);
    let response = router
        .oneshot(Request::from_parts(parts, body))
        .await
        .unwrap_or_else(|never: Infallible| match never {});
    Ok(response.map(|body| Sent::new(body, activity)))
}

async fn accept(listener: &TcpListener, connections: &Arc<Connections>) -> (TcpStream, Slot) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are written whole; waiting to join them with others only delays them.
                _ = stream.set_nodelay(true);
                return (stream, connections.slot().await);
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
    use axum::routing::{get, post};
    use bytes::Bytes;
    use futures::stream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::{mpsc, oneshot, watch};

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n";

    async fn start(
        router: Router,
        head_timeout: Duration,
    ) -> (TcpStream, CancellationToken, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let bounds = Bounds {
            connections: 2,
            head: head_timeout,
            stall: Duration::from_millis(200),
        };
        let server = tokio::spawn(serve_within(listener, router, stop.clone(), bounds));
        (TcpStream::connect(address).await.unwrap(), stop, server)
    }

    #[tokio::test]
    async fn a_head_that_does_not_come_ends_the_connection() {
        for begun in [
            "",
            "G",
            "GET / HTTP/1.1\r\nhost:",
            "PRI * HT",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            let (mut client, _stop, _server) =
                start(Router::new(), Duration::from_millis(100)).await;
            client.write_all(begun.as_bytes()).await.unwrap();
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).await.unwrap();
            assert!(!rest.starts_with(b"HTTP/1.1 200"), "{begun}");
        }
    }

    #[test]
    fn the_api_leaves_files_for_everything_else() {
        for (files, connections) in [
            (0, 32),
            (256, 32),
            (1_024, 384),
            (20_000, 9_872),
            (1 << 30, 10_000),
        ] {
            assert_eq!(connections_within(files), connections, "{files}");
        }
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
        let (mut client, _stop, _server) =
            start(Router::new().route("/", endless), HEAD_TIMEOUT).await;
        client.write_all(REQUEST).await.unwrap();
        assert!(
            released.await.is_err(),
            "the body is dropped while the client is still there"
        );
        drop(client);
    }

    #[tokio::test]
    async fn silent_connections_are_evicted_and_busy_ones_are_not() {
        let (entered, mut inside) = mpsc::channel(1);
        let (finish, finished) = watch::channel(false);
        let slow = post(async move |body: Bytes| {
            entered.send(()).await.unwrap();
            finished
                .clone()
                .wait_for(|finished| *finished)
                .await
                .unwrap();
            body
        });
        let (mut busy, _stop, _server) = start(
            Router::new().route("/", slow).route("/fast", get("fast")),
            HEAD_TIMEOUT,
        )
        .await;
        let ask =
            b"POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 4\r\n\r\nbody";
        busy.write_all(ask).await.unwrap();
        inside.recv().await.unwrap();
        let connect = async || TcpStream::connect(busy.peer_addr().unwrap()).await.unwrap();
        let mut silent = Vec::new();
        for number in 0..20 {
            silent.push(connect().await);
            // Everything but the last byte of a request.
            silent[number]
                .write_all(&ask[..ask.len() - 1])
                .await
                .unwrap();
        }
        let mut quick = connect().await;
        quick
            .write_all(b"GET /fast HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        quick.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("fast"), "{answer}");
        finish.send(true).unwrap();
        let mut answer = String::new();
        busy.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("body"), "{answer}");
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
