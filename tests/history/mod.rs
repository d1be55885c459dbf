//! Observations, stored and queried.

mod days;
pub mod fixture;
mod grid;
mod implausible;
mod plausibility;
mod property;
mod retention;
pub mod seed;
mod series;
mod verdict;

use farescan::history::Observation;
use farescan::ids::ItemId;
use jiff::SignedDuration;
use serde_json::{Value, json};

use self::fixture::HistoryFixture;

use crate::support::array;

fn pair(day: &str, price: &str) -> (String, String) {
    (day.to_owned(), price.to_owned())
}

#[tokio::test]
async fn a_batch_stored_twice_is_stored_once() {
    let fixture = HistoryFixture::open().await;
    let batch = [
        fixture.fare("2030-01-01", 0, Some(200)),
        fixture.fare("2030-01-02", 0, None),
    ];
    fixture.insert(&batch).await;
    fixture.insert(&batch).await;
    fixture.insert(&[]).await;
    let rows: (i64, i64) = row!(
        fixture.pool(),
        "select (select count(*) from observations), (select count(*) from series)"
    );
    assert_eq!(rows, (2, 1));
}

#[tokio::test]
async fn the_latest_price_is_the_newest_answer_with_one() {
    let fixture = HistoryFixture::open().await;
    fixture
        .insert(&[
            fixture.fare("2030-01-01", 5, Some(200)),
            fixture.fare("2030-01-01", 3, Some(100)),
        ])
        .await;
    assert_eq!(
        fixture.latest().await,
        [pair("2030-01-01", "200")],
        "the newest of a batch"
    );
    fixture
        .insert(&[
            fixture.fare("2030-01-01", 4, Some(90)),
            fixture.fare("2030-01-02", 0, Some(70)),
        ])
        .await;
    assert_eq!(
        fixture.latest().await,
        [pair("2030-01-01", "200"), pair("2030-01-02", "70")],
        "an older one changes nothing"
    );
    fixture.insert(&[fixture.fare("2030-01-01", 9, None)]).await;
    assert_eq!(
        fixture.latest().await[0],
        pair("2030-01-01", "200"),
        "no answer is no price"
    );
    fixture
        .insert(&[fixture.fare("2030-01-01", 10, Some(210))])
        .await;
    assert_eq!(fixture.latest().await[0], pair("2030-01-01", "210"));
}

#[tokio::test]
async fn concurrent_batches_do_not_deadlock() {
    let fixture = HistoryFixture::open().await;
    let forth: Vec<_> = (1..=28)
        .map(|day| fixture.fare(&format!("2030-01-{day:02}"), day, Some(day)))
        .collect();
    let back: Vec<_> = forth
        .iter()
        .rev()
        .map(|observation| Observation {
            item: ItemId::new(),
            ..observation.clone()
        })
        .collect();
    for _ in 0..5 {
        tokio::join!(
            fixture.insert(&forth),
            fixture.insert(&back),
            fixture.insert(&forth)
        );
    }
    assert_eq!(fixture.latest().await.len(), 28);
}

#[tokio::test]
async fn flights_are_listed_newest_first_with_gaps() {
    let fixture = HistoryFixture::open().await;
    fixture
        .insert(&[
            fixture.fare("2030-01-01", 0, Some(200)),
            fixture.fare("2030-01-01", 1, None),
            fixture.fare("2030-01-09", 2, Some(70)),
        ])
        .await;
    let path = "/v1/history/flights?from_airport=tlv&to_airport=LHR";
    let page = fixture.app.get(path).await.json();
    let newest = &page["data"][0];
    let expected = json!({
        "endpoint": "flights/oneway", "from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-09", "return_date": null,
        "product": {"sort_type": "Overall", "passengers": [1]}, "price": 70, "currency": "USD", "carrier": "Example Air", "results": 12,
        "price_insights_low": 180, "price_insights_high": 320, "verdict": "low", "search_status": "ok", "reason": null,
        "observed_at": (fixture.now + SignedDuration::from_mins(2)).to_string(), "item_id": newest["item_id"]
    });
    assert_eq!(newest, &expected);
    assert_eq!(page["next_cursor"], json!(null));
    let gap = &page["data"][1];
    assert_eq!(
        (&gap["price"], &gap["search_status"], &gap["reason"]),
        (&json!(null), &json!("degraded"), &json!("blocked_page"))
    );
}

