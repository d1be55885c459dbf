//! The upgrade of a database whose monitors have rules that are gone: `below_typical`, and `new_low`
//! without `days`.

use farescan::contract::SearchStatus;
use farescan::ids::TenantId;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::PgPool;
use uuid::{Uuid, uuid};

use super::upgrade::earlier_version;
use crate::alerts::past::{Seen, today};
use crate::alerts::{AlertTest, fares};
use crate::cli::monitors::out;
use crate::support::TestService;
use crate::support::app::{KEY, TestApp};
use crate::web::Browser;

/// The last numbered migration of the version with these rules.
const VERSION: i64 = 20_261_125_000_032;
const TENANT: Uuid = uuid!("00000000-0000-7000-8000-000000000001");
const MONITOR: &str = "mon_00000000000070008000000000000047";
const CELLS: &str = "mon_00000000000070008000000000000057";

/// A monitor of one date with these rules.
async fn insert_monitor(pool: &PgPool, id: &str, departure: &str, rules: &Value) {
    let scan = json!({"endpoint": "flights/oneway", "request": {
        "from_airport": "TLV", "to_airport": "LHR", "currency": "USD", "departure_date": departure
    }});
    let insert = "insert into monitors (tenant_id, monitor_id, name, cron, timezone, scan, api, rules, paused, grant_id, created_at, updated_at)
                  select tenant_id, $1, 'with old rules', cron, timezone, $2, api, $3, true, grant_id, now(), now() from monitors limit 1";
    let id = id.parse::<farescan::ids::MonitorId>().unwrap().uuid();
    execute!(pool, insert, id, scan, rules);
}

/// The state of a rule that has fired at 130, under the key of its canonical form.
async fn insert_fired(pool: &PgPool, monitor: &str, canonical: &Value, cell: &str) {
    let digest: [u8; 32] = Sha256::digest(canonical.to_string()).into();
    let mark = json!(["130", Timestamp::now().as_millisecond()]);
    let mut state = json!({"armed": false, "currency": "USD", "last": mark, "last_fired": mark});
    if canonical[0] == "new_low" {
        state["memory"] = json!({"lowest": mark});
    }
    let packed = zstd::encode_all(json!({cell: state}).to_string().as_bytes(), 0).unwrap();
    let insert =
        "insert into rule_states (tenant_id, monitor_id, rule, states) values ($1, $2, $3, $4)";
    let id = monitor.parse::<farescan::ids::MonitorId>().unwrap().uuid();
    execute!(pool, insert, TENANT, id, digest[..16].to_vec(), packed);
}

/// An alert as it was stored.
async fn insert_alert(pool: &PgPool, rule: &Value, number: u128) {
    let id = Uuid::from_u128(TENANT.as_u128() + number);
    let state = json!({"armed": true});
    let alert = json!({
        "id": farescan::ids::AlertId::from(id), "monitor_id": MONITOR, "slot": "2026-11-24T06:00:00Z",
        "slot_kind": "schedule", "type": rule["type"], "rule": rule, "scope": "scan", "cell": {},
        "price": 130, "currency": "USD", "state_before": state, "state_after": state,
        "fired_at": "2026-11-24T06:00:09Z"
    });
    let insert = "insert into alerts (tenant_id, alert_id, monitor_id, rule_type, fired_at, alert)
                  select $1, $2, $3, $4, '2026-11-24 06:00:09Z', $5";
    let monitor = MONITOR.parse::<farescan::ids::MonitorId>().unwrap().uuid();
    let rule_type = rule["type"].as_str().unwrap();
    execute!(pool, insert, TENANT, id, monitor, rule_type, alert);
}

