//! Grids and comparisons through HTTP.

use serde_json::{Value, json};

use crate::support::{SearchOutcome, TestService, array, day, fares};

/// Round trips of three dates and two lengths of stay.
fn trips() -> Value {
    json!({
        "endpoint": "flights/roundtrip",
        "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": {"from": day(1), "to": day(3)}, "nights": [7, 9]}
    })
}

#[tokio::test]
async fn a_grid_distinguishes_empty_degraded_and_pending_cells() {
    let service = TestService::start().await;
    let id = service.submit(&trips()).await;
    let path = format!("/v1/scans/{id}/grid?rows=departure_date&columns=nights");
    let fresh = service.get(&path).await;
    assert_eq!(
        fresh["rows"],
        json!({"field": "departure_date", "values": [day(1), day(2), day(3)]})
    );
    assert_eq!(
        fresh["columns"],
        json!({"field": "nights", "values": [7, 9]})
    );
    assert!(
        array(&fresh["cells"])
            .iter()
            .all(|cell| cell["state"] == "pending" && cell["search_status"].is_null())
    );

    let outcomes = [
        SearchOutcome::Ok(300),
        SearchOutcome::Empty,
        SearchOutcome::Degraded("blocked_page"),
        SearchOutcome::Failed,
        SearchOutcome::Partial(280),
        SearchOutcome::InFlight,
    ];
    for claimed in service.claim().await {
        let position = service.begin(&claimed).await;
        service.finish(&claimed, outcomes[position]).await;
    }
    let cells = array(&service.get(&path).await["cells"]).clone();
    let shown = |cell: &Value| {
        ["row", "column", "state", "search_status", "reason", "price"]
            .map(|field| cell[field].clone())
    };
    let expected = [
        json!([day(1), 7, "done", "ok", null, 300]),
        json!([day(1), 9, "done", "empty", null, null]),
        json!([day(2), 7, "done", "degraded", "blocked_page", null]),
        json!([day(2), 9, "failed", null, "invalid_request", null]),
        json!([day(3), 7, "done", "partial", "search_truncated", 280]),
        json!([day(3), 9, "running", null, null, null]),
    ];
    assert_eq!(
        cells
            .iter()
            .map(|cell| json!(shown(cell)))
            .collect::<Vec<_>>(),
        expected
    );
    let items = service.column(&format!("/v1/scans/{id}/items"), "id").await;
    assert_eq!(
        cells
            .iter()
            .map(|cell| cell["item_id"].clone())
            .collect::<Vec<_>>(),
        items
    );

    let narrow = service
        .get(&format!("/v1/scans/{id}/grid?rows=nights"))
        .await;
    assert_eq!(narrow["columns"], json!(null));
    let prices: Vec<_> = array(&narrow["cells"])
        .iter()
        .map(|cell| cell["price"].clone())
        .collect();
    assert_eq!(
        prices,
        [json!(280), json!(null)],
        "the cheapest over the dates; one of nine nights still runs"
    );
    assert_eq!(narrow["cells"][1]["state"], json!("running"));
}

#[tokio::test]
async fn a_grid_needs_swept_fields_and_its_own_tenant() {
    let service = TestService::start().await;
    let id = service.submit(&trips()).await;
    for (query, message) in [
        ("", "`rows` is missing"),
        (
            "?rows=to_airport",
            "`rows`: found \"to_airport\"; expected a field that this scan sweeps: `departure_date`, `nights`",
        ),
        (
            "?rows=nights&columns=nights",
            "`columns`: found \"nights\"; expected a field that this scan sweeps: `departure_date`",
        ),
        (
            "?rows=nights&columns=departure_date&baseline=us",
            "`baseline`: found \"us\"; expected no baseline for flights/roundtrip",
        ),
        ("?rows=nights&cells=2", "unknown field `cells`"),
    ] {
        let answer = service
            .app
            .get(&format!("/v1/scans/{id}/grid{query}"))
            .await;
        assert_eq!(answer.kind(), "400 invalid_request", "{query}");
        assert!(
            answer.message().starts_with(message),
            "{query}: {}",
            answer.message()
        );
    }
    let path = format!("/v1/scans/{id}/grid?rows=nights");
    assert_eq!(
        service.get_as("another-key-0123456789", &path).await.kind(),
        "404 not_found"
    );
    let none = "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b";
    for path in [
        format!("/v1/scans/{none}/grid?rows=nights"),
        format!("/v1/scans/x/compare/{id}"),
        format!("/v1/scans/{id}/compare/{none}"),
    ] {
        assert_eq!(
            service.app.get(&path).await.kind(),
            "404 not_found",
            "{path}"
        );
    }
}

