//! Where nothing can be stored the search is made, unless only a stored answer is wanted.

use std::time::Duration;

use farescan::contract::Endpoint;
use serde_json::json;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::search;
use crate::gateway::endpoints::body;
use crate::support::app::TestApp;
use crate::support::service::with;

const ONEWAY: Endpoint = Endpoint::FlightsOneway;

#[tokio::test]
async fn without_key_custody_the_search_is_made() {
    let app = TestApp::start().await;
    for calls in 1..3 {
        let response = search(&app, "max-age=3600", ONEWAY, &body(ONEWAY)).await;
        assert_eq!((response.status, app.upstream.count()), (200, calls));
    }
    let only = search(&app, "only-if-cached", ONEWAY, &body(ONEWAY)).await;
    assert_eq!(only.kind(), "503 key_custody_disabled");
    assert_eq!(app.upstream.count(), 2);
}

#[tokio::test]
async fn without_the_database_the_search_is_made() {
    let nowhere = PgConnectOptions::new()
        .host("127.0.0.1")
        .port(1)
        .username("nobody");
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_millis(200))
        .connect_lazy_with(nowhere.clone());
    let app = TestApp::builder().scan_api(pool, nowhere).start().await;
    for calls in 1..3 {
        // One that ended a moment ago could be joined: it is kept until its record has failed.
        let departure = json!({"departure_date": format!("2027-01-0{calls}")});
        let response = search(
            &app,
            "max-age=3600",
            ONEWAY,
            &with(body(ONEWAY), &departure),
        )
        .await;
        assert_eq!(
            (response.status, response.header("x-upstream-requests")),
            (200, "1")
        );
        assert_eq!(app.upstream.count(), calls);
    }
    let only = search(&app, "only-if-cached", ONEWAY, &body(ONEWAY)).await;
    assert_eq!(only.kind(), "503 unavailable");
    assert_eq!(app.upstream.count(), 2);
}
