//! `/usage`: plans, spend, own limits, and the change of the key.

use serde_json::json;

use super::{Browser, form, session_cookie, set};
use crate::account::rotate::NEW_KEY;
use crate::support::app::KEY;
use crate::support::db::begin_holding;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{SearchOutcome, TestService, fares, wait_until};

/// What each page says while the caller has paused everything.
const SIGN: &str = "All monitors and scans are paused.";

async fn with_spend() -> TestService {
    let service = TestService::start().await;
    service
        .submit_and_complete(&fares(3), |position| match position {
            2 => SearchOutcome::Degraded("blocked_page"),
            _ => SearchOutcome::Ok(200),
        })
        .await;
    service
}

#[tokio::test]
async fn spend_is_shown_by_day_endpoint_scan_and_monitor() {
    let service = with_spend().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let scan = service.page("/v1/scans").await[0]["id"].clone();
    let scan = scan.as_str().unwrap();
    for (group, expected) in [
        ("day", "Billed requests of flights by day (UTC)"),
        ("endpoint", "flights/oneway"),
        ("scan", scan),
        ("monitor", "scans without a monitor, and deleted monitors"),
    ] {
        let page = browser.page(&format!("/usage?group={group}")).await;
        assert!(page.contains(expected), "{group}\n{page}");
        assert!(
            page.contains("3 billed requests, 3 searches sent, 1 degraded"),
            "{group}\n{page}"
        );
    }
    browser.get("/usage?since=tomorrow").await.expect(400);
    // A single search is counted, whether it is stored or not.
    let search = service
        .request("POST", "/v1/flights/oneway")
        .header("x-api-key", KEY)
        .json(&json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-05-01"}));
    service.send(search).await.expect(200);
    service.wait_for_requests(KEY, 4).await;
    let page = browser.page("/usage").await;
    assert!(page.contains("4 billed requests"), "{page}");
    assert!(
        page.contains("Single searches and key checks are in these sums"),
        "{page}"
    );
    assert!(!page.contains("are not in these sums"), "{page}");
}

#[tokio::test]
async fn own_limits_are_a_form_that_names_what_is_wrong() {
    let service = with_spend().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let mut limits = form(&browser.page("/usage").await, "/usage/limits/flights");
    set(&mut limits, "plan", "pro");
    set(&mut limits, "requests_per_minute", "90");
    set(&mut limits, "keep_in_reserve", "200");
    browser.send(&limits).await.expect(303);
    let stored = || async { service.get("/v1/quota").await["flights"]["bounds"].clone() };
    let saved = json!({"plan": "pro", "requests_per_minute": 90, "max_in_flight": null, "keep_in_reserve": 200});
    assert_eq!(stored().await, saved);
    let page = browser.page("/usage").await;
    assert!(
        page.contains("200 requests stay for your own calls"),
        "{page}"
    );
    assert!(page.contains(r#"<option value="pro" selected>"#), "{page}");

    set(&mut limits, "requests_per_minute", "fast");
    let page = browser.send(&limits).await.expect(422).text();
    assert!(
        page.contains("requests_per_minute") && page.contains("fast"),
        "{page}"
    );
    assert_eq!(stored().await, saved, "nothing changed");

    set(&mut limits, "plan", "");
    set(&mut limits, "requests_per_minute", "");
    set(&mut limits, "keep_in_reserve", "");
    browser.send(&limits).await.expect(303);
    assert_eq!(
        stored().await["keep_in_reserve"],
        0,
        "empty fields remove limits"
    );
}

#[tokio::test]
async fn the_key_changes_and_the_session_stays() {
    let service = with_spend().await;
    let browser = Browser::sign_in(&service, KEY).await;
    service.upstream.answer(|call| match call.key.as_str() {
        "refused-key-0123456789" => {
            Reply::status(401).with_json(json!({"message": "Invalid API key"}))
        }
        _ => Reply::json(json!([fare(120, &call.body)])),
    });
    let mut change = form(&browser.page("/usage").await, "/usage/key");
    set(&mut change, "new_key", NEW_KEY);
    set(&mut change, "current_key", KEY);
    let page = browser.send(&change).await.expect(422).text();
    assert!(
        page.contains("The key was not changed"),
        "without the confirmation\n{page}"
    );

    set(&mut change, "sure", "yes");
    set(&mut change, "new_key", "refused-key-0123456789");
    let page = browser.send(&change).await.expect(422).text();
    assert!(
        page.contains("The key was not changed") && !page.contains("refused-key"),
        "{page}"
    );

    set(&mut change, "new_key", NEW_KEY);
    let done = browser.send(&change).await.expect(200);
    let cookie = session_cookie(&done);
    assert!(!done.text().contains(NEW_KEY) && !cookie.contains(NEW_KEY));
    let old_cookie = browser.cookie.clone();
    let moved = Browser { cookie, ..browser };
    let page = moved.page("/usage?group=endpoint").await;
    assert!(
        page.contains("flights/oneway"),
        "the spend is the new key's\n{page}"
    );
    let old = browser_with(&service, old_cookie).get("/overview").await;
    assert_eq!(old.status, 303, "the sessions of the old key end");
}

fn browser_with(service: &TestService, cookie: String) -> Browser<'_> {
    Browser {
        app: service,
        cookie,
    }
}

/// Whoever has copied the cookie does not know the key in it.
#[tokio::test]
async fn a_copied_cookie_moves_no_account() {
    let service = with_spend().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let calls = service.upstream.count();
    for current in ["", NEW_KEY, "test-key", &KEY[1..], &format!("{KEY}x")] {
        let mut change = form(&browser.page("/usage").await, "/usage/key");
        set(&mut change, "sure", "yes");
        set(&mut change, "new_key", NEW_KEY);
        set(&mut change, "current_key", current);
        let page = browser.send(&change).await.expect(422).text();
        assert!(
            page.contains("The key was not changed") && page.contains("current key"),
            "{current:?}\n{page}"
        );
        assert!(!page.contains(KEY), "{page}");
    }
    assert_eq!(service.upstream.count(), calls, "no new key was checked");
    let spend = browser.page("/usage?group=endpoint").await;
    assert!(
        spend.contains("flights/oneway"),
        "the account is where it was"
    );
}

#[tokio::test]
async fn one_button_pauses_every_monitor_and_scan() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let scan = service.submit(&fares(3)).await;
    let monitor = service.create_monitor(&crate::monitors::monitor()).await;
    let browser = Browser::sign_in(&service, KEY).await;
    for paused in [
        "1 monitor and 1 scan paused",
        "0 monitors and 0 scans paused",
    ] {
        let page = browser.press("/usage", "/usage/pause-all").await;
        let page = page.expect(200).text();
        assert!(page.contains(paused), "{page}");
    }
    assert_eq!(service.scan(&scan).await["status"], "paused");
    assert_eq!(service.monitor(&monitor).await["status"], "paused");
    let stranger = Browser::sign_in(&service, "another-key-0123456789").await;
    let page = stranger.press("/usage", "/usage/pause-all").await;
    assert!(page.text().contains("0 monitors and 0 scans paused"));
}

#[tokio::test]
async fn one_button_resumes_everything_and_each_page_says_that_it_is_paused() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let scan = service.submit(&fares(3)).await;
    let monitor = service.create_monitor(&crate::monitors::monitor()).await;
    let browser = Browser::sign_in(&service, KEY).await;
    let page = browser.page("/usage").await;
    assert!(
        !page.contains(SIGN) && !page.contains("resume-all"),
        "{page}"
    );
    let home = browser.page("/overview").await;
    let link = "href=\"/usage#pause-all\"";
    assert!(home.contains(link), "two acts from Home: {home}");
    browser.press("/usage", "/usage/pause-all").await;
    for path in ["/overview", "/scans", "/alerts", "/usage"] {
        let page = browser.page(path).await;
        for expected in [
            SIGN,
            "A scan that you start later runs.",
            "href=\"/usage#resume-all\"",
        ] {
            assert!(page.contains(expected), "{path}: {expected}: {page}");
        }
        assert!(!page.contains(link), "nothing is left to pause: {page}");
    }
    // The script asks for a part of a page again and again; that costs no look for pauses.
    let refresh = service
        .request("GET", "/overview")
        .header("cookie", &browser.cookie);
    let part = service.send(refresh).await.expect(200).text();
    assert!(!part.contains(SIGN), "{part}");
    let page = browser.page("/usage").await;
    assert!(
        page.contains("Left in 1 scan: 3 searches, 3 to 6 requests"),
        "{page}"
    );
    // A double click resumes once.
    for resumed in [
        "1 monitor and 1 scan resumed",
        "0 monitors and 0 scans resumed",
    ] {
        let answer = browser.send(&form(&page, "/usage/resume-all")).await;
        let answer = answer.expect(200).text();
        assert!(answer.contains(resumed), "{answer}");
    }
    assert_eq!(service.scan(&scan).await["status"], "queued");
    assert_eq!(service.monitor(&monitor).await["status"], "active");
    assert!(!browser.page("/overview").await.contains(SIGN));
    // One that goes on is enough: not everything is paused.
    service.command(&scan, "pause", &json!({})).await;
    assert!(!browser.page("/overview").await.contains(SIGN));
}

