//! A new key is checked before anything passes to it, and the operator can undo what passed all the same.

use std::io::Write as _;
use std::process::Stdio;

use farescan::contract::Endpoint;
use serde_json::json;

use super::rotate::{NEW, held_keys, rotate_to};
use crate::operation::process::{Ended, farescan, program};
use crate::scans::office::{Comes, Office, fares};
use crate::support::app::KEY;
use crate::support::reply::Reply;

const THIRD: &str = "a-third-key-5566778899";

/// `farescan tenants restore` with these keys on its standard input.
fn restore(office: &Office, keys: &[&str]) -> Ended {
    let mut command = farescan(&program(), &["tenants", "restore"]);
    command
        .env("DATABASE_URL", office.db.url())
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
    Ended {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

#[tokio::test]
async fn nothing_passes_to_a_key_that_the_marketplace_refuses() {
    let office = Office::open().await;
    office.order(&fares(2)).await;
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
        office
            .app
            .upstream
            .on(Endpoint::FlightsOneway)
            .reply(flights);
        office
            .app
            .upstream
            .on(Endpoint::HotelsResolve)
            .reply(hotels);
        let before = office.dump().await;
        let refused = rotate_to(&office.app, KEY, NEW).await;
        assert_eq!(refused.kind(), kind, "{}", refused.text());
        assert_eq!(
            office.dump().await,
            before,
            "{kind}: its owner has it still"
        );
    }
    let asked = office.app.upstream.count();
    assert_eq!(
        rotate_to(&office.app, "a-stranger", NEW).await.kind(),
        "404 not_found"
    );
    assert_eq!(
        office.app.upstream.count(),
        asked,
        "who owns nothing has no key checked"
    );
    office
        .app
        .upstream
        .on(Endpoint::HotelsResolve)
        .reply(Reply::status(422));
    office
        .app
        .upstream
        .on(Endpoint::FlightsOneway)
        .reply(Reply::status(403));
    assert_eq!(
        rotate_to(&office.app, KEY, NEW).await.status,
        200,
        "a key for hotels alone is good"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_undoes_a_rotation_for_two_days() {
    let office = Office::open().await;
    let id = office.order(&fares(2)).await;
    let none = restore(&office, &[KEY]);
    assert!(
        none.code == Some(1) && none.err.contains("nothing on within the last 48 hours"),
        "{none:?}"
    );
    assert_eq!(rotate_to(&office.app, KEY, NEW).await.status, 200);
    // Its owner goes on with the old key, and is a caller with nothing by that.
    let search =
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-14"});
    assert_eq!(
        office.app.post("/v1/flights/oneway", &search).await.status,
        200
    );
    while sqlx::query_scalar::<_, i64>("select count(*) from tenants")
        .fetch_one(office.db.pool())
        .await
        .unwrap()
        < 2
    {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }

    let done = restore(&office, &[KEY]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (
            Some(0),
            "restored: 1 held keys were sealed anew; lanes that go on: none\n"
        ),
        "{done:?}"
    );
    assert_eq!(office.scan(&id).await["id"], json!(id));
    assert_eq!(
        office.get_as(NEW, &format!("/v1/scans/{id}")).await.kind(),
        "404 not_found"
    );
    assert_eq!(
        held_keys(&office.db)
            .await
            .iter()
            .map(|(_, key)| key.as_str())
            .collect::<Vec<_>>(),
        [KEY]
    );

    // The old key had leaked: it passes on once more, and a third one takes over.
    assert_eq!(rotate_to(&office.app, KEY, NEW).await.status, 200);
    assert_eq!(restore(&office, &[KEY, THIRD]).code, Some(0));
    assert_eq!(
        office
            .get_as(THIRD, &format!("/v1/scans/{id}"))
            .await
            .status,
        200
    );
    assert_eq!(
        office.get_as(KEY, &format!("/v1/scans/{id}")).await.kind(),
        "404 not_found"
    );
    office.work(|_| Comes::Ok(120)).await;

    assert_eq!(rotate_to(&office.app, THIRD, NEW).await.status, 200);
    office.order(&fares(1)).await;
    let taken = restore(&office, &[THIRD, KEY]);
    assert!(
        taken.code == Some(1) && taken.err.contains("scans or monitors of its own"),
        "{taken:?}"
    );
    sqlx::query("update passed_keys set passed_at = passed_at - interval '48 hours'")
        .execute(office.db.pool())
        .await
        .unwrap();
    assert_eq!(restore(&office, &[THIRD]).code, Some(1), "for two days");
    let empty = restore(&office, &[]);
    assert!(
        empty.code == Some(1) && empty.err.contains("holds no key"),
        "{empty:?}"
    );
}
