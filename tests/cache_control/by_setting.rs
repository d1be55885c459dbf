//! `record_searches`: the searches of a caller are stored without any header (gateway.md, rules 59 and
//! 60).

use std::time::Duration;

use farescan::contract::Endpoint;
use serde_json::{Value, json};
use sqlx::postgres::PgPoolOptions;

use super::{records, search, wait_for_records};
use crate::gateway::endpoints::{bodies, body};
use crate::support::app::{HttpResponse, KEY, TestApp};
use crate::support::db::TestDb;
use crate::support::reply::Reply;
use crate::support::service::with;
use crate::support::upstream::{default_reply, fare};
use crate::support::{TestService, wait_until};

const ONEWAY: Endpoint = Endpoint::FlightsOneway;
const OTHER: &str = "another-key-0123456789";

async fn set(app: &TestApp, records: bool) {
    let settings = json!({"record_searches": records});
    let set = app.ask("PUT", "/v1/account/settings", Some(&settings));
    set.await.expect(200);
}

async fn recording() -> TestService {
    let service = TestService::start().await;
    set(&service, true).await;
    service
}

async fn plain(app: &TestApp, key: &str, endpoint: Endpoint, body: &Value) -> HttpResponse {
    app.post_as(key, &format!("/v1/{endpoint}"), body).await
}

/// Everything of a response but its time and its id.
fn shown(response: &HttpResponse) -> (u16, Vec<(String, String)>, &[u8]) {
    let own = ["date", "x-request-id"];
    let headers = response.headers.iter();
    let headers = headers.filter(|(name, _)| !own.contains(&name.as_str()));
    let headers =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    (response.status, headers.collect(), &response.bytes)
}

#[tokio::test]
async fn searches_are_stored_and_answered_as_without_the_setting() {
    let service = recording().await;
    let searches = bodies();
    let searches = searches
        .iter()
        .filter(|(endpoint, ..)| Endpoint::SEARCHES.contains(endpoint));
    for (number, (endpoint, _, body)) in (1..).zip(searches) {
        let stored = plain(&service, KEY, *endpoint, body).await;
        let unstored = plain(&service, OTHER, *endpoint, body).await;
        assert_eq!(shown(&stored), shown(&unstored), "{endpoint}");
        wait_for_records(&service, number).await;
        let reused = search(&service, "max-age=3600", *endpoint, body).await;
        assert_eq!(reused.header("x-upstream-requests"), "0", "{endpoint}");
        assert_eq!(reused.text(), stored.text());
    }
    let before = records(&service).await;
    let again = plain(&service, KEY, ONEWAY, &body(ONEWAY)).await;
    assert_eq!(
        again.header("x-upstream-requests"),
        "1",
        "nothing is reused unasked"
    );
    wait_for_records(&service, before + 1).await;
    let scans = service.get_as(OTHER, "/v1/scans").await.json();
    assert_eq!(scans["data"], json!([]), "another caller stores nothing");
    let history = "/v1/history/flights?from_airport=TLV&to_airport=LHR";
    assert_ne!(service.get(history).await["data"], json!([]));
    let bought = usize::try_from(before + 1).unwrap();
    service.wait_for_requests(KEY, bought).await;
    // Those of a caller that stores nothing are on its bill, too.
    let unstored = usize::try_from(before).unwrap();
    service.wait_for_requests(OTHER, unstored).await;
}

