//! A monitor from its form to its alert.

use jiff::SignedDuration;

use super::chromium::Chromium;
use crate::support::TestService;

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_runs_when_it_is_due_and_its_alert_is_shown() {
    let service = TestService::start().await;
    service.upstream.answer_fares(150);
    let worker = service.start_worker(4);
    service.accept_key().await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    browser.open("/monitors").await;
    browser.press("New monitor").await;
    for (label, text) in [
        ("Name", "Zurich in a week"),
        ("From", "ZRH"),
        ("To", "LHR"),
        ("First date", "+7d"),
        ("Last date", "+9d"),
        ("Price below", "200"),
    ] {
        browser.fill(label, text).await;
    }
    browser.press("Show the cost of a month").await;
    browser.wait_for_text("Create this monitor?").await;
    let cost = browser.text().await;
    Chromium::assert_says(&cost, &["ZRH → LHR", "3 to 6 requests", "Next runs"]);
    assert_eq!(service.count("select count(*) from monitors").await, 0);

    browser.press("Create for").await;
    let id = browser.wait_for_path_under("/monitors/mon_").await;
    let id = format!("mon_{id}");
    // Back to the page of the cost and its button again: still one monitor.
    browser.driver.back().await.unwrap();
    browser.driver.forward().await.unwrap();
    browser.wait_for_path(&format!("/monitors/{id}")).await;
    assert_eq!(service.count("select count(*) from monitors").await, 1);
    assert_eq!(service.call_count("ZRH"), 0, "its first slot is not due");

    let slot = service.next_slot(&id).await;
    service.tick(slot).await;
    service
        .wait_for_count("select count(*) from scans where finished_at is null", 0)
        .await;
    service.tick(slot + SignedDuration::from_secs(1)).await;
    assert_eq!(service.call_count("ZRH"), 3, "one run of three dates");

    browser.press("Activity").await;
    browser.wait_for_path("/activity").await;
    browser.press("Alerts").await;
    browser.wait_for_text("150 USD").await;
    browser
        .click_first("//main//td//a[starts-with(@href, '/alerts/')]")
        .await;
    browser.wait_for_text("Price below 200").await;
    let evidence = browser.text().await;
    Chromium::assert_says(&evidence, &["150 USD", "200 USD", "3 of 3 complete"]);
    browser.open(&format!("/monitors/{id}")).await;
    Chromium::assert_says(&browser.text().await, &["alerted"]);
    worker.stop().await;
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_press_creates_no_second_monitor() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    service.accept_key().await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    browser.open("/monitors/new").await;
    for (label, text) in [
        ("Name", "Zurich in a week"),
        ("From", "ZRH"),
        ("To", "LHR"),
        ("First date", "+7d"),
    ] {
        browser.fill(label, text).await;
    }
    browser.press("Show the cost of a month").await;
    browser.press("Create for").await;
    let first = browser.wait_for_path_under("/monitors/mon_").await;
    // The page of the cost answered a form: the browser sends that form again, as a person may agree
    // to after Back.
    browser.driver.back().await.unwrap();
    browser.driver.refresh().await.unwrap();
    browser.press("Create for").await;
    let second = browser.wait_for_path_under("/monitors/mon_").await;
    assert_eq!(second, first);
    assert_eq!(service.count("select count(*) from monitors").await, 1);
    worker.stop().await;
    browser.end().await;
}
