//! Lists, pages, filters, waiting.

use farescan::queue::store::{StoredAnswer, insert_answers};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::{SearchOutcome, TestService, array, fares};

/// All pages of a list, following `Link`, with their sizes.
async fn pages(service: &TestService, path: &str) -> (Vec<Value>, Vec<usize>) {
    let (mut next, mut rows, mut sizes) = (path.to_owned(), Vec::new(), Vec::new());
    loop {
        let answer = service.app.get(&next).await;
        assert_eq!(answer.status, 200, "{next}: {}", answer.text());
        let page = answer.json();
        let data = array(&page["data"]).clone();
        sizes.push(data.len());
        rows.extend(data);
        let Some(cursor) = page["next_cursor"].as_str() else {
            assert_eq!(answer.header("link"), "");
            return (rows, sizes);
        };
        let link = answer.header("link");
        link.strip_prefix('<')
            .and_then(|link| link.strip_suffix(">; rel=\"next\""))
            .unwrap()
            .clone_into(&mut next);
        assert!(next.contains(cursor), "{next}");
    }
}

fn column(rows: &[Value], field: &str) -> Vec<Value> {
    rows.iter().map(|row| row[field].clone()).collect()
}

#[tokio::test]
async fn scans_are_listed_newest_first_by_page_and_filter() {
    let service = TestService::start().await;
    service
        .submit_and_complete(&fares(1), |_| SearchOutcome::Empty)
        .await;
    let mut ids = service.column("/v1/scans", "id").await;
    for number in 0..4 {
        let mut body = fares(1);
        body["tags"] = if number % 2 == 0 {
            json!(["even", "all"])
        } else {
            json!(["odd"])
        };
        ids.insert(0, service.submit(&body).await.into());
    }
    let (rows, sizes) = pages(&service, "/v1/scans?limit=2").await;
    assert_eq!((column(&rows, "id"), sizes), (ids.clone(), vec![2, 2, 1]));
    assert_eq!(
        service.column("/v1/scans?tag=even", "id").await,
        [ids[1].clone(), ids[3].clone()]
    );
    assert_eq!(
        service.column("/v1/scans?status=completed", "id").await,
        [ids[4].clone()]
    );
    assert_eq!(
        service
            .column("/v1/scans?endpoint=hotels/rooms", "id")
            .await
            .len(),
        0
    );
    assert_eq!(
        pages(&service, "/v1/scans?tag=even&limit=1").await.1,
        [1, 1]
    );
}

#[tokio::test]
async fn items_are_filtered_sorted_and_paged() {
    let service = TestService::start().await;
    let outcomes = [
        SearchOutcome::Ok(300),
        SearchOutcome::Empty,
        SearchOutcome::Ok(100),
        SearchOutcome::Degraded("blocked_page"),
        SearchOutcome::Failed,
        SearchOutcome::Partial(100),
    ];
    let id = service
        .submit_and_complete(&fares(6), |position| outcomes[position])
        .await;
    let path = format!("/v1/scans/{id}/items");
    let (rows, sizes) = pages(&service, &format!("{path}?limit=4")).await;
    assert_eq!(
        (column(&rows, "position"), sizes),
        ((0..6).map(Value::from).collect(), vec![4, 2])
    );
    assert_eq!(
        column(&rows, "state"),
        ["done", "done", "done", "done", "failed", "done"].map(Value::from)
    );
    let statuses = [
        json!("ok"),
        json!("empty"),
        json!("ok"),
        json!("degraded"),
        json!(null),
        json!("partial"),
    ];
    assert_eq!(column(&rows, "search_status"), statuses);
    assert_eq!(
        (
            &rows[0]["best_price"],
            &rows[0]["currency"],
            &rows[0]["attempts"]
        ),
        (&json!(300), &json!("USD"), &json!(1))
    );
    assert_eq!(
        (&rows[4]["reason"], &rows[4]["error"]),
        (&json!("invalid_request"), &json!("no such airport"))
    );

    let by_price = pages(&service, &format!("{path}?sort=price&limit=1")).await;
    assert_eq!(
        column(&by_price.0, "position"),
        [2, 5, 0, 1, 3, 4].map(Value::from)
    );
    for (filter, positions) in [
        ("state=failed", vec![4]),
        ("state=pending", vec![]),
        ("state=done&search_status=ok", vec![0, 2]),
        ("search_status=degraded", vec![3]),
        ("reason=blocked_page", vec![3]),
        ("search_status=ok&sort=price", vec![2, 0]),
    ] {
        let positions: Vec<_> = positions.into_iter().map(Value::from).collect();
        assert_eq!(
            service
                .column(&format!("{path}?{filter}"), "position")
                .await,
            positions,
            "{filter}"
        );
    }
}

