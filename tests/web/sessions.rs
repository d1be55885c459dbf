//! Signing in and out, and what a session protects (security.md, rules 30 and 31).

use farescan::search::CallerKey;
use farescan::tenants::BrowserSession;
use jiff::{SignedDuration, Timestamp};

use super::{Browser, encoded, form, key, service_with_scan, session_cookie, sign_in};
use crate::support::TestService;
use crate::support::app::{TestApp, ring};
use crate::support::reply::Reply;

const OTHER: &str = "another-key-0123456789";

#[tokio::test]
async fn a_browser_is_led_to_the_login_page_and_back() {
    let service = TestService::start().await;
    let front = service
        .send(service.request("GET", "/").header("accept", "text/html"))
        .await;
    assert_eq!(front.expect(303).header("location"), "/overview");
    let page = service
        .send(service.request("GET", "/scans?status=running"))
        .await;
    let login = page.expect(303).header("location").to_owned();
    assert_eq!(login, "/login?next=%2Fscans%3Fstatus%3Drunning");
    let shown = service
        .send(service.request("GET", &login))
        .await
        .expect(200);
    let mut filled = form(&shown.text(), "/login");
    assert_eq!(
        filled.fields,
        [("next".to_owned(), "/scans?status=running".to_owned())]
    );
    filled.fields.push(("key".to_owned(), key().to_owned()));
    let request = service
        .request("POST", "/login")
        .header("origin", service.url())
        .body(encoded(&filled.fields));
    let signed_in = service.send(request).await.expect(303);
    assert_eq!(signed_in.header("location"), "/scans?status=running");
}

#[tokio::test]
async fn a_login_never_leads_to_another_host() {
    let service = TestService::start().await;
    for next in [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "/login",
        "scans",
    ] {
        let fields =
            [("key", key()), ("next", next)].map(|(name, text)| (name.to_owned(), text.to_owned()));
        let request = service
            .request("POST", "/login")
            .header("origin", service.url())
            .body(encoded(&fields));
        let signed_in = service.send(request).await.expect(303);
        assert_eq!(signed_in.header("location"), "/overview", "{next}");
    }
}

#[tokio::test]
async fn the_cookie_is_sealed_and_out_of_reach_of_scripts() {
    let service = TestService::start().await;
    let signed_in = sign_in(&service, key()).await.expect(303);
    let cookie = signed_in.header("set-cookie");
    assert!(cookie.starts_with("farescan_session="), "{cookie}");
    for attribute in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=43200"] {
        assert!(cookie.contains(attribute), "{attribute}: {cookie}");
    }
    assert!(
        !cookie.contains(key()) && !cookie.contains("Secure"),
        "{cookie}"
    );
    let host = service.url().trim_start_matches("http://");
    let request = service
        .request("POST", "/login")
        .header("origin", format!("https://{host}"))
        .body(encoded(&[("key".to_owned(), key().to_owned())]));
    let by_https = service.send(request).await.expect(303);
    let cookie = by_https.header("set-cookie");
    assert!(
        cookie.starts_with("__Host-farescan_session=") && cookie.contains("; Secure"),
        "{cookie}"
    );
}

#[tokio::test]
async fn a_key_that_the_marketplace_refuses_is_not_signed_in() {
    let service = TestService::start().await;
    service.upstream.reply(Reply::status(401));
    let refused = sign_in(&service, OTHER).await.expect(401);
    assert_eq!(refused.header("set-cookie"), "");
    let page = refused.text();
    assert!(page.contains("does not know this key"), "{page}");
    assert!(!page.contains(OTHER), "a key is never shown");
    for wrong in ["", "with space", "YOUR_API_KEY"] {
        let refused = sign_in(&service, wrong).await.expect(422);
        assert!(refused.text().contains("role=\"alert\""), "{wrong}");
    }
}

#[tokio::test]
async fn an_altered_or_foreign_cookie_is_signed_out() {
    let (service, id) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    let path = format!("/scans/{id}");
    assert_eq!(browser.get(&path).await.status, 200);
    let (name, sealed) = browser.cookie.split_once('=').unwrap();
    // Not its last character, some of whose bits may be unused.
    let other = if sealed.starts_with('A') { 'B' } else { 'A' };
    let altered = format!("{other}{}", &sealed[1..]);
    let other_ring =
        farescan::tenants::Keyring::parse(&format!("test:{}", "6b".repeat(32))).unwrap();
    let session = BrowserSession::begin(CallerKey::new(key()), 1, Timestamp::now());
    for cookie in [
        altered,
        session.seal(&other_ring),
        String::new(),
        "x".repeat(3_000),
    ] {
        let request = service
            .request("GET", &path)
            .header("cookie", format!("{name}={cookie}"));
        let response = service.send(request).await;
        assert_eq!(response.status, 303, "{cookie}");
        assert!(
            response.header("location").starts_with("/login"),
            "{cookie}"
        );
    }
}

#[tokio::test]
async fn an_expired_session_has_to_sign_in_again() {
    let (service, _) = service_with_scan().await;
    let ago = |hours| Timestamp::now() - SignedDuration::from_hours(hours);
    for (begun, status) in [(ago(11), 200), (ago(13), 303)] {
        let session = BrowserSession::begin(CallerKey::new(key()), 1, begun);
        let request = service.request("GET", "/overview").header(
            "cookie",
            format!("farescan_session={}", session.seal(&ring())),
        );
        assert_eq!(service.send(request).await.status, status, "{begun}");
    }
}

