//! What becomes of a scan is seen as it happens.

use farescan::contract::Endpoint;
use farescan::ids::TenantId;
use farescan::queue::store::{LaneClaims, give_up};
use farescan::scans::watch::{Watch, WatchSettings};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use super::client::{Event, Events, ask, by_id, mirror, quick};
use crate::control::house::{House, fares, order};
use crate::scans::office::{Comes, Office};
use crate::support::app::KEY;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;

/// Ids grow; the scan may be said again under its last id, when only its lane changed.
fn ids_grow(events: &[Event]) {
    for pair in events.windows(2) {
        let again = pair[1].kind == "scan" && pair[1].id == pair[0].id;
        assert!(pair[1].id > pair[0].id || again, "{pair:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_is_seen_through_its_end() {
    let house = House::with(quick()).await;
    let id = house.order(&fares(30)).await;
    let mut events = Events::open(&house.app, &id, None).await;
    let first = events.next().await.unwrap();
    assert_eq!(
        (first.kind.as_str(), &first.data),
        ("scan", &house.scan(&id).await)
    );
    let worker = house.worker(4);
    let rest = events.rest().await;
    worker.stop().await;

    ids_grow(&rest);
    let last = rest.last().unwrap();
    assert_eq!(
        (last.kind.as_str(), &last.data),
        ("scan", &house.scan(&id).await),
        "the last event is the scan as it ended"
    );
    assert_eq!(last.data["status"], json!("completed"));
    assert_eq!(
        mirror(&rest),
        by_id(&house.items(&id).await),
        "all 30 items, as they ended, without their answers"
    );
    assert!(rest.iter().all(|event| event.data.get("answer").is_none()));

    let back = ask(&house.app, KEY, &id, last.id).await;
    assert_eq!(
        (back.status().as_u16(), back.bytes().await.unwrap().len()),
        (204, 0),
        "a client that comes back stops"
    );
    let anew = Events::open(&house.app, &id, None).await.rest().await;
    assert_eq!(
        anew,
        std::slice::from_ref(last),
        "who comes now sees the scan as it ended"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_is_seen_while_it_is_searched() {
    let house = House::with(quick()).await;
    let gate = Gate::closed();
    let held = Reply::json(json!([fare(120, &json!({}))])).held_by(&gate);
    house.app.upstream.on(Endpoint::FlightsOneway).reply(held);
    let id = house.order(&fares(1)).await;
    let mut events = Events::open(&house.app, &id, None).await;
    let worker = house.worker(1);
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
        mirror(&rest).values().next().unwrap()["best_price"],
        json!(120)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_resume_and_cancel_are_seen() {
    let office = Office::with(quick()).await;
    let id = office.order(&fares(4)).await;
    let mut events = Events::open(&office.app, &id, None).await;
    events.until_scan("queued").await;
    for (word, status) in [
        ("pause", "paused"),
        ("resume", "queued"),
        ("pause", "paused"),
        ("cancel", "cancelled"),
    ] {
        let said = office
            .app
            .post(&format!("/v1/scans/{id}/{word}"), &json!({}))
            .await
            .json();
        let seen = events.until_scan(status).await;
        let scan = &seen.last().unwrap().data;
        assert_eq!(
            (&scan["status_reason"], &scan["items"]),
            (&said["status_reason"], &said["items"]),
            "{word}"
        );
        let cancelled = seen
            .iter()
            .filter(|event| event.data["state"] == "cancelled")
            .count();
        assert_eq!(cancelled, if word == "cancel" { 4 } else { 0 }, "{word}");
    }
    assert_eq!(events.next().await, None, "a cancelled scan has ended");
}

/// The lane's pause is the scan's: it stands in another row, and is seen all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_stops_is_seen() {
    let house = House::with(quick()).await;
    house
        .app
        .upstream
        .on_any()
        .reply(Reply::status(401).with_json(json!({"message": "Invalid API key"})));
    let id = house.order(&fares(3)).await;
    let mut events = Events::open(&house.app, &id, None).await;
    let worker = house.worker(1);
    let paused = events.until_scan("paused").await;
    assert_eq!(
        paused.last().unwrap().data["status_reason"],
        json!("key_rejected")
    );
    house
        .app
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(90, &call.body)])));
    house.say(&id, "resume", &json!({})).await;
    events.until_scan("completed").await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_call_and_its_late_answer_are_seen() {
    let office = Office::with(quick()).await;
    let id = office.order(&fares(1)).await;
    let claimed = office.claim().await.remove(0);
    office.begin(&claimed).await;
    let events = Events::open(&office.app, &id, None).await;
    let claim = claimed.claim;
    let lane = LaneClaims {
        tenant: claim.tenant,
        api: "flights".to_owned(),
        items: vec![claim.item.uuid()],
        numbers: vec![claim.number],
    };
    give_up(office.db.pool(), &lane, Timestamp::now())
        .await
        .unwrap();
    let lost = events.rest().await;
    let reason = |event: &Event| event.data["reason"].as_str().map(str::to_owned);
    assert_eq!(
        lost.iter().filter_map(reason).collect::<Vec<_>>(),
        ["worker_lost"]
    );
    assert_eq!(lost.last().unwrap().data["status"], json!("incomplete"));

    office.end(&claimed, Comes::Ok(77)).await;
    let late = Events::open(&office.app, &id, lost.last().unwrap().id)
        .await
        .rest()
        .await;
    assert_eq!(
        mirror(&late).values().next().unwrap()["best_price"],
        json!(77)
    );
    assert_eq!(late.last().unwrap().data, office.scan(&id).await);
    assert_eq!(late.last().unwrap().data["status"], json!("completed"));
}

/// Replayed from the first event, every kind of scan comes to what its items are, those that were skipped or asked again included.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_comes_to_what_is() {
    let house = House::with(quick()).await;
    let worker = house.worker(8);
    house.warm().await;
    let two_phase = house
        .order(&order(
            20,
            &json!({"strategy": {"coarse_step": 4, "refine": 1}}),
        ))
        .await;
    house.ended(&two_phase).await;
    let mut calls = 0;
    house
        .app
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
    let retried = house.order(&fares(9)).await;
    house.ended(&retried).await;
    house
        .say(&retried, "retry", &json!({"search_status": ["degraded"]}))
        .await;
    house.ended(&retried).await;
    worker.stop().await;
    for id in [&two_phase, &retried] {
        let all = Events::open(&house.app, id, Some(0)).await.rest().await;
        ids_grow(&all);
        let items = by_id(&house.items(id).await);
        // What has always waited has no event.
        assert_eq!(mirror(&all), items, "{id}");
        assert_eq!(all.last().unwrap().data, house.scan(id).await);
    }
    let skipped = house
        .get(&format!("/v1/scans/{two_phase}/items?state=skipped"))
        .await;
    assert!(!skipped["data"].as_array().unwrap().is_empty());
}

