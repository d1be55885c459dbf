//! Equal searches in flight: one is sent, and the others take its answer.

use farescan::contract::Endpoint;
use futures::future::join_all;

use super::{search, search_as, wait_for_records};
use crate::gateway::endpoints::body;
use crate::support::app::{KEY, TestApp};
use crate::support::reply::{Gate, Reply};
use crate::support::{TestService, wait_until};

const ONEWAY: Endpoint = Endpoint::FlightsOneway;

#[tokio::test]
async fn equal_searches_in_flight_are_bought_once() {
    let service = TestService::start().await;
    let gate = service.upstream.answer_fares_after_gate();
    let body = body(ONEWAY);
    let equal = (0..5).map(|_| search(&service, "max-age=3600", ONEWAY, &body));
    let forced = search(&service, "max-age=0", ONEWAY, &body);
    let stranger = search_as(&service, "another-key", "max-age=3600", ONEWAY, &body);
    let opened = async {
        service.upstream.wait_for_in_flight(3).await;
        gate.open();
    };
    let (equal, forced, stranger, ()) = futures::join!(join_all(equal), forced, stranger, opened);
    let costs: Vec<_> = equal
        .iter()
        .map(|response| response.header("x-upstream-requests").to_owned())
        .collect();
    let paid = costs.iter().filter(|cost| *cost == "1").count();
    assert_eq!((paid, costs.len()), (1, 5), "{costs:?}");
    for response in &equal {
        assert_eq!((response.status, response.text()), (200, equal[0].text()));
    }
    for other in [forced, stranger] {
        assert_eq!(other.header("x-upstream-requests"), "1");
    }
    assert_eq!(service.upstream.count(), 3);
}

/// Waits until all permits for searches are taken: then every search that was sent waits for a call.
async fn wait_for_no_permit(service: &TestService) {
    let (path, name) = ("/v1/hotels/resolve", body(Endpoint::HotelsResolve));
    wait_until("no search is admitted", async || {
        service.app.post(path, &name).await.status == 503
    })
    .await;
}

#[tokio::test]
async fn a_search_that_does_not_complete_is_not_repeated_by_those_that_joined() {
    let limited = TestApp::builder().state(|app| app.with_search_limit(4));
    let service = TestService::start_with(limited).await;
    let gate = Gate::closed();
    let incomplete = Reply::search_incomplete("no_response").gated_by(&gate);
    service.upstream.on(ONEWAY).reply(incomplete);
    let body = body(ONEWAY);
    // A probe below may hold the last permit for a moment.
    let admitted = async || loop {
        let response = search(&service, "max-age=3600", ONEWAY, &body).await;
        if response.status != 503 {
            return response;
        }
    };
    let equal = (0..4).map(|_| admitted());
    let opened = async {
        wait_for_no_permit(&service).await;
        gate.open();
    };
    let (equal, ()) = futures::join!(join_all(equal), opened);
    let oneway = || {
        let calls = service.upstream.calls();
        calls
            .iter()
            .filter(|call| call.path.contains("oneway"))
            .count()
    };
    assert_eq!(oneway(), 1);
    let mut costs = Vec::new();
    for response in &equal {
        assert_eq!(response.header("x-search-status"), "degraded");
        costs.push(response.header("x-upstream-requests"));
    }
    costs.sort_unstable();
    assert_eq!(costs, ["0", "0", "0", "1"]);
    // Who comes later searches.
    let again = search(&service, "max-age=3600", ONEWAY, &body).await;
    assert_eq!((again.header("x-upstream-requests"), oneway()), ("1", 2));
}

#[tokio::test]
async fn an_answer_whose_client_has_gone_is_kept() {
    let service = TestService::start().await;
    let gate = service.upstream.answer_fares_after_gate();
    let body = body(ONEWAY);
    let gone = service
        .request("POST", &format!("/v1/{ONEWAY}"))
        .header("x-api-key", KEY)
        .header("cache-control", "max-age=3600")
        .json(&body);
    let gone = tokio::spawn(gone.send());
    service.upstream.wait_for_in_flight(1).await;
    gone.abort();
    wait_until("the client has gone", async || gone.is_finished()).await;
    gate.open();
    wait_for_records(&service, 1).await;
    let response = search(&service, "max-age=3600", ONEWAY, &body).await;
    assert_eq!(response.header("x-upstream-requests"), "0");
    assert_eq!(service.upstream.count(), 1);
}
