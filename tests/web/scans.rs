//! The pages of scans and what their forms do.

use std::num::NonZeroU32;

use farescan::config::RateLimitConfig;
use serde_json::{Value, json};

use super::{Browser, calls, fare_fields, form, key, redirect, scan_ids, service_with_scan};
use crate::support::app::TestApp;
use crate::support::{SearchOutcome, TestService, fares, fares_with};

#[tokio::test]
async fn a_calendar_marks_each_kind_of_result() {
    let (service, id) = service_with_scan().await;
    let page = Browser::sign_in(&service, key())
        .await
        .page(&format!("/scans/{id}"))
        .await;
    assert!(page.contains("January 2030"), "{page}");
    for cell in [
        "Tue 1 Jan 2030: 300 USD",
        "Wed 2 Jan 2030: nothing offered",
        "Thu 3 Jan 2030: did not complete: blocked page",
        "Fri 4 Jan 2030: 200 USD",
    ] {
        assert!(page.contains(cell), "{cell}: {page}");
    }
    let cheapest = page.split("<td class=\"q1 best\"").nth(1).unwrap();
    assert!(cheapest.contains("Fri 4 Jan 2030"), "{cheapest}");
    assert!(page.contains("class=\"none\"") && page.contains("class=\"degraded\""));
}

#[tokio::test]
async fn the_list_filters_by_its_url_and_pages() {
    let (service, incomplete) = service_with_scan().await;
    let tagged = service
        .submit(&fares_with(1, &json!({"tags": ["a b"]})))
        .await;
    let browser = Browser::sign_in(&service, key()).await;
    let has = async |path: &str| {
        let page = browser.page(path).await;
        [&incomplete, &tagged].map(|id| page.contains(&format!("/scans/{id}\"")))
    };
    assert_eq!(has("/scans").await, [true, true]);
    assert_eq!(has("/scans?status=incomplete").await, [true, false]);
    assert_eq!(
        has("/scans?tag=a+b&endpoint=&monitor_id=").await,
        [false, true]
    );
    assert_eq!(has("/scans?endpoint=hotels/rooms").await, [false, false]);
    let first = browser.page("/scans?limit=1").await;
    let next = first.split("rel=\"next\" href=\"").nth(1).unwrap();
    let next = next.split('"').next().unwrap().replace("&amp;", "&");
    assert_eq!(has(&next).await, [true, false]);
    assert_eq!(browser.get("/scans?status=done").await.status, 400);
}

#[tokio::test]
async fn a_retry_shows_its_cost_and_asks_only_what_failed() {
    let (service, id) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    let path = format!("/scans/{id}");
    let page = browser.page(&path).await;
    assert!(page.contains("Ask again for 1 to 2 requests"), "{page}");
    let retry = form(&page, &format!("{path}/retry"));
    // Sent twice, as by a double click: one retry.
    for _ in 0..2 {
        assert_eq!(redirect(browser.send(&retry).await), path);
    }
    service.complete_all(|_| SearchOutcome::Ok(150)).await;
    let scan = service.scan(&id).await;
    assert_eq!(scan["requests"]["spent"], 5);
    assert_eq!(scan["requests"]["max"], 6, "no more than the button said");
    assert_eq!(scan["status"], "completed");
    assert!(!browser.page(&path).await.contains("Ask again"));
}

#[tokio::test]
async fn pause_resume_and_cancel_are_buttons() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let id = service.submit(&fares(3)).await;
    let browser = Browser::sign_in(&service, key()).await;
    let path = format!("/scans/{id}");
    for (action, status) in [
        ("pause", "paused"),
        ("resume", "queued"),
        ("cancel", "cancelled"),
    ] {
        let done = browser.press(&path, &format!("{path}/{action}")).await;
        assert_eq!(redirect(done), path, "{action}");
        assert_eq!(service.scan(&id).await["status"], status, "{action}");
    }
}

