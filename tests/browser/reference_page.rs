//! The reference page at `/docs` (decision 35): accessible in both themes and widths, and silent
//! towards other hosts.

use std::fmt::Write as _;

use super::chromium::{Chromium, Theme, WIDTHS};
use crate::support::TestService;

/// Where the page is looked at: its path and a text that is there once it is drawn.
const PLACES: [(&str, &str); 2] = [
    ("/docs/", "Introduction"),
    (
        "/docs/#tag/flights/POST/v1/flights/oneway",
        "Search one-way fares",
    ),
];
/// Opens the form that sends a request.
const OPEN_FORM: &str = "//button[contains(@class, 'show-api-client-button')]";

/// What is wrong with what the page shows, at both widths.
async fn faults(browser: &Chromium, place: &str) -> String {
    let mut faults = String::new();
    for width in WIDTHS {
        browser.resize(width).await;
        let overflow = browser.overflow().await;
        if overflow > 0 {
            writeln!(faults, "{place}, {width}: {overflow} pixels too wide").unwrap();
        }
        for violation in browser.violations().await {
            writeln!(faults, "{place}, {width}: {violation:#}").unwrap();
        }
    }
    faults
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_page_is_accessible() {
    let service = TestService::start().await;
    let browser = Chromium::start(service.url()).await;
    let mut all = String::new();
    for theme in Theme::ALL {
        browser.prefer(theme).await;
        for (path, text) in PLACES {
            // Another page between: a change of the fragment alone loads nothing.
            browser.open("/login").await;
            browser.open(path).await;
            browser.wait_for_text(text).await;
            browser.load_axe().await;
            let place = format!("{path}, {}", theme.name());
            all += &faults(&browser, &place).await;
        }
        browser.click_first(OPEN_FORM).await;
        browser.wait_for_count("[role=dialog]", 1).await;
        let place = format!("the form of a request, {}", theme.name());
        all += &faults(&browser, &place).await;
    }
    assert!(all.is_empty(), "{all}");
    // It also looks at every request: none went to another host.
    browser.end().await;
}

/// The page runs the largest script of others. Whoever alters it can send the requests that a
/// person could send with a key, and nothing with the session of who reads it.
#[tokio::test(flavor = "multi_thread")]
async fn the_reference_page_cannot_act_as_the_signed_in_reader() {
    let service = TestService::start().await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    browser.open("/docs/").await;
    browser.wait_for_text("Introduction").await;
    let read = |path: &str| {
        format!(
            "const done = arguments[arguments.length - 1];
             fetch('{path}', {{credentials: 'include'}}).then(r => r.text().then(t => done(r.status + ' ' + t.length)), () => done('refused'));"
        )
    };
    for path in ["/overview", "/usage", "/scans", "/assets/x", "/"] {
        assert_eq!(browser.script_async(&read(path)).await, "refused", "{path}");
    }
    let api = browser.script_async(&read("/v1/verify")).await;
    assert!(
        api.as_str().unwrap().starts_with("401 "),
        "{api}: no cookie counts there"
    );
    let described = browser.script_async(&read("/openapi.json")).await;
    assert!(
        described.as_str().unwrap().starts_with("200 "),
        "{described}"
    );
    let popup = "const done = arguments[arguments.length - 1];
         const opened = window.open('/usage');
         const look = (left) => {
             let seen = 'closed';
             try { seen = opened.closed ? 'closed' : opened.document.title + opened.location.href; } catch (e) { seen = 'refused'; }
             if (seen.includes('/usage') || seen === 'closed' || seen === 'refused' || left === 0) { done(seen); }
             else { setTimeout(look, 50, left - 1); }
         };
         look(200);";
    let seen = browser.script_async(popup).await;
    assert!(seen == "closed" || seen == "refused", "{seen}");
    let frame = "const done = arguments[arguments.length - 1];
         const frame = document.createElement('iframe');
         frame.onload = () => { try { done(frame.contentDocument.title); } catch (e) { done('refused'); } };
         frame.src = '/usage';
         document.body.append(frame);";
    let seen = browser.script_async(frame).await;
    assert!(seen == "refused" || seen == "" || seen.is_null(), "{seen}");
}
