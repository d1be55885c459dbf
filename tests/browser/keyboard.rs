//! Forms with the keyboard alone: Tab, Enter, Space and arrow keys, with the focus always visible.
//! The other tasks of a first day are in `first_day`.

use farescan::contract::Endpoint;
use serde_json::Value;
use thirtyfour::Key;

use super::chromium::Chromium;
use super::person::date_keys;
use super::{called_dates, reply_by_date};
use crate::support::TestService;
use crate::support::app::KEY;

/// Where the focus is: the name of the element for people, and whether a person sees that it has the
/// focus.
const FOCUS: &str = "
    const element = document.activeElement, style = getComputedStyle(element);
    const label = element.labels?.[0]?.innerText ?? '';
    const name = (label || element.innerText || element.getAttribute('aria-label') || element.name || '').trim();
    const box = element.getBoundingClientRect();
    const inView = box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
    const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
    return {name, tag: element.localName, visible: inView && outlined};";

/// More elements than any page of these tests has.
const MOST_TABS: usize = 120;

impl Chromium {
    pub async fn focus(&self) -> Value {
        self.script(FOCUS).await
    }

    /// Presses Tab until the element whose name begins so has the focus; returns how often.
    pub async fn tab_to(&self, name: &str) -> usize {
        let mut passed = Vec::new();
        for tabs in 1..=MOST_TABS {
            self.key(Key::Tab).await;
            let focus = self.focus().await;
            if focus["tag"] == "body" {
                continue;
            }
            assert_eq!(focus["visible"], true, "the focus is not visible: {focus}");
            if focus["name"].as_str().unwrap().starts_with(name) {
                return tabs;
            }
            passed.push(focus["name"].clone());
        }
        panic!("Tab does not reach {name:?}, only {passed:?}");
    }

    pub async fn tab_and_type(&self, name: &str, text: &str) {
        self.tab_to(name).await;
        self.type_text(text).await;
    }

    pub async fn sign_in_by_keyboard(&self) {
        self.open("/login").await;
        assert_eq!(
            self.focus().await["name"],
            "Marketplace key",
            "it has the focus"
        );
        self.type_text(KEY).await;
        self.key(Key::Enter).await;
        self.wait_for_path("/overview").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_alone_makes_a_scan_and_a_retry() {
    let service = TestService::start().await;
    service
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(reply_by_date);
    let worker = service.start_worker(3);
    let browser = Chromium::start(service.url()).await;
    browser.sign_in_by_keyboard().await;
    browser.tab_to("New scan").await;
    browser.key(Key::Enter).await;
    browser.wait_for_path("/scans/new").await;
    browser.tab_and_type("From", "ZRH").await;
    browser.tab_and_type("To", "LHR").await;
    let date = date_keys("2030-01-02");
    browser.tab_and_type("Departure from", &date).await;
    let date = date_keys("2030-01-06");
    browser.tab_and_type("to", &date).await;
    // Not the Sunday.
    for day in ["wed", "thu", "fri", "sat"] {
        browser.tab_to(day).await;
        browser.key(Key::Space).await;
    }
    browser.tab_to("Show what it costs").await;
    browser.key(Key::Enter).await;
    browser.wait_for_text("Requests of your plan").await;
    browser.tab_to("Submit 4 searches for 4 to 8").await;
    browser.key(Key::Space).await;
    let id = browser.wait_for_path_under("/scans/scn_").await;
    let id = format!("scn_{id}");
    browser
        .wait_for_text("1 of 4 searches did not complete")
        .await;

    browser.tab_to("Ask again: 1 search").await;
    browser.key(Key::Space).await;
    browser
        .wait_for_text("Makes these searches again and nothing else")
        .await;
    // Escape closes the panel, and the focus stays at its button.
    browser.key(Key::Escape).await;
    assert_eq!(browser.focus().await["name"], "Ask again: 1 search");
    browser.key(Key::Enter).await;
    browser.tab_to("Ask again for 1 to 2 requests").await;
    let calls = service.call_count("ZRH");
    browser.key(Key::Enter).await;
    browser.wait_for_path(&format!("/scans/{id}")).await;
    service
        .wait_for_scan(&id, "it was asked again", |scan| {
            scan["requests"]["spent"] == 5
        })
        .await;
    assert_eq!(service.call_count("ZRH"), calls + 1);
    let mut dates = called_dates(&service, "ZRH");
    dates.dedup();
    assert_eq!(
        dates,
        ["02", "03", "04", "05"].map(|day| format!("2030-01-{day}"))
    );

    // A date of the calendar opens its story.
    browser.wait_for_text("incomplete").await;
    browser.tab_to("2\n").await;
    browser.key(Key::Enter).await;
    browser.wait_for_text("Attempt 1").await;
    worker.stop().await;
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_alone_makes_a_monitor() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    service.accept_key().await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in_by_keyboard().await;
    browser.tab_to("Trips").await;
    browser.key(Key::Enter).await;
    browser.wait_for_path("/prices").await;
    browser.tab_to("Monitors").await;
    browser.key(Key::Enter).await;
    browser.tab_to("New monitor").await;
    browser.key(Key::Enter).await;
    browser.wait_for_path("/monitors/new").await;
    browser.tab_and_type("Name", "By keyboard").await;
    browser.tab_and_type("From", "ZRH").await;
    browser.tab_and_type("To", "LHR").await;
    browser.tab_and_type("First date", "+7d").await;
    browser.tab_and_type("Last date", "+9d").await;
    browser.tab_to("Runs").await;
    browser.key(Key::Down).await;
    browser.tab_and_type("Price below", "200").await;
    browser.tab_and_type("Lowest of days", "30").await;
    browser.tab_to("Show the cost of a month").await;
    browser.key(Key::Enter).await;
    browser.wait_for_text("Create this monitor?").await;
    browser.tab_to("Create for").await;
    browser.key(Key::Enter).await;
    let id = browser.wait_for_path_under("/monitors/").await;
    let monitor = service.monitor(&id).await;
    assert_eq!(monitor["schedule"]["cron"], "0 6 * * mon-fri");
    assert_eq!(monitor["alerts"].as_array().unwrap().len(), 2);
    // Its run is asked about, and Escape leaves it.
    browser.tab_to("Run now").await;
    browser.key(Key::Enter).await;
    browser.wait_for_text("One run costs").await;
    browser.key(Key::Escape).await;
    assert_eq!(service.call_count("ZRH"), 0);
    worker.stop().await;
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slash_leads_to_the_box_that_finds() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    service.accept_key().await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in_by_keyboard().await;
    browser.type_text("/").await;
    assert_eq!(browser.focus().await["name"], "Where, and when?");
    browser.open("/usage").await;
    browser.type_text("/").await;
    assert_eq!(
        browser.focus().await["name"],
        "Find a scan or monitor, or ask"
    );
    browser.type_text("YYY").await;
    browser.key(Key::Enter).await;
    browser.wait_for_path("/find?q=YYY").await;
    browser
        .wait_for_text("Scans and monitors with each word of “YYY”")
        .await;
    // In a field a slash is a slash.
    browser.open("/scans").await;
    browser.tab_and_type("Hotel or place", "a/b").await;
    assert_eq!(browser.focus().await["name"], "Hotel or place");
    worker.stop().await;
    browser.end().await;
}