#[tokio::test]
async fn a_new_scan_is_previewed_and_then_submitted_once() {
    let service = TestService::start().await;
    let browser = Browser::sign_in(&service, key()).await;
    let before = calls(&service);
    let preview = browser.page(&fare_fields("2030-01-05")).await;
    assert!(
        preview.contains("Submit 5 searches for 5 to 10 requests"),
        "{preview}"
    );
    assert_eq!(
        scan_ids(&service).await,
        Vec::<Value>::new(),
        "a preview stores nothing"
    );
    let submission = form(&preview, "/scans/submit");
    let scan = redirect(browser.send(&submission).await);
    assert_eq!(
        redirect(browser.send(&submission).await),
        format!("{scan}?already_started=true"),
        "a double click is one scan"
    );
    assert_eq!(scan_ids(&service).await.len(), 1);
    assert_eq!(calls(&service), before);
    let page = browser.page(&scan).await;
    assert!(
        page.contains("data-events=") && page.contains("Reload"),
        "{page}"
    );
}

#[tokio::test]
async fn a_bookmark_of_a_used_preview_says_so() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let fields = fare_fields("2030-01-05");
    let (fields, _) = fields.split_once("&once=").unwrap();
    let bookmark = redirect(browser.get(fields).await);
    assert!(
        bookmark.starts_with("/scans/new?") && bookmark.contains("&once="),
        "{bookmark}"
    );
    let submission = form(&browser.page(&bookmark).await, "/scans/submit");
    let scan = redirect(browser.send(&submission).await);

    // The bookmark, and the button of a page that is still open.
    let page = browser.page(&bookmark).await;
    for part in ["already started", "Start another", &scan] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("action=\"/scans/submit\""), "{page}");
    let again = redirect(browser.send(&submission).await);
    let page = browser.page(&again).await;
    assert!(page.contains("already started"), "{page}");
    let like = format!(
        "/scans/new?like={}&preview=true",
        scan.trim_start_matches("/scans/")
    );
    assert!(page.contains(&like.replace('&', "&amp;")), "{page}");
    assert!(!browser.page(&scan).await.contains("already started"));

    // Another one, by both ways.
    let mut started = vec![scan.clone()];
    for way in [fields, &like] {
        let fresh = redirect(browser.get(way).await);
        let submission = form(&browser.page(&fresh).await, "/scans/submit");
        started.push(redirect(browser.send(&submission).await));
    }
    started.sort();
    started.dedup();
    assert_eq!(started.len(), 3, "{started:?}");
    assert_eq!(scan_ids(&service).await.len(), 4, "with the accepted one");

    let id = scan.trim_start_matches("/scans/");
    service.command(id, "cancel", &json!({})).await;
    service.delete(&format!("/v1/scans/{id}")).await;
    let page = browser.page(&bookmark).await;
    assert!(page.contains("It was deleted since."), "{page}");
    let page = browser.send(&submission).await.expect(409).text();
    assert!(page.contains("It was deleted since."), "{page}");
}

#[tokio::test]
async fn a_form_offers_what_its_caller_has_searched() {
    let (service, _) = service_with_scan().await;
    let hotel = json!({
        "endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts"},
        "sweep": {"checkin_date": ["2030-01-01"], "nights": [3]}
    });
    service
        .submit_and_complete(&hotel, |_| SearchOutcome::Ok(100))
        .await;
    let browser = Browser::sign_in(&service, key()).await;
    let stranger = Browser::sign_in(&service, "another-key-0123456789").await;
    for (path, option, list) in [
        ("/scans/new", "<option value=\"TLV\">", "list=\"airports\""),
        (
            "/scans/new?endpoint=hotels/by-name",
            "<option value=\"Hotel Arts\">",
            "list=\"hotels\"",
        ),
        (
            "/monitors/new",
            "<option value=\"LHR\">",
            "list=\"airports\"",
        ),
    ] {
        let page = browser.page(path).await;
        assert!(
            page.contains(option) && page.contains(list),
            "{path}: {page}"
        );
        let page = stranger.page(path).await;
        assert!(
            !page.contains(option) && page.contains(list),
            "{path}: {page}"
        );
    }
}

