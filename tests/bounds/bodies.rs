//! The memory of an invalid body before it is refused, measured for the whole process.

#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::exports::memory::{memory_kb, reset_peak_memory};
use crate::faults::process::FarescanProcess;
use crate::worker::fixture::WorkerFixture;

const MIB: usize = 1 << 20;
const AT_ONCE: usize = 30;
/// The memory that one body, and thirty bodies, may add to the process. The worst body adds 7.4 MB,
/// give or take what the allocator keeps.
const ONE_KB: u64 = 10_000;
const ALL_KB: u64 = 300_000;

/// A body of nearly 1 MiB that repeats `part`.
fn repeated(begin: &str, part: &str, end: &str) -> String {
    let times = (MIB - begin.len() - end.len()) / part.len();
    format!("{begin}{}{end}", part.repeat(times))
}

/// Bodies that need much more memory than their text, each with its error.
fn shapes() -> Vec<(&'static str, String, &'static str)> {
    const BEGIN: &str = r#"{"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "departure_date": "2030-01-01"}, "#;
    let of_sweep = |part: &str, last: &str| {
        repeated(
            &format!("{BEGIN}\"sweep\": {{\"to_airport\": ["),
            part,
            &format!("{last}]}}}}"),
        )
    };
    let lists = |count: usize| format!("[{}\"AA\"]", "\"AA\",".repeat(count - 1));
    let most_lists = format!(
        "{BEGIN}\"sweep\": {{\"airline_codes\": [{}], \"to_airport\": [\"LHR\"]}}}}",
        vec![lists(13); 1_420].join(",")
    );
    let dates =
        "\"sweep\": {\"departure_date\": {\"from\": \"2030-01-01\", \"to\": \"2057-05-18\"}}";
    let route = "{\"endpoint\": \"flights/oneway\", \"request\": {\"from_airport\": \"TLV\", \"to_airport\": \"LHR\"";
    vec![
        (
            "a list of numbers",
            of_sweep("1,", "1"),
            "`sweep.to_airport`: found more than 16384 values",
        ),
        (
            "a list of codes",
            of_sweep("\"LHR\",", "\"LHR\""),
            "`sweep.to_airport`: found more than 16384 values",
        ),
        (
            "lists of one",
            of_sweep("[1],", "1"),
            "`body`: found more than 20000 values",
        ),
        (
            "lists of lists",
            of_sweep("[[[[[[[[1]]]]]]]],", "1"),
            "`body`: found more than 20000 values",
        ),
        (
            "objects",
            of_sweep("{\"a\":1},", "1"),
            "`body`: found more than 20000 values",
        ),
        (
            "many fields",
            repeated("{", "\"a\":1,", "\"b\":1}"),
            "`body`: found more than 20000 values",
        ),
        (
            "many names",
            format!(
                "{{{}\"b\":1}}",
                (0..90_000)
                    .map(|n| format!("\"a{n}\":1,"))
                    .collect::<String>()
            ),
            "`body`: found more than 1000 values",
        ),
        ("deep", repeated("", "[", ""), "nested at most 64 deep"),
        (
            "a long label",
            repeated(&format!("{BEGIN}\"label\": \""), "x", "\"}"),
            "`label`: found",
        ),
        (
            "a long name",
            repeated("{\"", "x", "\":1}"),
            "unknown field `xxx",
        ),
        (
            "escapes",
            repeated(&format!("{BEGIN}\"label\": \""), "\\u0001", "\"}"),
            "`label`: found",
        ),
        ("as many as are read", most_lists, "`sweep.airline_codes"),
        (
            "long lists in many items",
            format!("{route}, \"airline_codes\": {}}}, {dates}}}", lists(2_000)),
            "`request`: found long values",
        ),
        ("ten thousand items", format!("{route}}}, {dates}}}"), ""),
    ]
}

