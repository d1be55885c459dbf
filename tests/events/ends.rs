//! What ends a stream or keeps it going: silence, a lost connection, a deleted scan, an outage, the service's own end.

use std::time::Duration;

use farescan::config::{
    AdminConfig, HttpConfig, KeysConfig, LimitConfig, PaceConfig, WebhookConfig,
};
use farescan::db::clock::Clock;
use farescan::db::{self, Database};
use farescan::scans::watch::WatchSettings;
use farescan::service::{Service, Settings};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::client::{Events, ask, quick};
use crate::scans::office::{Office, fares};
use crate::support::app::{KEY, TestApp};
use crate::support::db::{PrivatePg, TestDb};
use crate::support::upstream::Upstream;

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_filled_with_comments() {
    let settings = WatchSettings {
        comments: Duration::from_millis(50),
        ..WatchSettings::default()
    };
    let office = Office::with(TestApp::builder().watch(settings)).await;
    let id = office.order(&fares(1)).await;
    let mut response = ask(&office.app, KEY, &id, None).await;
    let mut text = String::new();
    while text.matches("\n\n:\n").count() == 0 || text.matches(":\n\n").count() < 3 {
        text.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    assert!(
        text.starts_with("id: 0\nevent: scan\ndata: {\"id\":\"scn_"),
        "{text}"
    );
    assert_eq!(
        WatchSettings::default().comments,
        Duration::from_secs(15),
        "jobs-api, Scans"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_scan_ends_its_streams() {
    let office = Office::with(quick()).await;
    let id = office.order(&fares(1)).await;
    let mut events = Events::open(&office.app, &id, None).await;
    events.until_scan("queued").await;
    // Its caller could delete it only after its end, which ends the streams first; an operator is not held to that.
    sqlx::query("delete from scans")
        .execute(office.db.pool())
        .await
        .unwrap();
    assert_eq!(events.next().await, None);
    assert_eq!(ask(&office.app, KEY, &id, Some(0)).await.status(), 404);
}

/// The connection that listens is cut: what is said meanwhile is seen all the same, well before the next look in any case.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_listener_loses_no_event() {
    let settings = WatchSettings {
        gap: Duration::from_millis(20),
        seldom: Duration::from_secs(600),
        ..WatchSettings::default()
    };
    let office = Office::with(TestApp::builder().watch(settings)).await;
    let id = office.order(&fares(1)).await;
    let mut events = Events::open(&office.app, &id, None).await;
    events.until_scan("queued").await;
    let listening = "select pid from pg_stat_activity where datname = current_database() and query ilike 'listen%farescan_scan%'";
    loop {
        let pids: Vec<i32> = sqlx::query_scalar(listening)
            .fetch_all(office.db.pool())
            .await
            .unwrap();
        if let Some(pid) = pids.first() {
            sqlx::query("select pg_terminate_backend($1)")
                .bind(pid)
                .execute(office.db.pool())
                .await
                .unwrap();
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    office
        .app
        .post(&format!("/v1/scans/{id}/pause"), &json!({}))
        .await;
    events.until_scan("paused").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_the_database_ends_no_stream_and_begins_none() {
    let mut server = PrivatePg::start().await;
    let config = farescan::config::DatabaseConfig {
        url: Some(server.url().into()),
        ..Default::default()
    };
    let database = Database::open(&config).await.unwrap();
    db::migrate(database.pool()).await.unwrap();
    crate::support::db::accept_at_once(database.pool()).await;
    let app = quick()
        .orders(database.pool().clone(), database.connect_options().clone())
        .start()
        .await;
    let id = app.post("/v1/scans", &fares(1)).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut events = Events::open(&app, &id, None).await;
    events.until_scan("queued").await;

    server.stop_immediate().await;
    for path in [
        format!("/v1/scans/{id}/events"),
        format!("/v1/scans/{id}?wait=5"),
    ] {
        let away = app.get(&path).await;
        assert_eq!(
            (away.kind().as_str(), away.header("retry-after")),
            ("503 unavailable", "5"),
            "{path}"
        );
    }
    server.restart().await;
    let mut paused = app.post(&format!("/v1/scans/{id}/pause"), &json!({})).await;
    while paused.status == 503 {
        paused = app.post(&format!("/v1/scans/{id}/pause"), &json!({})).await;
    }
    events.until_scan("paused").await;
}

/// A rolling restart does not wait for its watchers: they come back to another process with their last id.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stops_ends_its_streams() {
    let (db, upstream) = (TestDb::new().await, Upstream::start().await);
    let any = "127.0.0.1:0".parse().unwrap();
    let settings = Settings {
        http: Some(HttpConfig { listen: any }),
        admin: AdminConfig {
            admin_listen: Some(any),
        },
        limits: LimitConfig::default(),
        upstream: upstream.config(),
        database: db.config(),
        keys: KeysConfig {
            master_key: Some(format!("test:{}", "5a".repeat(32)).into()),
            ..KeysConfig::default()
        },
        pace: PaceConfig::default(),
        webhooks: WebhookConfig::default(),
        worker: None,
        clock: Clock::default(),
    };
    let stop = CancellationToken::new();
    let service = Service::start(settings, stop.clone()).await.unwrap();
    let base = format!("http://{}/v1/scans", service.address().unwrap());
    let running = tokio::spawn(service.run());
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let ordered = http
        .post(&base)
        .header("x-api-key", KEY)
        .json(&fares(1))
        .send()
        .await
        .unwrap();
    let id = ordered.json::<serde_json::Value>().await.unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let open = async |path: &str| {
        http.get(format!("{base}/{id}{path}"))
            .header("x-api-key", KEY)
            .send()
            .await
            .unwrap()
    };
    let mut streams = Vec::new();
    for _ in 0..5 {
        let mut events = Events::of(open("/events").await);
        events.until_scan("queued").await;
        streams.push(events);
    }
    let waits = open("?wait=60");
    let told = async {
        // One that waits: read by now, and answered with what is, or refused. Both are answers.
        tokio::time::sleep(Duration::from_millis(100)).await;
        stop.cancel();
        for events in &mut streams {
            assert_eq!(events.next().await, None);
        }
    };
    let (waited, ()) = tokio::join!(waits, told);
    assert!(
        matches!(waited.status().as_u16(), 200 | 503),
        "{}",
        waited.status()
    );
    tokio::time::timeout(crate::support::PATIENCE, running)
        .await
        .expect("the service ends")
        .unwrap()
        .unwrap();
}