async fn upgraded(departure: &str) -> AlertTest {
    let db = earlier_version(VERSION).await;
    let pool = db.pool();
    let rules = json!([{"type": "below_typical"}, {"type": "new_low"}, {"type": "stale"}]);
    insert_monitor(pool, MONITOR, departure, &rules).await;
    let scan = json!(["scope", "\"scan\""]);
    let rearm = |percent: &str| json!(["rearm_percent", percent]);
    insert_fired(pool, MONITOR, &json!(["below_typical", [scan]]), "").await;
    let new_low = json!(["new_low", [rearm("2"), scan]]);
    insert_fired(pool, MONITOR, &new_low, "").await;
    for (rule, number) in [(&rules[0], 0x61), (&rules[1], 0x62)] {
        insert_alert(pool, rule, number).await;
    }

    // With every field; the last one has states already, which stay.
    let rules = json!([
        {"type": "below_typical", "scope": "cell", "confirm": 1},
        {"type": "new_low", "rearm_percent": 5.50, "scope": "cell", "confirm": 0},
        {"type": "new_low"}, {"type": "new_low", "days": 365}
    ]);
    insert_monitor(pool, CELLS, departure, &rules).await;
    let (confirm, cell) = (json!(["confirm", "1"]), json!(["scope", "\"cell\""]));
    for (canonical, of) in [
        (json!(["below_typical", [confirm, cell]]), "{}"),
        (json!(["new_low", [rearm("5.5"), cell]]), "{}"),
        (new_low, ""),
        (json!(["new_low", [["days", "365"], rearm("2"), scan]]), ""),
    ] {
        insert_fired(pool, CELLS, &canonical, of).await;
    }
    farescan::db::migrate(pool).await.unwrap();
    let app = TestApp::builder().database(&db).start().await;
    AlertTest::of(TestService::of(db, app))
}

impl AlertTest {
    /// Runs the monitor now, with one price.
    async fn run_at(&self, price: u64) -> Value {
        self.respond_with(move |asked| fares(&[price], asked));
        let path = format!("/v1/monitors/{MONITOR}/run");
        self.ask("POST", &path, None).await.expect(202);
        self.all_ended().await;
        self.tick(Timestamp::now()).await;
        self.slots(MONITOR).await[0]["judged"]["fired"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_are_gone_are_converted_and_have_fired() {
    let departure = today().saturating_add(45.days());
    let test = upgraded(&departure.to_string()).await;
    let at_most = json!({"type": "percentile_at_most", "percentile": 40, "rearm_percent": 0});
    let new_low = json!({"type": "new_low", "days": 365});
    let monitor = TestService::monitor(&test, MONITOR).await;
    assert_eq!(
        monitor["alerts"],
        json!([at_most, new_low, {"type": "stale"}])
    );
    let armed = |monitor: &Value| {
        let standings = monitor["rule_standings"].as_array().unwrap();
        standings
            .iter()
            .map(|rule| rule["armed"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(armed(&monitor), [json!(false), json!(false), Value::Null]);
    let cells = TestService::monitor(&test, CELLS).await;
    assert_eq!(
        cells["alerts"],
        json!([
            {"type": "percentile_at_most", "percentile": 40, "scope": "cell", "rearm_percent": 0, "confirm": 1},
            {"type": "new_low", "days": 365, "scope": "cell", "rearm_percent": 5.50, "confirm": 0},
            new_low, new_low
        ])
    );
    assert_eq!(armed(&cells), vec![json!(false); 4]);

    // Prices of 100 up for other dates as many days ahead, and 130 for this one.
    let tenant = TenantId::from(TENANT);
    test.insert_ladder(tenant).await;
    test.insert_past(tenant, &[Seen(departure, 20, SearchStatus::Ok, Some(130))])
        .await;
    // Below both thresholds still, and not by another two percent.
    assert_eq!(test.run_at(129).await, 0, "what has fired does not again");
    assert_eq!(test.run_at(160).await, 0);
    assert_eq!(test.run_at(120).await, 2);
    let alerts = test.alerts(MONITOR).await;
    let rules: Vec<_> = alerts.iter().map(|alert| alert["rule"].clone()).collect();
    assert!(rules[..2].contains(&at_most) && rules[..2].contains(&new_low));
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_of_rules_that_are_gone_are_read_as_they_were_stored() {
    let test = upgraded("2030-02-01").await;
    let old = [json!({"type": "new_low"}), json!({"type": "below_typical"})];
    let alerts = test.page("/v1/alerts?history_verdict=true").await;
    let rules: Vec<_> = alerts.iter().map(|alert| alert["rule"].clone()).collect();
    assert_eq!(rules, old);
    assert_eq!(test.page("/v1/alerts?type=new_low").await.len(), 1);
    let browser = Browser::sign_in(&test, KEY).await;
    let page = browser.page("/alerts").await;
    for words in ["below typical", "new low", "130 USD"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let table = out(&test, &["alerts"]);
    for (alert, rule) in alerts.iter().zip(&old) {
        let id = alert["id"].as_str().unwrap();
        let words = rule["type"].as_str().unwrap().replace('_', " ");
        let page = browser.page(&format!("/alerts/{id}")).await;
        let shown = out(&test, &["alerts", "show", id]);
        for shown in [&table, &page, &shown] {
            assert!(shown.contains(&words), "{words}: {shown}");
        }
    }
    test.close().await;
}
