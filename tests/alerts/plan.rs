//! `plan_ends_before_reset`: once for each time that the plan becomes too small.

use serde_json::{Value, json};

use super::{AlertTest, monitor};
use crate::support::app::KEY;
use crate::support::array;

/// What the marketplace last said is left of the plan, for more than a month.
async fn leave(alerts: &AlertTest, requests: i64) {
    execute!(
        alerts.pool(),
        "update lanes set plan_limit = 2500, plan_remaining = $1, plan_reset_at = now() + interval '40 days', plan_seen_at = now()",
        requests
    );
}

async fn fired(alerts: &AlertTest, id: &str) -> u64 {
    alerts.run(id).await["judged"]["fired"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_told_once_that_its_plan_ends_too_early() {
    let alerts = AlertTest::open().await;
    alerts.accept_key().await;
    let rules = json!([{"type": "plan_ends_before_reset"}]);
    let id = alerts.monitor(&monitor(3, &rules)).await;
    assert_eq!(fired(&alerts, &id).await, 0, "the plan is not reported");
    // Ten requests a day in the last two weeks.
    execute!(
        alerts.pool(),
        "insert into daily_usage (tenant_id, day, endpoint, single, monitor_id, billed)
         select m.tenant_id, (now() at time zone 'UTC')::date - n, 'flights/oneway', false, m.monitor_id, 10
         from monitors m, generate_series(1, 14) n"
    );
    leave(&alerts, 2_000).await;
    assert_eq!(fired(&alerts, &id).await, 0, "it lasts");
    leave(&alerts, 100).await;
    assert_eq!(fired(&alerts, &id).await, 1);
    assert_eq!(fired(&alerts, &id).await, 0, "it has fired");
    let alert = alerts.get("/v1/alerts").await["data"][0].clone();
    let plan = &alert["plan"];
    assert_eq!(
        (
            &alert["type"],
            &plan["requests_left"],
            &plan["causes"][0]["key"]
        ),
        (&json!("plan_ends_before_reset"), &json!(100), &json!(id)),
        "{alert:#}"
    );
    assert!(plan["ends_on"].is_string(), "{alert:#}");
    // A search was made without the monitor, too.
    let percent = plan["causes"][0]["percent"].as_u64().unwrap();
    assert!((80..100).contains(&percent), "{alert:#}");
    assert_eq!(
        alerts.events(&id).await[0]["data"]["alerts"][0]["plan"],
        *plan
    );
    // A new period, and too much of it is used again.
    leave(&alerts, 2_500).await;
    assert_eq!(fired(&alerts, &id).await, 0);
    leave(&alerts, 50).await;
    assert_eq!(fired(&alerts, &id).await, 1);

    let usage = alerts.get("/v1/usage").await;
    let forecast = &usage["forecast"];
    assert_eq!(forecast["hotels"], Value::Null);
    assert_eq!(forecast["flights"]["requests_left"], 50);
    let day = forecast["flights"]["ends_on"].as_str().unwrap();
    let day: jiff::civil::Date = day.parse().unwrap();
    let browser = crate::web::Browser::sign_in(&alerts, KEY).await;
    for path in ["/usage", "/overview"] {
        let page = browser.page(path).await;
        let sentence = format!("ends on {}", day.strftime("%-d %B %Y"));
        assert!(page.contains(&sentence), "{path}: {page}");
    }
    leave(&alerts, 2_188).await;
    let usage = alerts.get("/v1/usage").await;
    let expected = usage["forecast"]["flights"]["requests_expected"].as_u64();
    let forty_days = expected.unwrap();
    assert!((380..450).contains(&forty_days), "ten a day: {usage:#}");
    let rate = &usage["forecast"]["flights"]["requests_per_day"];
    let sentence = format!(
        "312 of 2,500 requests of flights used; at {rate} a day about {} by ",
        312 + forty_days
    );
    let terminal = crate::cli::monitors::cli(&alerts, &["usage"]).err;
    for (path, said) in [
        ("/usage", browser.page("/usage").await),
        ("/overview", browser.page("/overview").await),
        ("terminal", terminal.replace('\n', " ")),
    ] {
        assert!(said.contains(&sentence), "{path}: {said}");
    }
    assert!(!array(&usage["data"]).is_empty());
    alerts.close().await;
}
