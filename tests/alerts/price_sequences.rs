//! Sequences of prices, one per run.

use serde_json::{Value, json};

use super::{AlertTest, as_sent, fares, monitor, of_one_date};
use crate::support::reply::Reply;

/// The response for one run of a sequence.
fn response_for(seen: &'static str) -> impl FnMut(&Value) -> Reply + Send + 'static {
    move |asked| match seen {
        "degraded" => Reply::search_incomplete("blocked_page"),
        "empty" => Reply::json(json!([])),
        price => fares(&[price.parse().unwrap()], asked),
    }
}

/// Runs a sequence, prints it and asserts for each row whether the rule fires.
async fn sequence(test: &AlertTest, id: &str, rows: &[(&'static str, bool)]) {
    println!(
        "\n{:>4}  {:<9}  {:<5}  {:>6}  armed before/after",
        "run", "seen", "fires", "alerts"
    );
    let mut expected = 0;
    for (number, (seen, fires)) in rows.iter().enumerate() {
        test.respond_with(response_for(seen));
        let slot = test.run(id).await;
        expected += usize::from(*fires);
        let alerts = test.alerts(id).await;
        let armed = alerts.first().filter(|_| *fires).map(|alert| {
            format!(
                "{} {}",
                alert["state_before"]["armed"], alert["state_after"]["armed"]
            )
        });
        println!(
            "{:>4}  {seen:<9}  {:<5}  {:>6}  {}",
            number + 1,
            if slot["judged"]["fired"] == 1 {
                "FIRES"
            } else {
                "no"
            },
            alerts.len(),
            armed.unwrap_or_default()
        );
        assert_eq!(
            slot["judged"]["fired"],
            u64::from(*fires),
            "run {}: {seen}",
            number + 1
        );
        assert_eq!(alerts.len(), expected);
        let events = test.events(id).await;
        assert_eq!(events.len(), expected, "one delivery a run that fired");
        if *fires {
            assert_eq!(
                (&alerts[0]["price"], &alerts[0]["slot"]),
                (&json!(seen.parse::<u64>().unwrap()), &slot["slot"])
            );
            assert_eq!(events[0]["type"], "monitor.alerts");
            assert_eq!(events[0]["data"]["alerts"], as_sent(&alerts[..1]));
        }
    }
}

/// `price_below 200` with `rearm_percent` 5 (monitors.md, rule 32), one line per run.
#[tokio::test(flavor = "multi_thread")]
async fn price_below_fires_once_until_it_rearms() {
    let test = AlertTest::open().await;
    let rules = json!([{"type": "price_below", "amount": 200, "rearm_percent": 5}]);
    let id = test.monitor(&monitor(1, &rules)).await;
    let rows = [
        ("250", false),
        ("199", true),
        ("201", false),
        ("198", false),
        ("209", false),
        ("211", false),
        ("200", false),
        ("199", true),
        ("degraded", false),
        ("empty", false),
        ("150", false),
    ];
    sequence(&test, &id, &rows).await;
    // The first run of another monitor.
    let other = test.monitor(&monitor(1, &rules)).await;
    sequence(&test, &other, &[("180", true)]).await;
    assert_eq!(test.alerts(&id).await.len(), 2, "each monitor has its own");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_shows_what_the_run_saw() {
    let test = AlertTest::open().await;
    let rules = json!([
        {"type": "price_below", "amount": 200, "scope": "cell"}, {"type": "new_low", "days": 30}, {"type": "verdict"}, {"type": "sold_out", "scope": "cell"}
    ]);
    let id = test.monitor(&monitor(4, &rules)).await;
    let slot = test.next_slot(&id).await;
    let first = slot
        .in_tz("Europe/London")
        .unwrap()
        .date()
        .saturating_add(jiff::Span::new().days(30));
    let dates: Vec<_> = (0..5)
        .map(|day| {
            first
                .saturating_add(jiff::Span::new().days(day))
                .to_string()
        })
        .collect();
    test.respond_with(|asked| fares(&[250], asked));
    let judged = test.run(&id).await["judged"].clone();
    assert_eq!(
        (&judged["fired"], &judged["not_comparable"]),
        (&json!(1), &json!(1)),
        "the verdict is low on the first run, and no price is known before"
    );

    // A day later: the first date has left the scan, and another one has entered.
    let seen = dates.clone();
    test.respond_with(move |asked| {
        match seen
            .iter()
            .position(|date| asked["departure_date"] == json!(date))
        {
            Some(1) => Reply::json(json!([])),
            Some(2) => Reply::search_incomplete("blocked_page"),
            Some(3) => fares(&[190, 185], asked),
            _ => fares(&[240], asked),
        }
    });
    let slot = test.run(&id).await;
    let alerts = test.alerts(&id).await;
    let events: Vec<_> = alerts
        .iter()
        .map(|alert| {
            (
                alert["type"].as_str().unwrap(),
                alert["cell"]["departure_date"].clone(),
            )
        })
        .collect();
    let date = |place: usize| json!(dates[place]);
    assert_eq!(
        events,
        [
            ("new_low", date(3)),
            ("price_below", date(3)),
            ("sold_out", date(1)),
            ("verdict", date(0))
        ],
        "the whole scan before its cells"
    );
    let events = test.events(&id).await;
    assert_eq!(
        (
            events.len(),
            &events[0]["data"]["fired"],
            &events[0]["data"]["truncated"]
        ),
        (2, &json!(3), &json!(false))
    );
    assert_eq!(
        events[0]["data"]["alerts"],
        as_sent(&alerts[..3]),
        "all alerts of one run in one delivery"
    );
    let alert = &alerts[1];
    let item = test
        .get(&format!("/v1/items/{}", alert["item_id"].as_str().unwrap()))
        .await;
    assert_eq!(
        (
            &item["search"]["departure_date"],
            &item["best_price"],
            &item["scan_id"]
        ),
        (&date(3), &json!(185), &alert["scan_id"])
    );
    for (field, value) in [
        ("monitor_id", json!(id)),
        ("slot", slot["slot"].clone()),
        ("scan_id", slot["scan_id"].clone()),
        ("slot_kind", json!("schedule")),
        ("rule", rules[0].clone()),
        ("scope", json!("cell")),
        ("price", json!(185)),
        ("currency", json!("USD")),
        ("observed_at", item["observed_at"].clone()),
        ("search_status", json!("ok")),
        ("threshold", json!(200)),
        ("price_insights_low", json!(180)),
        ("price_insights_high", json!(320)),
        ("verdict", json!("low")),
        ("buy_link", json!("https://flights.example/?tfs=x&curr=USD")),
        (
            "searched",
            json!({"searches": 4, "answered": 3, "partial": 0, "degraded": 1, "share": 0.75}),
        ),
        ("state_before", json!({"armed": true})),
        (
            "state_after",
            json!({"armed": false, "last_fired": {"price": 185, "at": item["observed_at"]}}),
        ),
        ("fired_at", slot["judged"]["at"].clone()),
    ] {
        assert_eq!(alert[field], value, "{field}: {alert:#}");
    }
    assert_eq!(
        (&alert["before"]["price"], &alerts[0]["reference"]["price"]),
        (&json!(250), &json!(250))
    );
    assert!(super::time(&alert["before"]["at"]) < super::time(&alert["observed_at"]));
    assert_eq!(
        test.get(&format!("/v1/alerts/{}", alert["id"].as_str().unwrap()))
            .await,
        *alert
    );
    assert_eq!(
        (
            &alerts[2]["price"],
            &alerts[2]["item_id"],
            &alerts[2]["before"]["price"]
        ),
        (&Value::Null, &Value::Null, &json!(250))
    );
    test.close().await;
}

/// A rejected key starts no runs.
#[tokio::test(flavor = "multi_thread")]
async fn failed_slots_fire_a_stale_rule() {
    let test = AlertTest::open().await;
    let id = test
        .monitor(&monitor(
            1,
            &json!([{"type": "stale", "runs": 2}, {"type": "price_below", "amount": 100}]),
        ))
        .await;
    test.run(&id).await;
    let stop = "update lanes set paused_until = 'infinity', pause_reason = 'key_rejected'";
    execute!(test.pool(), stop);
    let fired = [
        test.run(&id).await,
        test.run(&id).await,
        test.run(&id).await,
    ]
    .map(|slot| slot["judged"]["fired"].clone());
    assert_eq!(fired, [json!(0), json!(1), json!(0)]);
    let alert = &test.alerts(&id).await[0];
    assert_eq!(
        (&alert["type"], &alert["scan_id"], &alert["searched"]),
        (&json!("stale"), &Value::Null, &Value::Null)
    );
    assert_eq!(test.events(&id).await.len(), 1);
    assert_eq!(
        (&alert["threshold"], &alert["state_after"]),
        (
            &json!(2),
            &json!({"armed": false, "runs_without_answer": 2})
        )
    );
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_in_another_currency_is_counted_and_fires_nothing() {
    let test = AlertTest::open().await;
    let rules = json!([{"type": "price_below", "amount": 200}, {"type": "new_low", "days": 30}]);
    let id = test.monitor(&of_one_date(&rules)).await;
    test.respond_with(|asked| fares(&[250], asked));
    test.run(&id).await;
    test.respond_with(|asked| {
        let mut fare = crate::support::upstream::fare(90, asked);
        fare["buy_link"] = json!("https://flights.example/?curr=EUR");
        Reply::json(json!([fare]))
    });
    let judged = &test.run(&id).await["judged"];
    assert_eq!(
        (
            &judged["fired"],
            &judged["alerts"],
            &judged["not_comparable"]
        ),
        (&json!(0), &json!(0), &json!(2))
    );
    test.respond_with(|asked| fares(&[190], asked));
    let alerts = {
        test.run(&id).await;
        test.alerts(&id).await
    };
    assert_eq!(
        alerts
            .iter()
            .map(|alert| &alert["before"]["price"])
            .collect::<Vec<_>>(),
        [&json!(250), &json!(250)]
    );
    test.close().await;
}
