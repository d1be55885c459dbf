//! The last known prices as grids.

use farescan::contract::SearchStatus;
use farescan::history::Observation;
use serde_json::{Value, json};

use super::fixture::HistoryFixture;
use crate::support::array;

/// Each cell as row, column, price, age in minutes and last status.
fn cells(grid: &Value) -> Vec<Value> {
    let cells = array(&grid["cells"]).iter();
    let age = |cell: &Value| cell["age_seconds"].as_i64().map(|seconds| seconds / 60);
    cells
        .map(|cell| {
            json!([
                cell["row"],
                cell["column"],
                cell["price"],
                age(cell),
                cell["search_status"]
            ])
        })
        .collect()
}

fn stay(
    fixture: &HistoryFixture,
    market: &str,
    checkin: &str,
    checkout: &str,
    minutes: i64,
    price: Option<i64>,
) -> Observation {
    let mut body =
        json!({"hotel_name": "Grand Hotel", "checkin_date": checkin, "checkout_date": checkout});
    if !market.is_empty() {
        body["proxy_country"] = market.into();
    }
    fixture.observation("hotels/by-name", body, minutes, price)
}

fn sold_out(observation: Observation) -> Observation {
    Observation {
        status: SearchStatus::Empty,
        reason: Some("sold_out".to_owned()),
        results: Some(0),
        ..observation
    }
}

const HOTEL: &str =
    "/v1/history/hotels/grid?hotel_name=Grand+Hotel&checkin_from=2030-01-01&checkin_to=2030-01-03";

#[tokio::test]
async fn a_market_grid_distinguishes_prices_gaps_and_unsearched() {
    let fixture = HistoryFixture::open().await;
    fixture
        .insert(&[
            stay(&fixture, "de", "2030-01-01", "2030-01-03", -600, Some(300)),
            // A later degraded search: the cell shows the older price and the newer status.
            stay(&fixture, "de", "2030-01-01", "2030-01-03", -60, None),
            sold_out(stay(&fixture, "de", "2030-01-02", "2030-01-04", -60, None)),
            stay(&fixture, "us", "2030-01-01", "2030-01-03", -120, Some(310)),
            stay(&fixture, "", "2030-01-03", "2030-01-05", -30, Some(290)),
            // Another length of stay has another price.
            stay(&fixture, "us", "2030-01-01", "2030-01-02", -120, Some(90)),
        ])
        .await;
    let grids = fixture
        .app
        .get(&format!(
            "{HOTEL}&rows=checkin_date&columns=proxy_country&nights=2"
        ))
        .await
        .json();
    assert_eq!(
        (array(&grids["data"]).len(), &grids["truncated"]),
        (1, &json!(false))
    );
    let grid = &grids["data"][0];
    assert_eq!(
        grid["rows"],
        json!({"field": "checkin_date", "values": ["2030-01-01", "2030-01-02", "2030-01-03"]})
    );
    assert_eq!(
        grid["columns"],
        json!({"field": "proxy_country", "values": [null, "de", "us"]})
    );
    assert_eq!(
        (
            &grid["place"],
            &grid["currency"],
            &grid["product"]["adults"]
        ),
        (&json!("Grand Hotel"), &json!("USD"), &json!(2))
    );
    assert_eq!(
        Value::from(cells(grid)),
        json!([
            ["2030-01-01", null, null, null, null],
            ["2030-01-01", "de", 300, 600, "degraded"],
            ["2030-01-01", "us", 310, 120, "ok"],
            ["2030-01-02", null, null, null, null],
            ["2030-01-02", "de", null, null, "empty"],
            ["2030-01-02", "us", null, null, null],
            ["2030-01-03", null, 290, 30, "ok"],
            ["2030-01-03", "de", null, null, null],
            ["2030-01-03", "us", null, null, null],
        ])
    );
    let again = &grid["cells"][1];
    assert_eq!(
        (&again["reason"], again["item_id"].is_string()),
        (&json!("blocked_page"), true)
    );
    assert!(again["looked_at"].as_str().unwrap() > again["observed_at"].as_str().unwrap());
    assert_eq!(grid["cells"][4]["reason"], json!("sold_out"));

    // Unless the market is an axis, each market has its own grid.
    let grids = fixture
        .app
        .get(&format!("{HOTEL}&rows=checkin_date&nights=2"))
        .await
        .json();
    let mut markets: Vec<_> = array(&grids["data"])
        .iter()
        .map(|grid| grid["proxy_country"].clone())
        .collect();
    markets.sort_by_key(Value::to_string);
    assert_eq!(markets, [json!("de"), json!("us"), json!(null)]);
    assert_eq!(grids["data"][0]["columns"], json!(null));
}