async fn send(url: &str, key: &str, body: &str) -> (u16, String) {
    let client = crate::support::http_client();
    let request = client
        .post(format!("{url}/v1/scans/preview"))
        .header("x-api-key", key)
        .body(body.to_owned());
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    assert!(!matches!(status, 429 | 503) || response.headers().contains_key("retry-after"));
    (status, response.text().await.unwrap())
}

/// A first small scan: what a process loads once (the table of airports) is no body's memory.
async fn warm_up(url: &str) {
    let body = r#"{"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-01"}}"#;
    let (status, answer) = send(url, "a-first-callers-key", body).await;
    assert_eq!(status, 200, "{answer}");
}

/// `cargo nextest run bounds::bodies --no-capture` shows the figures.
#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_body_uses_bounded_memory() {
    let fixture = WorkerFixture::new().await;
    let mut worst = 0;
    for (name, body, expected) in shapes() {
        // One process each: memory that another test freed would hide the growth.
        let service = FarescanProcess::start_gateway(&fixture);
        let url = service.url().await;
        warm_up(&url).await;
        reset_peak_memory(service.pid());
        let before = memory_kb(service.pid(), "VmRSS");
        let begun = Instant::now();
        let (status, answer) = send(&url, "a-first-callers-key", &body).await;
        let took = begun.elapsed();
        let grown = memory_kb(service.pid(), "VmHWM").saturating_sub(before);
        println!(
            "{name}: {} bytes, {status} in {took:.1?}, {grown} kB more",
            body.len()
        );
        assert!(
            expected.is_empty() || answer.contains(expected),
            "{name}: {answer}"
        );
        if !expected.is_empty() {
            assert_eq!(status, 400, "{name}: {answer}");
            worst = worst.max(grown);
        }
    }
    assert!(worst < ONE_KB, "{worst} kB");
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_large_bodies_at_once_leave_it_healthy() {
    let fixture = WorkerFixture::new().await;
    let service = FarescanProcess::start_gateway(&fixture);
    let url = service.url().await;
    warm_up(&url).await;
    reset_peak_memory(service.pid());
    let before = memory_kb(service.pid(), "VmRSS");
    let done = Arc::new(AtomicBool::new(false));
    let health = tokio::spawn(watch_health(url.clone(), Arc::clone(&done)));
    for (name, body, _) in shapes() {
        let keys: Vec<_> = (0..AT_ONCE)
            .map(|number| format!("made-up-key-number-{number}"))
            .collect();
        let answers = join_all(keys.iter().map(|key| send(&url, key, &body))).await;
        let served = answers
            .iter()
            .filter(|(status, _)| matches!(status, 200 | 400))
            .count();
        let grown = memory_kb(service.pid(), "VmHWM").saturating_sub(before);
        println!("{AT_ONCE} at once, {name}: {served} answered, {grown} kB more until now");
        assert!(
            answers
                .iter()
                .all(|(status, _)| matches!(status, 200 | 400 | 429 | 503)),
            "{name}: {answers:?}"
        );
    }
    done.store(true, Ordering::Relaxed);
    let (asked, slowest) = health.await.unwrap();
    let grown = memory_kb(service.pid(), "VmHWM").saturating_sub(before);
    println!(
        "/healthz: asked {asked} times meanwhile, the slowest took {slowest:.1?}; {grown} kB more in all"
    );
    assert!(grown < ALL_KB, "{grown} kB");
}

/// The number of `/healthz` answers and the slowest one.
async fn watch_health(url: String, done: Arc<AtomicBool>) -> (u32, Duration) {
    let client = crate::support::http_client();
    let (mut asked, mut slowest) = (0, Duration::ZERO);
    while !done.load(Ordering::Relaxed) {
        let begun = Instant::now();
        assert_eq!(
            client
                .get(format!("{url}/healthz"))
                .send()
                .await
                .unwrap()
                .status(),
            200
        );
        slowest = slowest.max(begun.elapsed());
        asked += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (asked, slowest)
}
