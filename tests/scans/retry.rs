//! Asking again, because the caller says so.

use serde_json::{Value, json};

use super::office::{Comes, Office, fares};

async fn retry(office: &Office, id: &str, body: &Value) -> Value {
    let answer = office
        .app
        .post(&format!("/v1/scans/{id}/retry"), body)
        .await;
    assert_eq!(answer.status, 202, "{}", answer.text());
    answer.json()
}

#[tokio::test]
async fn exactly_the_degraded_are_asked_again_and_both_attempts_stay_on_record() {
    let office = Office::open().await;
    let degraded = [3, 7, 12, 20, 30];
    let comes = |position| {
        if degraded.contains(&position) {
            Comes::Degraded("blocked_page")
        } else {
            Comes::Ok(200)
        }
    };
    let id = office.done(&fares(31), comes).await;
    assert_eq!(office.scan(&id).await["status"], json!("incomplete"));

    let answer = retry(&office, &id, &json!({"search_status": ["degraded"]})).await;
    assert_eq!(
        (&answer["items_retried"], &answer["items_skipped"]),
        (&json!(5), &json!(0))
    );
    let scan = &answer["scan"];
    assert_eq!(
        (
            &scan["status"],
            &scan["items"]["pending"],
            &scan["items"]["degraded"]
        ),
        (&json!("running"), &json!(5), &json!(0))
    );
    assert!(
        scan["key_custody"]["until"].is_string() && scan["finished_at"].is_null(),
        "the key is sealed anew"
    );
    let pending = office
        .column(&format!("/v1/scans/{id}/items?state=pending"), "position")
        .await;
    assert_eq!(pending, degraded.map(Value::from));

    let claims = office.claim().await;
    let mut asked = Vec::new();
    for claimed in &claims {
        asked.push(office.begin(claimed).await);
        office.end(claimed, Comes::Ok(150)).await;
    }
    asked.sort_unstable();
    assert_eq!(asked, degraded);
    let scan = office.scan(&id).await;
    assert_eq!(
        (
            &scan["status"],
            &scan["items"]["ok"],
            &scan["requests"]["spent"]
        ),
        (&json!("completed"), &json!(31), &json!(36))
    );
    assert_eq!(
        (&scan["best"]["price"], &scan["key_custody"]),
        (&json!(150), &json!(null))
    );
    let item = claims[0].claim.item;
    let attempts = office
        .column(&format!("/v1/items/{item}/attempts"), "search_status")
        .await;
    assert_eq!(attempts, ["degraded", "ok"].map(Value::from));
}

#[tokio::test]
async fn statuses_and_reasons_say_which() {
    let comes = [
        Comes::Ok(1),
        Comes::Partial(2),
        Comes::Degraded("blocked_page"),
        Comes::Degraded("upstream_timeout"),
        Comes::Refused,
    ];
    for (body, positions) in [
        (json!({"search_status": ["partial"]}), vec![1]),
        (json!({"search_status": ["degraded"]}), vec![2, 3]),
        (json!({"search_status": ["failed"]}), vec![4]),
        (
            json!({"search_status": ["partial", "degraded", "failed"]}),
            vec![1, 2, 3, 4],
        ),
        (
            json!({"search_status": ["degraded", "partial"], "reasons": ["upstream_timeout"]}),
            vec![3],
        ),
        (
            json!({"search_status": ["degraded"], "reasons": ["worker_lost"]}),
            vec![],
        ),
    ] {
        let office = Office::open().await;
        let id = office.done(&fares(5), |position| comes[position]).await;
        let answer = retry(&office, &id, &body).await;
        assert_eq!(answer["items_retried"], json!(positions.len()), "{body}");
        let pending = office
            .column(&format!("/v1/scans/{id}/items?state=pending"), "position")
            .await;
        assert_eq!(
            pending,
            positions
                .iter()
                .copied()
                .map(Value::from)
                .collect::<Vec<_>>(),
            "{body}"
        );
        let status = if positions.is_empty() {
            "incomplete"
        } else {
            "running"
        };
        assert_eq!(answer["scan"]["status"], json!(status), "{body}");
    }
}