#[tokio::test]
async fn every_filter_of_flights_narrows() {
    let fixture = HistoryFixture::open().await;
    let trip = |body: Value, minutes| {
        let mut request =
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-05"});
        request
            .as_object_mut()
            .unwrap()
            .extend(body.as_object().unwrap().clone());
        let endpoint = if body.get("return_date").is_some() {
            "flights/roundtrip"
        } else {
            "flights/oneway"
        };
        fixture.observation(endpoint, request, minutes, Some(minutes))
    };
    fixture
        .insert(&[
            fixture.fare("2030-01-01", 1, Some(1)),
            fixture.fare("2030-01-02", 2, Some(2)),
            trip(json!({"currency": "EUR"}), 3),
            trip(json!({"return_date": "2030-01-08"}), 4),
            trip(json!({"to_airport": "CDG"}), 5),
        ])
        .await;
    let at = |minutes| (fixture.now + SignedDuration::from_mins(minutes)).to_string();
    for (filter, prices) in [
        (String::new(), vec![4, 3, 2, 1]),
        ("&departure_date=2030-01-02".to_owned(), vec![2]),
        ("&departure_from=2030-01-02".to_owned(), vec![4, 3, 2]),
        ("&departure_to=2030-01-02".to_owned(), vec![2, 1]),
        (
            "&departure_from=2030-01-02&departure_to=2030-01-04".to_owned(),
            vec![2],
        ),
        ("&return_date=2030-01-08".to_owned(), vec![4]),
        ("&currency=eur".to_owned(), vec![3]),
        (format!("&since={}", at(3)), vec![4, 3]),
        (format!("&until={}", at(3)), vec![2, 1]),
    ] {
        let path = format!("/v1/history/flights?from_airport=TLV&to_airport=LHR{filter}");
        assert_eq!(
            fixture.column(&path, "price").await,
            prices.into_iter().map(Value::from).collect::<Vec<_>>(),
            "{filter}"
        );
    }
}

#[tokio::test]
async fn every_filter_of_hotels_narrows() {
    let fixture = HistoryFixture::open().await;
    let stay = |body: Value, price| {
        let mut request = json!({"hotel_name": "Grand Hotel", "checkin_date": "2030-01-05", "checkout_date": "2030-01-06"});
        request
            .as_object_mut()
            .unwrap()
            .extend(body.as_object().unwrap().clone());
        fixture.observation("hotels/by-name", request, price, Some(price))
    };
    let dates = json!({"checkin_date": "2030-01-05", "checkout_date": "2030-01-06"});
    let other = |field: &str, value: &str| {
        let mut request = dates.clone();
        request[field] = value.into();
        request
    };
    fixture
        .insert(&[
            stay(json!({}), 1),
            stay(json!({"proxy_country": "DE"}), 2),
            stay(json!({"proxy_country": "us", "adults": 1}), 3),
            stay(json!({"children": 2, "currency": "EUR"}), 4),
            stay(
                json!({"checkin_date": "2030-01-07", "checkout_date": "2030-01-09"}),
                5,
            ),
            fixture.observation("hotels/search", other("destination", "Lisbon"), 6, Some(6)),
            fixture.observation(
                "hotels/rooms",
                other("hotel_booking_id", "pt/grand"),
                7,
                Some(7),
            ),
        ])
        .await;
    for (query, prices) in [
        ("destination=Lisbon", vec![6]),
        ("hotel_booking_id=pt/grand", vec![7]),
        ("hotel_name=Grand+Hotel", vec![5, 4, 3, 2, 1]),
        ("hotel_name=+grand+HOTEL+", vec![5, 4, 3, 2, 1]),
        ("hotel_name=Grand+Hotel&proxy_country=de", vec![2]),
        ("hotel_name=Grand+Hotel&adults=1", vec![3]),
        ("hotel_name=Grand+Hotel&children=2", vec![4]),
        ("hotel_name=Grand+Hotel&currency=EUR", vec![4]),
        ("hotel_name=Grand+Hotel&checkin_date=2030-01-07", vec![5]),
        ("hotel_name=Grand+Hotel&checkin_from=2030-01-06", vec![5]),
        (
            "hotel_name=Grand+Hotel&checkin_to=2030-01-05",
            vec![4, 3, 2, 1],
        ),
        ("hotel_name=Grand+Hotel&checkout_date=2030-01-09", vec![5]),
    ] {
        let path = format!("/v1/history/hotels?{query}");
        assert_eq!(
            fixture.column(&path, "price").await,
            prices.into_iter().map(Value::from).collect::<Vec<_>>(),
            "{query}"
        );
    }
}