#[tokio::test]
async fn two_scans_are_compared_cell_by_cell() {
    let service = TestService::start().await;
    let first = [
        SearchOutcome::Ok(300),
        SearchOutcome::Ok(200),
        SearchOutcome::Ok(100),
        SearchOutcome::Empty,
        SearchOutcome::Ok(50),
        SearchOutcome::Degraded("blocked_page"),
    ];
    let then = [
        SearchOutcome::Ok(270),
        SearchOutcome::Ok(250),
        SearchOutcome::Ok(100),
        SearchOutcome::Ok(80),
        SearchOutcome::Empty,
        SearchOutcome::Ok(40),
        SearchOutcome::Ok(10),
    ];
    let before = service
        .submit_and_complete(&fares(6), |position| first[position])
        .await;
    let after = service
        .submit_and_complete(&fares(7), |position| then[position])
        .await;
    let compared = service
        .get(&format!("/v1/scans/{before}/compare/{after}"))
        .await;
    let cells = array(&compared["cells"]);
    let changes: Vec<_> = cells
        .iter()
        .map(|cell| cell["change"].as_str().unwrap())
        .collect();
    assert_eq!(
        changes,
        [
            "cheaper",
            "dearer",
            "unchanged",
            "new",
            "gone",
            "unknown",
            "new"
        ]
    );
    assert_eq!(cells[0]["cell"], json!({"departure_date": day(1)}));
    assert_eq!(
        (&cells[0]["difference"], &cells[0]["difference_percent"]),
        (&json!(-30), &json!(-10))
    );
    assert_eq!(
        (&cells[1]["difference"], &cells[1]["difference_percent"]),
        (&json!(50), &json!(25))
    );
    assert_eq!(
        (
            &cells[4]["before"]["price"],
            &cells[4]["after"],
            &cells[4]["difference"]
        ),
        (&json!(50), &json!(null), &json!(null))
    );
    let counts = json!({"cheaper": 1, "dearer": 1, "unchanged": 1, "new": 2, "gone": 1, "not_comparable": 0, "unknown": 1, "no_price": 0});
    assert_eq!(compared["counts"], counts);
}

#[tokio::test]
async fn different_products_share_no_cell_and_endpoints_must_match() {
    let service = TestService::start().await;
    let before = service
        .submit_and_complete(&fares(2), |_| SearchOutcome::Ok(300))
        .await;
    let mut other = fares(2);
    other["request"]["to_airport"] = json!("CDG");
    let paris = service
        .submit_and_complete(&other, |_| SearchOutcome::Ok(200))
        .await;
    let compared = service
        .get(&format!("/v1/scans/{before}/compare/{paris}"))
        .await;
    assert_eq!(
        (&compared["counts"]["gone"], &compared["counts"]["new"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(
        compared["cells"][3]["cell"],
        json!({"to_airport": "CDG", "departure_date": day(2)}),
        "what differs tells cells apart"
    );
    let round = service.submit(&trips()).await;
    let answer = service
        .app
        .get(&format!("/v1/scans/{before}/compare/{round}"))
        .await;
    assert_eq!(answer.kind(), "400 invalid_request");
    assert!(
        answer
            .message()
            .contains("expected a scan of flights/oneway"),
        "{}",
        answer.message()
    );
}
