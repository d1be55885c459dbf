//! An invalid request costs nothing: all faults are named, nothing is stored, no call is made.

use serde_json::{Value, json};

use crate::support::{TestService, array, fares};

/// A valid scan request with one change.
fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut body = fares(3);
    change(&mut body);
    body
}

#[tokio::test]
async fn invalid_scan_requests_are_refused_with_all_faults() {
    let service = TestService::start().await;
    let before = service.row_counts().await;
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
        let answer = service.post("/v1/scans", &body).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{body}");
        let details = answer.json()["error"]["details"].clone();
        let mut found: Vec<_> = details
            .as_array()
            .unwrap()
            .iter()
            .map(|fault| fault["field"].as_str().unwrap().to_owned())
            .collect();
        let mut expected: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{body}\n{}", answer.message());
    }
    assert_eq!(service.row_counts().await, before, "nothing is stored");
    assert_eq!(service.upstream.count(), 0, "nothing is called");
}

#[tokio::test]
async fn body_size_is_bounded_and_the_api_key_is_checked_first() {
    let service = TestService::start().await;
    let large = with(|body| body["label"] = json!("x".repeat(1 << 20)));
    let refused = service.post("/v1/scans", &large).await;
    assert_eq!(refused.kind(), "413 payload_too_large");
    assert_eq!(
        refused.message(),
        "`body` is too large; expected at most 1024 KiB"
    );
    let keyless = service
        .send(service.request("POST", "/v1/scans").json(&json!([])))
        .await;
    assert_eq!(keyless.kind(), "401 missing_api_key");
    assert_eq!(
        service.post("/v1/scans", &json!([])).await.kind(),
        "400 invalid_request"
    );
}

/// Another tenant's id is treated as unknown, on every route with an id.
#[tokio::test]
async fn another_tenants_scan_is_unknown_on_every_route() {
    let service = TestService::start().await;
    let id = service.submit(&fares(1)).await;
    let item = service.column(&format!("/v1/scans/{id}/items"), "id").await[0]
        .as_str()
        .unwrap()
        .to_owned();
    let stranger = "another-key-0123456789";
    // The other caller is a tenant too.
    assert_eq!(
        service
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
    let before = service.row_counts().await;
    for (method, path) in [
        ("GET", "/v1/scans/SCAN"),
        ("GET", "/v1/scans/SCAN?wait=1"),
        ("GET", "/v1/scans/SCAN/events"),
        ("GET", "/v1/scans/SCAN/events?last_event_id=0"),
        ("GET", "/v1/scans/SCAN/items"),
        ("GET", "/v1/items/ITEM"),
        ("GET", "/v1/items/ITEM/attempts"),
        ("GET", "/v1/scans/SCAN/decisions"),
        ("POST", "/v1/scans/SCAN/retry"),
        ("POST", "/v1/scans/SCAN/cancel"),
    ] {
        for key in [stranger, "a-key-that-never-ordered"] {
            let mut answers = Vec::new();
            for (scan, item) in ids {
                let path = path.replace("SCAN", scan).replace("ITEM", item);
                let answer = match method {
                    "GET" => service.get_as(key, &path).await,
                    _ if path.ends_with("/retry") => {
                        service
                            .post_as(key, &path, &json!({"search_status": ["degraded"]}))
                            .await
                    }
                    _ => service.post_as(key, &path, &json!({})).await,
                };
                assert_eq!(answer.kind(), "404 not_found", "{method} {path}");
                answers.push(answer.message());
            }
            assert_eq!(
                answers[0], answers[1],
                "{method} {path}: another's is as one that never was"
            );
            // A malformed id belongs to nobody, so the error names its form.
            let (what, prefix) = if path.contains("ITEM") {
                ("item", "itm")
            } else {
                ("scan", "scn")
            };
            let form = format!("expected an id of the form {prefix}_ and 32 hexadecimal digits");
            let expected = [
                format!("there is no {what} `{prefix}_x`; {form}"),
                format!("there is no {what} `1`; {form}"),
            ];
            assert_eq!(answers[2..], expected, "{method} {path}");
        }
    }
    assert_eq!(service.row_counts().await, before);
    let theirs = service.get_as(stranger, "/v1/scans").await.json();
    assert_eq!(array(&theirs["data"]).len(), 1);
    assert_ne!(theirs["data"][0]["id"], json!(id));
    assert_eq!(
        service
            .get_as("a-key-that-never-ordered", "/v1/scans")
            .await
            .json(),
        json!({"data": [], "next_cursor": null})
    );
}

/// Each column of a market or currency that does not exist would be paid for.
#[tokio::test]
async fn countries_and_currencies_must_exist() {
    let service = TestService::start().await;
    let before = service.row_counts().await;
    let stay = |request: Value, sweep: Value| {
        let mut body = json!({
            "endpoint": "hotels/by-name",
            "request": {"hotel_name": "Grand", "checkin_date": "2030-02-01", "checkout_date": "2030-02-03"},
            "sweep": sweep
        });
        let fields = request.as_object().unwrap().clone();
        body["request"].as_object_mut().unwrap().extend(fields);
        body
    };
    for (body, field, says) in [
        (
            stay(json!({"proxy_country": "uk"}), json!({})),
            "request.proxy_country",
            "did you mean \"gb\" (United Kingdom)?",
        ),
        (
            stay(json!({}), json!({"proxy_country": ["us", "xx"]})),
            "sweep.proxy_country[1]",
            "the code of a country",
        ),
        (
            stay(json!({"currency": "ZZZ"}), json!({})),
            "request.currency",
            "the code of a currency",
        ),
        (
            stay(json!({}), json!({"currency": ["usd", "HRK"]})),
            "sweep.currency[1]",
            "did you mean \"EUR\" (Euro)?",
        ),
    ] {
        let monitor = json!({"name": "x", "schedule": {"cron": "0 6 * * *", "timezone": "UTC"}, "scan": body.clone()});
        for (path, body, field) in [
            ("/v1/scans", &body, field.to_owned()),
            ("/v1/scans/preview", &body, field.to_owned()),
            ("/v1/monitors/preview", &monitor, format!("scan.{field}")),
        ] {
            let answer = service.post(path, body).await;
            assert_eq!(answer.kind(), "400 invalid_request", "{path} {body}");
            let details = answer.json()["error"]["details"].clone();
            assert_eq!(array(&details).len(), 1, "{path} {details}");
            assert_eq!(details[0]["field"], field, "{path}");
            let expected = details[0]["expected"].as_str().unwrap();
            assert!(expected.contains(says), "{path} {expected}");
        }
    }
    assert_eq!(service.row_counts().await, before, "nothing is stored");
    assert_eq!(service.upstream.count(), 0, "nothing is called");
    // A synchronous search is forwarded as it is (gateway.md, rule 27).
    let body = json!({"hotel_name": "Grand", "checkin_date": "2030-02-01", "checkout_date": "2030-02-03",
                      "proxy_country": "xx", "currency": "ZZZ"});
    service.post("/v1/hotels/by-name", &body).await.expect(200);
    assert_eq!(service.upstream.calls()[0].body["proxy_country"], "xx");
}