#[tokio::test]
async fn a_form_of_another_site_or_session_changes_nothing() {
    let (service, id) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    let path = format!("/scans/{id}/delete");
    let form = form(&browser.page(&format!("/scans/{id}")).await, &path);
    let body = encoded(&form.fields);
    let without_token = encoded(&[("history".to_owned(), "false".to_owned())]);
    let other_token = encoded(&[("form_token".to_owned(), "0".repeat(32))]);
    let own = service.url().to_owned();
    let attempts: [(&[(&str, &str)], &str); 6] = [
        (&[], &body),
        (&[("origin", "https://evil.example")], &body),
        (&[("origin", "null")], &body),
        (&[("origin", &own), ("sec-fetch-site", "cross-site")], &body),
        (&[("origin", &own)], &without_token),
        (&[("origin", &own)], &other_token),
    ];
    for (headers, body) in attempts {
        let mut request = service
            .request("POST", &path)
            .header("cookie", &browser.cookie);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let refused = service.send(request.body(body.to_owned())).await;
        assert_eq!(refused.status, 403, "{headers:?}");
    }
    assert_eq!(
        service.app.get(&format!("/v1/scans/{id}")).await.status,
        200
    );
    assert_eq!(
        browser.send(&form).await.status,
        303,
        "the page's own form works"
    );
    assert_eq!(
        service.app.get(&format!("/v1/scans/{id}")).await.status,
        404
    );
}

#[tokio::test]
async fn signing_out_removes_the_cookie() {
    let service = TestService::start().await;
    let browser = Browser::sign_in(&service, key()).await;
    let response = browser.press("/overview", "/logout").await.expect(303);
    assert_eq!(response.header("location"), "/login");
    let removed = response.headers.get_all("set-cookie");
    assert!(
        removed
            .iter()
            .all(|cookie| cookie.to_str().unwrap().contains("Max-Age=0"))
    );
}

#[tokio::test]
async fn a_known_key_signs_in_without_a_request() {
    let (service, _) = service_with_scan().await;
    let before = service.upstream.count();
    assert_eq!(sign_in(&service, key()).await.status, 303);
    assert_eq!(service.upstream.count(), before);
    assert_eq!(sign_in(&service, OTHER).await.status, 303);
    assert_eq!(
        service.upstream.count(),
        before + 1,
        "an unknown key is checked"
    );
}

#[tokio::test]
async fn without_master_keys_there_are_no_sessions() {
    let app = TestApp::start().await;
    let refused = sign_in(&app, key()).await.expect(503);
    assert!(refused.text().contains("FARESCAN_MASTER_KEY_FILE"));
    assert_eq!(session_cookie(&refused), "");
}

/// A browser sends the cookie that a sibling host or plain http set under the bare name; under
/// `__Host-` nobody else can set one.
#[tokio::test]
async fn by_https_only_the_prefixed_cookie_counts() {
    let (service, _) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    let (_, sealed) = browser.cookie.split_once('=').unwrap();
    for (name, scheme, status) in [
        ("farescan_session", "https", 303),
        ("farescan_session", "http", 200),
        ("__Host-farescan_session", "https", 200),
        ("__Host-farescan_session", "http", 200),
    ] {
        let request = service
            .request("GET", "/overview")
            .header("x-forwarded-proto", scheme)
            .header("cookie", format!("{name}={sealed}"));
        assert_eq!(
            service.send(request).await.status,
            status,
            "{name} {scheme}"
        );
    }
}

#[tokio::test]
async fn signing_out_ends_every_copy_of_the_cookie() {
    let (service, id) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    let elsewhere = Browser::sign_in(&service, key()).await;
    let path = format!("/scans/{id}");
    assert_eq!(elsewhere.get(&path).await.status, 200);
    browser.press("/overview", "/logout").await.expect(303);
    for copied in [&browser, &elsewhere] {
        let page = copied.get(&path).await;
        assert_eq!(page.status, 303, "a copied cookie is signed out");
        assert!(page.header("location").starts_with("/login"));
    }
    let again = Browser::sign_in(&service, key()).await;
    assert_eq!(again.get(&path).await.status, 200);
}

/// The token of a form has another mask each time, so the length of a compressed page reveals
/// nothing of it.
#[tokio::test]
async fn each_form_has_its_own_mask_of_the_token() {
    let (service, id) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    let mut seen = std::collections::HashSet::new();
    let page = format!("/scans/{id}");
    for _ in 0..3 {
        for form in super::forms(&browser.page(&page).await, "/logout") {
            let (_, token) = form
                .fields
                .into_iter()
                .find(|(name, _)| name == "form_token")
                .unwrap();
            assert!(seen.insert(token.clone()), "{token} twice");
        }
    }
    let delete = form(&browser.page(&page).await, &format!("/scans/{id}/delete"));
    let token = &delete
        .fields
        .iter()
        .find(|(name, _)| name == "form_token")
        .unwrap()
        .1;
    let (first, last) = token.split_at(token.len() / 2);
    for forged in [
        format!("{last}{first}"),
        first.to_owned(),
        format!("{first}{first}"),
        "0".repeat(token.len()),
        "é".repeat(token.len() / 2),
    ] {
        let forged = delete.clone().with("form_token", &forged);
        assert_eq!(browser.send(&forged).await.status, 403);
    }
    assert_eq!(browser.send(&delete).await.status, 303);
}
