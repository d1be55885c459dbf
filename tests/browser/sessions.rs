//! Signing in and out, and what a session keeps from others (security.md, rules 30 and 31).

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use farescan::search::CallerKey;
use farescan::tenants::{BrowserSession, Keyring};
use jiff::{SignedDuration, Timestamp};

use super::chromium::Chromium;
use crate::support::app::{KEY, TestApp, ring};
use crate::support::reply::Reply;
use crate::support::{SearchOutcome, TestService, fares};
use crate::web::service_with_scan;

const OTHER: &str = "another-key-0123456789";

#[tokio::test(flavor = "multi_thread")]
async fn one_button_signs_in_with_the_sandbox_key() {
    let sandbox = TestApp::builder().config(|config| config.is_sandbox = true);
    let service = TestService::start_with(sandbox).await;
    let browser = Chromium::start(service.url()).await;
    browser.open("/").await;
    browser.wait_for_path("/login?next=%2Foverview").await;
    browser.press("Continue with the sandbox key").await;
    browser.wait_for_path("/overview").await;
    let page = browser.text().await;
    Chromium::assert_says(&page, &["Home", "Sandbox", "Sign out"]);
    assert_eq!(
        service.upstream.calls()[0].key,
        farescan::sandbox::DEMO_KEY,
        "the check of a new key"
    );
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_is_told_and_the_right_one_signs_in() {
    let service = TestService::start().await;
    let refused = Reply::status(401);
    service
        .upstream
        .on_any()
        .when(|call| call.key == OTHER)
        .reply(refused);
    let browser = Chromium::start(service.url()).await;
    browser.open("/scans?status=running").await;
    browser.fill("Marketplace key", OTHER).await;
    browser.press("Sign in").await;
    browser.wait_for_text("does not know this key").await;
    let field = browser.field("Marketplace key").await;
    assert_eq!(field.value().await.unwrap().as_deref(), Some(""));
    assert_eq!(
        field.attr("type").await.unwrap().as_deref(),
        Some("password")
    );

    browser.fill("Marketplace key", KEY).await;
    browser.press("Sign in").await;
    browser.wait_for_path("/scans?status=running").await;
    assert_eq!(service.upstream.count(), 2, "one check of each key");
    assert_eq!(browser.script("return document.cookie").await, "");
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_session_leads_to_the_login_and_back() {
    let (service, id) = service_with_scan().await;
    let calls = service.upstream.count();
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    let path = format!("/scans/{id}");
    browser.open(&path).await;

    browser.set_cookie(&session_begun_hours_ago(13)).await;
    browser.open(&path).await;
    browser.wait_for_text("Marketplace key").await;
    browser.fill("Marketplace key", KEY).await;
    browser.press("Sign in").await;
    browser.wait_for_path(&path).await;

    // It may also expire while a page is open: its button then does nothing but ask to sign in, and
    // leads back to the page that has the button.
    browser.press("Ask again: 1 search").await;
    browser.set_cookie(&session_begun_hours_ago(13)).await;
    browser.press("Ask again for 1 to 2 requests").await;
    browser.wait_for_text("Marketplace key").await;
    browser.fill("Marketplace key", KEY).await;
    browser.press("Sign in").await;
    browser.wait_for_path(&path).await;
    browser.wait_for_text("did not complete").await;
    assert_eq!(service.upstream.count(), calls);
    browser.end().await;
}

fn session_begun_hours_ago(hours: i64) -> String {
    let begun = Timestamp::now() - SignedDuration::from_hours(hours);
    BrowserSession::begin(CallerKey::new(KEY), 1, begun).seal(&ring())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_altered_or_foreign_cookie_opens_nothing() {
    let (service, id) = service_with_scan().await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    let own = browser.cookie().await;
    let foreign_ring = Keyring::parse(&format!("test:{}", "6b".repeat(32))).unwrap();
    let foreign =
        BrowserSession::begin(CallerKey::new(KEY), 1, Timestamp::now()).seal(&foreign_ring);
    let mut altered = own.clone();
    let middle = altered.len() / 2;
    let other = if altered.as_bytes()[middle] == b'A' {
        "B"
    } else {
        "A"
    };
    altered.replace_range(middle..=middle, other);
    let path = format!("/scans/{id}");
    for cookie in [altered, foreign, KEY.to_owned()] {
        browser.set_cookie(&cookie).await;
        browser.open(&path).await;
        browser.wait_for_text("Marketplace key").await;
        assert!(!browser.text().await.contains("TLV"), "{cookie}");
    }
    browser.set_cookie(&own).await;
    browser.open(&path).await;
    browser.wait_for_text("TLV").await;
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_signing_out_back_shows_no_page() {
    let (service, id) = service_with_scan().await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    browser.open(&format!("/scans/{id}")).await;
    browser.press("Sign out").await;
    browser.wait_for_path("/login").await;
    browser.driver.back().await.unwrap();
    browser.wait_for_text("Marketplace key").await;
    assert!(!browser.text().await.contains("TLV"));
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_callers_page_is_not_found() {
    let (service, id) = service_with_scan().await;
    let item = service.items(&id).await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let browser = Chromium::start(service.url()).await;
    browser.sign_in_with(OTHER).await;
    browser.wait_for_path("/overview").await;
    for path in [
        format!("/scans/{id}"),
        format!("/scans/new?like={id}"),
        format!("/items/{item}"),
    ] {
        browser.open(&path).await;
        let page = browser.text().await;
        Chromium::assert_says(&page, &["Not found", "There is no such", "Home"]);
        assert!(!page.contains("TLV"), "{page}");
    }
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_without_its_token_does_nothing() {
    let (service, id) = service_with_scan().await;
    let calls = service.upstream.count();
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    for change in [
        "token.remove()",
        "token.value = '0'.repeat(token.value.length)",
    ] {
        browser.open(&format!("/scans/{id}")).await;
        let script = format!(
            "for (const token of document.querySelectorAll('[name=form_token]')) {{ {change} }}"
        );
        browser.script(&script).await;
        browser.press("Ask again: 1 search").await;
        browser.press("Ask again for 1 to 2 requests").await;
        browser.wait_for_text("Nothing was done").await;
    }
    let scan = service.scan(&id).await;
    assert_eq!(
        (&scan["items"]["degraded"], service.upstream.count()),
        (&1.into(), calls)
    );
    browser.end().await;
}

/// A page of another site that sends a form to the service as soon as it is opened.
async fn attacker(target: &str) -> u16 {
    let page = format!(
        r#"<body><form id="f" method="post" action="{target}"><input name="form_token" value="{}"></form>
           <script>f.submit()</script>"#,
        "0".repeat(32)
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().route("/", get(|| async { Html(page) }));
    tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_another_site_does_nothing() {
    let service = TestService::start().await;
    let id = service
        .submit_and_complete(&fares(2), |_| SearchOutcome::Ok(200))
        .await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    let port = attacker(&format!("{}/scans/{id}/delete", service.url())).await;
    // A page at another port is of the same site: the browser sends the cookie, and the service
    // refuses. One of another site does not even get the cookie.
    for host in ["127.0.0.1", "localhost"] {
        browser
            .driver
            .goto(&format!("http://{host}:{port}/"))
            .await
            .unwrap();
        browser.wait_for_text("Nothing was done").await;
        assert_eq!(
            service.app.get(&format!("/v1/scans/{id}")).await.status,
            200
        );
    }
    // This test did open pages of another host.
    browser.driver.clone().quit().await.unwrap();
}

/// A link in a mail or a chat opens the page that it names.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_of_another_site_opens_its_page() {
    let (service, id) = service_with_scan().await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    let mail = format!(r#"<a href="{}/scans/{id}">the scan</a>"#, service.url());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().route("/", get(|| async { Html(mail) }));
    tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
    let mail = format!("http://localhost:{port}/");
    browser.driver.goto(&mail).await.unwrap();
    browser.click_first("//a").await;
    browser.wait_for_path(&format!("/scans/{id}")).await;
    browser.wait_for_text("TLV").await;
    browser.driver.clone().quit().await.unwrap();
}
