//! What is kept of an order before acceptance, and how the rest comes.

use farescan::scans::expand::expand_due;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{house, monitor, send};
use crate::control::house::{House, adds_up, fares, from, order};
use crate::scans::office::{Comes, Office};
use crate::support::app::{Answer, KEY};
use crate::support::db::strangers;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;

async fn stored(house: &House) -> i64 {
    house.count("select count(*) from scan_items").await
}

fn refuses(house: &House) {
    house
        .app
        .upstream
        .on_any()
        .reply(Reply::status(401).with_json(json!({"message": "Invalid API key"})));
}

fn sells(house: &House) {
    house
        .app
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(120, &call.body)])));
}

async fn post(house: &House, path: &str, body: &Value) -> Answer {
    house.app.post(path, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn before_acceptance_a_scan_keeps_its_first_item_only() {
    let house = house().await;
    sells(&house);
    let gate = Gate::closed();
    let held = gate.clone();
    house
        .app
        .upstream
        .on_any()
        .answer(move |call| Reply::json(json!([fare(120, &call.body)])).held_by(&held));
    assert_eq!(
        post(&house, "/v1/scans/preview", &fares(100)).await.json()["items"],
        json!(100)
    );
    let once = |body: Value| {
        house.app.send(
            house
                .app
                .request("POST", "/v1/scans")
                .header("x-api-key", KEY)
                .header("idempotency-key", "a")
                .json(&body),
        )
    };
    let ordered = once(fares(100)).await;
    let scan = ordered.json();
    assert_eq!(
        (
            ordered.status,
            &scan["items"]["total"],
            &scan["items"]["pending"]
        ),
        (202, &json!(100), &json!(100))
    );
    assert_eq!(
        (scan["requests"]["planned"].clone(), stored(&house).await),
        (json!(100), 1)
    );
    let id = scan["id"].as_str().unwrap();
    assert_eq!(house.scan(id).await, scan);
    let again = once(fares(100)).await;
    assert_eq!(
        (again.text(), again.header("idempotent-replayed")),
        (ordered.text(), "true")
    );

    let worker = house.worker(8);
    house.app.upstream.wait_for_in_flight(1).await;
    assert_eq!(
        (house.app.upstream.count(), stored(&house).await),
        (1, 1),
        "only its first item is asked"
    );
    gate.open();
    let ended = house.ended(id).await;
    worker.stop().await;
    adds_up(&ended);
    assert_eq!(
        (
            &ended["status"],
            &ended["items"]["total"],
            &ended["items"]["ok"]
        ),
        (&json!("completed"), &json!(100), &json!(100))
    );
    let dates: Vec<_> = house
        .items(id)
        .await
        .iter()
        .map(|item| item["search"]["departure_date"].clone())
        .collect();
    assert_eq!(
        (dates.first(), dates.len()),
        (Some(&json!("2030-01-01")), 100)
    );
    assert!(
        house.asked("TLV").values().all(|calls| *calls == 1) && house.asked("TLV").len() == 100,
        "each date once"
    );
    assert_eq!(
        house.count("select count(*) from unexpanded_scans").await,
        0
    );
    house.order(&fares(3)).await;
    assert_eq!(
        stored(&house).await,
        103,
        "from then on an order is stored at once"
    );
}

#[tokio::test]
async fn before_acceptance_there_is_one_scan_and_nothing_else() {
    let house = house().await;
    let id = house.order(&fares(10_000)).await;
    let second = post(&house, "/v1/scans", &fares(1)).await;
    assert_eq!(
        (second.kind().as_str(), second.header("retry-after")),
        ("429 too_many_requests", "60"),
        "{}",
        second.text()
    );
    assert!(
        second.message().contains("one scan at a time") && second.message().contains("/v1/verify"),
        "{}",
        second.message()
    );
    let preview = post(&house, "/v1/scans/preview", &fares(1)).await.json();
    let warnings = preview["warnings"].as_array().unwrap();
    assert!(
        warnings
            .iter()
            .any(|warning| warning["kind"] == "too_much_underway"),
        "{preview:#}"
    );

    assert_eq!(
        post(&house, &format!("/v1/scans/{id}/cancel"), &json!({}))
            .await
            .status,
        200
    );
    let cancelled = house.scan(&id).await;
    adds_up(&cancelled);
    assert_eq!(
        (&cancelled["status"], &cancelled["items"]["cancelled"]),
        (&json!("cancelled"), &json!(10_000))
    );
    assert!(cancelled["finished_at"].is_string() && cancelled["key_custody"].is_null());
    for removed in [false, true] {
        if removed {
            assert_eq!(house.delete(&format!("/v1/scans/{id}")).await.status, 204);
        }
        let again = post(&house, "/v1/scans", &fares(1)).await;
        let wait: i64 = again.header("retry-after").parse().unwrap();
        assert!(
            again.kind() == "429 too_many_requests" && wait > 23 * 3600,
            "a cancel makes no place: {}",
            again.text()
        );
    }
    let bounds = json!({"requests_per_minute": 5});
    for (method, path, body) in [
        ("POST", "/v1/monitors", monitor()),
        ("PUT", "/v1/quota/flights", bounds.clone()),
    ] {
        for key in [KEY, "a-key-never-seen"] {
            let refused = send(&house.app, key, method, path, Some(&body)).await;
            assert_eq!(refused.kind(), "409 invalid_state", "{path}");
            assert!(
                refused
                    .message()
                    .starts_with("the marketplace has not accepted this key yet"),
                "{}",
                refused.message()
            );
        }
    }
    assert_eq!(
        house.count("select count(*) from tenants").await,
        1,
        "a refusal stores nobody"
    );

    assert_eq!(house.app.get("/v1/verify").await.status, 200);
    assert_eq!(post(&house, "/v1/monitors", &monitor()).await.status, 201);
    assert_eq!(
        send(&house.app, KEY, "PUT", "/v1/quota/flights", Some(&bounds))
            .await
            .status,
        200
    );
    house.order(&fares(3)).await;
    assert_eq!(
        stored(&house).await,
        3,
        "accepted by a check, all of it at once"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_told_so_until_a_resume_or_another_key() {
    let house = house().await;
    refuses(&house);
    let worker = house.worker(4);
    let id = house.order(&fares(50)).await;
    house
        .scan_when(&id, "its lane is paused", |scan| {
            scan["status_reason"] == "key_rejected"
        })
        .await;
    for _ in 0..2 {
        let refused = post(&house, "/v1/scans", &fares(1)).await;
        assert_eq!(refused.kind(), "401 invalid_api_key");
        assert!(
            refused
                .message()
                .contains("refused this key (key_rejected)"),
            "{}",
            refused.message()
        );
    }
    assert_eq!((house.app.upstream.count(), stored(&house).await), (1, 1));
    assert_eq!(
        post(&house, "/v1/monitors", &monitor()).await.kind(),
        "409 invalid_state"
    );

    sells(&house);
    house.say(&id, "resume", &json!({})).await;
    let ended = house.ended(&id).await;
    assert_eq!(
        (&ended["status"], &ended["items"]["ok"]),
        (&json!("completed"), &json!(50))
    );
    house.order(&from("ZZZ", fares(2))).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_a_word_of_the_key_makes_one_more_item() {
    let house = house().await;
    sells(&house);
    let fails = ["2030-01-01", "2030-01-02"];
    house
        .app
        .upstream
        .on_any()
        .when(move |call| fails.iter().any(|day| call.body["departure_date"] == *day))
        .reply(Reply::status(500));
    let (gate, counted) = (Gate::closed(), Gate::closed());
    let (held, is_second) = (gate.clone(), counted.clone());
    house
        .app
        .upstream
        .on_any()
        .when(|call| call.body["departure_date"] == "2030-01-02")
        .answer(move |_| {
            is_second.open();
            Reply::status(500).held_by(&held)
        });
    let id = house.order(&fares(6)).await;
    let worker = house.worker(4);
    house
        .scan_when(&id, "the second date is asked", |scan| {
            scan["items"]["degraded"] == 1 && scan["items"]["running"] == 1
        })
        .await;
    assert_eq!(stored(&house).await, 2);
    gate.open();
    let ended = house.ended(&id).await;
    worker.stop().await;
    adds_up(&ended);
    assert_eq!(
        (&ended["items"]["degraded"], &ended["items"]["ok"]),
        (&json!(2), &json!(4))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_process_left_unexpanded_the_sweep_expands() {
    let office = Office::open().await;
    strangers(office.db.pool()).await;
    let id = office.order(&fares(40)).await;
    let claims = office.claim().await;
    assert_eq!(claims.len(), 1);
    office.begin(&claims[0]).await;
    office.end(&claims[0], Comes::Ok(120)).await;
    // As the writer's transaction leaves it; then its process dies.
    sqlx::query("update tenants set accepted_at = now()")
        .execute(office.db.pool())
        .await
        .unwrap();
    let count = || {
        sqlx::query_scalar::<_, i64>("select count(*) from scan_items").fetch_one(office.db.pool())
    };
    assert_eq!(count().await.unwrap(), 1);
    let (one, two) = tokio::join!(
        expand_due(office.db.pool(), None, Timestamp::now()),
        expand_due(office.db.pool(), None, Timestamp::now())
    );
    assert!(one.unwrap() + two.unwrap() >= 1);
    assert_eq!(count().await.unwrap(), 40, "once, whoever does it");
    assert_eq!(
        expand_due(office.db.pool(), None, Timestamp::now())
            .await
            .unwrap(),
        0
    );
    office.work(|_| Comes::Ok(120)).await;
    let scan = office.scan(&id).await;
    assert_eq!(
        (&scan["status"], &scan["items"]["ok"]),
        (&json!("completed"), &json!(40))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_in_two_phases_finds_the_same_before_and_after() {
    let mut asked = Vec::new();
    for accepted in [false, true] {
        let house = house().await;
        house.app.upstream.on_any().answer(|call| {
            // A check of the key has no date.
            let day: u64 = call.body["departure_date"]
                .as_str()
                .map_or(1, |date| date[8..].parse().unwrap());
            Reply::json(json!([fare(100 + day.abs_diff(11) * 10, &call.body)]))
        });
        if accepted {
            house.app.get("/v1/verify?api=flights").await;
        }
        let id = house
            .order(&order(
                21,
                &json!({"strategy": {"coarse_step": 5, "refine": 1}}),
            ))
            .await;
        let worker = house.worker(4);
        let ended = house.ended(&id).await;
        worker.stop().await;
        adds_up(&ended);
        asked.push((
            house.asked("TLV"),
            ended["items"]["total"].clone(),
            ended["best"]["price"].clone(),
        ));
    }
    assert_eq!(asked[0], asked[1]);
    assert!(
        asked[0].0.len() < 21 && asked[0].0.len() > 5,
        "{:?}",
        asked[0]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_phase_without_a_word_of_the_key_goes_on() {
    let house = house().await;
    sells(&house);
    let fails = ["2030-01-01", "2030-01-06"];
    house
        .app
        .upstream
        .on_any()
        .when(move |call| fails.iter().any(|day| call.body["departure_date"] == *day))
        .reply(Reply::status(500));
    let id = house
        .order(&order(
            21,
            &json!({"strategy": {"coarse_step": 5, "refine": 1}}),
        ))
        .await;
    let worker = house.worker(4);
    let ended = house.ended(&id).await;
    worker.stop().await;
    adds_up(&ended);
    assert_eq!(
        (&ended["items"]["degraded"], &ended["status"]),
        (&json!(2), &json!("incomplete")),
        "{ended:#}"
    );
    assert!(ended["items"]["ok"].as_u64().unwrap() >= 3, "{ended:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_scan_takes_in_its_rest_and_is_still() {
    let house = house().await;
    sells(&house);
    let id = house.order(&fares(20)).await;
    house.say(&id, "pause", &json!({})).await;
    assert_eq!(house.app.get("/v1/verify").await.status, 200);
    let worker = house.worker(4);
    while stored(&house).await < 20 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(
        house
            .count("select count(*) from scan_items where state = 'held'")
            .await,
        20
    );
    assert_eq!(house.calls("TLV"), 0, "nothing is asked of a paused scan");
    house.say(&id, "resume", &json!({})).await;
    assert_eq!(house.ended(&id).await["items"]["ok"], json!(20));
    worker.stop().await;
}

#[tokio::test]
async fn an_order_too_large_to_keep_waits_for_acceptance() {
    let house = house().await;
    let names: Vec<_> = (0..2_000)
        .map(|number| format!("Hotel number {number}"))
        .collect();
    let large = json!({
        "endpoint": "hotels/by-name", "request": {"checkin_date": "2030-01-01", "checkout_date": "2030-01-02", "currency": "EUR"},
        "sweep": {"hotel_name": names}
    });
    let refused = post(&house, "/v1/scans", &large).await;
    assert_eq!(refused.kind(), "409 invalid_state");
    assert!(
        refused.message().contains("at most 32768 bytes"),
        "{}",
        refused.message()
    );
    assert_eq!(house.count("select count(*) from tenants").await, 0);
    assert_eq!(house.app.get("/v1/verify").await.status, 200);
    house.order(&large).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_the_marketplace_answers_accepts_its_caller() {
    let house = house().await;
    sells(&house);
    let search =
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-14"});
    assert_eq!(
        post(&house, "/v1/flights/oneway", &search).await.status,
        200
    );
    // Another process would hear of it from the database, a moment later.
    while house
        .count("select count(*) from tenants where accepted_at is not null")
        .await
        == 0
    {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(post(&house, "/v1/monitors", &monitor()).await.status, 201);
}
