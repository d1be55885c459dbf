//! What all pages share: headers, files, no key in a source, another caller's ids.

use serde_json::Value;

use super::{Browser, key, service_with_scan};
use crate::cli::hostile_texts::{HOSTILE, forbidden_in};
use crate::support::app::HttpResponse;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{TestService, fares};

const OTHER: &str = "another-key-0123456789";

/// Every page of a caller with this scan and item.
fn pages(scan: &str, item: &str) -> Vec<String> {
    vec![
        "/login".to_owned(),
        "/overview".to_owned(),
        "/ask".to_owned(),
        "/ask?q=tlv+lhr+2030-01-05+below+150&once=0190f5a0-0000-7000-8000-000000000001".to_owned(),
        "/scans".to_owned(),
        "/scans/new".to_owned(),
        super::fare_fields("2030-01-05"),
        format!("/scans/new?like={scan}"),
        format!("/scans/{scan}"),
        format!("/items/{item}"),
        "/prices".to_owned(),
        "/prices/flights?from_airport=TLV&to_airport=LHR".to_owned(),
        "/monitors".to_owned(),
        "/monitors/new".to_owned(),
        "/activity".to_owned(),
        "/alerts".to_owned(),
        "/channels".to_owned(),
        "/deliveries".to_owned(),
        "/usage".to_owned(),
    ]
}

#[track_caller]
fn assert_is_protected(path: &str, response: &HttpResponse) {
    let policy = response.header("content-security-policy");
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(rule), "{path}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{path}: {policy}");
    assert_eq!(
        response.header("x-content-type-options"),
        "nosniff",
        "{path}"
    );
    assert_eq!(response.header("cache-control"), "no-store", "{path}");
    assert_eq!(response.header("referrer-policy"), "same-origin", "{path}");
}

#[tokio::test]
async fn every_page_is_protected_and_shows_no_key() {
    let (service, scan) = service_with_scan().await;
    let item = service.items(&scan).await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let browser = Browser::sign_in(&service, key()).await;
    for path in pages(&scan, &item) {
        let response = browser.get(&path).await;
        if path == "/login" {
            assert_eq!(response.status, 303, "who is signed in has no need of it");
            continue;
        }
        let response = response.expect(200);
        assert_is_protected(&path, &response);
        let page = response.text();
        assert!(!page.contains(key()), "{path} shows the key");
        assert!(
            !page.contains("<script>") && !page.contains(" style="),
            "{path}"
        );
        assert!(page.len() < 100_000, "{path}: {} bytes", page.len());
        let loaded = page
            .split(" src=\"")
            .skip(1)
            .chain(page.split("<link ").skip(1));
        for file in loaded {
            let file = file.split('>').next().unwrap();
            assert!(!file.contains("//"), "{path} loads {file}");
        }
    }
}

#[tokio::test]
async fn files_are_cached_for_a_year_under_their_digest() {
    let service = TestService::start().await;
    let login = service.send(service.request("GET", "/login")).await.text();
    let files: Vec<_> = login
        .split('"')
        .filter(|text| text.starts_with("/assets/"))
        .collect();
    assert_eq!(files.len(), 3, "{login}");
    for file in files {
        let response = service.send(service.request("GET", file)).await.expect(200);
        assert!(
            response.header("cache-control").contains("immutable"),
            "{file}"
        );
    }
    let unknown = service.request("GET", "/assets/farescan-0000.css");
    assert_eq!(service.send(unknown).await.status, 404);
}

#[tokio::test]
async fn another_callers_pages_are_not_found() {
    let (service, scan) = service_with_scan().await;
    let item = service.items(&scan).await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let stranger = Browser::sign_in(&service, OTHER).await;
    for path in [
        format!("/scans/{scan}"),
        format!("/scans/{scan}/export?format=csv"),
        format!("/scans/{scan}/events"),
        format!("/scans/new?like={scan}"),
        format!("/items/{item}"),
        format!("/items/{item}/answer"),
        "/scans/scn_00000000000000000000000000000000".to_owned(),
        "/scans/nonsense".to_owned(),
    ] {
        let response = stranger.get(&path).await;
        assert_eq!(response.status, 404, "{path}");
        assert!(!response.text().contains("TLV"), "{path}");
    }
    assert!(!stranger.page("/scans").await.contains(&scan));
    assert!(!stranger.page("/activity").await.contains(&scan));
    assert!(!stranger.page("/overview").await.contains(&scan));
}

#[tokio::test]
async fn a_program_gets_an_index_of_the_api() {
    let service = TestService::start().await;
    for accept in ["*/*", "application/json"] {
        let request = service.request("GET", "/").header("accept", accept);
        let response = service.send(request).await.expect(200);
        assert_eq!(response.header("vary"), "accept");
        let index: Value = response.json();
        assert_eq!(index["description"], "/openapi.json", "{accept}");
    }
}

/// A name of the marketplace neither hides characters nor turns the direction of writing.
#[tokio::test(flavor = "multi_thread")]
async fn no_page_holds_control_or_direction_characters() {
    let service = TestService::start().await;
    service.upstream.answer(|call| {
        let mut row = fare(200, &call.body);
        for field in [
            "airline",
            "departure_description",
            "arrival_description",
            "duration",
        ] {
            row[field] = HOSTILE.into();
        }
        Reply::json(serde_json::json!([row])).header("x-search-status", "ok")
    });
    let worker = service.start_worker(2);
    let scan = service.submit(&fares(2)).await;
    service.wait_until_ended(&scan).await;
    worker.stop().await;
    let item = service.items(&scan).await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let browser = Browser::sign_in(&service, key()).await;
    let mut wrong = Vec::new();
    let paths = pages(&scan, &item);
    let not_found = "/scans/%1B%5B2J%E2%80%AE".to_owned();
    for path in paths.iter().chain([&not_found]) {
        let page = browser.get(path).await.text();
        let found = forbidden_in(&page);
        if !found.is_empty() {
            wrong.push(format!("{path}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let page = browser.page(&format!("/items/{item}")).await;
    assert!(page.contains("Air\u{fffd}]0;PWNED"), "{page}");
}
