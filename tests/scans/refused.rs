//! What cannot be costs nothing: every fault is named, nothing is stored, nothing is called.

use serde_json::{Value, json};

use super::office::{Office, fares};

/// A good order with one part changed.
fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut body = fares(3);
    change(&mut body);
    body
}

#[tokio::test]
async fn bad_orders_are_refused_with_all_their_faults() {
    let office = Office::open().await;
    let before = office.rows().await;
    for (body, paths) in [
        (json!({}), vec!["endpoint", "request"]),
        (
            with(|body| body["endpoint"] = json!("hotels/resolve")),
            vec!["endpoint"],
        ),
        (with(|body| body["sweeps"] = json!({})), vec!["sweeps"]),
        (with(|body| body["sweep"] = json!([])), vec!["sweep"]),
        (
            with(|body| body["request"]["currency"] = json!("dollars")),
            vec!["request.currency"],
        ),
        (
            with(|body| body["request"]["departure_date"] = json!("2030-01-01")),
            vec!["sweep.departure_date"],
        ),
        (
            with(|body| body["sweep"]["departure_date"] = json!(["2030-01-01", "2030-01-01"])),
            vec!["sweep.departure_date[1]"],
        ),
        (
            with(|body| body["sweep"]["departure_date"] = json!(["2020-01-01"])),
            vec!["sweep.departure_date[0]"],
        ),
        (
            with(|body| body["sweep"]["departure_date"]["weekdays"] = json!(["someday"])),
            vec!["sweep.departure_date.weekdays[0]"],
        ),
        (
            with(|body| body["sweep"]["nights"] = json!([1])),
            vec!["sweep.nights"],
        ),
        (
            with(|body| body["sweep"]["samples"] = json!(11)),
            vec!["sweep.samples"],
        ),
        (
            with(|body| body["max_requests"] = json!(2)),
            vec!["max_requests"],
        ),
        (
            with(|body| body["sweep"]["departure_date"]["to"] = json!("2057-05-19")),
            vec!["sweep"],
        ),
        (
            json!({
                "endpoint": "flights/roundtrip",
                "request": {"from_airport": "TLVV", "to_airport": "LHR", "bags": 1},
                "sweep": {"departure_date": ["2030-01-05", "2030-13-01"], "return_date": ["2030-01-04", 7], "samples": 0},
                "label": 5, "max_requests": "many", "priority": "urgent"
            }),
            vec![
                "sweep.samples",
                "label",
                "max_requests",
                "priority",
                "sweep.departure_date[1]",
                "sweep.return_date[1]",
                "request.from_airport",
                "sweep.return_date[0]",
                "request.bags",
            ],
        ),
    ] {
        let answer = office.app.post("/v1/scans", &body).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{body}");
        let mut told: Vec<_> = answer.message().split(". `").map(path_of).collect();
        let mut expected: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
        told.sort();
        expected.sort();
        assert_eq!(told, expected, "{body}\n{}", answer.message());
    }
    assert_eq!(office.rows().await, before, "nothing is stored");
    assert_eq!(office.app.upstream.count(), 0, "nothing is called");
}

fn path_of(fault: &str) -> String {
    fault
        .trim_start_matches('`')
        .split('`')
        .next()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn bodies_are_bounded_and_keys_come_first() {
    let office = Office::open().await;
    let large = with(|body| body["label"] = json!("x".repeat(1 << 20)));
    let refused = office.app.post("/v1/scans", &large).await;
    assert_eq!(refused.kind(), "413 payload_too_large");
    assert_eq!(
        refused.message(),
        "`body` holds more than is allowed: at most 1024 KiB"
    );
    let keyless = office
        .app
        .send(office.app.request("POST", "/v1/scans").json(&json!([])))
        .await;
    assert_eq!(keyless.kind(), "401 missing_api_key");
    assert_eq!(
        office.app.post("/v1/scans", &json!([])).await.kind(),
        "400 invalid_request"
    );
}

/// Another caller's id is answered as one that never was, on every route with an id.
#[tokio::test]
async fn anothers_scan_is_as_unknown_as_none() {
    let office = Office::open().await;
    let id = office.order(&fares(1)).await;
    let item = office.column(&format!("/v1/scans/{id}/items"), "id").await[0]
        .as_str()
        .unwrap()
        .to_owned();
    let stranger = "another-key-0123456789";
    // Known as a tenant, too.
    assert_eq!(
        office
            .post_as(stranger, "/v1/scans", &fares(1))
            .await
            .status,
        202
    );
    let unknown = (
        "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
        "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
    );
    let ids = [
        (id.as_str(), item.as_str()),
        unknown,
        ("scn_x", "itm_x"),
        ("1", "1"),
    ];
    let before = office.rows().await;
    for (method, path) in [
        ("GET", "/v1/scans/SCAN"),
        ("GET", "/v1/scans/SCAN?wait=1"),
        ("GET", "/v1/scans/SCAN/events"),
        ("GET", "/v1/scans/SCAN/events?last_event_id=0"),
        ("GET", "/v1/scans/SCAN/items"),
        ("GET", "/v1/items/ITEM"),
        ("GET", "/v1/items/ITEM/attempts"),
        ("POST", "/v1/scans/SCAN/retry"),
        ("POST", "/v1/scans/SCAN/cancel"),
    ] {
        for key in [stranger, "a-key-that-never-ordered"] {
            let mut answers = Vec::new();
            for (scan, item) in ids {
                let path = path.replace("SCAN", scan).replace("ITEM", item);
                let answer = match method {
                    "GET" => office.get_as(key, &path).await,
                    _ if path.ends_with("/retry") => {
                        office
                            .post_as(key, &path, &json!({"search_status": ["degraded"]}))
                            .await
                    }
                    _ => office.post_as(key, &path, &json!({})).await,
                };
                assert_eq!(answer.kind(), "404 not_found", "{method} {path}");
                answers.push(answer.message());
            }
            assert_eq!(
                answers[0], answers[1],
                "{method} {path}: another's is as one that never was"
            );
            // What is no id can be nobody's, so its form is told.
            let (what, prefix) = if path.contains("ITEM") {
                ("item", "itm")
            } else {
                ("scan", "scn")
            };
            let form = format!("allowed: an id of the form {prefix}_ and 32 hexadecimal digits");
            let told = [
                format!("there is no {what} `{prefix}_x`; {form}"),
                format!("there is no {what} `1`; {form}"),
            ];
            assert_eq!(answers[2..], told, "{method} {path}");
        }
    }
    assert_eq!(office.rows().await, before);
    let theirs = office.get_as(stranger, "/v1/scans").await.json();
    assert_eq!(theirs["data"].as_array().unwrap().len(), 1);
    assert_ne!(theirs["data"][0]["id"], json!(id));
    assert_eq!(
        office
            .get_as("a-key-that-never-ordered", "/v1/scans")
            .await
            .json(),
        json!({"data": [], "next_cursor": null})
    );
}
