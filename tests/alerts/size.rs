//! The largest run there is.

use std::time::Instant;

use serde_json::{Value, json};

use super::MOMENT;
use crate::scans::office::Office;

/// Ten thousand cells before eight rules: judged in a few statements, without their bodies.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_cells_are_judged_by_eight_rules() {
    let office = Office::open().await;
    let rules: Vec<Value> = (0..4)
        .flat_map(|number| {
            let scope = if number % 2 == 0 { "cell" } else { "scan" };
            [
                json!({"type": "price_below", "amount": 150 + number, "scope": scope}),
                json!({"type": "drop_percent", "percent": 10 + number, "runs": 30, "scope": scope}),
            ]
        })
        .collect();
    let airports: Vec<_> = (0..100_u8).map(|n| format!("{}{}A", char::from(b'A' + n / 26), char::from(b'A' + n % 26))).collect();
    let mut body = super::monitor(100, &json!(rules));
    body["scan"]["sweep"]["to_airport"] = json!(airports);
    body["scan"]["request"].as_object_mut().unwrap().remove("to_airport");
    let id = office.watch(&body).await;
    for (number, factor) in [1.0, 0.5].into_iter().enumerate() {
        let slot = office.next_slot(&id).await;
        office.tick(slot).await;
        let ended = "update scan_items set state = 'done', search_status = 'ok', results = 1, calls = 1, observed_at = now(),
                            best_price = (100 + position % 100) * $1, currency = 'USD'
                     where state <> 'done'";
        let ended = sqlx::query(ended).bind(factor).execute(office.db.pool()).await.unwrap();
        assert_eq!(ended.rows_affected(), 10_000);
        let ended = "update scans set status = 'completed', ok = total, finished_at = now() where finished_at is null";
        sqlx::raw_sql(ended).execute(office.db.pool()).await.unwrap();
        let begin = Instant::now();
        assert_eq!(office.tick(slot + MOMENT).await.judged, 1);
        let took = begin.elapsed();
        let judged = office.slots(&id).await[0]["judged"].clone();
        let bytes = office.count("select sum(octet_length(states))::bigint from rule_states").await;
        println!("run {}: 10,000 cells, 8 rules: {took:.2?}, {judged}, states {bytes} bytes", number + 1);
        assert_eq!(judged["alerts"], 1_000, "as many as are kept");
        assert!(judged["fired"].as_u64().unwrap() > 10_000, "{judged}");
    }
    assert_eq!(office.count("select count(*) from alerts").await, 2_000);
}