#[tokio::test]
async fn the_best_price_of_an_item_that_is_asked_again_does_not_stay() {
    let office = Office::open().await;
    let id = office
        .done(&fares(2), |position| {
            if position == 0 {
                Comes::Partial(50)
            } else {
                Comes::Ok(80)
            }
        })
        .await;
    assert_eq!(office.scan(&id).await["best"]["price"], json!(50));
    assert_eq!(
        retry(&office, &id, &json!({"search_status": ["partial"]})).await["scan"]["best"]["price"],
        json!(80)
    );
}

#[tokio::test]
async fn a_running_scan_may_be_retried_and_runs_on() {
    let office = Office::open().await;
    let id = office.order(&fares(3)).await;
    let claims = office.claim().await;
    office.begin(&claims[0]).await;
    office
        .end(&claims[0], Comes::Degraded("blocked_page"))
        .await;
    office.begin(&claims[1]).await;
    let answer = retry(&office, &id, &json!({"search_status": ["degraded"]})).await;
    let items = &answer["scan"]["items"];
    assert_eq!(
        (&items["pending"], &items["running"], &items["degraded"]),
        (&json!(2), &json!(1), &json!(0))
    );
    office.end(&claims[1], Comes::Ok(10)).await;
    office.begin(&claims[2]).await;
    office.end(&claims[2], Comes::Ok(10)).await;
    office.work(|_| Comes::Ok(5)).await;
    assert_eq!(office.scan(&id).await["status"], json!("completed"));
}

