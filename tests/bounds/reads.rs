//! Heavy reads of one caller, and the light reads of another meanwhile.

use std::time::Duration;

use farescan::ids::{ScanId, TenantId};
use farescan::search::CallerKey;
use farescan::tenants::store;
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;

use super::{Caller, p99};
use crate::exports::memory::{forget_highest, memory_kb};
use crate::exports::seed;
use crate::faults::process::Serve;
use crate::worker::stage::{KEY, Stage};

const HEAVY: usize = 60;
const ITEMS: i32 = 10_000;
/// What sixty exports at once may add to the process.
const EXPORTS_KB: u64 = 150_000;

/// What a page of large answers may add: two of them, unpacked, and the text of the page.
const LARGE_ANSWERS_KB: u64 = 100_000;

async fn tenant(stage: &Stage, key: &str) -> TenantId {
    let mut conn = stage.pool().acquire().await.unwrap();
    store::find_or_make(
        &mut conn,
        &stage.ring,
        &CallerKey::new(key),
        Timestamp::now(),
    )
    .await
    .unwrap()
}

async fn seeded(stage: &Stage) -> [ScanId; 2] {
    let tenant = tenant(stage, KEY).await;
    [
        seed::scan(stage.pool(), tenant, ITEMS).await,
        seed::scan(stage.pool(), tenant, ITEMS).await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_compares_of_one_caller_leave_anothers_reads_alone() {
    let stage = Stage::new().await;
    let [before, after] = seeded(&stage).await;
    tenant(&stage, "another-callers-key").await;
    let service = Serve::gateway(&stage);
    let url = service.url().await;
    let (greedy, other) = (
        Caller::new(&url, KEY),
        Caller::new(&url, "another-callers-key"),
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
    // Until all have been answered, each as it may.
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
    assert!(served > 0, "the heavy reads go on, some at a time");
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_exports_of_one_caller_take_bounded_memory() {
    let stage = Stage::new().await;
    let [scan, _] = seeded(&stage).await;
    let service = Serve::gateway(&stage);
    let url = service.url().await;
    let greedy = Caller::new(&url, KEY);
    greedy.get(&format!("/v1/scans/{scan}/items?limit=1")).await;
    forget_highest(service.pid());
    let before = memory_kb(service.pid(), "VmRSS");
    let answers = join_all((0..HEAVY).map(|_| async {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = http
            .get(format!("{url}/v1/scans/{scan}/items"))
            .header("x-api-key", KEY);
        let response = request
            .header("accept", "application/vnd.apache.parquet")
            .send()
            .await
            .unwrap();
        let status = response.status().as_u16();
        (status, response.bytes().await.unwrap().len())
    }))
    .await;
    let grown = memory_kb(service.pid(), "VmHWM").saturating_sub(before);
    let served = answers.iter().filter(|(status, _)| *status == 200).count();
    println!("{HEAVY} exports at once: {served} answered 200, {grown} kB more");
    assert!(
        answers
            .iter()
            .all(|(status, _)| matches!(status, 200 | 429 | 503)),
        "{answers:?}"
    );
    assert!(served > 0 && grown < EXPORTS_KB, "{grown} kB");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_large_answers_is_shorter_and_none_is_left_out() {
    const LARGE: i32 = 6;
    const VALUES: usize = 2_000_000;
    let stage = Stage::new().await;
    let scan = seed::scan(stage.pool(), tenant(&stage, KEY).await, LARGE).await;
    // 4 MB of small values: taken apart, each would be many times as large as its text.
    let answer = serde_json::Value::from(vec![1; VALUES]);
    seed::answer(stage.pool(), scan, &[answer]).await;
    let service = Serve::gateway(&stage);
    let url = service.url().await;
    let caller = Caller::new(&url, KEY);
    let path = format!("/v1/scans/{scan}/items?expand=answer&limit=50");
    caller.get(&format!("/v1/scans/{scan}/items?limit=1")).await;
    forget_highest(service.pid());
    let before = memory_kb(service.pid(), "VmRSS");
    let (mut positions, mut pages, mut next) = (Vec::new(), 0, path.clone());
    loop {
        let page = caller.get(&next).await;
        assert_eq!(page.status, 200, "{}", page.body);
        for item in page.body["data"].as_array().unwrap() {
            assert_eq!(item["answer"].as_array().unwrap().len(), VALUES);
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
