//! Errors outside of the pages: a person gets a page with ways onward, a program JSON.

use serde_json::Value;

use super::{Browser, calls, key, service_with_scan};
use crate::support::TestService;
use crate::support::app::HttpResponse;

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

async fn ask(service: &TestService, method: &str, path: &str, accept: &str) -> HttpResponse {
    let request = service.request(method, path).header("accept", accept);
    service.send(request).await
}

#[tokio::test]
async fn an_unknown_path_is_a_page_for_a_person() {
    let service = TestService::start().await;
    for (path, accept) in [
        ("/nowhere", BROWSER),
        ("/scan", "text/html"),
        ("/nowhere/<script>", "application/json;q=0.5, text/html"),
    ] {
        let response = ask(&service, "GET", path, accept).await.expect(404);
        assert!(response.header("content-type").starts_with("text/html"));
        assert!(
            response
                .header("content-security-policy")
                .contains("style-src 'self'"),
            "{path}"
        );
        assert_eq!(response.header("vary"), "accept");
        assert!(!response.header("x-request-id").is_empty());
        let page = response.text();
        for part in ["There is no page", "/overview", "/activity", "/docs/"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<script>"), "{page}");
    }
}

#[tokio::test]
async fn a_program_gets_json_for_an_unknown_path() {
    let service = TestService::start().await;
    for (path, accept) in [
        ("/nowhere", "*/*"),
        ("/nowhere", "application/json"),
        ("/nowhere", "application/json, text/html"),
        // Under the API also for a client that prefers HTML, as old HTTP libraries do.
        ("/v1/nowhere", "text/html, */*; q=.2"),
    ] {
        let response = ask(&service, "GET", path, accept).await.expect(404);
        let error: Value = response.json();
        assert_eq!(error["error"]["type"], "not_found", "{path} {accept}");
    }
}

#[tokio::test]
async fn a_wrong_method_is_a_page_that_keeps_its_header() {
    let (service, scan) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    let before = calls(&service);
    let path = format!("/scans/{scan}/retry");
    let response = browser.get(&path).await.expect(405);
    assert_eq!(response.header("allow"), "POST");
    let page = response.text();
    assert!(
        page.contains("Nothing was done") && page.contains("/overview"),
        "{page}"
    );
    assert_eq!(calls(&service), before);
    let response = ask(&service, "GET", &path, "*/*").await.expect(405);
    assert_eq!(response.json()["error"]["type"], "method_not_allowed");
}

#[tokio::test]
async fn an_error_of_a_page_has_ways_onward() {
    let service = TestService::start().await;
    let browser = Browser::sign_in(&service, key()).await;
    for (path, status) in [
        ("/scans/nonsense", 404),
        ("/scans?status=done", 400),
        ("/scans?created_from=yesterday", 400),
        ("/prices/flights/files/nonsense", 404),
    ] {
        let page = browser.get(path).await.expect(status).text();
        assert!(
            page.contains("<h1>") && page.contains("href=\"/activity\""),
            "{path}: {page}"
        );
    }
}
