//! A stream shows the changes of a scan as they happen.

use farescan::contract::Endpoint;
use farescan::ids::TenantId;
use farescan::queue::store::{LaneClaims, abandon};
use farescan::scans::watch::{ScanWatch, WatchSettings};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use super::client::{Event, Events, ask, by_id, fast_polling_app, item_states};
use crate::support::app::KEY;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::support::{SearchOutcome, TestService, array, fares, fares_with};

/// Ids increase; the scan may be repeated under its last id if only its lane changed.
fn assert_ids_increase(events: &[Event]) {
    for pair in events.windows(2) {
        let again = pair[1].kind == "scan" && pair[1].id == pair[0].id;
        assert!(pair[1].id > pair[0].id || again, "{pair:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_shows_a_scan_until_its_end() {
    let service = TestService::start_with(fast_polling_app()).await;
    let id = service.submit(&fares(30)).await;
    let mut events = Events::open(&service, &id, None).await;
    let first = events.next().await.unwrap();
    assert_eq!(
        (first.kind.as_str(), &first.data),
        ("scan", &service.scan(&id).await)
    );
    let worker = service.start_worker(4);
    let rest = events.rest().await;
    worker.stop().await;

    assert_ids_increase(&rest);
    let last = rest.last().unwrap();
    assert_eq!(
        (last.kind.as_str(), &last.data),
        ("scan", &service.scan(&id).await),
        "the last event is the scan as it ended"
    );
    assert_eq!(last.data["status"], json!("completed"));
    assert_eq!(
        item_states(&rest),
        by_id(&service.items(&id).await),
        "all 30 items, as they ended, without their answers"
    );
    assert!(rest.iter().all(|event| event.data.get("answer").is_none()));

    let back = ask(&service, KEY, &id, last.id).await;
    assert_eq!(
        (back.status().as_u16(), back.bytes().await.unwrap().len()),
        (204, 0),
        "a reconnecting client gets 204"
    );
    let restarted = Events::open(&service, &id, None).await.rest().await;
    assert_eq!(
        restarted,
        std::slice::from_ref(last),
        "a new client gets the ended scan"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_shows_items_in_flight() {
    let service = TestService::start_with(fast_polling_app()).await;
    let gate = Gate::closed();
    let held = Reply::json(json!([fare(120, &json!({}))])).gated_by(&gate);
    service.upstream.on(Endpoint::FlightsOneway).reply(held);
    let id = service.submit(&fares(1)).await;
    let mut events = Events::open(&service, &id, None).await;
    let worker = service.start_worker(1);
    let running = events
        .until("its item runs", |event| event.data["state"] == "running")
        .await;
    assert_eq!(running.last().unwrap().data["attempts"], json!(1));
    events
        .until("the scan says so", |event| {
            event.kind == "scan" && event.data["items"]["running"] == 1
        })
        .await;
    gate.open();
    let rest = events.rest().await;
    worker.stop().await;
    assert_eq!(
        item_states(&rest).values().next().unwrap()["best_price"],
        json!(120)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_shows_pause_resume_and_cancel() {
    let service = TestService::start_with(fast_polling_app()).await;
    let id = service.submit(&fares(4)).await;
    let mut events = Events::open(&service, &id, None).await;
    events.until_scan("queued").await;
    for (command, status) in [
        ("pause", "paused"),
        ("resume", "queued"),
        ("pause", "paused"),
        ("cancel", "cancelled"),
    ] {
        let response = service
            .post(&format!("/v1/scans/{id}/{command}"), &json!({}))
            .await
            .json();
        let seen = events.until_scan(status).await;
        let scan = &seen.last().unwrap().data;
        assert_eq!(
            (&scan["status_reason"], &scan["items"]),
            (&response["status_reason"], &response["items"]),
            "{command}"
        );
        let cancelled = seen
            .iter()
            .filter(|event| event.data["state"] == "cancelled")
            .count();
        assert_eq!(
            cancelled,
            if command == "cancel" { 4 } else { 0 },
            "{command}"
        );
    }
    assert_eq!(events.next().await, None, "a cancelled scan has ended");
}

/// A lane's pause is in another row, but it is an event of its scans too.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_shows_a_paused_lane() {
    let service = TestService::start_with(fast_polling_app()).await;
    service
        .upstream
        .reply(Reply::status(401).with_json(json!({"message": "Invalid API key"})));
    let id = service.submit(&fares(3)).await;
    let mut events = Events::open(&service, &id, None).await;
    let worker = service.start_worker(1);
    let paused = events.until_scan("paused").await;
    assert_eq!(
        paused.last().unwrap().data["status_reason"],
        json!("key_rejected")
    );
    service.upstream.answer_fares(90);
    service.command(&id, "resume", &json!({})).await;
    events.until_scan("completed").await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_shows_a_lost_call_and_its_late_answer() {
    let service = TestService::start_with(fast_polling_app()).await;
    let id = service.submit(&fares(1)).await;
    let claimed = service.claim().await.remove(0);
    service.begin(&claimed).await;
    let mut events = Events::open(&service, &id, None).await;
    // The stream begins with what it reads first, which must not be the loss.
    events.next().await.expect("the state before the loss");
    let claim = claimed.claim;
    let lane = LaneClaims {
        tenant: claim.tenant,
        api: "flights".to_owned(),
        items: vec![claim.item.uuid()],
        numbers: vec![claim.number],
    };
    abandon(service.pool(), &lane, Timestamp::now())
        .await
        .unwrap();
    let lost = events.rest().await;
    let reason = |event: &Event| event.data["reason"].as_str().map(str::to_owned);
    assert_eq!(
        lost.iter().filter_map(reason).collect::<Vec<_>>(),
        ["worker_lost"]
    );
    assert_eq!(lost.last().unwrap().data["status"], json!("incomplete"));

    service.finish(&claimed, SearchOutcome::Ok(77)).await;
    let late = Events::open(&service, &id, lost.last().unwrap().id)
        .await
        .rest()
        .await;
    assert_eq!(
        item_states(&late).values().next().unwrap()["best_price"],
        json!(77)
    );
    assert_eq!(late.last().unwrap().data, service.scan(&id).await);
    assert_eq!(late.last().unwrap().data["status"], json!("completed"));
}

/// For every kind of scan the events from the first one give the current items, including skipped
/// and retried ones.
#[tokio::test(flavor = "multi_thread")]
async fn replayed_events_give_the_current_items() {
    let service = TestService::start_with(fast_polling_app()).await;
    let worker = service.start_worker(8);
    service.accept_key().await;
    let question = service
        .submit(&fares_with(
            20,
            &json!({"strategy": {"find": "below", "below": 1000}}),
        ))
        .await;
    service.wait_until_ended(&question).await;
    let mut calls = 0;
    service
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(move |call| {
            calls += 1;
            if calls % 3 == 0 {
                Reply::search_incomplete("upstream_timeout")
            } else {
                Reply::json(json!([fare(150, &call.body)]))
            }
        });
    let retried = service.submit(&fares(9)).await;
    service.wait_until_ended(&retried).await;
    service
        .command(&retried, "retry", &json!({"search_status": ["degraded"]}))
        .await;
    service.wait_until_ended(&retried).await;
    worker.stop().await;
    for id in [&question, &retried] {
        let all = Events::open(&service, id, Some(0)).await.rest().await;
        assert_ids_increase(&all);
        let items = by_id(&service.items(id).await);
        // Items that never changed have no event.
        assert_eq!(item_states(&all), items, "{id}");
        assert_eq!(all.last().unwrap().data, service.scan(id).await);
    }
    let skipped = service
        .get(&format!("/v1/scans/{question}/items?state=skipped"))
        .await;
    assert!(!array(&skipped["data"]).is_empty());
}

/// A feed still has the end of a scan: a wait after a retry must not return that end.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_never_returns_an_older_state() {
    let service = TestService::start_with(fast_polling_app()).await;
    let id = service
        .submit_and_complete(&fares(1), |_| SearchOutcome::Degraded("upstream_timeout"))
        .await;
    let tenant: uuid::Uuid = value!(service.pool(), "select tenant_id from scans");
    let settings = WatchSettings {
        min_read_interval: Duration::from_millis(300),
        ..WatchSettings::default()
    };
    let stop = CancellationToken::new();
    let watch = ScanWatch::start(
        service.pool().clone(),
        service.db.connect_options(),
        settings,
        &stop,
    );
    let (tenant, scan) = (TenantId::from(tenant), id.parse().unwrap());
    let holds = watch.follow(tenant, scan, None).await.unwrap().unwrap();
    let retried = service
        .post(
            &format!("/v1/scans/{id}/retry"),
            &json!({"search_status": ["degraded"]}),
        )
        .await;
    assert_eq!(retried.status, 202);
    let waited = watch
        .wait(tenant, scan, Duration::from_secs(1))
        .await
        .unwrap();
    assert_eq!(
        (waited.status.as_str(), waited.finished_at),
        ("running", None)
    );
    drop(holds);
}

#[tokio::test]
async fn a_wait_returns_at_the_end_of_its_own_scan() {
    let service = TestService::start_with(fast_polling_app()).await;
    let id = service.submit(&fares(2)).await;
    let path = format!("/v1/scans/{id}?wait=60");
    let working = async {
        let claims = service.claim().await;
        for claimed in &claims {
            service.begin(claimed).await;
            service.finish(claimed, SearchOutcome::Ok(100)).await;
        }
    };
    let (scan, ()) = tokio::join!(service.get(&path), working);
    assert_eq!(scan["status"], json!("completed"));
    let unknown = service
        .app
        .get("/v1/scans/scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b?wait=5")
        .await;
    assert_eq!(
        (unknown.kind(), Value::Null),
        ("404 not_found".to_owned(), Value::Null)
    );
}
