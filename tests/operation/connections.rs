//! Connections that send or read nothing: attacks without a key.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::process::{ListeningProcess, program};
use crate::support::SERVE;
use crate::worker::fixture::{KEY, WorkerFixture, ring_text};

/// Far more than an answer takes, even on a busy machine.
const WAIT_LIMIT: Duration = Duration::from_secs(20);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Silent connections per listener: more than the process's file limit.
const SILENT: usize = 1_100;
/// Connections of each kind that do not read.
const UNREAD: usize = 20;
/// Requests per connection.
const REQUESTS: u32 = 100;
/// Allowed memory growth in kB.
const GROWTH_KB: u64 = 20 * 1024;

/// `farescan serve` on the fixture with this limit on open files.
fn serve(fixture: &WorkerFixture, files: u32) -> ListeningProcess {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -n {files} && exec \"$0\" \"$@\"")])
        .arg(program());
    command.args(SERVE).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
        .env("DATABASE_URL", fixture.db.url())
        .env("FARESCAN_MASTER_KEY", ring_text());
    command
        .env("FARESCAN_FLIGHTS_URL", fixture.upstream.url())
        .env("FARESCAN_HOTELS_URL", fixture.upstream.url());
    command.env("FARESCAN_SPOOL_DIR", fixture.spool.path());
    ListeningProcess::start(&mut command)
}

pub(super) fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .timeout(WAIT_LIMIT)
        .pool_max_idle_per_host(0)
        .build()
        .unwrap()
}

async fn connect(address: SocketAddr) -> TcpStream {
    timeout(WAIT_LIMIT, TcpStream::connect(address))
        .await
        .expect("it connects in time")
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_silent_connections_delay_no_request() {
    let fixture = WorkerFixture::new().await;
    fixture.upstream.answer_fares(120);
    let service = serve(&fixture, 1_024);
    let (api, admin) = (service.address.unwrap(), service.admin.unwrap());
    for address in [api, admin] {
        let mut silent = Vec::new();
        for number in 0..SILENT {
            let mut stream = connect(address).await;
            if number % 2 == 0 {
                stream.write_all(&PREFACE[..9]).await.unwrap();
            }
            silent.push(stream);
        }
        let begin = Instant::now();
        let ready = client()
            .get(format!("http://{admin}/readyz"))
            .send()
            .await
            .expect("it answers beside them");
        assert_eq!(ready.status(), 200);
        let took = begin.elapsed();
        let body =
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-02"});
        let begin = Instant::now();
        let search = client()
            .post(format!("http://{api}/v1/flights/oneway"))
            .header("x-api-key", KEY)
            .json(&body);
        let search = search.send().await.expect("it answers beside them");
        assert_eq!(search.status(), 200);
        println!(
            "{SILENT} silent connections to {address}: readyz {took:?}, a search {:?}",
            begin.elapsed()
        );
        drop(silent);
    }
}

/// Resident memory in kB.
fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// An HTTP/2 client with a window of 0 that sends many requests: preface, settings, requests.
fn http2_with_window_0(path: &str) -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let path_length = u8::try_from(path.len()).unwrap();
    // From HPACK's static table: GET, http; then path and authority as literals.
    let headers = [
        &[0x82, 0x86, 0x04, path_length],
        path.as_bytes(),
        &[0x01, 1, b'h'],
    ]
    .concat();
    let mut bytes = [PREFACE, &frame(4, 0, 0, &[0, 4, 0, 0, 0, 0])].concat();
    for number in 0..REQUESTS {
        bytes.extend(frame(1, 5, 2 * number + 1, &headers));
    }
    bytes
}

/// Number of answered requests for a path, from the metrics.
async fn answered(admin: SocketAddr, path: &str) -> usize {
    let metrics = client()
        .get(format!("http://{admin}/metrics"))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let series =
        format!("farescan_http_request_duration_seconds_count{{route=\"{path}\",method=\"GET\"");
    let counts = metrics
        .lines()
        .filter(|line| line.starts_with(&series))
        .filter_map(|line| line.rsplit(' ').next());
    counts.map(|count| count.parse::<usize>().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_answers_hold_no_memory() {
    let fixture = WorkerFixture::new().await;
    let service = serve(&fixture, 1_024);
    let (api, admin) = (service.address.unwrap(), service.admin.unwrap());
    let path = "/openapi.json";
    for encoding in ["identity", "gzip"] {
        let warm = client()
            .get(format!("http://{api}{path}"))
            .header("accept-encoding", encoding)
            .send()
            .await
            .unwrap();
        warm.bytes().await.unwrap();
    }
    let idle = resident_kb(service.pid());
    let mut streams = Vec::new();
    let pipelined = format!("GET {path} HTTP/1.1\r\nhost: h\r\n\r\n").repeat(REQUESTS as usize);
    let begun = answered(admin, path).await;
    for _ in 0..UNREAD {
        let mut stream = connect(api).await;
        stream.write_all(pipelined.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    while answered(admin, path).await < begun + UNREAD {
        tokio::task::yield_now().await;
    }
    let http1 = resident_kb(service.pid()).saturating_sub(idle);
    let mut refused = 0;
    for _ in 0..UNREAD {
        let mut stream = connect(api).await;
        // The server may close the connection before all is written.
        _ = stream.write_all(&http2_with_window_0(path)).await;
        let mut answer = Vec::new();
        // A reset is an end too.
        refused += usize::from(
            timeout(WAIT_LIMIT / 4, stream.read_to_end(&mut answer))
                .await
                .is_ok(),
        );
        streams.push(stream);
    }
    let both = resident_kb(service.pid()).saturating_sub(idle);
    println!(
        "{UNREAD} connections that read nothing: {http1} kB; {UNREAD} more with HTTP/2: {both} kB; {refused} closed"
    );
    assert!(
        http1 < GROWTH_KB && both < GROWTH_KB,
        "{http1} kB, {both} kB"
    );
    assert_eq!(refused, UNREAD, "HTTP/2 is not spoken here");
}
