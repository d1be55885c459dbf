//! Two scans side by side, and asking again for what the marketplace refused.

use serde_json::json;

use super::{Browser, calls, form, forms, key, redirect, service_with_scan};
use crate::support::{SearchOutcome, TestService, fares};

const OTHER: &str = "another-key-0123456789";

/// A scan of four dates, and a later one: cheaper, new, unknown, dearer.
async fn two_scans() -> (TestService, [String; 2]) {
    let (service, before) = service_with_scan().await;
    let after = service
        .submit_and_complete(&fares(4), |position| match position {
            0 => SearchOutcome::Ok(270),
            1 => SearchOutcome::Ok(310),
            2 => SearchOutcome::Ok(250),
            _ => SearchOutcome::Ok(211),
        })
        .await;
    (service, [before, after])
}

#[tokio::test]
async fn two_scans_are_compared_cell_by_cell() {
    let (service, [before, after]) = two_scans().await;
    let browser = Browser::sign_in(&service, key()).await;
    let spent = calls(&service);
    let path = format!("/scans/{before}/compare/{after}");
    let page = browser.page(&path).await;
    for part in [
        "Tue 1 Jan 2030: 300 USD, then 270 USD: cheaper",
        "Wed 2 Jan 2030: no price, then 310 USD: new",
        "Thu 3 Jan 2030: no price, then 250 USD: unknown",
        "Fri 4 Jan 2030: 200 USD, then 211 USD: more expensive",
        "−10.0 %",
        "+5.5 %",
        "200 → 211",
        "January 2030",
        &format!("farescan compare {before} {after}"),
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.len() < 100_000, "{} bytes", page.len());
    let cheaper = browser.page(&format!("{path}?change=cheaper")).await;
    let table = cheaper.split("id=\"changes\"").nth(1).unwrap();
    assert!(table.contains("Tue 1 Jan 2030") && !table.contains("Fri 4 Jan 2030"));
    assert_eq!(calls(&service), spent, "a comparison costs nothing");
}

#[tokio::test]
async fn scans_of_the_same_route_are_offered_for_comparison() {
    let (service, [before, after]) = two_scans().await;
    let hotel = json!({
        "endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts"},
        "sweep": {"checkin_date": ["2030-01-01"], "nights": [3]}
    });
    let hotel = service
        .submit_and_complete(&hotel, |_| SearchOutcome::Ok(100))
        .await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page(&format!("/scans/{after}")).await;
    assert!(page.contains(&format!("href=\"/scans/{after}/compare\"")));
    let page = browser.page(&format!("/scans/{after}/compare")).await;
    // The earlier one first, whichever page it is asked from.
    let link = format!("/scans/{before}/compare/{after}");
    assert!(
        page.contains(&link) && page.contains("same searches"),
        "{page}"
    );
    assert!(!page.contains(&hotel), "{page}");
    let with = format!("/scans/{after}/compare?with={before}");
    assert_eq!(redirect(browser.get(&with).await), link);
    let other_kind = format!("/scans/{before}/compare/{hotel}");
    assert_eq!(browser.get(&other_kind).await.status, 400);
}

#[tokio::test]
async fn another_callers_scan_is_not_compared() {
    let (service, [before, after]) = two_scans().await;
    let stranger = Browser::sign_in(&service, OTHER).await;
    for path in [
        format!("/scans/{before}/compare"),
        format!("/scans/{before}/compare/{after}"),
        format!("/scans/{before}/compare?with={after}"),
    ] {
        assert_eq!(stranger.get(&path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn dates_and_nights_are_compared_as_a_matrix() {
    let service = TestService::start().await;
    let body = json!({
        "endpoint": "flights/roundtrip", "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": ["2030-01-01", "2030-01-02"], "nights": [7, 10]}
    });
    let mut ids = Vec::new();
    for price in [400, 300] {
        let outcome = |_| SearchOutcome::Ok(price);
        ids.push(service.submit_and_complete(&body, outcome).await);
    }
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser
        .page(&format!("/scans/{}/compare/{}", ids[0], ids[1]))
        .await;
    assert!(page.contains("<table class=\"matrix\">"), "{page}");
    assert!(
        page.contains("10 nights") && page.contains("−25.0 %"),
        "{page}"
    );
}

#[tokio::test]
async fn what_was_refused_is_asked_again_by_its_own_button() {
    let service = TestService::start().await;
    let id = service
        .submit_and_complete(&fares(4), |position| match position {
            0 => SearchOutcome::Degraded("blocked_page"),
            1 | 2 => SearchOutcome::Failed,
            _ => SearchOutcome::Ok(200),
        })
        .await;
    let browser = Browser::sign_in(&service, key()).await;
    let path = format!("/scans/{id}");
    let page = browser.page(&path).await;
    assert!(page.contains("class=\"failed\"") && page.contains("class=\"degraded\""));
    assert!(page.contains("Ask again for 1 to 2 requests"), "{page}");
    assert!(page.contains("Ask again for 2 to 4 requests"), "{page}");
    let spent = service.scan(&id).await["requests"]["spent"]
        .as_u64()
        .unwrap();
    let retries = forms(&page, &format!("{path}/retry"));
    assert_eq!(retries.len(), 2, "{page}");
    // Pressed twice: asked once.
    for _ in 0..2 {
        assert_eq!(redirect(browser.send(&retries[1]).await), path);
    }
    let scan = service.scan(&id).await;
    assert_eq!(scan["items"]["pending"], 2, "{scan}");
    assert_eq!(scan["requests"]["max"], spent + 4, "{scan}");
    service.complete_all(|_| SearchOutcome::Ok(150)).await;
    let scan = service.scan(&id).await;
    assert_eq!(
        (&scan["items"]["failed"], &scan["items"]["degraded"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(
        forms(&browser.page(&path).await, &format!("{path}/retry")).len(),
        1
    );
    let _ = form(&page, &format!("{path}/delete"));
}
