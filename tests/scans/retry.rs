//! Retries by the caller.

use serde_json::{Value, json};

use crate::support::{SearchOutcome, TestService, fares};

async fn retry(service: &TestService, id: &str, body: &Value) -> Value {
    let answer = service
        .post(&format!("/v1/scans/{id}/retry"), body)
        .await
        .expect(202);
    answer.json()
}

#[tokio::test]
async fn a_retry_searches_only_degraded_items_and_keeps_attempts() {
    let service = TestService::start().await;
    let degraded = [3, 7, 12, 20, 30];
    let outcome = |position| {
        if degraded.contains(&position) {
            SearchOutcome::Degraded("blocked_page")
        } else {
            SearchOutcome::Ok(200)
        }
    };
    let id = service.submit_and_complete(&fares(31), outcome).await;
    assert_eq!(service.scan(&id).await["status"], json!("incomplete"));

    let answer = retry(&service, &id, &json!({"search_status": ["degraded"]})).await;
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
        "the new key is sealed"
    );
    let pending = service
        .column(&format!("/v1/scans/{id}/items?state=pending"), "position")
        .await;
    assert_eq!(pending, degraded.map(Value::from));

    let claims = service.claim().await;
    let mut retried = Vec::new();
    for claimed in &claims {
        retried.push(service.begin(claimed).await);
        service.finish(claimed, SearchOutcome::Ok(150)).await;
    }
    retried.sort_unstable();
    assert_eq!(retried, degraded);
    let scan = service.scan(&id).await;
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
    let attempts = service
        .column(&format!("/v1/items/{item}/attempts"), "search_status")
        .await;
    assert_eq!(attempts, ["degraded", "ok"].map(Value::from));
}

