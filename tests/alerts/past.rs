//! Rules that compare with the stored history (monitors.md, rules 74 to 78): what other scans of
//! the caller have seen, packed or not, and nothing of other callers.

use farescan::contract::{Endpoint, Request, SearchStatus};
use farescan::history::daily_pack::pack_past_days;
use farescan::history::{Observation, ObservedPrice, Subject, insert};
use farescan::ids::{ItemId, TenantId};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::{AlertTest, MOMENT, as_sent, fares, monitor};
use crate::support::app::{KEY, ring, tenant};

pub const OTHER: &str = "another-key-0123456789";

pub fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}

/// A past search of a departure: how many days ago, and what it found.
pub struct Seen(pub Date, pub i64, pub SearchStatus, pub Option<i64>);

impl AlertTest {
    pub async fn insert_past(&self, tenant: TenantId, seen: &[Seen]) {
        execute!(
            self.pool(),
            "select create_partitions(now() - interval '150 days', 8)"
        );
        let midnight = today().to_zoned(TimeZone::UTC).unwrap().timestamp();
        let observations: Vec<_> = seen
            .iter()
            .map(|Seen(departure, ago, status, price)| {
                let body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": departure});
                let request = Request::check(Endpoint::FlightsOneway, body.as_object().unwrap());
                Observation {
                    tenant,
                    item: ItemId::new(),
                    number: 1,
                    subject: Subject::of(&request.unwrap().request).unwrap(),
                    observed_at: midnight - SignedDuration::from_hours(24 * ago - 12),
                    best: price.map(|price| ObservedPrice {
                        price: price.into(),
                        seller: None,
                        band_low: None,
                        band_high: None,
                        verdict: None,
                    }),
                    results: Some(i32::from(price.is_some())),
                    status: *status,
                    reason: (*status == SearchStatus::Degraded).then(|| "blocked_page".to_owned()),
                }
            })
            .collect();
        let mut tx = farescan::db::begin(self.pool()).await.unwrap();
        insert(&mut tx, &observations).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// A hundred prices from 100 up, one a day, each 45 days before its departure.
    pub async fn insert_ladder(&self, tenant: TenantId) {
        let seen = |ago: i64| {
            let departure = today().saturating_add((45 - ago).days());
            Seen(departure, ago, SearchStatus::Ok, Some(99 + ago))
        };
        let seen: Vec<_> = (1..=100).map(seen).collect();
        self.insert_past(tenant, &seen).await;
    }
}

/// A monitor of one departure 45 days after each run.
fn weeks_ahead(rules: &Value) -> Value {
    let mut body = monitor(1, rules);
    body["scan"]["request"]["departure_date"] = json!("+45d");
    body
}

/// A monitor of fixed departures.
pub fn of_dates(dates: &[Date], rules: &Value) -> Value {
    let mut body = monitor(2, rules);
    body["scan"]["sweep"] = json!({"departure_date": dates});
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_percentile_rule_fires_on_the_callers_own_past_prices_alone() {
    let test = AlertTest::open().await;
    let rule = |percentile: u8| json!({"type": "percentile_at_most", "percentile": percentile});
    let rules = json!([rule(20), rule(40)]);
    let id = test.monitor(&weeks_ahead(&rules)).await;
    let other = tenant(test.pool(), &ring(), OTHER).await;
    test.insert_ladder(other).await;
    test.respond_with(|asked| fares(&[101], asked));
    let judged = &test.run(&id).await["judged"];
    assert_eq!(
        (&judged["fired"], &judged["not_comparable"]),
        (&json!(0), &json!(2)),
        "a history of another caller is none, and the slot counts what could not be judged"
    );

    test.insert_ladder(tenant(test.pool(), &ring(), KEY).await)
        .await;
    test.respond_with(|asked| fares(&[160], asked));
    assert_eq!(test.run(&id).await["judged"]["fired"], 0);
    pack_past_days(test.pool(), Timestamp::now()).await.unwrap();
    test.respond_with(|asked| fares(&[116], asked));
    assert_eq!(test.run(&id).await["judged"]["fired"], 2);
    let alerts = test.alerts(&id).await;
    let since = today().saturating_sub(100.days());
    let sentence = format!(
        "cheaper than 83 % of 100 prices seen 31 to 60 days before departure since {}",
        since.strftime("%-d %B %Y")
    );
    for alert in &alerts {
        assert_eq!(
            alert["history_verdict"],
            json!({
                "class": "low", "percentile": 16.5, "n": 100, "lower": 16, "higher": 83,
                "bin": {"from_days": 31, "to_days": 60}, "since": since, "sentence": sentence,
            }),
            "{alert:#}"
        );
    }
    let items = format!("/v1/scans/{}/items", alerts[0]["scan_id"].as_str().unwrap());
    let item = &test.page(&format!("{items}?history_verdict=true")).await[0];
    assert_eq!(
        item["history_verdict"], alerts[0]["history_verdict"],
        "the item's own"
    );
    let plain = &test.page(&items).await[0];
    assert_eq!(plain.get("history_verdict"), None);
    let one = format!("/v1/items/{}", item["id"].as_str().unwrap());
    assert_eq!(
        test.get(&format!("{one}?history_verdict=true")).await,
        *item
    );
    assert_eq!(test.get(&one).await, *plain);
    let thresholds: Vec<_> = alerts
        .iter()
        .map(|alert| (alert["type"].as_str().unwrap(), &alert["threshold"]))
        .collect();
    assert!(
        thresholds.contains(&("percentile_at_most", &json!(20))),
        "{thresholds:?}"
    );
    assert_eq!(
        test.events(&id).await[0]["data"]["alerts"],
        as_sent(&alerts)
    );
    // Once.
    assert_eq!(test.run(&id).await["judged"]["fired"], 0);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_low_sees_what_other_scans_have_seen() {
    let test = AlertTest::open().await;
    let date = today().saturating_add(60.days());
    let rules = json!([{"type": "new_low", "days": 30}, {"type": "new_low", "days": 60}]);
    let id = test.monitor(&of_dates(&[date], &rules)).await;
    let own = tenant(test.pool(), &ring(), KEY).await;
    let neighbour = date.saturating_add(1.days());
    test.insert_past(
        own,
        &[
            Seen(date, 40, SearchStatus::Ok, Some(100)),
            Seen(date, 20, SearchStatus::Ok, Some(190)),
            Seen(date, 10, SearchStatus::Partial, Some(180)),
            Seen(neighbour, 5, SearchStatus::Ok, Some(90)),
        ],
    )
    .await;
    test.respond_with(|asked| fares(&[170], asked));
    assert_eq!(test.run(&id).await["judged"]["fired"], 1);
    let alert = &test.alerts(&id).await[0];
    assert_eq!(
        (
            &alert["rule"],
            &alert["threshold"],
            &alert["reference"]["price"]
        ),
        (&rules[0], &json!(180), &json!(180))
    );
    let seen_on = super::time(&alert["reference"]["at"])
        .to_zoned(TimeZone::UTC)
        .date();
    assert_eq!(seen_on, today().saturating_sub(10.days()));
    assert_eq!(alert.get("history_verdict"), None, "not what it rests on");
    // By more than the margin below the price at which it fired; the monitor's own run counts.
    test.respond_with(|asked| fares(&[160], asked));
    assert_eq!(test.run(&id).await["judged"]["fired"], 1);
    let alert = &test.alerts(&id).await[0];
    assert_eq!(
        (&alert["rule"], &alert["reference"]["price"]),
        (&rules[0], &json!(170))
    );
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_product_is_back_in_stock_after_a_complete_empty_answer() {
    let test = AlertTest::open().await;
    let dates = [60, 61, 62, 63].map(|days| today().saturating_add(days.days()));
    let rules = json!([{"type": "back_in_stock"}, {"type": "available", "scope": "cell"}]);
    let id = test.monitor(&of_dates(&dates, &rules)).await;
    let own = tenant(test.pool(), &ring(), KEY).await;
    test.insert_past(
        own,
        &[
            Seen(dates[0], 9, SearchStatus::Ok, Some(190)),
            Seen(dates[0], 4, SearchStatus::Empty, None),
            Seen(dates[0], 3, SearchStatus::Degraded, None),
            Seen(dates[1], 9, SearchStatus::Empty, None),
            Seen(dates[1], 4, SearchStatus::Ok, Some(190)),
            Seen(dates[2], 4, SearchStatus::Degraded, None),
            Seen(dates[3], 4, SearchStatus::Empty, None),
        ],
    )
    .await;
    let sold_out = dates[3].to_string();
    test.respond_with(move |asked| {
        if asked["departure_date"] == json!(sold_out) {
            crate::support::reply::Reply::json(json!([]))
        } else {
            fares(&[200], asked)
        }
    });
    let judged = &test.run(&id).await["judged"];
    assert_eq!(
        (&judged["fired"], &judged["not_comparable"]),
        (&json!(1), &json!(1)),
        "the third date was never answered completely"
    );
    let alert = &test.alerts(&id).await[0];
    assert_eq!(
        (
            &alert["type"],
            &alert["cell"]["departure_date"],
            &alert["price"]
        ),
        (&json!("back_in_stock"), &json!(dates[0]), &json!(200))
    );
    let empty_on = super::time(&alert["was_empty_at"])
        .to_zoned(TimeZone::UTC)
        .date();
    assert_eq!(empty_on, today().saturating_sub(4.days()));

    test.respond_with(|asked| fares(&[200], asked));
    let judged = &test.run(&id).await["judged"];
    assert_eq!(judged["fired"], 2, "the last date, by both rules");
    assert_eq!(test.run(&id).await["judged"]["fired"], 0);

    // A replay of today fires as its runs did.
    let mut body = of_dates(
        &dates,
        &json!([rules[0], {"type": "back_in_stock", "scope": "scan"}]),
    );
    body["schedule"] = json!({"cron": "0 0 * * *", "timezone": "UTC"});
    let replayed = test.post("/v1/monitors/backtest?days=1", &body).await;
    let replayed = replayed.expect(200).json();
    let of_cells = |alerts: &[Value]| {
        let of_cell = |alert: &&Value| alert["type"] == "back_in_stock" && alert["scope"] == "cell";
        let found = alerts.iter().filter(of_cell);
        let mut found: Vec<_> = found
            .map(|alert| alert["cell"]["departure_date"].clone())
            .collect();
        found.sort_by_key(Value::to_string);
        found
    };
    let live = of_cells(&test.alerts(&id).await);
    assert_eq!(live, [json!(dates[0]), json!(dates[3])]);
    let alerts = crate::support::array(&replayed["alerts"]);
    assert_eq!(of_cells(alerts), live, "{replayed:#}");
    assert_eq!(
        super::time(&alerts[0]["was_empty_at"])
            .to_zoned(TimeZone::UTC)
            .date(),
        today().saturating_sub(4.days())
    );
    assert_eq!(
        (&replayed["not_replayed"], &replayed["runs"]),
        (&json!([]), &json!(1))
    );
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_alerts_have_a_verdict_only_for_callers_who_ask() {
    let test = AlertTest::open().await;
    test.respond_with(|asked| fares(&[160], asked));
    let rules = json!([{"type": "price_below", "amount": 200}, {"type": "sold_out"}]);
    let id = test.monitor(&weeks_ahead(&rules)).await;
    test.insert_ladder(tenant(test.pool(), &ring(), KEY).await)
        .await;
    test.run(&id).await;
    test.respond_with(|_| crate::support::reply::Reply::json(json!([])));
    test.run(&id).await;
    let stored = test.alerts(&id).await;
    let types: Vec<_> = stored.iter().map(|alert| alert["type"].clone()).collect();
    assert_eq!(types, ["sold_out", "price_below"]);
    assert!(
        stored
            .iter()
            .all(|alert| alert.get("history_verdict").is_none())
    );
    let mut expected = stored.clone();
    for (path, of_one) in [
        (format!("/v1/alerts?monitor_id={id}&"), false),
        (format!("/v1/monitors/{id}/alerts?"), false),
        (
            format!("/v1/alerts/{}?", stored[1]["id"].as_str().unwrap()),
            true,
        ),
    ] {
        let answer = test.get(&format!("{path}history_verdict=true")).await;
        let judged = if of_one { &answer } else { &answer["data"][1] };
        let verdict = &judged["history_verdict"];
        assert_eq!(
            (&verdict["class"], &verdict["percentile"], &verdict["n"]),
            (&json!("above"), &json!(60.5), &json!(100)),
            "{path}"
        );
        expected[1]["history_verdict"] = verdict.clone();
        if !of_one {
            assert_eq!(
                answer["data"],
                json!(expected),
                "nothing else changes, nor the alert without a price"
            );
        }
    }
    for event in test.events(&id).await {
        assert!(!event.to_string().contains("history_verdict"), "{event}");
    }
    let file = format!(
        "/v1/scans/{}/items?format=csv&history_verdict=true",
        stored[1]["scan_id"].as_str().unwrap()
    );
    let refused = test.app.get(&file).await;
    assert_eq!(refused.kind(), "400 invalid_request");
    assert!(
        refused
            .message()
            .starts_with("`history_verdict`: found true"),
        "{}",
        refused.message()
    );
    test.close().await;
}

/// Reading the history takes longer than its share of the time; the database ends the statement.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_cannot_be_read_in_time_blocks_no_other_rule() {
    let test = AlertTest::open().await;
    let rules = json!([{"type": "percentile_at_most", "percentile": 40}, {"type": "price_below", "amount": 200}]);
    let id = test.monitor(&monitor(1, &rules)).await;
    test.respond_with(|asked| fares(&[150], asked));
    let slot = test.next_slot(&id).await;
    let started = crate::monitors::ticker(test.pool());
    started.decide_due_slots(|| slot).await.unwrap();
    test.all_ended().await;
    let patient = test.db.connect_options().options([("lock_timeout", "0")]);
    let pool = sqlx::PgPool::connect_with(patient).await.unwrap();
    let ticker = farescan::monitors::tick::Ticker {
        evaluation_timeout: std::time::Duration::from_secs(10),
        ..crate::monitors::ticker(&pool)
    };
    let mut lock = crate::support::db::begin_holding(test.pool()).await;
    execute!(
        &mut *lock,
        "lock table observed_days in access exclusive mode"
    );
    let pass = ticker.evaluate_ended_runs(|| slot + MOMENT).await.unwrap();
    lock.rollback().await.unwrap();
    assert_eq!((pass.evaluated, pass.failed), (1, 0));
    let slots = test.slots(&id).await;
    assert_eq!(slots[0]["judged"]["fired"], 1, "{slots:#?}");
    assert_eq!(
        slots[0]["reason"],
        "implausible prices were not left out: the price history was not read, or not in time; \
         `alerts[0]` was not evaluated: the price history was not read, or not in time"
    );
    test.close().await;
}