#[tokio::test]
async fn a_preview_is_also_a_request_and_a_command() {
    let service = TestService::start().await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page(&fare_fields("2030-01-05")).await;
    for part in [
        "farescan scan oneway TLV LHR --depart 2030-01-01..2030-01-05",
        "/v1/scans\" -d",
    ] {
        let part = part.replace('"', "&quot;");
        assert!(page.contains(&part), "{part}: {page}");
    }
    let page = browser
        .page(&(fare_fields("2030-01-05") + "&below=150.5"))
        .await;
    for part in ["--find below --below 150.5", "value=\"150.5\""] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let below = json!({"strategy": {"find": "below", "below": 150.5}});
    let id = service
        .submit(&crate::support::service::fares_with(5, &below))
        .await;
    let page = browser.page(&format!("/scans/{id}")).await;
    let sentence = "Whether one is below 150.5 is not decided.";
    assert!(page.contains(sentence), "{page}");
    let again = browser.page(&format!("/scans/new?like={id}")).await;
    assert!(again.contains("value=\"150.5\""), "{again}");
}

#[tokio::test]
async fn a_wrong_form_names_every_field_and_costs_nothing() {
    let service = TestService::start().await;
    let browser = Browser::sign_in(&service, key()).await;
    let before = calls(&service);
    let path = fare_fields("2030-01-05").replace("TLV", "TLVX") + "&max_stops=none";
    let page = browser.get(&path).await.expect(422).text();
    for wrong in ["request.from_airport", "TLVX", "request.max_stops"] {
        assert!(page.contains(wrong), "{wrong}: {page}");
    }
    assert!(
        page.contains("value=\"TLVX\""),
        "the form keeps what was typed"
    );
    assert_eq!(calls(&service), before);
}

#[tokio::test]
async fn markets_are_compared_with_the_first_one() {
    let service = TestService::start().await;
    let body = json!({
        "endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts"},
        "sweep": {"checkin_date": ["2030-01-01"], "nights": [3], "proxy_country": ["us", "de"]}
    });
    let id = service
        .submit_and_complete(&body, |position| {
            SearchOutcome::Ok(if position == 0 { 200 } else { 250 })
        })
        .await;
    let page = Browser::sign_in(&service, key())
        .await
        .page(&format!("/scans/{id}"))
        .await;
    assert!(page.contains("Price by market"), "{page}");
    assert!(page.contains("base") && page.contains("+25.0 %"), "{page}");
}

