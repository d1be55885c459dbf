//! The last known prices as grids.

use farescan::contract::SearchStatus;
use farescan::history::Observation;
use serde_json::{Value, json};

use super::archive::Archive;

/// Each cell of a grid: row, column, price, age in minutes, last look.
fn cells(grid: &Value) -> Vec<Value> {
    let cells = grid["cells"].as_array().unwrap().iter();
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
    archive: &Archive,
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
    archive.seen("hotels/by-name", body, minutes, price)
}

fn sold_out(seen: Observation) -> Observation {
    Observation {
        status: SearchStatus::Empty,
        reason: Some("sold_out".to_owned()),
        results: Some(0),
        ..seen
    }
}

const HOTEL: &str =
    "/v1/history/hotels/grid?hotel_name=Grand+Hotel&checkin_from=2030-01-01&checkin_to=2030-01-03";

#[tokio::test]
async fn a_market_grid_tells_prices_gaps_and_what_was_never_looked_at_apart() {
    let archive = Archive::open().await;
    archive
        .keep(&[
            stay(&archive, "de", "2030-01-01", "2030-01-03", -600, Some(300)),
            // Looked at again, in vain: the price is the older one, and the cell says so.
            stay(&archive, "de", "2030-01-01", "2030-01-03", -60, None),
            sold_out(stay(&archive, "de", "2030-01-02", "2030-01-04", -60, None)),
            stay(&archive, "us", "2030-01-01", "2030-01-03", -120, Some(310)),
            stay(&archive, "", "2030-01-03", "2030-01-05", -30, Some(290)),
            // Another length is another price.
            stay(&archive, "us", "2030-01-01", "2030-01-02", -120, Some(90)),
        ])
        .await;
    let grids = archive
        .app
        .get(&format!(
            "{HOTEL}&rows=checkin_date&columns=proxy_country&nights=2"
        ))
        .await
        .json();
    assert_eq!(
        (grids["data"].as_array().unwrap().len(), &grids["truncated"]),
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

    // Where markets are no side, each has a grid.
    let grids = archive
        .app
        .get(&format!("{HOTEL}&rows=checkin_date&nights=2"))
        .await
        .json();
    let mut markets: Vec<_> = grids["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|grid| grid["proxy_country"].clone())
        .collect();
    markets.sort_by_key(Value::to_string);
    assert_eq!(markets, [json!("de"), json!("us"), json!(null)]);
    assert_eq!(grids["data"][0]["columns"], json!(null));
}

#[tokio::test]
async fn a_grid_of_lengths_has_round_trips_alone_and_currencies_stand_apart() {
    let archive = Archive::open().await;
    let trip = |day: &str, back: &str, currency: &str, price| {
        let body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": day, "return_date": back, "currency": currency});
        archive.seen("flights/roundtrip", body, -60, Some(price))
    };
    archive
        .keep(&[
            trip("2030-01-01", "2030-01-08", "USD", 400),
            trip("2030-01-02", "2030-01-09", "USD", 380),
            trip("2030-01-02", "2030-01-05", "USD", 350),
            trip("2030-01-02", "2030-01-05", "EUR", 320),
            archive.fare("2030-01-01", -60, Some(200)),
        ])
        .await;
    let path = "/v1/history/flights/grid?from_airport=TLV&to_airport=LHR&departure_from=2030-01-01&departure_to=2030-01-02";
    let grids = archive
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
    let grids = archive
        .app
        .get(&format!("{path}&rows=nights&nights="))
        .await
        .json();
    let currencies: Vec<_> = grids["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|grid| grid["currency"].clone())
        .collect();
    assert_eq!(currencies.len(), 2, "{currencies:?}");
    // One column: of the returns from one day's journey the cheapest, and which it is.
    let grids = archive
        .app
        .get(&format!("{path}&rows=departure_date&currency=usd"))
        .await
        .json();
    let trips = grids["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|grid| grid["endpoint"] == "flights/roundtrip")
        .unwrap();
    assert_eq!(
        (&trips["cells"][1]["price"], &trips["cells"][1]["last_date"]),
        (&json!(350), &json!("2030-01-05"))
    );
    let oneway = grids["data"]
        .as_array()
        .unwrap()
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

    let stranger = archive
        .app
        .request("GET", &format!("{path}&rows=nights"))
        .header("x-api-key", "another-key-0123456789");
    assert_eq!(
        archive.app.send(stranger).await.json(),
        json!({"data": [], "truncated": false})
    );
}

#[tokio::test]
async fn a_grid_too_large_is_left_out_whole_and_said() {
    let archive = Archive::open().await;
    let day =
        |number: i64| jiff::civil::date(2030, 1, 1).saturating_add(jiff::Span::new().days(number));
    let stays: Vec<_> = (1..=40)
        .map(|nights| {
            stay(
                &archive,
                "de",
                "2030-01-01",
                &day(nights).to_string(),
                -60,
                Some(100 * nights),
            )
        })
        .collect();
    archive.keep(&stays).await;
    let path = "/v1/history/hotels/grid?hotel_name=Grand+Hotel&rows=checkin_date&columns=nights&checkin_from=2030-01-01";
    let grids = archive
        .app
        .get(&format!("{path}&checkin_to=2030-09-07"))
        .await
        .json();
    assert_eq!(
        (
            grids["data"][0]["cells"].as_array().unwrap().len(),
            &grids["truncated"]
        ),
        (10_000, &json!(false))
    );
    let grids = archive
        .app
        .get(&format!("{path}&checkin_to=2030-09-08"))
        .await
        .json();
    assert_eq!(grids, json!({"data": [], "truncated": true}));
}

#[tokio::test]
async fn what_is_taken_out_is_no_longer_a_look() {
    let archive = Archive::open().await;
    let (price, gap) = (
        archive.fare("2030-01-01", -60, Some(200)),
        archive.fare("2030-01-01", -30, None),
    );
    archive.keep(&[price.clone(), gap.clone()]).await;
    let path = "/v1/history/flights/grid?from_airport=TLV&to_airport=LHR&departure_from=2030-01-01&departure_to=2030-01-01&rows=departure_date";
    let first = async || archive.app.get(path).await.json()["data"][0]["cells"][0].clone();
    assert_eq!(first().await["search_status"], "degraded");
    let forget = async |seen: &Observation| {
        let body =
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-01"});
        let seen =
            farescan::history::SeenBy::of(seen.item, "flights/oneway", body.as_object().unwrap())
                .unwrap();
        let mut tx = farescan::db::begin(archive.db.pool()).await.unwrap();
        farescan::history::forget(&mut tx, archive.tenant, &[seen])
            .await
            .unwrap();
        tx.commit().await.unwrap();
    };
    forget(&gap).await;
    assert_eq!(
        (&first().await["search_status"], &first().await["price"]),
        (&json!("ok"), &json!(200))
    );
    forget(&price).await;
    assert_eq!(archive.app.get(path).await.json()["data"], json!([]));
}

#[tokio::test]
async fn what_cannot_be_a_grid_is_said() {
    let archive = Archive::open().await;
    let flights = "flights/grid?from_airport=TLV&to_airport=LHR&departure_from=2030-01-01&departure_to=2030-01-02";
    let hotels = "hotels/grid?hotel_name=x&checkin_from=2030-01-01&checkin_to=2030-01-02";
    for (path, words) in [
        (flights.to_owned(), "`rows` is missing"),
        (
            format!("{flights}&rows=proxy_country"),
            "`rows` holds \"proxy_country\"; allowed: one of `departure_date`, `nights`",
        ),
        (
            format!("{flights}&rows=nights&columns=nights"),
            "`columns` holds \"nights\"; allowed: another field than `rows`",
        ),
        (
            format!("{flights}&rows=nights&nights=3"),
            "`nights` holds 3; allowed: nothing where `nights` is a side of the grid",
        ),
        (
            format!("{hotels}&rows=checkin_date"),
            "`nights` is missing; allowed: an integer from 1 to 366, or `nights` as",
        ),
        (
            format!("{hotels}&rows=nights&destination=y"),
            "`destination` holds \"y\"; allowed: exactly one of",
        ),
        (
            format!("{hotels}&rows=nights&nights=0"),
            "`nights` holds 0; allowed: an integer from 1 to 366",
        ),
        (
            "hotels/grid?hotel_name=x&checkin_from=2030-01-01&checkin_to=2031-12-31&rows=nights"
                .to_owned(),
            "`checkin_to` holds",
        ),
    ] {
        let answer = archive.app.get(&format!("/v1/history/{path}")).await;
        assert_eq!(answer.kind(), "400 invalid_request", "{path}");
        assert!(
            answer.message().starts_with(words),
            "{path}: {}",
            answer.message()
        );
    }
}
