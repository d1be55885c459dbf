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
