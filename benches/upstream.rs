//! The benches' marketplace: a small hyper server in its own process, which answers every search
//! with fares of a given size after a given time, and records the arrival times.
//!
//! It ends when its standard input closes, so it never outlives the bench.

use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::Res;
use super::load::get;

/// The number of different bodies, which are used in turn.
const BODIES: usize = 64;

/// A running marketplace.
pub struct Upstream {
    child: Child,
    pub address: SocketAddr,
}

impl Upstream {
    /// Answers after `delay_ms` with bodies of `bytes`; 0 of them: an empty array.
    pub fn start(delay_ms: u64, bytes: usize) -> Res<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["upstream", &delay_ms.to_string(), &bytes.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().ok_or("no output")?).read_line(&mut line)?;
        Ok(Self {
            child,
            address: line.trim().parse()?,
        })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The arrival times of the searches since the epoch, from this number on.
    pub async fn arrivals(&self, from: usize) -> Res<Vec<Duration>> {
        let nanos: Vec<u64> = serde_json::from_slice(
            &get(self.address, &format!("/arrivals/{from}"), &[])
                .await?
                .1,
        )?;
        Ok(nanos.into_iter().map(Duration::from_nanos).collect())
    }

    /// How many searches have arrived, and how many of them are not answered yet.
    pub async fn counts(&self) -> Res<(usize, usize)> {
        Ok(serde_json::from_slice(
            &get(self.address, "/counts", &[]).await?.1,
        )?)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // Closing its input ends the process.
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

/// The state of the server.
struct ServerState {
    delay: Duration,
    bodies: Vec<Bytes>,
    arrivals: Mutex<Vec<u64>>,
    open: AtomicUsize,
    timer: mpsc::Sender<(Instant, oneshot::Sender<()>)>,
}

/// The server itself, until its input ends.
pub fn run(delay_ms: u64, bytes: usize) -> Res<()> {
    let (timer, waiting) = mpsc::channel();
    std::thread::spawn(move || run_timer(&waiting));
    let bodies = (0..BODIES)
        .map(|number| Bytes::from(fares(number, bytes)))
        .collect();
    let state = ServerState {
        delay: Duration::from_millis(delay_ms),
        bodies,
        arrivals: Mutex::default(),
        open: AtomicUsize::new(0),
        timer,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        tokio::select! {
            served = serve(listener, Arc::new(state)) => served,
            _ = ended => Ok(()),
        }
    })
}

/// All searches wait equally long, so they end in the order of arrival: one thread that sleeps to
/// the microsecond serves them, where the runtime's timers would round to the millisecond.
#[expect(
    clippy::disallowed_methods,
    reason = "a dedicated thread that only waits"
)]
fn run_timer(waiting: &mpsc::Receiver<(Instant, oneshot::Sender<()>)>) {
    for (due, over) in waiting {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        // The receiver may be gone.
        let _ = over.send(());
    }
}

async fn serve(listener: TcpListener, state: Arc<ServerState>) -> Res<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let state = Arc::clone(&state);
        let service = service_fn(move |request| answer(Arc::clone(&state), request));
        // A client may disconnect.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    state: Arc<ServerState>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() == Method::GET {
        return Ok(Response::new(Full::from(
            statistics(&state, request.uri().path()).to_string(),
        )));
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let number = {
        let mut arrivals = state
            .arrivals
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        arrivals.push(u64::try_from(now.as_nanos()).unwrap_or_default());
        arrivals.len()
    };
    state.open.fetch_add(1, Ordering::Relaxed);
    let is_hotel = request.uri().path().contains("hotel");
    // A marketplace reads the body too; its content is ignored.
    drop(request.into_body().collect().await);
    if state.delay > Duration::ZERO {
        let (over, is_over) = oneshot::channel();
        let _ = state.timer.send((Instant::now() + state.delay, over));
        let _ = is_over.await;
    }
    state.open.fetch_sub(1, Ordering::Relaxed);
    let body = if is_hotel {
        stay(number).to_string().into()
    } else {
        state.bodies[number % BODIES].clone()
    };
    let response = Response::builder()
        .header("content-type", "application/json")
        .header("x-search-status", "ok");
    Ok(response.body(Full::new(body)).unwrap_or_default())
}

fn statistics(state: &ServerState, path: &str) -> Value {
    let arrivals = state
        .arrivals
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    match path
        .strip_prefix("/arrivals/")
        .and_then(|from| from.parse().ok())
    {
        Some(from) => json!(arrivals.get(from..).unwrap_or_default()),
        None => json!([arrivals.len(), state.open.load(Ordering::Relaxed)]),
    }
}

/// A one-way answer of exactly `bytes` bytes, as gateway.md, rule 25, describes its rows; the last
/// row's link is as long as it takes.
fn fares(number: usize, bytes: usize) -> String {
    let mut rows: Vec<Value> = Vec::new();
    let text = |rows: &[Value]| json!(rows).to_string();
    while text(&rows).len() + 700 < bytes {
        rows.push(fare(number * 31 + rows.len() * 7, ""));
    }
    if bytes > 700 {
        let bare = fare(number, "");
        rows.push(bare);
        let lacking = bytes.saturating_sub(text(&rows).len());
        rows.pop();
        rows.push(fare(
            number,
            &"CBwQAhoeEgoyMDI3LTAxLTE0agcIARIDVExWcgcIARIDTEhS"
                .chars()
                .cycle()
                .take(lacking)
                .collect::<String>(),
        ));
    }
    text(&rows)
}

/// An answer of hotels/by-name (gateway.md, rule 31).
fn stay(number: usize) -> Value {
    let price = 400 + number % 40;
    json!({
        "available": true, "name": "Grand Hotel", "price": price, "price_string": format!("${price}"),
        "review_score": 8.4, "review_count": 1_000, "room_type": "Double Room",
        "image_url": null, "link": "https://hotels.example/grand", "nights": 2, "adults": 2, "children": 0,
    })
}

fn fare(number: usize, more: &str) -> Value {
    let price = 150 + number % 400;
    let verdict = ["low", "typical", "high", ""][number % 4];
    let airline = ["Example Air", "Sample Airways", "Beispiel Flug"][number % 3];
    json!({
        "price_range_in_relation_to_other_periods": verdict,
        "price_insights_low": 180, "price_insights_high": 320,
        "from_airport": "Tel Aviv (TLV)", "to_airport": "London (LHR)", "departure_date": "2027-01-14",
        "price": format!("${price}"), "price_as_number": price,
        "duration": "5 hr 25 min", "duration_seconds": 19_500 + number % 7_000,
        "buy_link": format!("https://flights.example/search?tfs=CBwQAhoe{number}{more}&curr=USD"),
        "airline": airline, "stops": number % 3,
        "stops_info": [{"stop_airport": "VIE", "stop_duration_seconds": 5_400}],
        "departure_description": "7:15 AM on Thu, Jan 14", "arrival_description": "10:40 AM on Thu, Jan 14",
    })
}
