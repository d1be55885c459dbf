//! A client that was cut off goes on without loss, wherever it was.

use std::time::Duration;

use serde_json::json;

use super::client::{Event, Events, ask, by_id, mirror, quick};
use crate::control::house::{Dice, House, fares};
use crate::scans::office::{Comes, Office};
use crate::support::app::KEY;
use crate::support::reply::Reply;
use crate::support::upstream::fare;

/// Some of everything that can happen to twelve items, in an order that the dice choose.
async fn a_life(office: &Office, id: &str, dice: &mut Dice) {
    for _ in 0..8 {
        let word = match dice.below(5) {
            0 => "pause",
            1 => "resume",
            2 => "retry",
            _ => {
                for claimed in office.claim().await {
                    office.begin(&claimed).await;
                    let comes = [
                        Comes::Ok(100),
                        Comes::Empty,
                        Comes::Degraded("upstream_timeout"),
                        Comes::Refused,
                    ];
                    office
                        .end(&claimed, comes[usize::try_from(dice.below(4)).unwrap()])
                        .await;
                }
                continue;
            }
        };
        let body = if word == "retry" {
            json!({"search_status": ["degraded", "failed"]})
        } else {
            json!({})
        };
        // What is not allowed now changes nothing, and that is fine too.
        office
            .app
            .post(&format!("/v1/scans/{id}/{word}"), &body)
            .await;
    }
    office
        .app
        .post(&format!("/v1/scans/{id}/resume"), &json!({}))
        .await;
    office.work(|_| Comes::Ok(90)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_every_id_comes_exactly_the_rest() {
    for seed in 0..4 {
        let office = Office::with(quick()).await;
        let id = office.order(&fares(12)).await;
        a_life(&office, &id, &mut Dice(seed)).await;
        let all = Events::open(&office.app, &id, Some(0)).await.rest().await;
        let last = all.last().unwrap().id.unwrap();
        assert!(last > 24, "seed {seed}: too little happened");
        assert_eq!(
            mirror(&all),
            by_id(
                office.get(&format!("/v1/scans/{id}/items")).await["data"]
                    .as_array()
                    .unwrap()
            )
        );
        for cut in 0..last {
            let rest = Events::open(&office.app, &id, Some(cut)).await.rest().await;
            let expected: Vec<_> = all
                .iter()
                .filter(|event| event.id > Some(cut))
                .cloned()
                .collect();
            assert_eq!(rest, expected, "seed {seed}, after {cut} of {last}");
        }
        assert_eq!(ask(&office.app, KEY, &id, Some(last)).await.status(), 204);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_cut_off_all_the_time_misses_nothing() {
    let house = House::with(quick()).await;
    house.app.upstream.on_any().answer(|call| {
        Reply::json(json!([fare(120, &call.body)])).delay(Duration::from_millis(10))
    });
    let id = house.order(&fares(120)).await;
    let worker = house.worker(3);
    let (mut dice, mut seen, mut last) = (Dice(7), Vec::<Event>::new(), 0);
    let mut cuts = 0;
    loop {
        let response = ask(&house.app, KEY, &id, Some(last)).await;
        if response.status() == 204 {
            break;
        }
        let mut events = Events::of(response);
        for _ in 0..=dice.below(9) {
            let Some(event) = events.next().await else {
                break;
            };
            let again = event.kind == "scan" && event.id == Some(last);
            assert!(event.id > Some(last) || again, "after {last}: {event:?}");
            last = event.id.unwrap();
            seen.push(event);
        }
        cuts += 1;
    }
    worker.stop().await;
    assert!(cuts > 12, "{cuts}");
    assert_eq!(mirror(&seen), by_id(&house.items(&id).await));
    assert_eq!(seen.last().unwrap().data, house.scan(&id).await);
}

/// A day after the end the events are gone. Who has the last one needs none; who has an older one begins anew, and is told so.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_too_old_is_reset() {
    let house = House::with(quick()).await;
    let worker = house.worker(4);
    let id = house.order(&fares(5)).await;
    house.ended(&id).await;
    worker.stop().await;
    let last = Events::open(&house.app, &id, Some(0))
        .await
        .rest()
        .await
        .pop()
        .unwrap();
    let young = house.db.pool();
    sqlx::query("update scans set finished_at = finished_at - interval '25 hours'")
        .execute(young)
        .await
        .unwrap();
    // A worker's upkeep comes with its start.
    let worker = house.worker(1);
    loop {
        let left: i64 = sqlx::query_scalar("select count(*) from scan_events")
            .fetch_one(house.db.pool())
            .await
            .unwrap();
        if left == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    worker.stop().await;
    let ended = sqlx::query_scalar::<_, i64>("select event_count from scans")
        .fetch_one(house.db.pool())
        .await
        .unwrap();
    let newest = u64::try_from(ended).unwrap();
    for old in [0, 1, newest - 1] {
        let anew = Events::open(&house.app, &id, Some(old)).await.rest().await;
        let kinds: Vec<_> = anew.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["reset", "scan"], "after {old}");
        assert_eq!(
            (anew[0].id, &anew[0].data),
            (None, &json!({"last_event_id": old}))
        );
        assert_eq!(anew[1].data["status"], last.data["status"]);
        assert_eq!(anew[1].id, Some(newest), "its place is good again");
    }
    assert_eq!(ask(&house.app, KEY, &id, Some(newest)).await.status(), 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_was_never_given_is_reset() {
    let office = Office::with(quick()).await;
    let id = office.order(&fares(1)).await;
    let mut events = Events::open(&office.app, &id, Some(9_999)).await;
    assert_eq!(events.next().await.unwrap().kind, "reset");
    assert_eq!(events.next().await.unwrap().data, office.scan(&id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_id_is_named() {
    let office = Office::with(quick()).await;
    let id = office.order(&fares(1)).await;
    let path = format!("/v1/scans/{id}/events");
    for text in ["x", "-1", "+1", "1.5", "9007199254740992"] {
        let request = office
            .app
            .request("GET", &path)
            .header("x-api-key", KEY)
            .header("last-event-id", text);
        let answer = office.app.send(request).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{text}");
        assert!(
            answer
                .message()
                .starts_with(&format!("`Last-Event-ID` holds \"{text}\"")),
            "{}",
            answer.message()
        );
    }
    for (query, field) in [
        ("last_event_id=x", "last_event_id"),
        ("last_event_id=-1", "last_event_id"),
        ("since=1", "since"),
    ] {
        let answer = office.app.get(&format!("{path}?{query}")).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{query}");
        assert!(
            answer.message().starts_with(&format!("`{field}` holds")),
            "{}",
            answer.message()
        );
    }
    let keyless = office.app.send(office.app.request("GET", &path)).await;
    assert_eq!(keyless.kind(), "401 missing_api_key");
}

/// A browser repeats the URL that it was given, and knows more.
#[tokio::test(flavor = "multi_thread")]
async fn the_header_goes_before_the_query() {
    let office = Office::with(quick()).await;
    let id = office.done(&fares(3), |_| Comes::Ok(100)).await;
    let all = Events::open(&office.app, &id, Some(0)).await.rest().await;
    let last = all.last().unwrap().id.unwrap().to_string();
    let path = format!("/v1/scans/{id}/events?last_event_id=0");
    let by_query = office
        .app
        .request("GET", &path)
        .header("x-api-key", KEY)
        .send()
        .await
        .unwrap();
    assert_eq!(Events::of(by_query).rest().await, all);
    let by_header = office
        .app
        .request("GET", &path)
        .header("x-api-key", KEY)
        .header("last-event-id", last);
    assert_eq!(office.app.send(by_header).await.status, 204);
}