#[tokio::test]
async fn a_retry_selects_items_by_status_and_reason() {
    let outcomes = [
        SearchOutcome::Ok(1),
        SearchOutcome::Partial(2),
        SearchOutcome::Degraded("blocked_page"),
        SearchOutcome::Degraded("upstream_timeout"),
        SearchOutcome::Failed,
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
        let service = TestService::start().await;
        let id = service
            .submit_and_complete(&fares(5), |position| outcomes[position])
            .await;
        let answer = retry(&service, &id, &body).await;
        assert_eq!(answer["items_retried"], json!(positions.len()), "{body}");
        let pending = service
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
async fn a_retried_item_loses_its_best_price() {
    let service = TestService::start().await;
    let id = service
        .submit_and_complete(&fares(2), |position| {
            if position == 0 {
                SearchOutcome::Partial(50)
            } else {
                SearchOutcome::Ok(80)
            }
        })
        .await;
    assert_eq!(service.scan(&id).await["best"]["price"], json!(50));
    assert_eq!(
        retry(&service, &id, &json!({"search_status": ["partial"]})).await["scan"]["best"]["price"],
        json!(80)
    );
}

#[tokio::test]
async fn a_running_scan_can_be_retried() {
    let service = TestService::start().await;
    let id = service.submit(&fares(3)).await;
    let claims = service.claim().await;
    service.begin(&claims[0]).await;
    service
        .finish(&claims[0], SearchOutcome::Degraded("blocked_page"))
        .await;
    service.begin(&claims[1]).await;
    let answer = retry(&service, &id, &json!({"search_status": ["degraded"]})).await;
    let items = &answer["scan"]["items"];
    assert_eq!(
        (&items["pending"], &items["running"], &items["degraded"]),
        (&json!(2), &json!(1), &json!(0))
    );
    service.finish(&claims[1], SearchOutcome::Ok(10)).await;
    service.begin(&claims[2]).await;
    service.finish(&claims[2], SearchOutcome::Ok(10)).await;
    service.complete_all(|_| SearchOutcome::Ok(5)).await;
    assert_eq!(service.scan(&id).await["status"], json!("completed"));
}

#[tokio::test]
async fn items_whose_date_has_passed_are_skipped_and_counted() {
    let service = TestService::start().await;
    let id = service
        .submit_and_complete(&fares(3), |_| SearchOutcome::Degraded("blocked_page"))
        .await;
    execute!(
        service.pool(),
        "update scan_items set first_date = '2020-01-01' where position = 1"
    );
    let answer = retry(&service, &id, &json!({"search_status": ["degraded"]})).await;
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
async fn a_repeated_retry_is_done_once() {
    let service = TestService::start().await;
    let id = service
        .submit_and_complete(&fares(2), |_| SearchOutcome::Degraded("blocked_page"))
        .await;
    let (path, body) = (
        format!("/v1/scans/{id}/retry"),
        json!({"search_status": ["degraded"]}),
    );
    let first = service.post_with_key("again", &path, &body).await;
    service
        .complete_all(|_| SearchOutcome::Degraded("blocked_page"))
        .await;
    let second = service.post_with_key("again", &path, &body).await;
    assert_eq!(
        (second.status, second.header("idempotent-replayed")),
        (202, "true")
    );
    assert_eq!(second.text(), first.text());
    assert_eq!(service.scan(&id).await["items"]["degraded"], json!(2));
}

#[tokio::test]
async fn max_requests_must_cover_the_retried_items() {
    let service = TestService::start().await;
    let mut body = fares(3);
    body["max_requests"] = json!(3);
    let id = service
        .submit_and_complete(&body, |_| SearchOutcome::Degraded("blocked_page"))
        .await;
    let wanted = |max: u32| json!({"search_status": ["degraded"], "max_requests": max});
    let before = service.row_counts().await;
    let low = service
        .post(&format!("/v1/scans/{id}/retry"), &wanted(5))
        .await;
    assert_eq!(low.kind(), "400 invalid_request");
    assert_eq!(
        low.message(),
        "`max_requests`: found 5; expected at least 6: 3 requests are spent, and this retry needs 3 more"
    );
    assert_eq!(
        (
            service.row_counts().await,
            &service.scan(&id).await["status"]
        ),
        (before, &json!("incomplete"))
    );
    assert_eq!(
        retry(&service, &id, &wanted(6)).await["scan"]["requests"]["max"],
        json!(6)
    );
    service.complete_all(|_| SearchOutcome::Ok(1)).await;
    assert_eq!(service.scan(&id).await["requests"]["spent"], json!(6));
}

#[tokio::test]
async fn a_retry_with_a_higher_budget_resumes_a_spent_scan() {
    let service = TestService::start().await;
    let mut body = fares(4);
    body["max_requests"] = json!(4);
    body["retry"] = json!({"max_attempts": 2, "delay_seconds": 0});
    let id = service.submit(&body).await;
    let claims = service.claim().await;
    for (claimed, outcome) in claims
        .iter()
        .zip([SearchOutcome::Failed, SearchOutcome::Ok(2)])
    {
        service.begin(claimed).await;
        service.finish(claimed, outcome).await;
    }
    execute!(service.pool(), "update scans set max_requests = 2");
    execute!(
        service.pool(),
        "select pause_scan(tenant_id, scan_id, 'budget_spent') from scans"
    );
    assert_eq!(
        service.scan(&id).await["status_reason"],
        json!("budget_spent")
    );
    let answer = retry(
        &service,
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
    service.complete_all(|_| SearchOutcome::Ok(1)).await;
    assert_eq!(service.scan(&id).await["status"], json!("completed"));
}

#[tokio::test]
async fn a_retry_resumes_a_scan_with_an_expired_key() {
    let service = TestService::start().await;
    let id = service.submit(&fares(3)).await;
    let claims = service.claim().await;
    service.begin(&claims[0]).await;
    service
        .finish(&claims[0], SearchOutcome::Degraded("blocked_page"))
        .await;
    execute!(
        service.pool(),
        "update key_grants set nonce = '', ciphertext = '', wiped_at = now()"
    );
    execute!(
        service.pool(),
        "select pause_scan(tenant_id, scan_id, 'key_expired') from scans"
    );
    let scan = &retry(&service, &id, &json!({"search_status": ["degraded"]})).await["scan"];
    assert_eq!(
        (&scan["status"], &scan["items"]["pending"]),
        (&json!("running"), &json!(3))
    );
    assert!(scan["key_custody"]["until"].is_string());
    assert_eq!(service.claim().await.len(), 3);
}

#[tokio::test]
async fn a_retry_keeps_a_pause_with_another_cause() {
    let service = TestService::start().await;
    let id = service.submit(&fares(2)).await;
    let claims = service.claim().await;
    service.begin(&claims[0]).await;
    service
        .finish(&claims[0], SearchOutcome::Degraded("blocked_page"))
        .await;
    execute!(
        service.pool(),
        "select pause_scan(tenant_id, scan_id, 'by_caller') from scans"
    );
    let scan = &retry(&service, &id, &json!({"search_status": ["degraded"]})).await["scan"];
    assert_eq!(
        (&scan["status_reason"], &scan["items"]["pending"]),
        (&json!("by_caller"), &json!(2))
    );
    assert_eq!(service.claim().await.len(), 0);
}

#[tokio::test]
async fn a_retry_of_a_cancelled_scan_or_invalid_retry_is_refused() {
    let service = TestService::start().await;
    let id = service.submit(&fares(1)).await;
    service
        .post(&format!("/v1/scans/{id}/cancel"), &json!({}))
        .await;
    let path = format!("/v1/scans/{id}/retry");
    assert_eq!(
        service
            .post(&path, &json!({"search_status": ["degraded"]}))
            .await
            .kind(),
        "409 invalid_state"
    );
    for (body, field) in [
        (json!({}), "`search_status` is missing"),
        (json!({"search_status": []}), "`search_status`: found []"),
        (
            json!({"search_status": ["ok"]}),
            "`search_status[0]`: found \"ok\"",
        ),
        (
            json!({"search_status": ["degraded"], "reason": "x"}),
            "unknown field `reason` in retry; did you mean `reasons`?",
        ),
    ] {
        let answer = service.post(&path, &body).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{body}");
        assert!(
            answer.message().starts_with(field),
            "{body}: {}",
            answer.message()
        );
    }
}
