//! Backtests (monitors.md, rules 80 to 83): a monitor replayed on the caller's own stored prices, at
//! no cost.

use std::collections::BTreeMap;

use farescan::contract::SearchStatus;
use farescan::history::Observation;
use farescan::history::daily_pack::pack_past_days;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use serde_json::{Value, json};

use crate::history::fixture::HistoryFixture;
use crate::support::app::{KEY, ring, tenant};
use crate::support::array;
use crate::support::db::begin_seeding;

pub fn today(fixture: &HistoryFixture) -> Date {
    fixture.now.to_zoned(TimeZone::UTC).date()
}

/// A fare of a departure, seen at noon some days ago.
pub fn seen(fixture: &HistoryFixture, departure: Date, ago: i64, price: i64) -> Observation {
    let midnight = today(fixture).to_zoned(TimeZone::UTC).unwrap().timestamp();
    Observation {
        observed_at: midnight - SignedDuration::from_hours(24 * ago - 12),
        ..fixture.fare(&departure.to_string(), 0, Some(price))
    }
}

/// A monitor of fixed departures, each day at 13:00 UTC.
fn monitor(dates: &[Date], rules: &Value) -> Value {
    json!({
        "name": "replayed", "schedule": {"cron": "0 13 * * *", "timezone": "UTC"},
        "scan": {"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
                 "sweep": {"departure_date": dates}},
        "alerts": rules
    })
}

async fn backtest(fixture: &HistoryFixture, days: u16, body: &Value) -> Value {
    let path = format!("/v1/monitors/backtest?days={days}");
    fixture
        .app
        .ask("POST", &path, Some(body))
        .await
        .expect(200)
        .json()
}

pub async fn with_partitions(fixture: &HistoryFixture, days: i32) {
    execute!(
        fixture.pool(),
        "select create_partitions(now() - make_interval(days => $1), 2 + $1 / 28)",
        days
    );
}

