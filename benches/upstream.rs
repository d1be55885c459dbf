//! The benches' marketplace: a small hyper server in a process of its own, which answers every search with fares of a given size after a
//! given time, and keeps when each came.
//!
//! It ends when its standard input does, so none is left behind whatever becomes of who started it.

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

/// So many different bodies, taken in turn.
const BODIES: usize = 64;

/// One that runs.
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

    /// When the searches came, since the epoch, from the so many-th on.
    pub async fn arrivals(&self, from: usize) -> Res<Vec<Duration>> {
        let nanos: Vec<u64> =
            serde_json::from_slice(&get(self.address, &format!("/arrivals/{from}")).await?)?;
        Ok(nanos.into_iter().map(Duration::from_nanos).collect())
    }

    /// How many searches have come, and how many of them are not answered yet.
    pub async fn counts(&self) -> Res<(usize, usize)> {
        Ok(serde_json::from_slice(
            &get(self.address, "/counts").await?,
        )?)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // Its input ends here, and so does it.
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

/// What the server knows.
struct State {
    delay: Duration,
    bodies: Vec<Bytes>,
    came: Mutex<Vec<u64>>,
    open: AtomicUsize,
    line: mpsc::Sender<(Instant, oneshot::Sender<()>)>,
}

/// The server itself, until its input ends.
pub fn run(delay_ms: u64, bytes: usize) -> Res<()> {
    let (line, waiting) = mpsc::channel();
    std::thread::spawn(move || wait_out(&waiting));
    let bodies = (0..BODIES)
        .map(|number| Bytes::from(fares(number, bytes)))
        .collect();
    let state = State {
        delay: Duration::from_millis(delay_ms),
        bodies,
        came: Mutex::default(),
        open: AtomicUsize::new(0),
        line,
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

/// Every search waits equally long, so they end in the order in which they came: one thread that sleeps to the microsecond serves them all,
/// where the runtime's timers would round to the millisecond.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread of its own, which does nothing but wait"
)]
fn wait_out(waiting: &mpsc::Receiver<(Instant, oneshot::Sender<()>)>) {
    for (due, over) in waiting {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        // Who asked may have gone.
        let _ = over.send(());
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) -> Res<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let state = Arc::clone(&state);
        let service = service_fn(move |request| answer(Arc::clone(&state), request));
        // A client that goes is no fault.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() == Method::GET {
        return Ok(Response::new(Full::from(
            told(&state, request.uri().path()).to_string(),
        )));
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let number = {
        let mut came = state.came.lock().unwrap_or_else(PoisonError::into_inner);
        came.push(u64::try_from(now.as_nanos()).unwrap_or_default());
        came.len()
    };
    state.open.fetch_add(1, Ordering::Relaxed);
    // Read, as a marketplace does; what it says is not looked at.
    drop(request.into_body().collect().await);
    if state.delay > Duration::ZERO {
        let (over, is_over) = oneshot::channel();
        let _ = state.line.send((Instant::now() + state.delay, over));
        let _ = is_over.await;
    }
    state.open.fetch_sub(1, Ordering::Relaxed);
    let body = state.bodies[number % BODIES].clone();
    let response = Response::builder()
        .header("content-type", "application/json")
        .header("x-search-status", "ok");
    Ok(response.body(Full::new(body)).unwrap_or_default())
}

fn told(state: &State, path: &str) -> Value {
    let came = state.came.lock().unwrap_or_else(PoisonError::into_inner);
    match path
        .strip_prefix("/arrivals/")
        .and_then(|from| from.parse().ok())
    {
        Some(from) => json!(came.get(from..).unwrap_or_default()),
        None => json!([came.len(), state.open.load(Ordering::Relaxed)]),
    }
}

/// A one-way answer of exactly `bytes` bytes, as the specification describes its rows; the last row's link is as long as it takes.
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