#[tokio::test]
async fn a_nights_grid_has_only_round_trips_one_grid_per_currency() {
    let fixture = HistoryFixture::open().await;
    let trip = |day: &str, back: &str, currency: &str, price| {
        let body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": day, "return_date": back, "currency": currency});
        fixture.observation("flights/roundtrip", body, -60, Some(price))
    };
    fixture
        .insert(&[
            trip("2030-01-01", "2030-01-08", "USD", 400),
            trip("2030-01-02", "2030-01-09", "USD", 380),
            trip("2030-01-02", "2030-01-05", "USD", 350),
            trip("2030-01-02", "2030-01-05", "EUR", 320),
            fixture.fare("2030-01-01", -60, Some(200)),
        ])
        .await;
    let path = "/v1/history/flights/grid?from_airport=TLV&to_airport=LHR&departure_from=2030-01-01&departure_to=2030-01-02";
    let grids = fixture
        .app
        .get(&format!(
            "{path}&rows=departure_date&columns=nights&currency=usd"
        ))
        .await
        .json();
    assert_eq!(
        Value::from(cells(&grids["data"][0])),
        json!([
            ["2030-01-01", 3, null, null, null],
            ["2030-01-01", 7, 400, 60, "ok"],
            ["2030-01-02", 3, 350, 60, "ok"],
            ["2030-01-02", 7, 380, 60, "ok"],
        ])
    );
    let grids = fixture
        .app
        .get(&format!("{path}&rows=nights&nights="))
        .await
        .json();
    let currencies: Vec<_> = array(&grids["data"])
        .iter()
        .map(|grid| grid["currency"].clone())
        .collect();
    assert_eq!(currencies.len(), 2, "{currencies:?}");
    // One column: the cheapest of the return dates, and that date.
    let grids = fixture
        .app
        .get(&format!("{path}&rows=departure_date&currency=usd"))
        .await
        .json();
    let trips = array(&grids["data"])
        .iter()
        .find(|grid| grid["endpoint"] == "flights/roundtrip")
        .unwrap();
    assert_eq!(
        (&trips["cells"][1]["price"], &trips["cells"][1]["last_date"]),
        (&json!(350), &json!("2030-01-05"))
    );
    let oneway = array(&grids["data"])
        .iter()
        .find(|grid| grid["endpoint"] == "flights/oneway")
        .unwrap();
    assert_eq!(
        (
            &oneway["cells"][0]["price"],
            &oneway["cells"][0]["last_date"]
        ),
        (&json!(200), &json!(null))
    );

    let stranger = fixture
        .request("GET", &format!("{path}&rows=nights"))
        .header("x-api-key", "another-key-0123456789");
    assert_eq!(
        fixture.send(stranger).await.json(),
        json!({"data": [], "truncated": false})
    );
}

