//! The cost beside the form of a new scan, while a person types.

use super::chromium::Chromium;
use super::person::date_keys;
use crate::support::TestService;
use crate::support::wait_until;

const COST: &str = "[data-cost]";

impl Chromium {
    async fn wait_for_cost(&self, cost: &str) {
        let what = format!("the cost is {cost:?}");
        let cost = format!("{cost}, about ");
        wait_until(&what, async || self.text_of(COST).await.starts_with(&cost)).await;
    }

    /// How often the form asked for its cost, by the browser's record.
    async fn costs_asked(&self) -> usize {
        let log = self.log().await;
        let asked = log
            .requests
            .iter()
            .filter(|url| url.contains("/scans/new/cost?"));
        asked.count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cost_follows_the_form_and_spends_nothing() {
    let service = TestService::start().await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    browser.open("/scans/new").await;
    let calls = service.upstream.count();
    assert_eq!(browser.costs_asked().await, 0, "nothing was typed yet");
    let polite = browser.count("[data-cost][aria-live=polite]").await;
    assert_eq!(polite, 1);

    // Each field is typed at once: it asks once for the whole of it.
    browser.tab_and_type("From", "ZRHX").await;
    wait_until("the form has asked", async || {
        browser.costs_asked().await >= 1
    })
    .await;
    assert_eq!(
        browser.text_of(COST).await,
        "",
        "the field has not been left"
    );
    browser.tab_to("To").await;
    let what = "what is wrong with the field that was left";
    wait_until(what, async || {
        browser
            .text_of(COST)
            .await
            .starts_with("From: found \"ZRHX\"; expected")
    })
    .await;

    browser.fill("From", "ZRH").await;
    browser.fill("To", "LHR").await;
    browser
        .tab_and_type("Departure from", &date_keys("2030-01-01"))
        .await;
    browser.wait_for_cost("1 search: 1 to 2 requests").await;
    browser.fill("to", "2030-01-14").await;
    browser
        .wait_for_cost("14 searches: 14 to 28 requests")
        .await;
    // What the script sets counts as well.
    browser.press("1 week").await;
    browser.wait_for_cost("7 searches: 7 to 14 requests").await;
    browser.fill("To", "LHR, CDG").await;
    browser
        .wait_for_cost("14 searches: 14 to 28 requests")
        .await;
    let most = 40;
    assert!(browser.costs_asked().await < most, "not for every key");
    assert_eq!(service.upstream.count(), calls, "nothing is spent");
    assert_eq!(service.count("select count(*) from scans").await, 0);
    // The page of the whole cost says the same.
    browser.press("Show what it costs").await;
    browser.wait_for_text("14 to 28").await;
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_older_fields_is_not_shown() {
    let service = TestService::start().await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    browser.open("/scans/new").await;
    // The first answer is held back until the second has been shown.
    browser
        .script(
            "const send = window.fetch;
             window.aborted = 0;
             let isFirst = true;
             window.fetch = (url, options) => {
                 options.signal.addEventListener('abort', () => { window.aborted += 1; });
                 if (isFirst) {
                     isFirst = false;
                     window.isHeld = true;
                     return new Promise((resolve, reject) => {
                         options.signal.addEventListener('abort', () => reject(new DOMException('', 'AbortError')));
                     });
                 }
                 return send(url, options);
             };",
        )
        .await;
    browser.fill("From", "ZRH").await;
    wait_until("the first request waits", async || {
        browser.script("return window.isHeld === true").await == true
    })
    .await;
    browser.fill("To", "LHR").await;
    browser.fill("Departure from", "2030-01-01").await;
    browser.wait_for_cost("1 search: 1 to 2 requests").await;
    assert!(browser.script("return window.aborted").await.as_u64() >= Some(1));
    browser.end().await;
}