#[tokio::test]
async fn a_backtest_says_which_alerts_a_monitor_would_have_sent() {
    let fixture = HistoryFixture::open().await;
    with_partitions(&fixture, 60).await;
    let date = today(&fixture).saturating_add(60.days());
    // Days ago and prices; nothing was searched on the others.
    let prices = [
        (10, 210),
        (9, 199),
        (8, 205),
        (7, 150),
        (5, 260),
        (4, 190),
        (3, 120),
    ];
    let own: Vec<_> = prices
        .iter()
        .map(|(ago, price)| seen(&fixture, date, *ago, *price))
        .collect();
    fixture.insert(&own).await;
    // Neither a partial answer nor another caller counts.
    let partial = Observation {
        status: SearchStatus::Partial,
        ..seen(&fixture, date, 2, 10)
    };
    let others = Observation {
        tenant: tenant(fixture.pool(), &ring(), "another-key-0123456789").await,
        ..seen(&fixture, date, 2, 10)
    };
    fixture.insert(&[partial, others]).await;
    pack_past_days(fixture.pool(), fixture.now).await.unwrap();
    let rules = json!([
        {"type": "price_below", "amount": 200, "rearm_percent": 2}, {"type": "sold_out"},
        {"type": "new_low", "days": 30}, {"type": "percentile_at_most", "percentile": 40}
    ]);
    let calls = fixture.upstream.count();
    let answer = backtest(&fixture, 30, &monitor(&[date], &rules)).await;
    let alerts: Vec<_> = array(&answer["alerts"])
        .iter()
        .map(|alert| {
            let slot: jiff::Timestamp = alert["slot"].as_str().unwrap().parse().unwrap();
            let ago = slot
                .to_zoned(TimeZone::UTC)
                .date()
                .until(today(&fixture))
                .unwrap();
            (
                ago.get_days(),
                alert["type"].as_str().unwrap(),
                alert["price"].as_i64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        alerts,
        [
            (9, "price_below", 199),
            (9, "new_low", 199),
            (7, "price_below", 150),
            (7, "new_low", 150),
            (4, "price_below", 190),
            (3, "new_low", 120),
        ],
        "{answer:#}"
    );
    let first = &answer["alerts"][1];
    assert_eq!(
        (
            &first["reference"]["price"],
            &first["first_date"],
            &first["rule"]
        ),
        (&json!(210), &json!(date), &rules[2])
    );
    assert_eq!(
        [
            &answer["slots"],
            &answer["days"],
            &answer["days_with_prices"],
            &answer["searches_with_prices"],
            &answer["requests"]["least"],
            &answer["billed_requests"],
            &answer["fired"]
        ],
        [30, 30, 7, 7, 30, 0, 6]
            .map(|number| json!(number))
            .each_ref()
    );
    assert_eq!(answer["not_replayed"][0]["index"], 1, "{answer:#}");
    assert_eq!(array(&answer["not_replayed"]).len(), 1);
    assert_eq!(fixture.upstream.count(), calls, "no call");
    // Another caller replays other prices, and a key that nobody has accepted has none.
    let path = "/v1/monitors/backtest?days=30";
    let body = monitor(&[date], &rules);
    tenant(fixture.pool(), &ring(), "third-key-0123456789").await;
    let asked = |key| fixture.app.ask_as(key, "POST", path, Some(&body));
    let other = asked("third-key-0123456789").await;
    assert_eq!(other.expect(200).json()["days_with_prices"], 0);
    let unknown = asked("unknown-key-0123456789").await;
    assert_eq!(unknown.kind(), "409 key_not_accepted");
    let kept = fixture
        .app
        .get_as(KEY, "/v1/monitors")
        .await
        .expect(200)
        .json();
    assert_eq!(kept["data"], json!([]), "nothing is stored");
}

#[tokio::test]
async fn a_backtest_has_limits_and_the_faults_of_a_monitor() {
    let fixture = HistoryFixture::open().await;
    let dates: Vec<_> = (1..=300)
        .map(|days| today(&fixture).saturating_add(days.days()))
        .collect();
    let path = "/v1/monitors/backtest?days=366";
    let refused = fixture
        .app
        .ask("POST", path, Some(&monitor(&dates, &json!([]))))
        .await;
    assert_eq!(refused.kind(), "400 invalid_request");
    assert_eq!(
        refused.message(),
        "`days`: found 366; expected fewer days, at most 333 of them with a slot: a backtest plans 100000 searches"
    );
    // Runs that the limit of a month refuses are planned too.
    let mut limited = monitor(&dates, &json!([]));
    limited["max_requests_per_month"] = json!(300);
    let also = fixture.app.ask("POST", path, Some(&limited)).await;
    assert_eq!(also.message(), refused.message());
    let wrong = monitor(
        &dates[..1],
        &json!([{"type": "percentile_at_most", "percentile": 91}]),
    );
    let refused = fixture.app.ask("POST", path, Some(&wrong)).await;
    assert!(
        refused.message().contains("from 0 to 90"),
        "{}",
        refused.message()
    );
    let refused = fixture
        .app
        .ask(
            "POST",
            "/v1/monitors/backtest?days=367",
            Some(&monitor(&dates[..1], &json!([]))),
        )
        .await;
    assert!(
        refused.message().starts_with("`days`: found 367"),
        "{}",
        refused.message()
    );
}

/// A range with one fixed end has more dates on an earlier day: the number of days that the refusal
/// names counts them.
#[tokio::test]
async fn the_limit_counts_the_dates_of_a_range_with_one_fixed_end() {
    let fixture = HistoryFixture::open().await;
    let last = today(&fixture).saturating_add(272.days());
    let mut body = monitor(&[], &json!([]));
    body["schedule"]["cron"] = json!("0 0 * * *");
    body["scan"]["sweep"] = json!({"departure_date": {"from": "+1d", "to": last}});
    // The next run has 271 dates, so 366 equal ones were few enough; today's had 272, the first one 637.
    let mut searches = 0;
    let most = (0..366)
        .take_while(|days| {
            searches += 272 + 365 - days;
            searches <= 100_000
        })
        .count();
    let refused = fixture
        .app
        .ask("POST", "/v1/monitors/backtest?days=366", Some(&body))
        .await;
    assert_eq!(
        (refused.kind().as_str(), refused.message()),
        (
            "400 invalid_request",
            format!(
                "`days`: found 366; expected fewer days, at most {most} of them with a slot: a backtest plans 100000 searches"
            )
        )
    );
    let answer = backtest(&fixture, u16::try_from(most).unwrap(), &body).await;
    let first = 272 + most - 1;
    assert_eq!(
        (&answer["slots"], &answer["searches"]),
        (&json!(most), &json!((272 + first) * most / 2))
    );
}

/// The end of a range was before its fixed begin on earlier days.
#[tokio::test]
async fn slots_whose_searches_cannot_be_planned_are_shown_with_the_reason() {
    let fixture = HistoryFixture::open().await;
    let first = today(&fixture).saturating_add(20.days());
    let mut body = monitor(&[], &json!([]));
    body["schedule"]["cron"] = json!("0 0 * * *");
    body["scan"]["sweep"] = json!({"departure_date": {"from": first, "to": "+30d"}});
    let answer = backtest(&fixture, 60, &body).await;
    let failed = array(&answer["failed"]);
    let slots: u64 = failed
        .iter()
        .map(|month| month["slots"].as_u64().unwrap())
        .sum();
    // From 10 days ago on the range has a date; the slots of today and of 10 days before it.
    assert_eq!(
        (&answer["slots"], &answer["runs"]),
        (&json!(60), &json!(11))
    );
    assert_eq!(slots, 49, "{answer:#}");
    let reason = failed[0]["reason"].as_str().unwrap();
    assert!(reason.contains("sweep.departure_date"), "{reason}");
}

/// Equal rules fire together: one is replayed, as one is evaluated after a run.
#[tokio::test]
async fn equal_rules_count_once() {
    let fixture = HistoryFixture::open().await;
    with_partitions(&fixture, 30).await;
    let date = today(&fixture).saturating_add(60.days());
    fixture.insert(&[seen(&fixture, date, 3, 150)]).await;
    pack_past_days(fixture.pool(), fixture.now).await.unwrap();
    let rules = json!([
        {"type": "price_below", "amount": 200}, {"type": "sold_out"},
        {"type": "price_below", "amount": 2e2, "rearm_percent": 2}, {"type": "price_below", "amount": 190}
    ]);
    let answer = backtest(&fixture, 10, &monitor(&[date], &rules)).await;
    let fired = array(&answer["alerts"]).iter().map(|alert| &alert["rule"]);
    assert_eq!(fired.collect::<Vec<_>>(), [&rules[0], &rules[3]]);
    assert_eq!(answer["fired"], 2);
    assert_eq!(answer["not_replayed"][0]["index"], 1);
}

/// A year of 200 dates, each seen every day, with the rules that read most.
#[tokio::test]
async fn a_year_of_two_hundred_series_is_replayed() {
    let fixture = HistoryFixture::open().await;
    with_partitions(&fixture, 400).await;
    let series: Vec<u8> = fixture
        .fare("2030-01-01", 0, None)
        .subject
        .series
        .key
        .0
        .to_vec();
    fixture
        .insert(&[fixture.fare(&today(&fixture).to_string(), 0, Some(1))])
        .await;
    let mut tx = begin_seeding(fixture.pool()).await;
    execute!(
        &mut *tx,
        "insert into observations (tenant_id, series, first_date, observed_at, price, search_status, item_id, number)
         select $1, $2, current_date + d, date_trunc('day', now(), 'UTC') - make_interval(days => t) + interval '12 hours',
                200 + (t * 7 + d * 13) % 97, 'ok', gen_random_uuid(), 1
         from generate_series(0, 365) t, generate_series(1, 200) d",
        fixture.tenant.uuid(),
        series
    );
    tx.commit().await.unwrap();
    pack_past_days(fixture.pool(), fixture.now).await.unwrap();
    let dates: Vec<_> = (1..=200)
        .map(|days| today(&fixture).saturating_add(days.days()))
        .collect();
    let rules = json!([
        {"type": "percentile_at_most", "percentile": 5, "scope": "cell"},
        {"type": "new_low", "days": 30, "scope": "cell"}, {"type": "price_below", "amount": 150}
    ]);
    let answer = backtest(&fixture, 365, &monitor(&dates, &rules)).await;
    assert_eq!(answer["searches_with_prices"], 73_000, "{}", answer["days"]);
    assert_eq!(answer["alerts"].as_array().unwrap().len(), 1_000);
}

/// What a backtest of `days` would have sent: days ago and price.
async fn sent(fixture: &HistoryFixture, days: u16, body: &Value) -> Vec<(i32, i64)> {
    let answer = backtest(fixture, days, body).await;
    let sent = array(&answer["alerts"]).iter().map(|alert| {
        let slot: Timestamp = alert["slot"].as_str().unwrap().parse().unwrap();
        let ago = today(fixture) - slot.to_zoned(TimeZone::UTC).date();
        (ago.get_days(), alert["price"].as_i64().unwrap())
    });
    sent.collect()
}

/// As [`seen`], some hours later, with the outcome of the search.
fn answered(
    seen: Observation,
    hours: i64,
    status: SearchStatus,
    reason: Option<&str>,
) -> Observation {
    Observation {
        observed_at: seen.observed_at + SignedDuration::from_hours(hours),
        best: seen.best.filter(|_| status == SearchStatus::Ok),
        status,
        reason: reason.map(str::to_owned),
        ..seen
    }
}

#[tokio::test]
async fn a_departure_that_was_sold_out_is_back_in_stock_once() {
    let fixture = HistoryFixture::open().await;
    with_partitions(&fixture, 60).await;
    let date = today(&fixture).saturating_add(60.days());
    let at =
        |ago, hours, status| answered(seen(&fixture, date, ago, 200 - ago), hours, status, None);
    let (ok, empty) = (SearchStatus::Ok, SearchStatus::Empty);
    let history = [
        at(20, 0, ok),
        at(19, 0, empty),
        at(18, 0, ok), // Fires …
        at(17, 0, ok), // … once.
        at(16, 0, empty),
        answered(
            seen(&fixture, date, 15, 5),
            0,
            SearchStatus::Degraded,
            Some("blocked_page"),
        ),
        at(14, 0, ok), // What did not complete says nothing.
        at(13, 0, ok),
        at(13, 1, empty), // Sold out at the end of a day with a price.
        at(12, 0, ok),
        at(11, 0, empty),
        at(11, 1, ok), // Empty and back within one day: for a replay it was there.
        at(10, 0, ok),
    ];
    fixture.insert(&history).await;
    let body = monitor(&[date], &json!([{"type": "back_in_stock"}]));
    let expected = [(18, 182), (14, 186), (12, 188)];
    assert_eq!(sent(&fixture, 30, &body).await, expected);
    pack_past_days(fixture.pool(), fixture.now).await.unwrap();
    assert_eq!(sent(&fixture, 30, &body).await, expected, "packed");
    // A replay that begins later knows what came before it.
    assert_eq!(sent(&fixture, 13, &body).await, expected[2..]);
    // An error in the price is an offer, as for a run, and rules about prices do not see it.
    let far_off = Observation {
        observed_at: seen(&fixture, date, 8, 1).observed_at,
        ..fixture.fare(&date.to_string(), 0, Some(20))
    };
    fixture.insert(&[at(9, 0, empty), far_off]).await;
    let rules = json!([{"type": "back_in_stock"}, {"type": "price_below", "amount": 100}]);
    let answer = sent(&fixture, 30, &monitor(&[date], &rules)).await;
    assert_eq!(answer, [&expected[..], &[(8, 20)]].concat());
}

/// A name that matches no hotel says nothing about its offers.
#[tokio::test]
async fn an_unknown_name_is_no_empty_answer() {
    let fixture = HistoryFixture::open().await;
    with_partitions(&fixture, 60).await;
    let stay = today(&fixture).saturating_add(60.days());
    let request = json!({"hotel_name": "Example", "checkin_date": stay, "checkout_date": stay.saturating_add(2.days())});
    let midnight = today(&fixture).to_zoned(TimeZone::UTC).unwrap().timestamp();
    let found = |ago: i64, price: Option<i64>, reason: Option<&str>| Observation {
        observed_at: midnight - SignedDuration::from_hours(24 * ago - 12),
        status: price.map_or(SearchStatus::Empty, |_| SearchStatus::Ok),
        reason: reason.map(str::to_owned),
        ..fixture.observation("hotels/by-name", request.clone(), 0, price)
    };
    let history = [
        found(9, Some(190), None),
        found(8, None, Some("no_match")),
        found(7, Some(180), None),
        found(6, None, Some("sold_out")),
        found(5, None, Some("no_match")),
        found(4, Some(170), None),
    ];
    fixture.insert(&history).await;
    pack_past_days(fixture.pool(), fixture.now).await.unwrap();
    let mut body = monitor(&[], &json!([{"type": "back_in_stock"}]));
    body["scan"] = json!({"endpoint": "hotels/by-name", "request": request});
    assert_eq!(sent(&fixture, 20, &body).await, [(4, 170)]);
}

/// Slots that the month's limit would have left without a run cost nothing and fire nothing.
#[tokio::test]
async fn the_limit_of_a_month_holds() {
    let fixture = HistoryFixture::open().await;
    with_partitions(&fixture, 120).await;
    let date = today(&fixture).saturating_add(60.days());
    let dates = [date, date.saturating_add(1.days())];
    // Below 200 on every second day, each with two searches.
    let price = |ago: i64| if ago % 2 == 0 { 150 } else { 250 };
    let history = (0..100).flat_map(|ago| {
        let fixture = &fixture;
        dates.map(|date| seen(fixture, date, ago, price(ago)))
    });
    let history: Vec<_> = history
        .filter(|seen| seen.observed_at < fixture.now)
        .collect();
    fixture.insert(&history).await;
    pack_past_days(fixture.pool(), fixture.now).await.unwrap();
    let mut body = monitor(&dates, &json!([{"type": "price_below", "amount": 200}]));
    body["max_requests_per_month"] = json!(31);
    let answer = backtest(&fixture, 90, &body).await;

    let at = |field: &str| {
        answer[field]
            .as_str()
            .unwrap()
            .parse::<Timestamp>()
            .unwrap()
    };
    let first = at("since").to_zoned(TimeZone::UTC).date();
    let slots = (0..=90).map(|days| {
        let slot = first.saturating_add(days.days()).at(13, 0, 0, 0);
        slot.to_zoned(TimeZone::UTC).unwrap()
    });
    let (mut runs, mut refused) = (BTreeMap::<_, u64>::new(), Vec::<Value>::new());
    let (mut fired, mut is_armed) = (0, true);
    for slot in
        slots.filter(|slot| slot.timestamp() > at("since") && slot.timestamp() <= at("until"))
    {
        let runs = runs
            .entry(slot.first_of_month().unwrap().date())
            .or_default();
        // Of 31 requests 15 runs have two each; the last one is left.
        if *runs < 15 {
            *runs += 1;
            let ago = (today(&fixture) - slot.date()).get_days();
            let is_below = price(i64::from(ago)) < 200;
            fired += usize::from(is_armed && is_below);
            is_armed = !is_below;
            continue;
        }
        let month =
            |row: &&mut Value| row["slot"].as_str().unwrap()[..7] == slot.date().to_string()[..7];
        match refused.last_mut().filter(month) {
            Some(row) => row["slots"] = json!(row["slots"].as_u64().unwrap() + 1),
            None => refused.push(json!({
                "slot": slot.timestamp(), "slots": 1,
                "reason": "the monitor has spent 30 of 31 requests this month and a run needs 2; raise `max_requests_per_month` or wait for the next month"
            })),
        }
    }
    assert!(refused.len() >= 2, "{refused:?}");
    let all: u64 = runs.values().sum();
    let most: u64 = runs.values().map(|runs| (4 * runs).min(31)).sum();
    assert_eq!(answer["monthly_ceiling"], json!(refused));
    assert_eq!(
        [
            &answer["slots"],
            &answer["runs"],
            &answer["days"],
            &answer["fired"]
        ],
        [json!(90), json!(all), json!(all), json!(fired)].each_ref()
    );
    assert_eq!(answer["requests"], json!({"least": 2 * all, "most": most}));

    // Without a limit all of them run; the answer of a limit that no run fits in is that of a new monitor.
    body["max_requests_per_month"] = Value::Null;
    let answer = backtest(&fixture, 90, &body).await;
    assert_eq!(
        (
            &answer["runs"],
            &answer["monthly_ceiling"],
            &answer["requests"]["least"]
        ),
        (&json!(90), &json!([]), &json!(180))
    );
    body["max_requests_per_month"] = json!(1);
    let path = "/v1/monitors/backtest?days=90";
    let refused = fixture.app.ask("POST", path, Some(&body)).await;
    assert_eq!(refused.kind(), "400 invalid_request");
    assert!(
        refused.message().contains("max_requests_per_month"),
        "{}",
        refused.message()
    );
}
