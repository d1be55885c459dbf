//! The list of scans: its filters and the views that are saved of them.

use futures::future::join_all;
use serde_json::json;

use std::time::Duration;

use super::{Browser, Form, encoded, form, forms, key, redirect, service_with_scan};
use crate::support::app::TestApp;
use crate::support::db::begin_holding;
use crate::support::{SearchOutcome, TestService, departing_from, fares_with, wait_until};

const OTHER: &str = "another-key-0123456789";

#[tokio::test]
async fn a_filtered_list_counts_as_a_large_read() {
    let app = TestApp::builder().state(|app| app.with_permit_timeout(Duration::from_millis(20)));
    let service = TestService::start_with(app).await;
    let browser = Browser::sign_in(&service, key()).await;
    service.submit(&fares_with(1, &json!({}))).await;
    let mut holding = begin_holding(service.pool()).await;
    execute!(&mut *holding, "lock table scans in access exclusive mode");
    let waits = async || {
        service
            .count("select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%shown_scans%'")
            .await
            > 0
    };
    let first = browser.get("/scans?label=none");
    let others = async {
        wait_until("the first list is being read", waits).await;
        // At once: a request waits for a lock only so long, and the first one has to be answered.
        let pages = [
            "/scans?hotel=none",
            "/monitors?text=none",
            "/activity?text=none",
            "/find?q=none",
        ];
        let pages = join_all(pages.map(async |path| {
            let refused = browser.get(path).await.expect(429).text();
            assert!(refused.contains("large reads"), "{path}: {refused}");
        }));
        let lists = join_all(["/v1/scans", "/v1/monitors"].map(async |list| {
            let refused = service.app.get(&format!("{list}?text=none")).await;
            let kind = refused.kind();
            assert_eq!(kind, "429 too_many_requests", "{list}: {}", refused.text());
        }));
        // A whole question reads no list.
        let asked = browser.get("/find?q=tlv+lhr+march");
        let (_, _, asked) = tokio::join!(pages, lists, asked);
        assert_eq!(redirect(asked), "/ask?q=tlv+lhr+march");
        holding.rollback().await.unwrap();
    };
    let (first, ()) = tokio::join!(first, others);
    first.expect(200);
}

#[tokio::test]
async fn the_list_filters_by_route_hotel_label_and_time() {
    let (service, fares) = service_with_scan().await;
    let swept = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "HFA"}, "label": "Weekend 100%",
        "sweep": {"to_airport": ["CDG", "LHR"], "departure_date": ["2030-01-01"]}
    });
    let swept = service
        .submit_and_complete(&swept, |_| SearchOutcome::Ok(100))
        .await;
    let hotel = json!({
        "endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts"},
        "sweep": {"checkin_date": ["2030-01-01"], "nights": [3]}
    });
    let hotel = service
        .submit_and_complete(&hotel, |_| SearchOutcome::Ok(100))
        .await;
    let browser = Browser::sign_in(&service, key()).await;
    let today = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    let tomorrow = today.tomorrow().unwrap();
    for (query, expected) in [
        (String::new(), [true, true, true]),
        ("from_airport=hfa".to_owned(), [false, true, false]),
        ("to_airport=LHR".to_owned(), [true, true, false]),
        ("to_airport=CDG".to_owned(), [false, true, false]),
        ("hotel=arts".to_owned(), [false, false, true]),
        ("hotel=%25".to_owned(), [false, false, false]),
        ("label=end+100%25".to_owned(), [false, true, false]),
        ("failed=true".to_owned(), [true, false, false]),
        (
            format!("created_from={today}&created_until={tomorrow}"),
            [true, true, true],
        ),
        (
            format!("created_from={}", tomorrow.tomorrow().unwrap()),
            [false, false, false],
        ),
        ("created_until=2020-01-01".to_owned(), [false, false, false]),
    ] {
        let page = browser.page(&format!("/scans?{query}")).await;
        let found = [&fares, &swept, &hotel].map(|id| page.contains(&format!("/scans/{id}\"")));
        assert_eq!(found, expected, "{query}");
    }
    let stranger = Browser::sign_in(&service, OTHER).await;
    let page = stranger.page("/scans?to_airport=LHR").await;
    assert!(!page.contains(&fares) && !page.contains(&swept), "{page}");
}

#[tokio::test]
async fn spaces_around_a_text_are_no_part_of_it() {
    let (service, id) = service_with_scan().await;
    let hotel = json!({"endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts"},
        "sweep": {"checkin_date": ["2030-01-01"], "nights": [3]}});
    for _ in 0..2 {
        service
            .submit_and_complete(&hotel, |_| SearchOutcome::Ok(100))
            .await;
    }
    let browser = Browser::sign_in(&service, key()).await;
    let mut path = "/scans?text=arts+&limit=1".to_owned();
    for is_last in [false, true] {
        let page = browser.page(&path).await;
        assert_eq!(page.matches("href=\"/scans/scn_").count(), 1, "{page}");
        assert!(!page.contains(&id), "{page}");
        let next = page.split_once("rel=\"next\" href=\"");
        assert_eq!(next.is_none(), is_last, "{page}");
        let Some((_, next)) = next else { break };
        path = next.split('"').next().unwrap().replace("&amp;", "&");
    }
    // Blank text is no filter of the page and none of the API.
    let page = browser.page("/scans?text=%20%20").await;
    assert_eq!(page.matches("href=\"/scans/scn_").count(), 3, "{page}");
    for list in ["/v1/scans", "/v1/monitors"] {
        let refused = service.app.get(&format!("{list}?text=%20%20")).await;
        let refused = refused.expect(400).text();
        assert!(refused.contains("not spaces alone"), "{refused}");
    }
    assert_eq!(service.page("/v1/scans?text=arts%20").await.len(), 2);
}