#[tokio::test]
async fn items_whose_date_has_passed_are_skipped_and_counted() {
    let office = Office::open().await;
    let id = office
        .done(&fares(3), |_| Comes::Degraded("blocked_page"))
        .await;
    sqlx::query("update scan_items set first_date = '2020-01-01' where position = 1")
        .execute(office.db.pool())
        .await
        .unwrap();
    let answer = retry(&office, &id, &json!({"search_status": ["degraded"]})).await;
    assert_eq!(
        (&answer["items_retried"], &answer["items_skipped"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        (
            &answer["scan"]["items"]["degraded"],
            &answer["scan"]["items"]["pending"]
        ),
        (&json!(1), &json!(2))
    );
}

#[tokio::test]
async fn a_retry_is_repeated_without_being_done_twice() {
    let office = Office::open().await;
    let id = office
        .done(&fares(2), |_| Comes::Degraded("blocked_page"))
        .await;
    let (path, body) = (
        format!("/v1/scans/{id}/retry"),
        json!({"search_status": ["degraded"]}),
    );
    let first = office.post_once("again", &path, &body).await;
    office.work(|_| Comes::Degraded("blocked_page")).await;
    let second = office.post_once("again", &path, &body).await;
    assert_eq!(
        (second.status, second.header("idempotent-replayed")),
        (202, "true")
    );
    assert_eq!(second.text(), first.text());
    assert_eq!(office.scan(&id).await["items"]["degraded"], json!(2));
}

#[tokio::test]
async fn a_ceiling_has_room_for_what_is_asked() {
    let office = Office::open().await;
    let mut body = fares(3);
    body["max_requests"] = json!(3);
    let id = office
        .done(&body, |_| Comes::Degraded("blocked_page"))
        .await;
    let wanted = |max: u32| json!({"search_status": ["degraded"], "max_requests": max});
    let before = office.rows().await;
    let low = office
        .app
        .post(&format!("/v1/scans/{id}/retry"), &wanted(5))
        .await;
    assert_eq!(low.kind(), "400 invalid_request");
    assert_eq!(
        low.message(),
        "`max_requests` holds 5; allowed: at least 6: 3 requests are spent, and this asks for 3 more"
    );
    assert_eq!(
        (office.rows().await, &office.scan(&id).await["status"]),
        (before, &json!("incomplete"))
    );
    assert_eq!(
        retry(&office, &id, &wanted(6)).await["scan"]["requests"]["max"],
        json!(6)
    );
    office.work(|_| Comes::Ok(1)).await;
    assert_eq!(office.scan(&id).await["requests"]["spent"], json!(6));
}

#[tokio::test]
async fn a_scan_that_has_spent_its_budget_goes_on_with_a_higher_one() {
    let office = Office::open().await;
    let mut body = fares(4);
    body["max_requests"] = json!(4);
    body["retry"] = json!({"max_attempts": 2, "delay_seconds": 0});
    let id = office.order(&body).await;
    let claims = office.claim().await;
    for (claimed, comes) in claims.iter().zip([Comes::Refused, Comes::Ok(2)]) {
        office.begin(claimed).await;
        office.end(claimed, comes).await;
    }
    sqlx::query("update scans set max_requests = 2")
        .execute(office.db.pool())
        .await
        .unwrap();
    sqlx::query("select hold_scan(tenant_id, scan_id, 'budget_spent') from scans")
        .execute(office.db.pool())
        .await
        .unwrap();
    assert_eq!(
        office.scan(&id).await["status_reason"],
        json!("budget_spent")
    );
    let answer = retry(
        &office,
        &id,
        &json!({"search_status": ["failed"], "max_requests": 10}),
    )
    .await;
    assert_eq!(
        (
            &answer["scan"]["status"],
            &answer["scan"]["items"]["pending"]
        ),
        (&json!("running"), &json!(3))
    );
    office.work(|_| Comes::Ok(1)).await;
    assert_eq!(office.scan(&id).await["status"], json!("completed"));
}

#[tokio::test]
async fn a_scan_whose_key_was_held_too_long_goes_on_with_the_new_one() {
    let office = Office::open().await;
    let id = office.order(&fares(3)).await;
    let claims = office.claim().await;
    office.begin(&claims[0]).await;
    office
        .end(&claims[0], Comes::Degraded("blocked_page"))
        .await;
    sqlx::query("update key_grants set nonce = '', ciphertext = '', wiped_at = now()")
        .execute(office.db.pool())
        .await
        .unwrap();
    sqlx::query("select hold_scan(tenant_id, scan_id, 'key_expired') from scans")
        .execute(office.db.pool())
        .await
        .unwrap();
    let scan = &retry(&office, &id, &json!({"search_status": ["degraded"]})).await["scan"];
    assert_eq!(
        (&scan["status"], &scan["items"]["pending"]),
        (&json!("running"), &json!(3))
    );
    assert!(scan["key_custody"]["until"].is_string());
    assert_eq!(office.claim().await.len(), 3);
}

#[tokio::test]
async fn a_pause_with_another_cause_stays_and_holds_what_is_asked_again() {
    let office = Office::open().await;
    let id = office.order(&fares(2)).await;
    let claims = office.claim().await;
    office.begin(&claims[0]).await;
    office
        .end(&claims[0], Comes::Degraded("blocked_page"))
        .await;
    sqlx::query("select hold_scan(tenant_id, scan_id, 'by_caller') from scans")
        .execute(office.db.pool())
        .await
        .unwrap();
    let scan = &retry(&office, &id, &json!({"search_status": ["degraded"]})).await["scan"];
    assert_eq!(
        (&scan["status_reason"], &scan["items"]["pending"]),
        (&json!("by_caller"), &json!(2))
    );
    assert_eq!(office.claim().await.len(), 0);
}

#[tokio::test]
async fn what_was_cancelled_or_is_no_retry_is_refused() {
    let office = Office::open().await;
    let id = office.order(&fares(1)).await;
    office
        .app
        .post(&format!("/v1/scans/{id}/cancel"), &json!({}))
        .await;
    let path = format!("/v1/scans/{id}/retry");
    assert_eq!(
        office
            .app
            .post(&path, &json!({"search_status": ["degraded"]}))
            .await
            .kind(),
        "409 invalid_state"
    );
    for (body, field) in [
        (json!({}), "`search_status` is missing"),
        (json!({"search_status": []}), "`search_status` holds []"),
        (
            json!({"search_status": ["ok"]}),
            "`search_status[0]` holds \"ok\"",
        ),
        (
            json!({"search_status": ["degraded"], "reason": "x"}),
            "`reason` holds",
        ),
    ] {
        let answer = office.app.post(&path, &body).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{body}");
        assert!(
            answer.message().starts_with(field),
            "{body}: {}",
            answer.message()
        );
    }
}