#[tokio::test]
async fn pages_have_no_gaps_and_show_only_the_callers_history() {
    let fixture = HistoryFixture::open().await;
    // Two observations at the same time: the cursor distinguishes them.
    let batch: Vec<_> = (0..7)
        .map(|number| fixture.fare("2030-01-01", number / 2, Some(number + 1)))
        .collect();
    fixture.insert(&batch).await;
    let path = "/v1/history/flights?from_airport=TLV&to_airport=LHR&limit=2";
    let (mut next, mut prices) = (path.to_owned(), Vec::new());
    loop {
        let answer = fixture.app.get(&next).await;
        let page = answer.json();
        prices.extend(
            array(&page["data"])
                .iter()
                .map(|row| row["price"].as_i64().unwrap()),
        );
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        assert!(answer.header("link").ends_with("; rel=\"next\""));
        next = format!("{path}&cursor={cursor}");
    }
    prices.sort_unstable();
    assert_eq!(prices, [1, 2, 3, 4, 5, 6, 7]);

    let stranger = fixture
        .request("GET", path)
        .header("x-api-key", "another-key-0123456789");
    assert_eq!(
        fixture.send(stranger).await.json(),
        json!({"data": [], "next_cursor": null})
    );
    for (query, field) in [
        ("flights?from_airport=TLV", "`to_airport` is missing"),
        (
            "flights?from_airport=TLV&to_airport=LHR&departure_date=2030-01-01&departure_from=2030-01-01",
            "`departure_date`: found",
        ),
        (
            "flights?from_airport=TLV&to_airport=LHR&cursor=6974",
            "`cursor`: found",
        ),
        ("hotels", "`hotel_name` is missing"),
        ("hotels?hotel_name=a&destination=b", "`destination`: found"),
    ] {
        let answer = fixture.app.get(&format!("/v1/history/{query}")).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{query}");
        assert!(
            answer.message().starts_with(field),
            "{query}: {}",
            answer.message()
        );
    }
}

