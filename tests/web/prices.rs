//! `/prices`: the stored prices of a route or hotel, without a search.

use serde_json::json;

use super::{Browser, service_with_scan};
use crate::history::fixture::HistoryFixture;
use crate::monitors::{monitor, with};
use crate::support::TestService;
use crate::support::app::KEY;

const DAY: i64 = 24 * 60;

/// Three dates of a route: two prices and a gap; one of them a day older too.
async fn history() -> (HistoryFixture, [String; 3]) {
    let fixture = HistoryFixture::open().await;
    let today = fixture.now.to_zoned(jiff::tz::TimeZone::UTC).date();
    let day = |days: i64| {
        today
            .saturating_add(jiff::Span::new().days(days))
            .to_string()
    };
    let days = [day(20), day(21), day(22)];
    fixture
        .insert(&[
            // More than a day before the others, so of another UTC day at any time of day.
            fixture.fare(&days[0], -DAY - 130, Some(260)),
            fixture.fare(&days[0], -125, Some(240)),
            fixture.fare(&days[1], -125, Some(170)),
            fixture.fare(&days[2], -125, None),
        ])
        .await;
    (fixture, days)
}

#[tokio::test]
async fn a_route_shows_its_prices_with_their_age() {
    let (fixture, days) = history().await;
    let browser = Browser::sign_in(&fixture, KEY).await;
    let calls = fixture.upstream.count();
    let choice = browser.page("/prices").await;
    let path = "/prices/flights?from_airport=TLV&to_airport=LHR";
    assert!(choice.contains(&path.replace('&', "&amp;")), "{choice}");
    let page = browser.page(path).await;
    for expected in [
        "TLV → LHR",
        "<b>170<small>2 h</small></b>",
        r#"class="q1 best""#,
        r#"class="degraded""#,
        "usual 180 to 320 USD",
        // The verdict beside the price.
        "too few past prices",
        "only 1 price seen 15 to 30 days before departure since",
        "one way, 1 adult, USD",
        // The series: the lowest fare of each day of search.
        "Lowest fare: 2 points with a price; lowest 170 USD",
        "Show as a table",
        "&amp;endpoint=flights%2Foneway&amp;from_airport=TLV&amp;to_airport=LHR&amp;currency=USD",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    let one = browser.page(&format!("{path}&date={}", days[0])).await;
    assert!(
        one.contains("Lowest fare: 2 points with a price; lowest 240 USD"),
        "the series of the chosen date\n{one}"
    );
    let searched = (fixture.now - jiff::SignedDuration::from_mins(125))
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    let departure: jiff::civil::Date = days[0].parse().unwrap();
    let lead = format!("{} days before", (departure - searched).get_days());
    assert!(one.contains(&lead), "by days before departure: {lead}");
    assert_eq!(fixture.upstream.count(), calls, "a page sends no search");
}

#[tokio::test]
async fn the_chart_leaves_out_an_implausible_price_and_shows_it_struck_out() {
    let (fixture, days) = history().await;
    // The date that nobody found: three days at 150, then one wrong price, two dates at the last.
    let past = (2..5).map(|ago| fixture.fare(&days[2], -DAY * ago - 130, Some(150)));
    let wrong = fixture.fare(&days[2], -DAY - 130, Some(60));
    fixture
        .insert(&past.chain([wrong]).collect::<Vec<_>>())
        .await;
    let browser = Browser::sign_in(&fixture, KEY).await;
    let path = "/prices/flights?from_airport=TLV&to_airport=LHR";
    let page = browser.page(&format!("{path}&date={}", days[2])).await;
    for expected in [
        "Lowest fare: 3 points with a price; lowest 150 USD",
        "<s>60 USD</s> is implausible: far off its own history. Found on ",
        " Left out: 1 implausible price.",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    let page = browser.page(&format!("{path}&date={}", days[1])).await;
    assert!(!page.contains("USD</s>"), "of another date\n{page}");
    assert!(page.contains("<s>60</s>"), "in the calendar\n{page}");
}

#[tokio::test]
async fn products_of_a_route_are_never_mixed() {
    let (fixture, days) = history().await;
    let other = fixture.observation(
        "flights/oneway",
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": days[0], "currency": "EUR"}),
        -60,
        Some(1111),
    );
    fixture.insert(&[other]).await;
    let browser = Browser::sign_in(&fixture, KEY).await;
    let path = "/prices/flights?from_airport=TLV&to_airport=LHR";
    let page = browser.page(path).await;
    assert!(page.contains("one way, 1 adult, EUR"), "its link");
    assert!(
        page.contains(">170<") && !page.contains(">1,111<"),
        "the product with the most prices"
    );
    let link = page
        .split("href=\"")
        .filter_map(|rest| rest.split('"').next())
        .find(|link| link.contains("product="))
        .unwrap()
        .replace("&amp;", "&");
    let links: Vec<_> = page.matches("product=").collect();
    assert!(links.len() >= 2);
    let one = browser.page(&link).await;
    assert!(
        one.contains(">1,111<") != one.contains(">170<"),
        "one product alone"
    );
}

#[tokio::test]
async fn stays_of_other_lengths_have_their_own_page() {
    let fixture = HistoryFixture::open().await;
    let today = fixture.now.to_zoned(jiff::tz::TimeZone::UTC).date();
    let day = |days: i64| {
        today
            .saturating_add(jiff::Span::new().days(days))
            .to_string()
    };
    let stay = |nights: i64, price: i64| {
        fixture.observation(
            "hotels/by-name",
            json!({"hotel_name": "Grand Hotel", "checkin_date": day(20), "checkout_date": day(20 + nights), "proxy_country": "de"}),
            -30,
            Some(price),
        )
    };
    fixture.insert(&[stay(3, 333), stay(7, 777)]).await;
    let browser = Browser::sign_in(&fixture, KEY).await;
    let path = "/prices/hotels?hotel_name=grand+hotel";
    for (nights, own, other) in [(3, ">333<", ">777<"), (7, ">777<", ">333<")] {
        let page = browser.page(&format!("{path}&nights={nights}")).await;
        assert!(
            page.contains(own) && !page.contains(other),
            "{nights}\n{page}"
        );
        assert!(
            page.contains("market DE") && page.contains("3 nights") && page.contains("7 nights")
        );
    }
}

#[tokio::test]
async fn a_session_downloads_the_history_as_files() {
    let (fixture, days) = history().await;
    let browser = Browser::sign_in(&fixture, KEY).await;
    let page = browser
        .page("/prices/flights?from_airport=TLV&to_airport=LHR")
        .await;
    for file in ["latest", "series", "observations"] {
        let start = page
            .find(&format!("/prices/flights/files/{file}?"))
            .unwrap();
        let link = page[start..]
            .split('"')
            .next()
            .unwrap()
            .replace("&amp;", "&");
        assert!(link.ends_with("format=csv"), "{link}");
        let response = browser.get(&link).await.expect(200);
        assert!(response.header("content-type").starts_with("text/csv"));
        assert!(
            response.text().lines().count() >= 2,
            "{file}: {}",
            response.text()
        );
    }
    let all = browser
        .get("/prices/flights/files/observations?from_airport=TLV&to_airport=LHR&format=ndjson")
        .await
        .expect(200)
        .text();
    assert_eq!(all.lines().count(), 4);
    assert!(all.contains(&days[2]));
    browser
        .get("/prices/flights/files/other?from_airport=TLV&to_airport=LHR")
        .await
        .expect(404);
}

#[tokio::test]
async fn another_caller_sees_no_prices() {
    let (fixture, _) = history().await;
    let other = Browser::sign_in(&fixture, "another-key-0123456789").await;
    let page = other.page("/prices").await;
    assert!(
        page.contains("No prices yet") && !page.contains("TLV → LHR"),
        "{page}"
    );
    let page = other
        .page("/prices/flights?from_airport=TLV&to_airport=LHR")
        .await;
    assert!(page.contains("No searched date"), "{page}");
}

#[tokio::test]
async fn a_wrong_route_is_named_with_what_is_expected() {
    let service = TestService::start().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let response = browser
        .get("/prices/flights?from_airport=T1&to_airport=LHR")
        .await
        .expect(400);
    let page = response.text();
    assert!(
        page.contains("from_airport") && page.contains("T1"),
        "{page}"
    );
    let path = "/prices/flights?from_airport=TLV&to_airport=LHR&from=soon";
    let page = browser.get(path).await.expect(400).text();
    assert!(page.contains("expected a date in the years"), "{page}");
}

#[tokio::test]
async fn a_chart_that_differs_from_the_card_says_why() {
    let (fixture, days) = history().await;
    // Found after the chart's day began, dearer than what was found before on that day.
    fixture
        .insert(&[fixture.fare(&days[1], -120, Some(190))])
        .await;
    let browser = Browser::sign_in(&fixture, KEY).await;
    let path = format!(
        "/prices/flights?from_airport=TLV&to_airport=LHR&date={}",
        days[1]
    );
    let page = browser.page(&path).await;
    let why = "The price above, 190 USD, is of the last search; a point is the lowest of all searches of its day.";
    assert!(page.contains(why), "{page}");
    let page = browser
        .page(&format!(
            "/prices/flights?from_airport=TLV&to_airport=LHR&date={}",
            days[0]
        ))
        .await;
    assert!(!page.contains("is of the last search"), "{page}");
}

#[tokio::test]
async fn a_trip_shows_its_monitors_and_scans() {
    let (service, fares) = service_with_scan().await;
    let watched = service.create_monitor(&monitor()).await;
    let hotel = with(&json!({"name": "a hotel", "scan": {
        "endpoint": "hotels/by-name", "request": {},
        "sweep": {"hotel_name": ["Hotel Arts", "Hotel \"O'Hara\""], "checkin_date": ["+7d"], "nights": [3]}
    }}));
    let hotel = service.create_monitor(&hotel).await;
    let browser = Browser::sign_in(&service, KEY).await;
    for (path, expected) in [
        (
            "/prices/flights?from_airport=TLV&to_airport=LHR",
            [true, true, false],
        ),
        (
            "/prices/flights?from_airport=LHR&to_airport=TLV",
            [false; 3],
        ),
        ("/prices/hotels?hotel_name=hotel+arts", [false, false, true]),
        (
            "/prices/hotels?hotel_name=Hotel+%22O'Hara%22",
            [false, false, true],
        ),
        // A part of a name is another hotel.
        ("/prices/hotels?hotel_name=hotel", [false; 3]),
    ] {
        let page = browser.page(path).await;
        let found = [
            format!("href=\"/scans/{fares}\""),
            format!("href=\"/monitors/{watched}\""),
            format!("href=\"/monitors/{hotel}\""),
        ];
        assert_eq!(found.map(|link| page.contains(&link)), expected, "{page}");
    }
    let page = browser
        .page("/prices/flights?from_airport=TLV&to_airport=LHR")
        .await;
    assert!(
        page.contains("href=\"/scans?from_airport=TLV&amp;to_airport=LHR\""),
        "{page}"
    );
}
