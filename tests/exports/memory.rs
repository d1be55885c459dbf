//! The memory that a service needs to export 10,000 items, measured at the process.

#![cfg(target_os = "linux")]

use std::net::SocketAddr;
use std::time::Duration;

use farescan::ids::ScanId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use super::seed;
use crate::faults::process::FarescanProcess;
use crate::support::app::{KEY, tenant};
use crate::worker::fixture::WorkerFixture;

const ITEMS: i32 = 10_000;
/// The most memory that an export may add.
const MOST_KB: u64 = 40_000;

/// The memory of a process in kB: `VmRSS`, or its peak, `VmHWM`.
pub fn memory_kb(pid: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(what)?.strip_prefix(':'))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Resets the peak to the current value.
pub fn reset_peak_memory(pid: u32) {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
}

/// Reads a response to its end, with pauses; returns its lines and bytes. Uses HTTP/1.0, so that
/// the body is all that follows the headers, and a small window, so that the service must wait for
/// the client.
async fn read(
    address: SocketAddr,
    path: &str,
    accept: &str,
    pause: Option<Duration>,
) -> (usize, usize) {
    let socket = TcpSocket::new_v4().unwrap();
    if pause.is_some() {
        socket.set_recv_buffer_size(16 * 1024).unwrap();
    }
    let mut stream = socket.connect(address).await.unwrap();
    let request =
        format!("GET {path} HTTP/1.0\r\nhost: h\r\nx-api-key: {KEY}\r\naccept: {accept}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut buffer = vec![0; 64 * 1024];
    let (mut lines, mut bytes, mut head) = (0, 0, Vec::new());
    loop {
        let read = stream.read(&mut buffer).await.unwrap();
        if read == 0 {
            break;
        }
        if bytes == 0 {
            head = buffer[..read].to_vec();
        }
        bytes += read;
        lines += buffer[..read].split(|byte| *byte == b'\n').count() - 1;
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }
    let head = String::from_utf8_lossy(&head);
    let (head, _) = head.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.0 200") || head.starts_with("HTTP/1.1 200"),
        "{head}"
    );
    // A binary file has no lines.
    (lines.saturating_sub(head.lines().count() + 1), bytes)
}

async fn seeded(fixture: &WorkerFixture) -> ScanId {
    let tenant = tenant(fixture.pool(), &fixture.ring, KEY).await;
    let scan = seed::scan(fixture.pool(), tenant, ITEMS).await;
    seed::answer(fixture.pool(), scan, &seed::answers()).await;
    scan
}

/// Exports a scan from a new process, so that it cannot reuse memory of another export, and checks
/// the growth of the process.
async fn assert_export_memory(accept: &str, query: &str, pause: Option<Duration>) {
    let fixture = WorkerFixture::new().await;
    let scan = seeded(&fixture).await;
    let path = format!("/v1/scans/{scan}/items");
    let (service, address) = FarescanProcess::start_listening(&fixture).await;
    read(
        address,
        &format!("{path}?limit=1&expand=answer"),
        "application/json",
        None,
    )
    .await;
    reset_peak_memory(service.pid());
    let before = memory_kb(service.pid(), "VmRSS");
    let begun = std::time::Instant::now();
    let (lines, bytes) = read(address, &format!("{path}{query}"), accept, pause).await;
    let highest = memory_kb(service.pid(), "VmHWM");
    let grown = highest.saturating_sub(before);
    println!(
        "{accept} {query} {pause:?}: {lines} lines, {} KB in {:.1?}; {before} kB before, {highest} kB at most: {grown} kB more",
        bytes / 1000,
        begun.elapsed()
    );
    service.kill();
    assert_eq!(
        lines,
        usize::try_from(ITEMS).unwrap() + usize::from(accept == "text/csv")
    );
    assert!(grown < MOST_KB, "{grown} kB");
}

// `cargo nextest run exports::memory --no-capture` shows the figures.

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_items_as_csv_take_less_than_40_mb() {
    assert_export_memory("text/csv", "?sort=price", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_items_as_ndjson_take_less_than_40_mb() {
    assert_export_memory("application/x-ndjson", "", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_answers_as_csv_take_less_than_40_mb() {
    assert_export_memory("text/csv", "?expand=answer", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_answers_read_slowly_take_less_than_40_mb() {
    assert_export_memory(
        "application/x-ndjson",
        "?expand=answer",
        Some(Duration::from_millis(2)),
    )
    .await;
}

/// Observations of one route; `script/bench history` does the same with a million.
const OBSERVATIONS: i32 = 200_000;
/// The most memory that an export of the history may add.
const HISTORY_KB: u64 = 100_000;

async fn assert_history_export_memory(accept: &str) {
    let fixture = WorkerFixture::new().await;
    let tenant = tenant(fixture.pool(), &fixture.ring, KEY).await;
    crate::history::seed::routes(fixture.pool(), tenant, 1, OBSERVATIONS / 400, 400).await;
    let (service, address) = FarescanProcess::start_listening(&fixture).await;
    let path = "/v1/history/flights?from_airport=RAA&to_airport=LHR";
    read(
        address,
        &format!("{path}&limit=500"),
        "application/json",
        None,
    )
    .await;
    reset_peak_memory(service.pid());
    let before = memory_kb(service.pid(), "VmRSS");
    let begun = std::time::Instant::now();
    let (lines, bytes) = read(address, path, accept, None).await;
    let grown = memory_kb(service.pid(), "VmHWM").saturating_sub(before);
    println!(
        "{accept}: {OBSERVATIONS} observations, {} KB in {:.1?}; {before} kB before, {grown} kB more",
        bytes / 1000,
        begun.elapsed()
    );
    service.kill();
    if accept != "application/vnd.apache.parquet" {
        assert_eq!(
            lines,
            usize::try_from(OBSERVATIONS).unwrap() + usize::from(accept == "text/csv")
        );
    }
    assert!(bytes > 1_000_000 && grown < HISTORY_KB, "{grown} kB");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_as_csv_takes_less_than_100_mb() {
    assert_history_export_memory("text/csv").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_as_ndjson_takes_less_than_100_mb() {
    assert_history_export_memory("application/x-ndjson").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_as_parquet_takes_less_than_100_mb() {
    assert_history_export_memory("application/vnd.apache.parquet").await;
}