#[tokio::test]
async fn filters_stay_when_the_list_goes_on() {
    let (service, _) = service_with_scan().await;
    for _ in 0..2 {
        let body = departing_from("HFA", fares_with(1, &json!({"label": "Haifa"})));
        service
            .submit_and_complete(&body, |_| SearchOutcome::Ok(1))
            .await;
    }
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page("/scans?from_airport=HFA&limit=1").await;
    let next = page.split("rel=\"next\" href=\"").nth(1).unwrap();
    let next = next.split('"').next().unwrap().replace("&amp;", "&");
    assert!(
        next.contains("from_airport=HFA") && next.contains("cursor="),
        "{next}"
    );
    let page = browser.page(&next).await;
    assert_eq!(page.matches(">Haifa</a>").count(), 1, "{page}");
    assert!(
        page.contains("name=\"from_airport\" placeholder=\"TLV\" value=\"HFA\""),
        "{page}"
    );
}

fn saved(page: &str, name: &str) -> Form {
    form(page, "/scans/views").with("name", name)
}

#[tokio::test]
async fn a_view_is_saved_followed_and_deleted() {
    let (service, _) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    assert!(forms(&browser.page("/scans").await, "/scans/views").is_empty());
    let page = browser
        .page("/scans?from_airport=TLV&status=incomplete")
        .await;
    let save = saved(&page, "Open <work>");
    // A double click saves once.
    for _ in 0..2 {
        assert_eq!(
            redirect(browser.send(&save).await),
            "/scans?status=incomplete&from_airport=TLV"
        );
    }
    let page = browser.page("/scans").await;
    let link = "href=\"/scans?status=incomplete&amp;from_airport=TLV\">Open &lt;work&gt;</a>";
    assert_eq!(page.matches(link).count(), 1, "{page}");
    assert!(forms(&page, "/scans/views/delete").is_empty());

    let stranger = Browser::sign_in(&service, OTHER).await;
    assert!(!stranger.page("/scans").await.contains("Open &lt;work"));
    let token = form(&stranger.page("/usage").await, "/logout");
    let mut theft = token.with("name", "Open <work>");
    theft.action = "/scans/views/delete".to_owned();
    redirect(stranger.send(&theft).await);

    let page = browser
        .page("/scans?status=incomplete&from_airport=TLV")
        .await;
    let delete = form(&page, "/scans/views/delete");
    assert_eq!(redirect(browser.send(&delete).await), "/scans");
    assert!(!browser.page("/scans").await.contains("Open &lt;work"));
}

/// A rotation to a key deletes the tenant of that key only if it owns nothing.
#[tokio::test]
async fn a_key_with_a_view_is_in_use() {
    let (service, _) = service_with_scan().await;
    let other = Browser::sign_in(&service, OTHER).await;
    redirect(
        other
            .send(&saved(&other.page("/scans?tag=a").await, "mine"))
            .await,
    );
    let rotation = service
        .ask(
            "POST",
            "/v1/account/rotate-key",
            Some(&json!({"new_key": OTHER})),
        )
        .await;
    assert_eq!(rotation.status, 409, "{}", rotation.text());
    assert!(other.page("/scans").await.contains(">mine</a>"));
}

#[tokio::test]
async fn a_view_has_a_name_and_known_filters() {
    let (service, _) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page("/scans?tag=a").await;
    for (name, query) in [
        ("", "tag=a"),
        (&*"n".repeat(61), "tag=a"),
        ("fine", "colour=red"),
        ("fine", ""),
    ] {
        let form = saved(&page, name).with("query", query);
        assert_eq!(browser.send(&form).await.status, 400, "{name} {query}");
    }
    let count = "select count(*) from saved_views";
    assert_eq!(service.count(count).await, 0);
    for number in 0..20 {
        redirect(browser.send(&saved(&page, &number.to_string())).await);
    }
    assert_eq!(browser.send(&saved(&page, "one more")).await.status, 409);
    // A name that is there is replaced.
    redirect(
        browser
            .send(&saved(&page, "7").with("query", "tag=b"))
            .await,
    );
    assert_eq!(service.count(count).await, 20);
    // Without the form token, and from another site, nothing is saved.
    let bare = encoded(&[
        ("name".to_owned(), "7".to_owned()),
        ("query".to_owned(), "tag=c".to_owned()),
    ]);
    let response = browser.request("POST", "/scans/views", Some(bare)).await;
    assert_eq!(response.status, 403);
}

#[tokio::test]
async fn a_page_refuses_a_date_outside_the_years_0_to_9999() {
    let (service, _) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    for path in [
        "/scans?created_from=",
        "/scans?created_until=",
        "/prices/flights?from_airport=TLV&to_airport=LHR&from=",
        "/prices/flights?from_airport=TLV&to_airport=LHR&date=",
    ] {
        for date in ["-009999-01-01", "-004713-11-23", "99999-01-01"] {
            let page = browser.get(&format!("{path}{date}")).await;
            assert_eq!(page.status, 400, "{path}{date}");
            assert!(
                page.text().contains(date) && page.text().contains("years 0 to 9999"),
                "{path}{date}"
            );
        }
        for date in ["0000-01-01", "9999-12-31"] {
            let page = browser.get(&format!("{path}{date}")).await;
            assert_eq!(page.status, 200, "{path}{date}: {}", page.text());
        }
    }
}
