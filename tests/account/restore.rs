//! The check of the new key before a rotation, and the operator's restore.

use std::io::Write as _;
use std::process::Stdio;

use farescan::contract::Endpoint;
use serde_json::json;

use super::rotate::{NEW_KEY, rotate_to, stored_keys};
use crate::operation::process::{CommandResult, farescan, program};
use crate::support::app::KEY;
use crate::support::reply::Reply;
use crate::support::{SearchOutcome, TestService, fares};

const THIRD_KEY: &str = "a-third-key-5566778899";

/// `farescan tenants restore` with these keys on its standard input.
fn restore(service: &TestService, keys: &[&str]) -> CommandResult {
    let mut command = farescan(&program(), &["tenants", "restore"]);
    command
        .env("DATABASE_URL", service.db.url())
        .env("FARESCAN_MASTER_KEY", format!("test:{}", "5a".repeat(32)));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(keys.join("\n").as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandResult {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

#[tokio::test]
async fn a_rotation_needs_a_key_that_the_marketplace_accepts() {
    let service = TestService::start().await;
    service.submit(&fares(2)).await;
    for (flights, hotels, kind) in [
        (
            Reply::status(401),
            Reply::status(422),
            "400 invalid_request",
        ),
        (
            Reply::status(403),
            Reply::status(403),
            "400 invalid_request",
        ),
        (Reply::status(503), Reply::status(422), "503 upstream_error"),
    ] {
        service.upstream.on(Endpoint::FlightsOneway).reply(flights);
        service.upstream.on(Endpoint::HotelsResolve).reply(hotels);
        let before = service.dump_database().await;
        let refused = rotate_to(&service, KEY, NEW_KEY).await;
        assert_eq!(refused.kind(), kind, "{}", refused.text());
        assert_eq!(
            service.dump_database().await,
            before,
            "{kind}: its owner has it still"
        );
    }
    let asked = service.upstream.count();
    assert_eq!(
        rotate_to(&service, "a-stranger", NEW_KEY).await.kind(),
        "404 not_found"
    );
    assert_eq!(
        service.upstream.count(),
        asked,
        "a key that owns nothing causes no check"
    );
    service
        .upstream
        .on(Endpoint::HotelsResolve)
        .reply(Reply::status(422));
    service
        .upstream
        .on(Endpoint::FlightsOneway)
        .reply(Reply::status(403));
    assert_eq!(
        rotate_to(&service, KEY, NEW_KEY).await.status,
        200,
        "a key for hotels alone is accepted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_undoes_a_rotation_for_two_days() {
    let service = TestService::start().await;
    let id = service.submit(&fares(2)).await;
    let none = restore(&service, &[KEY]);
    assert!(
        none.code == Some(1) && none.err.contains("not rotated within the last 48 hours"),
        "{none:?}"
    );
    assert_eq!(rotate_to(&service, KEY, NEW_KEY).await.status, 200);
    // The owner searches with the old key, which creates a tenant that owns nothing.
    let search =
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-14"});
    assert_eq!(
        service.post("/v1/flights/oneway", &search).await.status,
        200
    );
    while value!(service.pool(), "select count(*) from tenants", => i64) < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }

    let done = restore(&service, &[KEY]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (
            Some(0),
            "restored: 1 stored keys were sealed anew; resumed lanes: none\n"
        ),
        "{done:?}"
    );
    assert_eq!(service.scan(&id).await["id"], json!(id));
    assert_eq!(
        service
            .get_as(NEW_KEY, &format!("/v1/scans/{id}"))
            .await
            .kind(),
        "404 not_found"
    );
    assert_eq!(
        stored_keys(&service.db)
            .await
            .iter()
            .map(|(_, key)| key.as_str())
            .collect::<Vec<_>>(),
        [KEY]
    );

    // The old key has leaked and is rotated again; a third key takes over.
    assert_eq!(rotate_to(&service, KEY, NEW_KEY).await.status, 200);
    assert_eq!(restore(&service, &[KEY, THIRD_KEY]).code, Some(0));
    assert_eq!(
        service
            .get_as(THIRD_KEY, &format!("/v1/scans/{id}"))
            .await
            .status,
        200
    );
    assert_eq!(
        service.get_as(KEY, &format!("/v1/scans/{id}")).await.kind(),
        "404 not_found"
    );
    service.complete_all(|_| SearchOutcome::Ok(120)).await;

    assert_eq!(rotate_to(&service, THIRD_KEY, NEW_KEY).await.status, 200);
    service.submit(&fares(1)).await;
    let taken = restore(&service, &[THIRD_KEY, KEY]);
    assert!(
        taken.code == Some(1) && taken.err.contains("scans or monitors of its own"),
        "{taken:?}"
    );
    execute!(
        service.pool(),
        "update passed_keys set passed_at = passed_at - interval '48 hours'"
    );
    assert_eq!(
        restore(&service, &[THIRD_KEY]).code,
        Some(1),
        "for two days"
    );
    let empty = restore(&service, &[]);
    assert!(
        empty.code == Some(1) && empty.err.contains("holds no key"),
        "{empty:?}"
    );
}
