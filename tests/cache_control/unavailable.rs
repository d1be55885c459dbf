//! Where nothing can be stored the search is made, unless only a stored answer is wanted.

use farescan::contract::Endpoint;
use serde_json::json;

use super::search;
use crate::gateway::endpoints::body;
use crate::support::app::TestApp;
use crate::support::db::unreachable_database;
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
    let (pool, nowhere) = unreachable_database();
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
