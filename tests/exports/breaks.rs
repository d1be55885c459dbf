//! Changes during an export: new prices, a deleted scan, a lost database, a client that stops
//! reading.

use farescan::contract::scans::{ItemState, ItemsQuery};
use farescan::db;
use farescan::ids::ScanId;
use farescan::paging::PageError;
use farescan::scans::read;
use futures::future::join_all;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use sqlx::postgres::PgPoolOptions;

use super::seed;
use crate::support::app::{KEY, TestApp, ring, tenant};
use crate::support::db::{PrivatePg, TestDb};

/// 15 MB with answers, more than the buffers between a service and its client hold.
const MANY: i32 = 2_500;

fn query(pairs: &[(&str, &str)]) -> ItemsQuery {
    ItemsQuery::from_query(pairs.iter().copied()).unwrap()
}

/// Starts an export and reads its headers, but not its body.
async fn start_export(app: &TestApp, scan: ScanId, form: &str) -> reqwest::Response {
    let request = app.request("GET", &format!("/v1/scans/{scan}/items?expand=answer"));
    let response = request
        .header("x-api-key", KEY)
        .header("accept", form)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    response
}

#[tokio::test]
async fn an_item_with_a_new_price_is_exported_once() {
    let db = TestDb::new().await;
    let tenant = tenant(db.pool(), &ring(), KEY).await;
    let scan = seed::scan(db.pool(), tenant, 800).await;
    let (_, items) = read::all_items(db.pool(), tenant, scan, &query(&[("sort", "price")]))
        .await
        .unwrap()
        .unwrap();
    let mut items = Box::pin(items);
    let first: Vec<_> = items.by_ref().take(250).try_collect().await.unwrap();
    assert!(first.iter().all(|item| item.best_price.is_some()));
    // The cheapest items were retried and have no price now; those without a price are now the
    // cheapest.
    let change = "update scan_items set best_price = case when best_price is null then 1 when best_price < 300 then null else best_price end";
    execute!(db.pool(), change);
    let rest: Vec<_> = items.try_collect().await.unwrap();
    let mut positions: Vec<_> = first
        .iter()
        .chain(&rest)
        .map(|item| item.position)
        .collect();
    positions.sort_unstable();
    assert_eq!(positions, (0..800).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_item_that_no_longer_matches_is_left_out() {
    let db = TestDb::new().await;
    let tenant = tenant(db.pool(), &ring(), KEY).await;
    let scan = seed::scan(db.pool(), tenant, 600).await;
    execute!(db.pool(), "update scan_items set state = 'pending'");
    let (_, items) = read::all_items(db.pool(), tenant, scan, &query(&[("state", "pending")]))
        .await
        .unwrap()
        .unwrap();
    let mut items = Box::pin(items);
    items.try_next().await.unwrap().unwrap();
    execute!(
        db.pool(),
        "update scan_items set state = 'done' where position between 260 and 590"
    );
    let rest: Vec<_> = items.try_collect().await.unwrap();
    assert!(rest.iter().all(|item| item.state == ItemState::Pending));
    assert_eq!(rest.len(), 600 - 1 - 331);
}

/// Each compressed answer takes more than half of a page's limit.
#[tokio::test]
async fn large_answers_are_read_a_few_at_a_time() {
    let db = TestDb::new().await;
    let tenant = tenant(db.pool(), &ring(), KEY).await;
    let scan = seed::scan(db.pool(), tenant, 7).await;
    let mut state = 1_u64;
    let mut noise = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{state:016x}")
    };
    let answers: Vec<_> = (0..7)
        .map(|_| json!((0..90_000).map(|_| noise()).collect::<String>()))
        .collect();
    seed::answer(db.pool(), scan, &answers).await;
    let (_, items) = read::all_items(db.pool(), tenant, scan, &query(&[("expand", "answer")]))
        .await
        .unwrap()
        .unwrap();
    let found: Vec<Value> = items
        .map_ok(|item| item.answer.unwrap().read().unwrap())
        .try_collect()
        .await
        .unwrap();
    assert!(found == answers, "each with its own answer, in order");
}

#[tokio::test]
async fn deleting_a_scan_aborts_its_export() {
    let db = TestDb::new().await;
    let tenant = tenant(db.pool(), &ring(), KEY).await;
    let scan = seed::scan(db.pool(), tenant, 600).await;
    let (_, items) = read::all_items(db.pool(), tenant, scan, &query(&[]))
        .await
        .unwrap()
        .unwrap();
    let mut items = Box::pin(items);
    items.try_next().await.unwrap().unwrap();
    execute!(db.pool(), "delete from scans");
    let rest: Vec<_> = items.collect().await;
    assert_eq!(rest.len(), 250, "the rest of the page, and the error");
    assert!(matches!(rest.last(), Some(Err(PageError::Gone))));
}

#[tokio::test(flavor = "multi_thread")]
async fn losing_the_database_aborts_the_export() {
    let mut server = PrivatePg::start().await;
    let database = server.open().await;
    db::migrate(database.pool()).await.unwrap();
    let app = TestApp::builder()
        .scan_api(database.pool().clone(), database.connect_options().clone())
        .start()
        .await;
    let scan = seed::scan(
        database.pool(),
        tenant(database.pool(), &ring(), KEY).await,
        MANY,
    )
    .await;
    seed::answer(database.pool(), scan, &seed::answers()).await;
    for form in ["application/x-ndjson", "text/csv"] {
        let mut response = start_export(&app, scan, form).await;
        assert!(response.chunk().await.unwrap().is_some());
        server.stop_immediate().await;
        let mut bytes = 0;
        let end = loop {
            match response.chunk().await {
                Ok(Some(chunk)) => bytes += chunk.len(),
                end => break end,
            }
        };
        assert!(end.is_err(), "{form}: {bytes} bytes look complete");
        let before = app
            .request("GET", &format!("/v1/scans/{scan}/items"))
            .header("x-api-key", KEY)
            .header("accept", form);
        assert_eq!(
            app.send(before).await.kind(),
            "503 unavailable",
            "before the head is sent an error has its status"
        );
        server.restart().await;
    }
}

/// The pool has one connection: an export that holds it would block all others.
#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_hold_no_database_connection() {
    let db = TestDb::new().await;
    let tenant = tenant(db.pool(), &ring(), KEY).await;
    let scan = seed::scan(db.pool(), tenant, MANY).await;
    seed::answer(db.pool(), scan, &seed::answers()).await;
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect_with(db.connect_options())
        .await
        .unwrap();
    let app = TestApp::builder()
        .scan_api(pool, db.connect_options())
        .start()
        .await;
    let mut stalled = Vec::new();
    for _ in 0..2 {
        stalled.push(start_export(&app, scan, "application/x-ndjson").await);
    }
    for _ in 0..8 {
        assert_eq!(app.get(&format!("/v1/scans/{scan}")).await.status, 200);
    }
    // Concurrently: the service drops clients that stall for too long.
    for body in join_all(stalled.into_iter().map(reqwest::Response::text)).await {
        assert_eq!(
            body.unwrap().lines().count(),
            usize::try_from(MANY).unwrap(),
            "it continues when the client reads again"
        );
    }
}
