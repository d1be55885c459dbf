//! The HTTP/1 server: it limits the number of connections, the time of a request head and the time
//! a client may read nothing. On shutdown it waits for the requests in flight.
//!
//! It does not speak HTTP/2: TLS proxies speak HTTP/1 to their backends, and a second protocol on a
//! public port would need every limit a second time (docs/decisions/0030).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::connections::{
    ConnectionActivity, ConnectionEvicted, ConnectionSlot, ListenerConnections, TrackedRequestBody,
    TrackedResponseBody,
};
use super::middleware::HEAD_BYTES;
use super::socket::ClientSocket;
use farescan_core::app::client_address::ConnectionAddresses;
use farescan_core::open_files;

/// How long the head of a request may take, from the start of a connection or the response before
/// (security.md, rule 18).
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may read nothing of a response: far more than a slow line needs for the next
/// bytes.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long shutdown waits for requests in flight: as long as a search may take (engine.md, rule
/// 65). Longer downloads are cut off.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(200);
/// Pause after a failed accept, as when no file descriptor is free.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// The maximum number of API connections, whatever the file limit.
const MAX_CONNECTIONS: usize = 10_000;
/// The minimum number of API connections.
const MIN_CONNECTIONS: usize = 32;
/// The maximum number of admin connections.
const ADMIN_CONNECTIONS: usize = 64;
/// File descriptors reserved for the database, calls of scans, webhooks, the spool and the admin
/// listener.
const RESERVED_FILES: u64 = 256;
/// File descriptors of one connection: its own, and one to the marketplace for its search.
const FILES_PER_CONNECTION: u64 = 2;

/// The limits of one listener.
#[derive(Debug, Clone, Copy)]
struct ListenerLimits {
    connections: usize,
    head_timeout: Duration,
    stall_timeout: Duration,
}

/// Serves the API until `stop`, then waits for the requests in flight, at most [`DRAIN_TIMEOUT`].
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    serve_with_limits(
        listener,
        router,
        stop,
        ListenerLimits::of(connections_within(open_files::limit())),
    )
    .await;
}

/// The same for the admin listener.
pub async fn serve_admin(listener: TcpListener, router: Router, stop: CancellationToken) {
    serve_with_limits(
        listener,
        router,
        stop,
        ListenerLimits::of(ADMIN_CONNECTIONS),
    )
    .await;
}

impl ListenerLimits {
    const fn of(connections: usize) -> Self {
        Self {
            connections,
            head_timeout: HEAD_TIMEOUT,
            stall_timeout: STALL_TIMEOUT,
        }
    }
}

/// The number of connections that a file limit allows.
fn connections_within(files: u64) -> usize {
    let connections = usize::try_from(files.saturating_sub(RESERVED_FILES) / FILES_PER_CONNECTION)
        .unwrap_or(MAX_CONNECTIONS);
    connections.clamp(MIN_CONNECTIONS, MAX_CONNECTIONS)
}

async fn serve_with_limits(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
    limits: ListenerLimits,
) {
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(HEAD_BYTES);
    let (connections, graceful) = (
        ListenerConnections::new(limits.connections),
        GracefulShutdown::new(),
    );
    while let Some((stream, addresses, slot)) = stop
        .run_until_cancelled(accept(&listener, &connections))
        .await
    {
        let (router, activity) = (router.clone(), slot.activity());
        let service = service_fn(move |request| {
            answer(router.clone(), request, addresses, Arc::clone(&activity))
        });
        let stream = TokioIo::new(ClientSocket::new(stream, limits.stall_timeout));
        let connection = graceful.watch(builder.serve_connection(stream, service));
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = slot.evicted() => tracing::debug!("idle connection evicted"),
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "connection failed");
                    }
                }
            }
        });
    }
    drop(listener);
    if timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::warn!("shutdown cut off requests in flight");
    }
}

async fn answer(
    router: Router,
    request: Request<Incoming>,
    addresses: ConnectionAddresses,
    activity: Arc<ConnectionActivity>,
) -> Result<axum::http::Response<TrackedResponseBody>, ConnectionEvicted> {
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(addresses);
    // No handler reads the body of a GET or DELETE: its connection would count as waiting for the client
    // while the request is answered, and could be evicted.
    let is_read = !matches!(parts.method, Method::GET | Method::HEAD | Method::DELETE);
    let body = TrackedRequestBody::new(body, is_read, Arc::clone(&activity))?;
    let body = Body::new(body);
    let response = router
        .oneshot(Request::from_parts(parts, body))
        .await
        .unwrap_or_else(|never: Infallible| match never {});
    Ok(response.map(|body| TrackedResponseBody::new(body, activity)))
}

async fn accept(
    listener: &TcpListener,
    connections: &Arc<ListenerConnections>,
) -> (TcpStream, ConnectionAddresses, ConnectionSlot) {
    loop {
        let accepted = listener.accept().await;
        match accepted.and_then(|(stream, client)| Ok((client, stream.local_addr()?, stream))) {
            Ok((client, own, stream)) => {
                // Responses are written in one piece; Nagle's algorithm would only delay them.
                _ = stream.set_nodelay(true);
                let addresses = ConnectionAddresses {
                    client: client.ip(),
                    own: own.ip().to_canonical(),
                };
                return (stream, addresses, connections.slot().await);
            }
            Err(error) => {
                tracing::warn!(%error, "accept failed; retrying");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
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
        let limits = ListenerLimits {
            connections: 2,
            head_timeout,
            stall_timeout: Duration::from_millis(200),
        };
        let server = tokio::spawn(serve_with_limits(listener, router, stop.clone(), limits));
        (TcpStream::connect(address).await.unwrap(), stop, server)
    }

    #[tokio::test]
    async fn an_incomplete_head_times_out() {
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
    fn the_api_reserves_file_descriptors() {
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
    async fn a_client_that_reads_nothing_is_disconnected() {
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

    async fn read_all(mut stream: TcpStream) -> String {
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    #[tokio::test]
    async fn silent_connections_are_evicted_and_busy_ones_stay() {
        let post =
            "POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 4\r\n\r\nbody";
        // The body of a GET never arrives completely, and its handler does not read it.
        let get_with_body = post.replace("POST", "GET").replace("body", "bo");
        for request in [post, &get_with_body] {
            let (entered, mut inside) = mpsc::channel(1);
            let (finish, finished) = watch::channel(false);
            let slow = async move || {
                entered.send(()).await.unwrap();
                finished
                    .clone()
                    .wait_for(|finished| *finished)
                    .await
                    .unwrap();
                "done"
            };
            let handlers = get(slow.clone()).post(async move |_: Bytes| slow().await);
            let router = Router::new()
                .route("/", handlers)
                .route("/fast", get("fast"));
            let (mut busy, _stop, _server) = start(router, HEAD_TIMEOUT).await;
            busy.write_all(request.as_bytes()).await.unwrap();
            inside.recv().await.unwrap();
            let connect = async || TcpStream::connect(busy.peer_addr().unwrap()).await.unwrap();
            let mut silent = Vec::new();
            for _ in 0..20 {
                let mut stream = connect().await;
                let incomplete = &post.as_bytes()[..post.len() - 1];
                stream.write_all(incomplete).await.unwrap();
                silent.push(stream);
            }
            let mut quick = connect().await;
            quick
                .write_all(b"GET /fast HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
                .await
                .unwrap();
            assert!(read_all(quick).await.ends_with("fast"));
            finish.send(true).unwrap();
            assert!(read_all(busy).await.ends_with("done"), "{request}");
        }
    }

    #[tokio::test]
    async fn shutdown_waits_for_requests_in_flight() {
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