#[tokio::test]
async fn a_grid_that_is_too_large_is_left_out_and_reported() {
    let fixture = HistoryFixture::open().await;
    let day =
        |number: i64| jiff::civil::date(2030, 1, 1).saturating_add(jiff::Span::new().days(number));
    let stays: Vec<_> = (1..=40)
        .map(|nights| {
            stay(
                &fixture,
                "de",
                "2030-01-01",
                &day(nights).to_string(),
                -60,
                Some(100 * nights),
            )
        })
        .collect();
    fixture.insert(&stays).await;
    let path = "/v1/history/hotels/grid?hotel_name=Grand+Hotel&rows=checkin_date&columns=nights&checkin_from=2030-01-01";
    let grids = fixture
        .app
        .get(&format!("{path}&checkin_to=2030-09-07"))
        .await
        .json();
    assert_eq!(
        (array(&grids["data"][0]["cells"]).len(), &grids["truncated"]),
        (10_000, &json!(false))
    );
    let grids = fixture
        .app
        .get(&format!("{path}&checkin_to=2030-09-08"))
        .await
        .json();
    assert_eq!(grids, json!({"data": [], "truncated": true}));
}

#[tokio::test]
async fn deleting_an_observation_updates_the_grid() {
    let fixture = HistoryFixture::open().await;
    let (price, gap) = (
        fixture.fare("2030-01-01", -60, Some(200)),
        fixture.fare("2030-01-01", -30, None),
    );
    fixture.insert(&[price.clone(), gap.clone()]).await;
    let path = "/v1/history/flights/grid?from_airport=TLV&to_airport=LHR&departure_from=2030-01-01&departure_to=2030-01-01&rows=departure_date";
    let first = async || fixture.app.get(path).await.json()["data"][0]["cells"][0].clone();
    assert_eq!(first().await["search_status"], "degraded");
    let delete = async |observation: &Observation| {
        let body =
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-01"});
        let observation = farescan::history::ObservedItem::of(
            observation.item,
            "flights/oneway",
            body.as_object().unwrap(),
        )
        .unwrap();
        let mut tx = farescan::db::begin(fixture.pool()).await.unwrap();
        farescan::history::delete(&mut tx, fixture.tenant, &[observation])
            .await
            .unwrap();
        tx.commit().await.unwrap();
    };
    delete(&gap).await;
    assert_eq!(
        (&first().await["search_status"], &first().await["price"]),
        (&json!("ok"), &json!(200))
    );
    delete(&price).await;
    assert_eq!(fixture.app.get(path).await.json()["data"], json!([]));
}

#[tokio::test]
async fn invalid_grid_queries_are_refused_with_the_reason() {
    let fixture = HistoryFixture::open().await;
    let flights = "flights/grid?from_airport=TLV&to_airport=LHR&departure_from=2030-01-01&departure_to=2030-01-02";
    let hotels = "hotels/grid?hotel_name=x&checkin_from=2030-01-01&checkin_to=2030-01-02";
    for (path, words) in [
        (flights.to_owned(), "`rows` is missing"),
        (
            format!("{flights}&rows=proxy_country"),
            "`rows`: found \"proxy_country\"; expected one of `departure_date`, `nights`",
        ),
        (
            format!("{flights}&rows=nights&columns=nights"),
            "`columns`: found \"nights\"; expected a field other than `rows`",
        ),
        (
            format!("{flights}&rows=nights&nights=3"),
            "`nights`: found 3; expected no value if `nights` is `rows` or `columns`",
        ),
        (
            format!("{hotels}&rows=checkin_date"),
            "`nights` is missing; expected an integer from 1 to 366, or `nights` as",
        ),
        (
            format!("{hotels}&rows=nights&destination=y"),
            "`destination`: found \"y\"; expected exactly one of",
        ),
        (
            format!("{hotels}&rows=nights&nights=0"),
            "`nights`: found 0; expected an integer from 1 to 366",
        ),
        (
            "hotels/grid?hotel_name=x&checkin_from=2030-01-01&checkin_to=2031-12-31&rows=nights"
                .to_owned(),
            "`checkin_to`: found",
        ),
    ] {
        let answer = fixture.app.get(&format!("/v1/history/{path}")).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{path}");
        assert!(
            answer.message().starts_with(words),
            "{path}: {}",
            answer.message()
        );
    }
}