#[tokio::test]
async fn api_states_hide_the_states_of_the_queue() {
    let service = TestService::start().await;
    let id = service.submit(&fares(3)).await;
    let claims = service.claim().await;
    service.begin(&claims[0]).await;
    let path = format!("/v1/scans/{id}/items");
    assert_eq!(
        service.column(&path, "state").await,
        ["running", "pending", "pending"].map(Value::from),
        "claimed is pending still"
    );
    assert_eq!(
        service
            .column(&format!("{path}?state=running"), "position")
            .await,
        [json!(0)]
    );
    execute!(
        service.pool(),
        "update scan_items set state = 'held', worker_id = null where state = 'claimed'"
    );
    assert_eq!(
        service
            .column(&format!("{path}?state=pending"), "position")
            .await
            .len(),
        2
    );
}

#[tokio::test]
async fn answers_and_attempts_are_shown_on_request() {
    let service = TestService::start().await;
    let id = service.submit(&fares(2)).await;
    let claims = service.claim().await;
    let body = json!([{"airline": "Example Air", "price_as_number": 100}]);
    for (claimed, outcome) in claims.iter().zip([
        SearchOutcome::Ok(100),
        SearchOutcome::Degraded("upstream_timeout"),
    ]) {
        service.begin(claimed).await;
        service.finish(claimed, outcome).await;
    }
    let mut conn = service.pool().acquire().await.unwrap();
    let packed = zstd::encode_all(body.to_string().as_bytes(), 3).unwrap();
    let claim = claims[0].claim;
    let answer = StoredAnswer {
        tenant: claim.tenant,
        item: claim.item,
        number: claim.number,
        observed_at: Timestamp::now(),
        body: &packed,
    };
    insert_answers(&mut conn, &[answer]).await.unwrap();

    let path = format!("/v1/scans/{id}/items");
    assert_eq!(
        service.column(&path, "answer").await,
        [json!(null), json!(null)]
    );
    assert_eq!(
        service
            .column(&format!("{path}?expand=answer"), "answer")
            .await,
        [body.clone(), json!(null)]
    );
    let items = service.column(&path, "id").await;
    let first = format!("/v1/items/{}", items[0].as_str().unwrap());
    assert_eq!(
        service.get(&format!("{first}?expand=answer")).await["answer"],
        body
    );
    assert_eq!(service.get(&first).await.get("answer"), None);
    let attempts = service
        .get(&format!(
            "/v1/items/{}/attempts",
            items[1].as_str().unwrap()
        ))
        .await;
    let attempt = &attempts["data"][0];
    assert_eq!(
        (
            &attempt["number"],
            &attempt["search_status"],
            &attempt["reason"]
        ),
        (&json!(1), &json!("degraded"), &json!("upstream_timeout"))
    );
    assert_eq!(
        attempt["search_headers"],
        json!({"x-search-status": "degraded"})
    );
    assert!(attempt["id"].as_str().unwrap().starts_with("att_") && attempt["ended_at"].is_string());
    let unknown = "/v1/items/itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b/attempts";
    assert_eq!(service.app.get(unknown).await.kind(), "404 not_found");
}

#[tokio::test]
async fn invalid_query_parameters_are_named() {
    let service = TestService::start().await;
    let id = service.submit(&fares(1)).await;
    for (path, field) in [
        ("/v1/scans?status=sleeping".to_owned(), "status"),
        ("/v1/scans?limit=501".to_owned(), "limit"),
        ("/v1/scans?cursor=ff".to_owned(), "cursor"),
        ("/v1/scans?colour=red".to_owned(), "colour"),
        (format!("/v1/scans/{id}?wait=61"), "wait"),
        (format!("/v1/scans/{id}/items?sort=size"), "sort"),
        (format!("/v1/scans/{id}/items?expand=all"), "expand"),
        (
            format!("/v1/scans/{id}/items?sort=price&cursor=6974656d737c31"),
            "cursor",
        ),
    ] {
        let answer = service.app.get(&path).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{path}");
        assert!(
            answer.message().starts_with(&format!("`{field}`: found"))
                || answer
                    .message()
                    .starts_with(&format!("unknown field `{field}`")),
            "{path}: {}",
            answer.message()
        );
    }
}

#[tokio::test]
async fn a_wait_returns_when_the_scan_ends() {
    let service = TestService::start().await;
    let id = service.submit(&fares(2)).await;
    let path = format!("/v1/scans/{id}?wait=60");
    let waiting = service.app.get(&path);
    let working = async {
        // The wait may or may not have read the scan by now; both must work.
        tokio::task::yield_now().await;
        service.complete_all(|_| SearchOutcome::Ok(100)).await;
    };
    let (answer, ()) = tokio::time::timeout(crate::support::WAIT_LIMIT, async {
        tokio::join!(waiting, working)
    })
    .await
    .unwrap();
    assert_eq!(answer.json()["status"], json!("completed"));
    assert_eq!(
        service.get(&path).await["status"],
        json!("completed"),
        "an ended scan is not waited for"
    );
}

#[tokio::test]
async fn a_wait_returns_when_its_time_is_up() {
    let service = TestService::start().await;
    let id = service.submit(&fares(1)).await;
    assert_eq!(
        service.get(&format!("/v1/scans/{id}?wait=1")).await["status"],
        json!("queued")
    );
}