#[tokio::test]
async fn markets_of_several_stays_say_what_they_come_to() {
    let service = TestService::start().await;
    let body = json!({
        "endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts"},
        "sweep": {"checkin_date": ["2030-01-01", "2030-01-02"], "nights": [3], "proxy_country": ["us", "de", "gb"], "samples": 2}
    });
    let id = service.submit(&body).await;
    let browser = Browser::sign_in(&service, key()).await;
    let path = format!("/scans/{id}");
    let noise = "larger than the noise";
    assert!(
        !browser.page(&path).await.contains(noise),
        "nothing is known"
    );
    let items = service.items(&id).await;
    let outcome = |position: usize| {
        let search = &items[position]["search"];
        let market = search["proxy_country"].as_str().unwrap();
        match (market, search["checkin_date"] == "2030-01-01") {
            ("de", true) => SearchOutcome::Ok(250),
            // It may lack the cheapest room, which is no gap.
            ("gb", true) => SearchOutcome::Partial(250),
            _ => SearchOutcome::Ok(200),
        }
    };
    service.complete_all(outcome).await;
    let page = browser.page(&path).await;
    for part in [
        "1 of 2 markets differs from US. A difference is real if",
        "1 of 2 more expensive",
        "noise 1 %",
        "same",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[tokio::test]
async fn an_item_tells_its_story() {
    let (service, id) = service_with_scan().await;
    let items = service.items(&id).await;
    let browser = Browser::sign_in(&service, key()).await;
    let degraded = browser
        .page(&format!("/items/{}", items[2]["id"].as_str().unwrap()))
        .await;
    for part in [
        "says nothing about prices",
        "blocked page",
        "Attempt 1",
        "1 request",
    ] {
        assert!(degraded.contains(part), "{part}: {degraded}");
    }
}

#[tokio::test]
async fn items_are_exported_to_a_signed_in_browser() {
    let (service, id) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    let response = browser
        .get(&format!("/scans/{id}/export?format=csv"))
        .await
        .expect(200);
    assert!(response.header("content-type").starts_with("text/csv"));
    assert_eq!(response.text().lines().count(), 5);
    let unnamed = browser
        .get(&format!("/scans/{id}/export"))
        .await
        .expect(200);
    assert_eq!(unnamed.text(), response.text(), "CSV is the default");
}

/// A file is the answer of the API's route for this scan, and of no other route.
#[tokio::test]
async fn a_file_of_no_scan_is_no_page() {
    let (service, id) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    let unknown = farescan::ids::ScanId::new();
    for id in [
        unknown.to_string(),
        format!("{id}%2Fgrid%3F"),
        format!("{id}%23"),
        format!("{id}%3Fwait=60&x="),
        format!("{id}%2F..%2F..%2Fusage%3F"),
    ] {
        for file in ["export", "events"] {
            let page = browser
                .get(&format!("/scans/{id}/{file}"))
                .await
                .expect(404);
            assert!(
                page.text().contains("no such scan"),
                "{id}: {}",
                page.text()
            );
        }
    }
    let stranger = Browser::sign_in(&service, "another-key-0123456789").await;
    let theft = stranger
        .get(&format!("/scans/{id}/export"))
        .await
        .expect(404);
    assert!(theft.text().contains("no such scan"), "{}", theft.text());
}

/// A page that hands its request on to the API is one request of its caller: with a burst of one
/// request, it is answered.
#[tokio::test]
async fn a_file_counts_once_against_the_rate_limit() {
    let limits = RateLimitConfig {
        requests_per_second: NonZeroU32::MIN,
        request_burst: NonZeroU32::MIN,
    };
    let app = TestApp::builder().state(move |app| app.with_rate_limits(&limits));
    let service = TestService::start_with(app).await;
    let browser = Browser::sign_in(&service, key()).await;
    let file = "/prices/flights/files/observations?from_airport=TLV&to_airport=LHR";
    browser.get(file).await.expect(200);
}

#[tokio::test]
async fn a_signed_in_browser_follows_a_scan() {
    let (service, id) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    let events = browser
        .get(&format!("/scans/{id}/events"))
        .await
        .expect(200);
    assert!(
        events
            .header("content-type")
            .starts_with("text/event-stream")
    );
    assert!(events.text().contains("event: scan"), "{}", events.text());
    let signed_out = service.request("GET", &format!("/scans/{id}/events"));
    assert_eq!(service.send(signed_out).await.status, 303);
}

#[tokio::test]
async fn deleting_a_scan_leads_back_to_the_list() {
    let (service, id) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    let path = format!("/scans/{id}");
    let deleted = browser.press(&path, &format!("{path}/delete")).await;
    assert_eq!(redirect(deleted), "/scans");
    assert_eq!(browser.get(&path).await.status, 404);
}

#[tokio::test]
async fn ten_thousand_items_make_a_small_page() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let body = json!({
        "endpoint": "flights/roundtrip", "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {
            "departure_date": {"from": "2030-01-01", "to": "2030-12-31"},
            "nights": (1..=27).collect::<Vec<_>>()
        }
    });
    let id = service.submit(&body).await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page(&format!("/scans/{id}")).await;
    assert!(
        page.contains("too many cells"),
        "the calendar stands for the matrix"
    );
    assert!(page.len() < 300_000, "{} bytes", page.len());
}

#[tokio::test]
async fn a_sold_out_scan_does_not_say_that_a_price_may_come() {
    let service = TestService::start().await;
    let id = service
        .submit_and_complete(&fares(1), |_| SearchOutcome::Empty)
        .await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page(&format!("/scans/{id}")).await;
    assert!(page.contains("nothing on offer"), "{page}");
    assert!(!page.contains("no price yet"), "{page}");
}