#[tokio::test]
async fn only_complete_answers_are_stored_while_the_setting_holds() {
    let service = TestService::start().await;
    let body = body(ONEWAY);
    plain(&service, KEY, ONEWAY, &body).await.expect(200);
    set(&service, true).await;
    let row = json!([fare(120, &body)]);
    for reply in [
        Reply::json(row.clone()).header("x-search-status", "partial"),
        Reply::json(json!([])).header("x-search-status", "degraded"),
        Reply::search_incomplete("no_response"),
        Reply::status(429),
        Reply::status(422),
    ] {
        service.upstream.reply(reply);
        plain(&service, KEY, ONEWAY, &body).await;
    }
    service.upstream.reply(Reply::json(row));
    for directives in ["no-store", "no-store, max-age=60", "max-age=60, no-store"] {
        let response = search(&service, directives, ONEWAY, &body).await;
        assert_eq!(response.header("x-upstream-requests"), "1", "{directives}");
    }
    let resolve = json!({"hotel_name": "Hotel One"});
    service.upstream.answer(default_reply);
    plain(&service, KEY, Endpoint::HotelsResolve, &resolve)
        .await
        .expect(200);
    for directives in ["no-cache", "public"] {
        search(&service, directives, ONEWAY, &body)
            .await
            .expect(200);
    }
    wait_for_records(&service, 2).await;
    set(&service, false).await;
    plain(&service, KEY, ONEWAY, &body).await.expect(200);
    check_that_nothing_else_is_stored(&service, 2).await;
}

#[tokio::test]
async fn other_processes_learn_the_setting_and_forget_it() {
    let service = TestService::start().await;
    let other = TestApp::builder().database(&service.db).start().await;
    set(&service, true).await;
    wait_until("the other process stores a search", async || {
        plain(&other, KEY, ONEWAY, &body(ONEWAY)).await.expect(200);
        records(&service).await > 0
    })
    .await;
    // Whatever the other process still believes, it stores nothing.
    set(&service, false).await;
    let before = records(&service).await;
    plain(&other, KEY, ONEWAY, &body(ONEWAY)).await.expect(200);
    check_that_nothing_else_is_stored(&service, before).await;
}

#[tokio::test]
async fn a_process_that_starts_knows_the_setting() {
    let service = recording().await;
    let later = TestApp::builder().database(&service.db).start().await;
    wait_until("the new process stores a search", async || {
        plain(&later, KEY, ONEWAY, &body(ONEWAY)).await.expect(200);
        records(&service).await > 0
    })
    .await;
}

#[tokio::test]
async fn the_setting_follows_the_caller_to_its_new_key() {
    let service = recording().await;
    let rotation = json!({"new_key": OTHER});
    let rotated = service.post("/v1/account/rotate-key", &rotation).await;
    rotated.expect(200);
    let settings = service.get_as(OTHER, "/v1/account/settings").await.json();
    assert_eq!(settings["record_searches"], true);
    wait_until("a search with the new key is stored", async || {
        plain(&service, OTHER, ONEWAY, &body(ONEWAY))
            .await
            .expect(200);
        records(&service).await > 0
    })
    .await;
    let mine = service.get("/v1/account/settings").await;
    assert_eq!(
        mine["record_searches"], false,
        "the old key has no settings"
    );
}

#[tokio::test]
async fn without_the_database_searches_answer_and_their_records_are_counted() {
    let db = TestDb::new().await;
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_millis(200))
        .connect_lazy_with(db.connect_options());
    let app = TestApp::builder()
        .scan_api(pool.clone(), db.connect_options())
        .start()
        .await;
    set(&app, true).await;
    let before = plain(&app, KEY, ONEWAY, &body(ONEWAY)).await;
    wait_until("the first search is stored", async || {
        app.get("/v1/scans").await.json()["data"] != json!([])
    })
    .await;
    pool.close().await;
    let dropped_before = dropped(&app).await;
    for count in 1..3 {
        let after = plain(&app, KEY, ONEWAY, &body(ONEWAY)).await;
        assert_eq!(shown(&after), shown(&before));
        wait_until("the record is counted", async || {
            dropped(&app).await == dropped_before + count
        })
        .await;
    }
}

async fn dropped(app: &TestApp) -> u64 {
    let metrics = app.admin("/metrics").await.text();
    let count = |line: &str| {
        let count = line.strip_prefix("farescan_search_records_dropped_total ")?;
        count.parse().ok()
    };
    metrics.lines().find_map(count).unwrap_or(0)
}

/// What comes later is stored later.
async fn check_that_nothing_else_is_stored(service: &TestService, before: i64) {
    let day = json!({"departure_date": "2027-02-28"});
    let later = with(body(ONEWAY), &day);
    search(service, "max-age=0", ONEWAY, &later)
        .await
        .expect(200);
    wait_for_records(service, before + 1).await;
}
