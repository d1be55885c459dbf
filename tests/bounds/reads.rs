//! Heavy reads of one caller during light reads of another.

use std::time::Duration;

use farescan::ids::ScanId;
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;

use super::{ApiClient, p99};
use crate::exports::memory::{memory_kb, reset_peak_memory};
use crate::exports::seed;
use crate::faults::process::FarescanProcess;
use crate::support::app::tenant;
use crate::support::array;
use crate::worker::fixture::{KEY, WorkerFixture};

const HEAVY: usize = 60;
const ITEMS: i32 = 10_000;
/// The memory that sixty concurrent exports may add to the process.
const EXPORTS_KB: u64 = 150_000;

/// The memory that a page of large answers may add: two unpacked answers and the text of the page.
const LARGE_ANSWERS_KB: u64 = 100_000;

async fn seeded(fixture: &WorkerFixture) -> [ScanId; 2] {
    let tenant = tenant(fixture.pool(), &fixture.ring, KEY).await;
    [
        seed::scan(fixture.pool(), tenant, ITEMS).await,
        seed::scan(fixture.pool(), tenant, ITEMS).await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_compares_do_not_slow_another_caller() {
    let fixture = WorkerFixture::new().await;
    let [before, after] = seeded(&fixture).await;
    tenant(fixture.pool(), &fixture.ring, "another-callers-key").await;
    let service = FarescanProcess::start_gateway(&fixture);
    let url = service.url().await;
    let (greedy, other) = (
        ApiClient::new(&url, KEY),
        ApiClient::new(&url, "another-callers-key"),
    );
    let path = format!("/v1/scans/{before}/compare/{after}");
    let mut compares: FuturesUnordered<_> = (0..HEAVY)
        .map(|_| {
            tokio::spawn({
                let (greedy, path) = (greedy.clone(), path.clone());
                async move { greedy.get(&path).await }
            })
        })
        .collect();
    // Repeat until all requests are answered, with any status.
    let (mut reads, mut answered, mut served) = (Vec::new(), 0, 0);
    while answered < HEAVY {
        let read = other.get("/v1/quota").await;
        reads.push((read.status, read.took));
        while let Some(Some(one)) = futures::FutureExt::now_or_never(compares.next()) {
            let one = one.unwrap();
            assert!(
                matches!(one.status, 200 | 429 | 503),
                "{}: {}",
                one.status,
                one.body
            );
            assert!(one.status == 200 || one.retry_after.is_some());
            answered += 1;
            served += usize::from(one.status == 200);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let failed = reads.iter().filter(|(status, _)| *status != 200).count();
    println!(
        "beside {HEAVY} compares ({served} answered 200): {failed} of {} quota reads failed, p99 {:.1?}",
        reads.len(),
        p99(reads.iter().map(|(_, took)| *took).collect())
    );
    assert_eq!(failed, 0);
    // Where each takes longer than its time limit, the next one is alone.
    while served == 0 {
        served += usize::from(greedy.get(&path).await.status == 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_exports_use_bounded_memory() {
    let fixture = WorkerFixture::new().await;
    let [scan, _] = seeded(&fixture).await;
    let service = FarescanProcess::start_gateway(&fixture);
    let url = service.url().await;
    let greedy = ApiClient::new(&url, KEY);
    greedy.get(&format!("/v1/scans/{scan}/items?limit=1")).await;
    reset_peak_memory(service.pid());
    let before = memory_kb(service.pid(), "VmRSS");
    let answers = join_all((0..HEAVY).map(|_| async {
        let http = crate::support::http_client();
        let request = http
            .get(format!("{url}/v1/scans/{scan}/items"))
            .header("x-api-key", KEY);
        let response = request
            .header("accept", "application/vnd.apache.parquet")
            .send()
            .await
            .unwrap();
        let status = response.status().as_u16();
        // On a busy machine a page of it may come too late: then the stream ends early.
        let bytes = response.bytes().await.map_or(0, |bytes| bytes.len());
        (status, bytes)
    }))
    .await;
    let grown = memory_kb(service.pid(), "VmHWM").saturating_sub(before);
    let whole = |answer: &&(u16, usize)| answer.0 == 200 && answer.1 > 0;
    let served = answers.iter().filter(whole).count();
    println!("{HEAVY} exports at once: {served} came whole, {grown} kB more");
    assert!(
        answers
            .iter()
            .all(|(status, _)| matches!(status, 200 | 429 | 503)),
        "{answers:?}"
    );
    assert!(served > 0 && grown < EXPORTS_KB, "{grown} kB");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_large_answers_is_cut_and_complete() {
    const LARGE: i32 = 6;
    const VALUES: usize = 2_000_000;
    let fixture = WorkerFixture::new().await;
    let scan = seed::scan(
        fixture.pool(),
        tenant(fixture.pool(), &fixture.ring, KEY).await,
        LARGE,
    )
    .await;
    // 4 MB of small values: parsed, they would take many times the memory of the text.
    let answer = serde_json::Value::from(vec![1; VALUES]);
    seed::answer(fixture.pool(), scan, &[answer]).await;
    let service = FarescanProcess::start_gateway(&fixture);
    let url = service.url().await;
    let caller = ApiClient::new(&url, KEY);
    let path = format!("/v1/scans/{scan}/items?expand=answer&limit=50");
    caller.get(&format!("/v1/scans/{scan}/items?limit=1")).await;
    reset_peak_memory(service.pid());
    let before = memory_kb(service.pid(), "VmRSS");
    let (mut positions, mut pages, mut next) = (Vec::new(), 0, path.clone());
    loop {
        let page = caller.get(&next).await;
        assert_eq!(page.status, 200, "{}", page.body);
        for item in array(&page.body["data"]) {
            assert_eq!(array(&item["answer"]).len(), VALUES);
            positions.push(item["position"].as_i64().unwrap());
        }
        pages += 1;
        let Some(cursor) = page.body["next_cursor"].as_str() else {
            break;
        };
        next = format!("{path}&cursor={cursor}");
    }
    let grown = memory_kb(service.pid(), "VmHWM").saturating_sub(before);
    println!("{LARGE} answers of 4 MB in {pages} pages: {grown} kB more");
    assert_eq!(positions, (0..i64::from(LARGE)).collect::<Vec<_>>());
    assert!(grown < LARGE_ANSWERS_KB, "{grown} kB");
}
