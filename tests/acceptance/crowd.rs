//! Many hostile keys at once: their cost, and their effect on another caller. Prints the figures.

use std::time::{Duration, Instant};

use farescan::scans::watch::WatchSettings;
use farescan::tenants::store::acceptance::remove_unaccepted;
use farescan::webhooks::Sender;
use futures::future::join_all;
use futures::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{monitor, service, service_with};
use crate::events::client::{Events, ask};
use crate::support::app::TestApp;
use crate::support::reply::Reply;
use crate::support::upstream::{ScriptedServer, fare};
use crate::support::{TestService, fares, text};
use crate::webhooks::harness::{TestResolver, address, deliver, guard};

const GOOD: &str = "a-good-key";

async fn database_bytes(service: &TestService) -> i64 {
    service
        .count("select pg_database_size(current_database())")
        .await
}

/// The size of the rows without unused space.
async fn row_bytes(service: &TestService) -> i64 {
    service
        .count(
            "select coalesce(sum(n), 0)::bigint from (
        select pg_column_size(t.*) as n from tenants t union all select pg_column_size(t.*) from scans t
        union all select pg_column_size(t.*) from scan_items t union all select pg_column_size(t.*) from key_grants t) x",
        )
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn invented_keys_store_little_and_are_removed() {
    let service = service().await;
    service.upstream.reply(Reply::status(401));
    let worker = service.start_worker(8);
    let (before, rows_before, began) = (
        database_bytes(&service).await,
        row_bytes(&service).await,
        Instant::now(),
    );
    let order = fares(10_000);
    let answers: Vec<_> = stream::iter(0..400)
        .map(|number| {
            let (service, order) = (&service, &order);
            async move {
                service
                    .ask_as(
                        &format!("made-up-{number}"),
                        "POST",
                        "/v1/scans",
                        Some(order),
                    )
                    .await
            }
        })
        .buffer_unordered(16)
        .collect()
        .await;
    let took = began.elapsed();
    let taken = answers.iter().filter(|answer| answer.status == 202).count();
    let later = answers
        .iter()
        .filter(|answer| {
            matches!(answer.status, 429 | 503) && !answer.header("retry-after").is_empty()
        })
        .count();
    while service
        .count("select count(*) from tenants where refused_at is null")
        .await
        > 0
    {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    worker.stop().await;
    let (after, rows_after) = (database_bytes(&service).await, row_bytes(&service).await);
    let items = service.count("select count(*) from scan_items").await;
    let calls = service.upstream.count();
    let removed = remove_unaccepted(
        service.pool(),
        1_000,
        Timestamp::now() + SignedDuration::from_hours(25),
    )
    .await
    .unwrap();
    execute!(service.pool(), "vacuum full");
    let (swept, rows_swept) = (database_bytes(&service).await, row_bytes(&service).await);
    println!(
        "400 made-up keys, 10,000 items each, in {took:.1?}: {taken} accepted, {later} refused with retry-after, {items} items stored, {calls} calls; \
         database {before} bytes before, {after} after, {swept} after the sweep; rows {rows_before}, {rows_after}, {rows_swept}"
    );
    assert_eq!(
        (taken + later, taken, removed),
        (400, usize::try_from(items).unwrap(), taken)
    );
    assert!(
        (1..=100 * (usize::try_from(took.as_secs()).unwrap() / 60 + 2)).contains(&taken)
            && calls == taken,
        "{taken} {calls}"
    );
    assert!(
        rows_after - rows_before < 4_096 * i64::try_from(taken).unwrap(),
        "{rows_after}"
    );
    assert_eq!(
        (
            rows_swept,
            service.count("select count(*) from tenants").await
        ),
        (rows_before, 0)
    );
}

/// Durations of a delivery, a quota request, a first event and a scan of an accepted caller.
async fn request_durations(
    service: &TestService,
    receiver: &ScriptedServer,
    monitor: &str,
) -> [Duration; 4] {
    let began = Instant::now();
    let deliveries = receiver.count();
    service
        .ask_as(GOOD, "POST", &format!("/v1/monitors/{monitor}/test"), None)
        .await
        .expect(202);
    receiver
        .wait_for("the delivery comes", |calls| calls.len() > deliveries)
        .await;
    let delivery = began.elapsed();
    let began = Instant::now();
    assert_eq!(
        service.ask_as(GOOD, "GET", "/v1/quota", None).await.status,
        200
    );
    let quota = began.elapsed();
    let began = Instant::now();
    let id = service.submit_as(GOOD, &fares(5)).await;
    let mut events = Events::of(ask(service, GOOD, &id, None).await);
    assert!(events.next().await.is_some());
    let stream = began.elapsed();
    while events.next().await.is_some() {}
    [delivery, quota, stream, began.elapsed()]
}

/// Repeats the requests of one hostile key; returns how many were accepted and refused.
async fn hostile(service: &TestService, key: &str, stop: &CancellationToken) -> (usize, usize) {
    let (mut taken, mut refused) = (0, 0);
    let with_webhook = {
        let mut body = monitor();
        body["webhook_url"] = json!("http://receiver.example/hostile");
        body
    };
    let order = fares(10_000);
    while !stop.is_cancelled() {
        let answers = tokio::join!(
            service.ask_as(key, "POST", "/v1/scans", Some(&order)),
            service.ask_as(key, "POST", "/v1/monitors", Some(&with_webhook)),
            service.ask_as(key, "GET", "/v1/verify", None),
            service.ask_as(key, "GET", "/v1/scans?limit=1", None),
        );
        for answer in [answers.0, answers.1, answers.2] {
            match answer.status {
                200..=299 => taken += 1,
                _ => refused += 1,
            }
        }
        let listed = answers.3.json();
        if let Some(id) = listed["data"][0]["id"].as_str() {
            let streams = join_all((0..10).map(|_| ask(service, key, id, None))).await;
            taken += streams
                .iter()
                .filter(|stream| stream.status() == 200)
                .count()
                .saturating_sub(5);
        }
    }
    (taken, refused)
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_keys_do_not_block_another_caller() {
    let names = TestResolver::default();
    let watch = WatchSettings {
        min_read_interval: Duration::from_millis(20),
        ..WatchSettings::default()
    };
    let service = service_with(
        TestApp::builder()
            .watch(watch)
            .state(|app| app.with_webhook_guard(guard())),
    )
    .await;
    service.upstream.answer(|call| match call.key.as_str() {
        GOOD => Reply::json(json!([fare(120, &call.body)])),
        _ => Reply::status(401),
    });
    let receiver = ScriptedServer::start().await;
    names.resolve_to("receiver.example", &[&[address(&receiver)]]);
    let sender = Sender::with_resolver(guard(), std::sync::Arc::new(names)).unwrap();
    let delivering = deliver(service.pool(), sender);
    let worker = service.start_worker(8);
    assert_eq!(
        service.ask_as(GOOD, "GET", "/v1/verify", None).await.status,
        200
    );
    let mut own = monitor();
    own["webhook_url"] = json!("http://receiver.example/own");
    // One monitor per measurement, because a monitor can be tested once a minute only.
    let mut monitors = Vec::new();
    for _ in 0..6 {
        let made = service
            .ask_as(GOOD, "POST", "/v1/monitors", Some(&own))
            .await
            .expect(201);
        monitors.push(text(&made.json()["id"]));
    }

    let alone = request_durations(&service, &receiver, &monitors[0]).await;
    let stop = CancellationToken::new();
    let hostile = join_all((0..12).map(|number| {
        let (service, stop) = (&service, &stop);
        async move { hostile(service, &format!("hostile-{number}"), stop).await }
    }));
    let served = async {
        let mut all = Vec::new();
        for monitor in &monitors[1..] {
            all.push(request_durations(&service, &receiver, monitor).await);
        }
        stop.cancel();
        all
    };
    let (counts, beside) = tokio::join!(hostile, served);
    delivering.stop().await;
    worker.stop().await;
    let slowest = |which: usize| {
        beside
            .iter()
            .map(|request_durations| request_durations[which])
            .max()
            .unwrap()
    };
    for (which, what) in ["delivery", "quota", "event stream", "scan of 5"]
        .iter()
        .enumerate()
    {
        println!(
            "{what}: {:.0?} alone, at most {:.0?} beside twelve hostile keys",
            alone[which],
            slowest(which)
        );
    }
    let (taken, refused) = counts
        .iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    println!("the hostile keys: {taken} requests taken, {refused} refused");
    assert!(
        (1..=12).contains(&taken),
        "at most one scan each and nothing else: {taken}"
    );
    assert_eq!(
        service.count("select count(*) from scan_items").await,
        i64::try_from(taken).unwrap() + 6 * 5
    );
    assert!(
        receiver.calls().iter().all(|call| call.path == "/own"),
        "no hostile key makes the service call a webhook"
    );
}
