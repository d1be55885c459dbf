//! A client that reconnects loses no event, at any position.

use std::time::Duration;

use serde_json::json;

use super::client::{Event, Events, ask, by_id, fast_polling_app, item_states};
use crate::support::app::KEY;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{Rng, SearchOutcome, TestService, fares};

/// Random events for twelve items, of every kind.
async fn random_life(service: &TestService, id: &str, rng: &mut Rng) {
    for _ in 0..8 {
        let command = match rng.below(5) {
            0 => "pause",
            1 => "resume",
            2 => "retry",
            _ => {
                for claimed in service.claim().await {
                    service.begin(&claimed).await;
                    let outcomes = [
                        SearchOutcome::Ok(100),
                        SearchOutcome::Empty,
                        SearchOutcome::Degraded("upstream_timeout"),
                        SearchOutcome::Failed,
                    ];
                    service
                        .finish(&claimed, outcomes[usize::try_from(rng.below(4)).unwrap()])
                        .await;
                }
                continue;
            }
        };
        let body = if command == "retry" {
            json!({"search_status": ["degraded", "failed"]})
        } else {
            json!({})
        };
        // A command that is not allowed now changes nothing.
        service
            .post(&format!("/v1/scans/{id}/{command}"), &body)
            .await;
    }
    service
        .post(&format!("/v1/scans/{id}/resume"), &json!({}))
        .await;
    service.complete_all(|_| SearchOutcome::Ok(90)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_from_any_id_has_exactly_the_rest() {
    for seed in 0..4 {
        let service = TestService::start_with(fast_polling_app()).await;
        let id = service.submit(&fares(12)).await;
        random_life(&service, &id, &mut Rng(seed)).await;
        let all = Events::open(&service, &id, Some(0)).await.rest().await;
        let last = all.last().unwrap().id.unwrap();
        assert!(last > 24, "seed {seed}: too few events");
        assert_eq!(
            item_states(&all),
            by_id(
                service.get(&format!("/v1/scans/{id}/items")).await["data"]
                    .as_array()
                    .unwrap()
            )
        );
        for cut in 0..last {
            let rest = Events::open(&service, &id, Some(cut)).await.rest().await;
            let expected: Vec<_> = all
                .iter()
                .filter(|event| event.id > Some(cut))
                .cloned()
                .collect();
            assert_eq!(rest, expected, "seed {seed}, after {cut} of {last}");
        }
        assert_eq!(ask(&service, KEY, &id, Some(last)).await.status(), 204);
    }
}

/// A row for each call's begin and end would cost as much as the item itself.
#[tokio::test]
async fn events_of_calls_that_are_stored_alone_share_rows() {
    let service = TestService::start_with(fast_polling_app()).await;
    let id = service.submit(&fares(60)).await;
    service.complete_all(|_| SearchOutcome::Ok(90)).await;
    let count = "select count(*) from scan_events, unnest(items) item where item is not null";
    let changes: i64 = value!(service.pool(), count);
    assert!(changes >= 120, "{changes}");
    let rows: i64 = value!(service.pool(), "select count(*) from scan_events");
    assert!(rows <= 4, "{changes} changes in {rows} rows");
    let all = Events::open(&service, &id, Some(0)).await.rest().await;
    assert_eq!(item_states(&all), by_id(&service.items(&id).await));
}

/// Before migration 40 each statement had a row of its own, the oldest item first.
#[tokio::test]
async fn events_of_an_earlier_version_are_read() {
    let service = TestService::start_with(fast_polling_app()).await;
    let id = service.submit(&fares(12)).await;
    random_life(&service, &id, &mut Rng(5)).await;
    let all = Events::open(&service, &id, Some(0)).await.rest().await;
    let earlier = "create table earlier (tenant_id uuid, scan_id uuid, last_id bigint, items uuid[]);
        insert into earlier select e.tenant_id, e.scan_id, e.first_id + cardinality(e.items) - x.place, array[x.item_id]
        from scan_events e, unnest(e.items) with ordinality as x (item_id, place) where x.item_id is not null;
        drop table scan_events;
        alter table earlier rename to scan_events;
        alter table scan_events add constraint scan_events_pkey primary key (tenant_id, scan_id, last_id)";
    let migration = include_str!("../../migrations/20261126000040_appended_events.sql");
    for statements in [earlier, migration] {
        sqlx::raw_sql(statements)
            .execute(service.pool())
            .await
            .unwrap();
    }
    let last = all.last().unwrap().id.unwrap();
    for cut in 0..last {
        let rest = Events::open(&service, &id, Some(cut)).await.rest().await;
        let expected = all.iter().filter(|event| event.id > Some(cut)).cloned();
        assert_eq!(rest, expected.collect::<Vec<_>>(), "after {cut} of {last}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reconnects_often_misses_no_event() {
    let service = TestService::start_with(fast_polling_app()).await;
    service.upstream.answer(|call| {
        Reply::json(json!([fare(120, &call.body)])).delay(Duration::from_millis(10))
    });
    let id = service.submit(&fares(120)).await;
    let worker = service.start_worker(3);
    let (mut rng, mut seen, mut last) = (Rng(7), Vec::<Event>::new(), 0);
    let mut cuts = 0;
    loop {
        let response = ask(&service, KEY, &id, Some(last)).await;
        if response.status() == 204 {
            break;
        }
        let mut events = Events::of(response);
        for _ in 0..=rng.below(9) {
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
    assert_eq!(item_states(&seen), by_id(&service.items(&id).await));
    assert_eq!(seen.last().unwrap().data, service.scan(&id).await);
}

/// Events are deleted a day after the end. A client with the last one needs none; one with an older
/// id gets a reset.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_id_that_is_too_old_causes_a_reset() {
    let service = TestService::start_with(fast_polling_app()).await;
    let worker = service.start_worker(4);
    let id = service.submit(&fares(5)).await;
    service.wait_until_ended(&id).await;
    worker.stop().await;
    let last = Events::open(&service, &id, Some(0))
        .await
        .rest()
        .await
        .pop()
        .unwrap();
    let young = service.pool();
    execute!(
        young,
        "update scans set finished_at = finished_at - interval '25 hours'"
    );
    // A worker runs its upkeep at its start.
    let worker = service.start_worker(1);
    loop {
        let left: i64 = value!(service.pool(), "select count(*) from scan_events");
        if left == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    worker.stop().await;
    let ended = value!(service.pool(), "select event_count from scans", => i64);
    let newest = u64::try_from(ended).unwrap();
    for old in [0, 1, newest - 1] {
        let restarted = Events::open(&service, &id, Some(old)).await.rest().await;
        let kinds: Vec<_> = restarted.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["reset", "scan"], "after {old}");
        assert_eq!(
            (restarted[0].id, &restarted[0].data),
            (None, &json!({"last_event_id": old}))
        );
        assert_eq!(restarted[1].data["status"], last.data["status"]);
        assert_eq!(restarted[1].id, Some(newest), "its position is valid again");
    }
    assert_eq!(ask(&service, KEY, &id, Some(newest)).await.status(), 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_event_id_causes_a_reset() {
    let service = TestService::start_with(fast_polling_app()).await;
    let id = service.submit(&fares(1)).await;
    let mut events = Events::open(&service, &id, Some(9_999)).await;
    assert_eq!(events.next().await.unwrap().kind, "reset");
    assert_eq!(events.next().await.unwrap().data, service.scan(&id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_event_id_is_named() {
    let service = TestService::start_with(fast_polling_app()).await;
    let id = service.submit(&fares(1)).await;
    let path = format!("/v1/scans/{id}/events");
    for text in ["x", "-1", "+1", "1.5", "9007199254740992"] {
        let request = service
            .request("GET", &path)
            .header("x-api-key", KEY)
            .header("last-event-id", text);
        let answer = service.send(request).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{text}");
        assert!(
            answer
                .message()
                .starts_with(&format!("`Last-Event-ID`: found \"{text}\"")),
            "{}",
            answer.message()
        );
    }
    for (query, field) in [
        ("last_event_id=x", "last_event_id"),
        ("last_event_id=-1", "last_event_id"),
    ] {
        let answer = service.app.get(&format!("{path}?{query}")).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{query}");
        assert!(
            answer.message().starts_with(&format!("`{field}`: found")),
            "{}",
            answer.message()
        );
    }
    let unknown = service.app.get(&format!("{path}?since=1")).await;
    assert_eq!(unknown.kind(), "400 invalid_request");
    assert!(
        unknown.message().starts_with("unknown field `since`"),
        "{}",
        unknown.message()
    );
    let keyless = service.send(service.request("GET", &path)).await;
    assert_eq!(keyless.kind(), "401 missing_api_key");
}

/// A browser repeats the original URL and adds the header with the newer id.
#[tokio::test(flavor = "multi_thread")]
async fn last_event_id_header_overrides_the_query() {
    let service = TestService::start_with(fast_polling_app()).await;
    let id = service
        .submit_and_complete(&fares(3), |_| SearchOutcome::Ok(100))
        .await;
    let all = Events::open(&service, &id, Some(0)).await.rest().await;
    let last = all.last().unwrap().id.unwrap().to_string();
    let path = format!("/v1/scans/{id}/events?last_event_id=0");
    let by_query = service
        .request("GET", &path)
        .header("x-api-key", KEY)
        .send()
        .await
        .unwrap();
    assert_eq!(Events::of(by_query).rest().await, all);
    let by_header = service
        .request("GET", &path)
        .header("x-api-key", KEY)
        .header("last-event-id", last);
    assert_eq!(service.send(by_header).await.status, 204);
}