#[tokio::test]
async fn a_refused_key_is_no_pause_of_its_caller() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let monitor = service.create_monitor(&crate::monitors::monitor()).await;
    let browser = Browser::sign_in(&service, KEY).await;
    execute!(
        service.pool(),
        "update lanes set paused_until = 'infinity', pause_reason = 'key_rejected'"
    );
    assert_eq!(service.monitor(&monitor).await["status"], "paused");
    let page = browser.page("/usage").await;
    assert!(
        !page.contains(SIGN) && !page.contains("resume-all"),
        "{page}"
    );
    let path = format!("/v1/monitors/{monitor}/pause");
    service.ask("POST", &path, None).await.expect(200);
    let page = browser.page("/usage").await;
    assert!(page.contains(SIGN) && page.contains("resume-all"), "{page}");
}

/// A service with live scans, the oldest first, and a transaction that locks the newest one. The
/// newest is the first that a run tries.
async fn with_locked_scan() -> (TestService, Vec<String>, sqlx::PgTransaction<'static>) {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let mut scans = Vec::new();
    for _ in 0..4 {
        scans.push(service.submit(&fares(2)).await);
    }
    let mut holding = begin_holding(service.pool()).await;
    execute!(
        &mut *holding,
        "select from scans where scan_id::text = $1 for update",
        scan_uuid(&scans[3])
    );
    (service, scans, holding)
}

