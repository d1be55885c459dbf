//! Load generators. Open loop: send times are fixed in advance and latencies count from the planned
//! time, so that a stalled server does not reduce the load. Closed loop: for the maximum
//! throughput.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HeaderName;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::Res;
use super::meter::Times;

/// A server, the request to send, and the idle connections.
pub struct Target {
    address: SocketAddr,
    path: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    min_bytes: usize,
    free: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl Target {
    /// Requests are POSTs. Any response but a 200 of at least `min_bytes` ends the run.
    pub fn new(
        address: SocketAddr,
        path: &'static str,
        headers: Vec<(&'static str, String)>,
        body: &serde_json::Value,
        min_bytes: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            address,
            path,
            headers,
            body: Bytes::from(body.to_string()),
            min_bytes,
            free: Mutex::default(),
        })
    }

    /// Sends one request and reads the whole response.
    async fn send(&self) -> Res<()> {
        let free = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let mut connection = match free {
            Some(free) if !free.is_closed() => free,
            _ => connect(self.address).await?,
        };
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.path)
            .header("host", "localhost");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let request = request
            .header("content-type", "application/json")
            .body(Full::new(self.body.clone()))?;
        connection.ready().await?;
        let response = connection.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if status != 200 || body.len() < self.min_bytes {
            return Err(format!(
                "{} answered {status}: {}",
                self.path,
                String::from_utf8_lossy(&body)
            )
            .into());
        }
        self.free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(connection);
        Ok(())
    }
}

async fn connect(address: SocketAddr) -> Res<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// The status and the body of a GET on a connection of its own.
pub async fn get(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Res<(u16, Bytes)> {
    let request = Request::builder().uri(path).body(Full::default())?;
    send(address, request, headers).await
}

/// A POST of JSON on a connection of its own: status and body.
pub async fn post(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &serde_json::Value,
) -> Res<(u16, Bytes)> {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(Full::from(body.to_string()))?;
    send(address, request, headers).await
}

async fn send(
    address: SocketAddr,
    mut request: Request<Full<Bytes>>,
    headers: &[(&str, &str)],
) -> Res<(u16, Bytes)> {
    for (name, value) in headers.iter().chain(&[("host", "localhost")]) {
        request
            .headers_mut()
            .insert(HeaderName::from_bytes(name.as_bytes())?, value.parse()?);
    }
    let mut connection = connect(address).await?;
    let response = connection.send_request(request).await?;
    Ok((
        response.status().as_u16(),
        response.into_body().collect().await?.to_bytes(),
    ))
}

/// Sends at random times (`per_second` on average, as independent callers do), and waits for every
/// response. Latencies are from the planned time to the last byte.
pub async fn open_loop(
    target: &Arc<Target>,
    per_second: f64,
    time: Duration,
    seed: u64,
) -> Res<Times> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut at = 0.0;
    let mut plan = Vec::new();
    while at < time.as_secs_f64() {
        at -= rng.random_range(f64::MIN_POSITIVE..1.0_f64).ln() / per_second;
        plan.push(Duration::from_secs_f64(at));
    }
    let count = plan.len();
    let (send, mut due) = mpsc::unbounded_channel();
    std::thread::spawn(move || send_on_schedule(&plan, &send));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    while let Some(planned) = due.recv().await {
        let (target, sender) = (Arc::clone(target), sender.clone());
        tokio::spawn(async move {
            let result = target.send().await;
            sender.send(result.map(|()| planned.elapsed()))
        });
    }
    drop(sender);
    let mut times = Vec::with_capacity(count);
    while let Some(time) = receiver.recv().await {
        times.push(time?);
    }
    Ok(Times::of(times))
}

/// Signals each send time precisely: the runtime's timers round to the millisecond.
#[expect(
    clippy::disallowed_methods,
    reason = "a dedicated thread that only waits"
)]
fn send_on_schedule(plan: &[Duration], send: &mpsc::UnboundedSender<Instant>) {
    let begun = Instant::now() + Duration::from_millis(5);
    for at in plan {
        let due = begun + *at;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if send.send(due).is_err() {
            return;
        }
    }
}

/// Sends repeatedly over `concurrency` connections; returns the number of responses.
pub async fn closed_loop(target: &Arc<Target>, concurrency: usize, time: Duration) -> Res<usize> {
    let (until, count) = (Instant::now() + time, Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..concurrency)
        .map(|_| {
            let (target, count) = (Arc::clone(target), Arc::clone(&count));
            tokio::spawn(async move {
                while Instant::now() < until {
                    target.send().await?;
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(count.load(Ordering::Relaxed))
}

/// Sends `count` requests at once; returns when all are answered.
pub async fn all_at_once(target: &Arc<Target>, count: usize) -> Res<()> {
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let target = Arc::clone(target);
            tokio::spawn(async move { target.send().await })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}