/// Somebody still holds the feed of a scan that had ended: who retries it and waits does not hear of that end.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_is_never_answered_with_what_was_before() {
    let office = Office::with(quick()).await;
    let id = office
        .done(&fares(1), |_| Comes::Degraded("upstream_timeout"))
        .await;
    let tenant: uuid::Uuid = sqlx::query_scalar("select tenant_id from scans")
        .fetch_one(office.db.pool())
        .await
        .unwrap();
    let settings = WatchSettings {
        gap: Duration::from_millis(300),
        ..WatchSettings::default()
    };
    let stop = CancellationToken::new();
    let watch = Watch::start(
        office.db.pool().clone(),
        office.db.connect_options(),
        settings,
        &stop,
    );
    let (tenant, scan) = (TenantId::from(tenant), id.parse().unwrap());
    let holds = watch.follow(tenant, scan, None).await.unwrap().unwrap();
    let retried = office
        .app
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
async fn waiting_hears_of_the_end_and_not_of_another_scan() {
    let office = Office::with(quick()).await;
    let id = office.order(&fares(2)).await;
    let path = format!("/v1/scans/{id}?wait=60");
    let working = async {
        let claims = office.claim().await;
        for claimed in &claims {
            office.begin(claimed).await;
            office.end(claimed, Comes::Ok(100)).await;
        }
    };
    let (scan, ()) = tokio::join!(office.get(&path), working);
    assert_eq!(scan["status"], json!("completed"));
    let unknown = office
        .app
        .get("/v1/scans/scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b?wait=5")
        .await;
    assert_eq!(
        (unknown.kind(), Value::Null),
        ("404 not_found".to_owned(), Value::Null)
    );
}