/// Returns when a run waits for the locked scan.
async fn wait_for_lock(service: &TestService) {
    let waits = async || {
        service
            .count("select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
            .await
            > 0
    };
    wait_until("the run waits for the lock", waits).await;
}

/// The id of a scan as the database writes it.
fn scan_uuid(id: &str) -> String {
    let hex = id.trim_start_matches("scn_");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

#[tokio::test(flavor = "multi_thread")]
async fn pausing_everything_names_what_it_could_not_pause() {
    let (service, scans, holding) = with_locked_scan().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let page = browser.press("/usage", "/usage/pause-all").await;
    let page = page.expect(200).text();
    for part in [
        "0 monitors and 3 scans paused",
        "1 could not be paused",
        &scans[3],
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    holding.rollback().await.unwrap();
    for (number, id) in scans.iter().enumerate() {
        let is_paused = service.scan(id).await["status"] == "paused";
        assert_eq!(is_paused, number != 3, "{number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pausing_everything_goes_on_without_its_browser() {
    let (service, scans, holding) = with_locked_scan().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let button = form(&browser.page("/usage").await, "/usage/pause-all");
    tokio::select! {
        answer = browser.send(&button) => panic!("{}", answer.text()),
        () = wait_for_lock(&service) => {}
    }
    // The browser has closed its connection.
    holding.rollback().await.unwrap();
    for id in &scans {
        service
            .wait_for_scan(id, "it is paused", |scan| scan["status"] == "paused")
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_press_during_a_run_pauses_what_the_run_has_passed() {
    let (service, _, holding) = with_locked_scan().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let button = form(&browser.page("/usage").await, "/usage/pause-all");
    let second = async {
        // The run has read the list of monitors.
        wait_for_lock(&service).await;
        let monitor = service.create_monitor(&crate::monitors::monitor()).await;
        (monitor, browser.send(&button).await)
    };
    let (_, (monitor, second)) = tokio::join!(browser.send(&button), second);
    let page = second.expect(200).text();
    assert!(page.contains("1 monitor and 3 scans paused"), "{page}");
    assert_eq!(service.monitor(&monitor).await["status"], "paused");
    holding.rollback().await.unwrap();
}
