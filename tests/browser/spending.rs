//! Buttons that spend: they make exactly the calls that they name, and a second press of one makes
//! none.

use thirtyfour::By;

use super::chromium::Chromium;
use super::{called_dates, reply_by_date};
use crate::support::{SearchOutcome, TestService, departing_from, fares};
use crate::web::scan_ids;

/// The preview of fares of ZRH on four dates.
const PREVIEW: &str = "/scans/new?endpoint=flights/oneway&from_airport=ZRH&to_airport=LHR\
                       &departure_date.from=2030-01-01&departure_date.to=2030-01-04&preview=true";
const SUBMIT: &str = "Submit 4 searches for 4 to 8 requests";

/// A service with an ended scan of four dates from ZRH: two prices, one date degraded, one partial.
async fn with_incomplete_scan() -> (TestService, String) {
    let service = TestService::start().await;
    let body = departing_from("ZRH", fares(4));
    let id = service
        .submit_and_complete(&body, |position| match position {
            1 => SearchOutcome::Degraded("blocked_page"),
            2 => SearchOutcome::Partial(240),
            _ => SearchOutcome::Ok(300),
        })
        .await;
    (service, id)
}

async fn double_click(browser: &Chromium, button: &str) {
    let path = format!("//button[normalize-space()=\"{button}\"]");
    let button = browser.driver.find(By::XPath(&path)).await.unwrap();
    let clicks = browser.driver.action_chain().double_click_element(&button);
    clicks.perform().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_makes_exactly_the_calls_that_it_names() {
    let (service, id) = with_incomplete_scan().await;
    let worker = service.start_worker(2);
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    browser.open(&format!("/scans/{id}")).await;
    browser.press("Ask again: 2 searches").await;
    let asked = browser.text().await;
    Chromium::assert_says(
        &asked,
        &[
            "Makes these searches again and nothing else.",
            "It costs 2 to 4 requests of your plan.",
        ],
    );
    assert_eq!(
        service.call_count("ZRH"),
        0,
        "nothing is asked before the answer"
    );
    // Only the degraded one.
    browser.click_first("//label[contains(., 'partial')]").await;
    browser.press("Ask again for 2 to 4 requests").await;
    service
        .wait_for_scan(&id, "it is searched", |scan| scan["items"]["degraded"] == 0)
        .await;
    browser.wait_for_text("164").await;
    assert_eq!(called_dates(&service, "ZRH"), ["2030-01-02"]);

    browser.press("Ask again: 1 search").await;
    browser.press("Ask again for 1 to 2 requests").await;
    browser.wait_for_text("completed").await;
    assert_eq!(called_dates(&service, "ZRH"), ["2030-01-02", "2030-01-03"]);
    worker.stop().await;
    browser.end().await;
}

/// The same preview open in two windows: its button starts one scan, whichever is pressed.
async fn two_windows_start_one_scan(browser: Chromium, service: TestService) {
    browser.sign_in().await;
    browser.open(PREVIEW).await;
    let shown = browser.driver.current_url().await.unwrap();
    let first_window = browser.driver.window().await.unwrap();
    let second_window = browser.driver.new_tab().await.unwrap();
    browser
        .driver
        .switch_to_window(second_window)
        .await
        .unwrap();
    browser.driver.goto(shown.as_str()).await.unwrap();
    browser.press(SUBMIT).await;
    let scan = browser.wait_for_path_under("/scans/scn_").await;
    browser.driver.switch_to_window(first_window).await.unwrap();
    browser.press(SUBMIT).await;
    let again = format!("/scans/scn_{scan}?already_started=true");
    browser.wait_for_path(&again).await;
    browser.wait_for_text("already started").await;
    assert_eq!(
        scan_ids(&service).await.len(),
        2,
        "the accepted one and this"
    );

    browser
        .click_first("//a[normalize-space()='Start another']")
        .await;
    browser.press(SUBMIT).await;
    let other = browser.wait_for_path_under("/scans/scn_").await;
    assert_ne!(other, scan);
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_window_of_a_preview_starts_no_second_scan() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Chromium::start(service.url()).await;
    two_windows_start_one_scan(browser, service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_javascript_two_windows_start_one_scan() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Chromium::without_javascript(service.url()).await;
    two_windows_start_one_scan(browser, service).await;
}

/// `browser` presses every button that spends twice at once.
async fn double_clicks_bill_once(browser: Chromium, service: TestService, incomplete: String) {
    browser.sign_in().await;
    browser.open(PREVIEW).await;
    double_click(&browser, SUBMIT).await;
    // The preview is under /scans/ too. The second click is answered with a notice.
    let submitted = browser.wait_for_path_under("/scans/scn_").await;
    let submitted = format!("scn_{}", submitted.split('?').next().unwrap());
    assert_eq!(
        scan_ids(&service).await.len(),
        2,
        "the incomplete one and this"
    );

    let path = format!("/scans/{incomplete}");
    browser.open(&path).await;
    browser.press("Ask again: 2 searches").await;
    double_click(&browser, "Ask again for 2 to 4 requests").await;
    browser.wait_for_path(&path).await;
    let worker = service.start_worker(2);
    for id in [&submitted, &incomplete] {
        service.wait_until_ended(id).await;
    }
    let mut expected = ["01", "02", "02", "03", "03", "04"].map(|day| format!("2030-01-{day}"));
    expected.sort();
    assert_eq!(called_dates(&service, "ZRH"), expected);
    worker.stop().await;
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_double_click_bills_once() {
    let (service, id) = with_incomplete_scan().await;
    let browser = Chromium::start(service.url()).await;
    double_clicks_bill_once(browser, service, id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_double_click_without_javascript_bills_once() {
    let (service, id) = with_incomplete_scan().await;
    let browser = Chromium::without_javascript(service.url()).await;
    double_clicks_bill_once(browser, service, id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn back_and_a_second_press_bill_once() {
    let service = TestService::start().await;
    service.upstream.answer(reply_by_date);
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    browser.open("/scans/new").await;
    browser.fill("From", "ZRH").await;
    browser.fill("To", "LHR").await;
    browser.fill("Departure from", "2030-01-01").await;
    browser.fill("to", "2030-01-04").await;
    browser.press("Show what it costs").await;
    browser.press(SUBMIT).await;
    let first = browser.wait_for_path_under("/scans/scn_").await;
    browser.driver.back().await.unwrap();
    browser.wait_for_text("Requests of your plan").await;
    browser.driver.refresh().await.unwrap();
    browser.wait_for_text("already started").await;
    let bookmark = browser.driver.current_url().await.unwrap();
    let submits = By::Css("form[action='/scans/submit']");
    assert!(
        browser.driver.find_all(submits).await.unwrap().is_empty(),
        "no button that would start nothing"
    );
    assert_eq!(scan_ids(&service).await.len(), 1);
    let worker = service.start_worker(2);
    service.wait_until_ended(&format!("scn_{first}")).await;
    assert_eq!(service.call_count("ZRH"), 4);

    // A bookmark leads to the same notice, and from there to another scan.
    browser.driver.goto(bookmark.as_str()).await.unwrap();
    browser.wait_for_text("already started").await;
    browser
        .click_first("//a[normalize-space()='Start another']")
        .await;
    browser.press(SUBMIT).await;
    let second = browser.wait_for_path_under("/scans/scn_").await;
    assert_ne!(first, second);
    worker.stop().await;
    browser.end().await;
}