#[tokio::test]
async fn the_latest_fares_are_a_calendar_with_their_age() {
    let fixture = HistoryFixture::open().await;
    let trip = |day: &str, back: &str, price| {
        let body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": day, "return_date": back});
        fixture.observation("flights/roundtrip", body, -90, Some(price))
    };
    let euro = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-02", "currency": "EUR"});
    fixture
        .insert(&[
            fixture.fare("2030-01-01", -60, Some(200)),
            fixture.fare("2030-01-01", -120, Some(100)),
            fixture.fare("2030-01-02", -60, Some(70)),
            fixture.fare("2030-01-02", -30, None),
            fixture.fare("2030-02-01", -60, Some(1)),
            fixture.observation("flights/oneway", euro, -60, Some(60)),
            trip("2030-01-02", "2030-01-08", 400),
            trip("2030-01-02", "2030-01-09", 350),
        ])
        .await;
    let path = "/v1/history/flights/latest?from_airport=TLV&to_airport=lhr&departure_from=2030-01-01&departure_to=2030-01-31";
    let calendar = fixture.app.get(path).await.json();
    let actual = |row: &Value| {
        ["departure_date", "return_date", "currency", "price"].map(|field| row[field].clone())
    };
    let rows: Vec<_> = array(&calendar["data"])
        .iter()
        .map(|row| json!(actual(row)))
        .collect();
    let day = |number| format!("2030-01-0{number}");
    assert!(
        rows.contains(&json!([day(1), null, "USD", 200])),
        "the newest, not the lowest: {rows:?}"
    );
    assert!(
        rows.contains(&json!([day(2), null, "USD", 70])),
        "a gap takes no price away: {rows:?}"
    );
    assert!(
        rows.contains(&json!([day(2), null, "EUR", 60])),
        "currencies never mix: {rows:?}"
    );
    assert!(
        rows.contains(&json!([day(2), day(9), "USD", 350])),
        "the cheapest return: {rows:?}"
    );
    assert_eq!((rows.len(), &calendar["truncated"]), (4, &json!(false)));
    let age = calendar["data"][0]["age_seconds"].as_i64().unwrap();
    assert!((3600..3660).contains(&age), "{age}");
    for (filter, count) in [
        ("&currency=eur", 1),
        ("&return_date=2030-01-08", 1),
        ("&return_date=2030-01-07", 0),
    ] {
        assert_eq!(
            fixture
                .column(&format!("{path}{filter}"), "price")
                .await
                .len(),
            count,
            "{filter}"
        );
    }
}

#[tokio::test]
async fn latest_rates_are_separate_per_length_of_stay_and_market() {
    let fixture = HistoryFixture::open().await;
    let stay = |checkout: &str, market: &str, price| {
        let body = json!({"hotel_name": "Grand Hotel", "checkin_date": "2030-01-05", "checkout_date": checkout, "proxy_country": market});
        fixture.observation("hotels/by-name", body, -10, Some(price))
    };
    fixture
        .insert(&[
            stay("2030-01-06", "de", 100),
            stay("2030-01-07", "de", 190),
            stay("2030-01-06", "us", 120),
        ])
        .await;
    let path = "/v1/history/hotels/latest?hotel_name=Grand+Hotel&checkin_from=2030-01-01&checkin_to=2030-01-31";
    assert_eq!(fixture.column(path, "price").await.len(), 3);
    for (filter, prices) in [
        ("&proxy_country=DE", vec![100, 190]),
        ("&checkout_date=2030-01-06&proxy_country=us", vec![120]),
        ("&adults=5", Vec::<i64>::new()),
    ] {
        let expected: Vec<_> = prices.into_iter().map(Value::from).collect();
        assert_eq!(
            fixture.column(&format!("{path}{filter}"), "price").await,
            expected,
            "{filter}"
        );
    }
    let stranger = fixture
        .request("GET", path)
        .header("x-api-key", "another-key-0123456789");
    assert_eq!(
        fixture.send(stranger).await.json(),
        json!({"data": [], "truncated": false})
    );
    for (query, words) in [
        (
            "flights/latest?from_airport=TLV&to_airport=LHR",
            "`departure_from` is missing",
        ),
        (
            "flights/latest?from_airport=TLV&to_airport=LHR&departure_from=2030-01-01&departure_to=2031-03-01",
            "`departure_to`: found \"2031-03-01\"; expected a date up to 2031-02-04",
        ),
        (
            "hotels/latest?checkin_from=2030-01-01&checkin_to=2030-01-02",
            "`hotel_name` is missing; expected exactly one of",
        ),
    ] {
        let answer = fixture.app.get(&format!("/v1/history/{query}")).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{query}");
        assert!(
            answer.message().starts_with(words),
            "{query}: {}",
            answer.message()
        );
    }
}
