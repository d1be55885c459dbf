//! Streams during silence, a lost connection, a deleted scan, a database outage, and the service's
//! shutdown.

use std::time::Duration;

use farescan::config::{
    AdminConfig, HttpConfig, MasterKeyConfig, PaceConfig, RateLimitConfig, WebhookConfig,
};
use farescan::db;
use farescan::db::clock::Clock;
use farescan::metrics;
use farescan::scans::watch::WatchSettings;
use farescan::service::{Service, Settings};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::client::{Events, ask, fast_polling_app};
use crate::support::app::{KEY, TestApp};
use crate::support::db::{PrivatePg, TestDb};
use crate::support::upstream::ScriptedServer;
use crate::support::{TestService, fares, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_stream_gets_comments() {
    let settings = WatchSettings {
        keep_alive_interval: Duration::from_millis(50),
        ..WatchSettings::default()
    };
    let service = TestService::start_with(TestApp::builder().watch(settings)).await;
    let id = service.submit(&fares(1)).await;
    let mut response = ask(&service, KEY, &id, None).await;
    let mut text = String::new();
    while text.matches("\n\n:\n").count() == 0 || text.matches(":\n\n").count() < 3 {
        text.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    assert!(
        text.starts_with("id: 0\nevent: scan\ndata: {\"id\":\"scn_"),
        "{text}"
    );
    assert_eq!(
        WatchSettings::default().keep_alive_interval,
        Duration::from_secs(15),
        "scans.md, rule 65"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_scan_ends_its_streams() {
    let service = TestService::start_with(fast_polling_app()).await;
    let id = service.submit(&fares(1)).await;
    let mut events = Events::open(&service, &id, None).await;
    events.until_scan("queued").await;
    // A caller can delete a scan only after its end, which ends the streams first. So the test
    // deletes it in the database.
    execute!(service.pool(), "delete from scans");
    assert_eq!(events.next().await, None);
    assert_eq!(ask(&service, KEY, &id, Some(0)).await.status(), 404);
}

/// The LISTEN connection is cut: changes made meanwhile are sent well before the next poll.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_listen_connection_loses_no_event() {
    let settings = WatchSettings {
        min_read_interval: Duration::from_millis(20),
        poll_interval: Duration::from_secs(600),
        ..WatchSettings::default()
    };
    let service = TestService::start_with(TestApp::builder().watch(settings)).await;
    let id = service.submit(&fares(1)).await;
    let mut events = Events::open(&service, &id, None).await;
    events.until_scan("queued").await;
    let listening = "select pid from pg_stat_activity where datname = current_database() and query ilike 'listen%farescan_scan%'";
    loop {
        let pids: Vec<i32> = values!(service.pool(), listening);
        if let Some(pid) = pids.first() {
            execute!(service.pool(), "select pg_terminate_backend($1)", pid);
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    service
        .post(&format!("/v1/scans/{id}/pause"), &json!({}))
        .await;
    events.until_scan("paused").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_outage_keeps_streams_and_refuses_new_ones() {
    let mut server = PrivatePg::start().await;
    let database = server.open().await;
    db::migrate(database.pool()).await.unwrap();
    crate::support::db::accept_new_tenants(database.pool()).await;
    let app = fast_polling_app()
        .scan_api(database.pool().clone(), database.connect_options().clone())
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

/// The requests that this process answers.
fn requests_in_flight() -> u32 {
    let text = metrics::render();
    let count = text
        .lines()
        .find_map(|line| line.strip_prefix("farescan_http_requests_in_flight "));
    count.map_or(0, |count| count.parse().unwrap())
}

/// A rolling restart does not wait for streams: clients reconnect to another process with their
/// last id.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_shutdown_ends_its_streams() {
    let (db, upstream) = (TestDb::new().await, ScriptedServer::start().await);
    let any = "127.0.0.1:0".parse().unwrap();
    let settings = Settings {
        http: Some(HttpConfig {
            listen: any,
            trusted_proxies: Vec::new(),
        }),
        admin: AdminConfig {
            admin_listen: Some(any),
        },
        limits: RateLimitConfig::default(),
        upstream: upstream.config(),
        database: db.config(),
        keys: MasterKeyConfig {
            master_key: Some(format!("test:{}", "5a".repeat(32)).into()),
            ..MasterKeyConfig::default()
        },
        pace: PaceConfig::default(),
        webhooks: WebhookConfig::default(),
        channels: farescan::config::ChannelConfig::default(),
        worker: None,
        clock: Clock::default(),
    };
    let stop = CancellationToken::new();
    let process = Service::start(settings, stop.clone()).await.unwrap();
    let base = format!("http://{}/v1/scans", process.address().unwrap());
    let running = tokio::spawn(process.run());
    let http = crate::support::http_client();
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
    let before = requests_in_flight();
    let waits = open("?wait=60");
    let change = async {
        wait_until("the request waits", async || requests_in_flight() > before).await;
        // It may get the current scan or a refusal.
        stop.cancel();
        for events in &mut streams {
            assert_eq!(events.next().await, None);
        }
    };
    let (waited, ()) = tokio::join!(waits, change);
    assert!(
        matches!(waited.status().as_u16(), 200 | 503),
        "{}",
        waited.status()
    );
    tokio::time::timeout(crate::support::WAIT_LIMIT, running)
        .await
        .expect("the service ends")
        .unwrap()
        .unwrap();
}
