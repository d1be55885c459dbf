//! Grids, market comparisons and history from the results of a worker.

use std::time::Instant;

use farescan::contract::Endpoint;
use farescan::contract::history::{HotelHistoryQuery, HotelObservation};
use farescan::contract::scans::{Grid, GridQuery, ItemState, ParityVerdict};
use farescan::contract::{SearchStatus, Verdict};
use farescan::history::{PriceQuery, list};
use farescan::ids::ScanId;
use farescan::scans::grid::grid;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::fixture::WorkerFixture;
use crate::support::reply::Reply;
use crate::support::upstream::fare;

async fn read_grid(fixture: &WorkerFixture, scan: ScanId, pairs: &[(&str, &str)]) -> Grid {
    grid(
        fixture.pool(),
        fixture.tenant().await,
        scan,
        &GridQuery::from_query(pairs.iter().copied()).unwrap(),
    )
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grid_cell_shows_the_best_offer_of_its_samples() {
    let fixture = WorkerFixture::new().await;
    let mut calls = 0_u64;
    fixture
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(move |call| {
            calls += 1;
            let mut cheap = fare(200 + calls, &call.body);
            cheap["buy_link"] = json!(format!("https://flights.example/?n={calls}&curr=USD"));
            Reply::json(json!([fare(400, &call.body), cheap]))
        });
    let worker = fixture.start_worker();
    let mut body = super::fixture::fares(2);
    body["sweep"]["samples"] = json!(3);
    let scan = fixture.submit_body(&body).await;
    fixture.wait_until_ended(scan).await;
    worker.stop().await;
    let grid = read_grid(&fixture, scan, &[("rows", "departure_date")]).await;
    assert_eq!(
        (grid.rows.values.len(), grid.cells.len(), grid.columns),
        (2, 2, None)
    );
    let items = fixture.items(scan).await;
    for cell in &grid.cells {
        let of_cell = items
            .iter()
            .filter(|item| item.search["departure_date"] == cell.row);
        let best = of_cell.min_by_key(|item| item.best_price).unwrap();
        assert_eq!(
            (cell.item_id, cell.price, cell.search_status),
            (best.id, best.best_price, Some(SearchStatus::Ok))
        );
        let number = cell.price.unwrap() - Decimal::from(200);
        assert_eq!(
            cell.buy_link.as_deref(),
            Some(format!("https://flights.example/?n={number}&curr=USD").as_str())
        );
        assert_eq!(
            (cell.price_insights_low, cell.price_insights_high),
            (Some(180.into()), Some(320.into()))
        );
        assert_eq!(
            (cell.verdict, cell.currency.as_deref(), cell.link.as_deref()),
            (Some(Verdict::Low), Some("USD"), None)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grid_omits_an_offer_that_a_retry_did_not_find() {
    let fixture = WorkerFixture::new().await;
    fixture.upstream.reply(
        Reply::json(json!([fare(99, &json!({}))]))
            .header("x-search-status", "partial")
            .header("x-search-reason", "search_truncated"),
    );
    let worker = fixture.start_worker();
    let scan = fixture.submit(1, &json!({})).await;
    fixture.wait_until_ended(scan).await;
    let cell = read_grid(&fixture, scan, &[("rows", "departure_date")])
        .await
        .cells
        .remove(0);
    assert_eq!(
        (cell.price, cell.search_status, cell.buy_link.is_some()),
        (Some(99.into()), Some(SearchStatus::Partial), true)
    );
    fixture
        .upstream
        .reply(Reply::search_incomplete("blocked_page"));
    fixture
        .retry(scan, &json!({"search_status": ["partial"]}))
        .await;
    fixture.wait_until_ended(scan).await;
    worker.stop().await;
    let cell = read_grid(&fixture, scan, &[("rows", "departure_date")])
        .await
        .cells
        .remove(0);
    assert_eq!(
        (cell.price, cell.search_status, cell.reason.as_deref()),
        (None, Some(SearchStatus::Degraded), Some("blocked_page"))
    );
    assert_eq!(
        (cell.buy_link, cell.verdict, cell.price_insights_low),
        (None, None, None)
    );
}

/// A scan of one stay from four markets, three samples each.
fn markets() -> Value {
    let mut body = super::fixture::fares(1);
    let checkin = body["sweep"]["departure_date"]["from"]
        .as_str()
        .unwrap()
        .parse::<jiff::civil::Date>()
        .unwrap();
    body["endpoint"] = json!("hotels/by-name");
    body["request"] = json!({"hotel_name": "Grand Hotel", "checkin_date": checkin, "checkout_date": checkin.tomorrow().unwrap(), "currency": "USD"});
    body["sweep"] = json!({"proxy_country": ["us", "de", "fr", "jp"], "samples": 3});
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn each_market_is_compared_with_the_baseline() {
    use ParityVerdict::{Gap, Noise, NotComparable};
    let fixture = WorkerFixture::new().await;
    let mut calls = 0_u64;
    fixture.upstream.on(Endpoint::HotelsByName).answer(move |call| {
        calls += 1;
        let market = call.body["proxy_country"].as_str().unwrap();
        let (price, room) = match market {
            "us" => (400 + calls % 3, "Double"),
            "de" => (360 + calls % 3, "double "),
            "fr" => (401, "Double"),
            _ => (100, "Single"),
        };
        Reply::json(json!({"name": "Grand Hotel", "available": true, "price": price, "room_type": room, "link": "https://hotels.example/one"}))
    });
    let worker = fixture.start_worker();
    let scan = fixture.submit_body(&markets()).await;
    fixture.wait_until_ended(scan).await;
    worker.stop().await;
    let grid = read_grid(
        &fixture,
        scan,
        &[("rows", "proxy_country"), ("baseline", "US")],
    )
    .await;
    assert_eq!(grid.rows.values, ["us", "de", "fr", "jp"].map(Value::from));
    let parities: Vec<_> = grid
        .cells
        .iter()
        .map(|cell| {
            cell.parity
                .as_ref()
                .map(|parity| (parity.verdict, parity.samples))
        })
        .collect();
    assert_eq!(parities[0], None, "the baseline itself");
    let report = grid.markets.unwrap();
    let counts = report
        .markets
        .iter()
        .map(|of| (of.market.as_str(), of.cheaper, of.unknown));
    let counts: Vec<_> = counts.collect();
    assert_eq!(
        (report.baseline.as_str(), counts[0], counts[2]),
        ("us", ("de", 1, 0), ("jp", 0, 1))
    );
    assert_eq!(
        (parities[1], parities[3]),
        (Some((Gap, 3)), Some((NotComparable, 3)))
    );
    let base = grid.cells[0].price.unwrap();
    let german = grid.cells[1].parity.as_ref().unwrap();
    assert_eq!(german.difference, Some(grid.cells[1].price.unwrap() - base));
    assert!(german.difference_percent.unwrap() < Decimal::from(-9));
    assert_eq!(grid.cells[3].parity.as_ref().unwrap().difference, None);
    assert!(
        matches!(parities[2], Some((Noise | Gap, 3))),
        "which depends on the order of the samples"
    );
    assert_eq!(
        (grid.cells[1].link.as_deref(), grid.cells[1].room.as_deref()),
        (Some("https://hotels.example/one"), Some("double"))
    );
    // The history also names the room, since the request named the hotel.
    let rates = read_rates(
        &fixture,
        &[("hotel_name", "Grand Hotel"), ("proxy_country", "jp")],
    )
    .await;
    assert_eq!(
        (rates.len(), &rates[0].room, &rates[0].hotel),
        (3, &Some("Single".to_owned()), &None)
    );
}

/// The caller's hotel observations.
async fn read_rates(fixture: &WorkerFixture, question: &[(&str, &str)]) -> Vec<HotelObservation> {
    let query = PriceQuery::read::<HotelHistoryQuery>(question.iter().copied()).unwrap();
    let mut conn = fixture.pool().acquire().await.unwrap();
    let (found, _) = list::page(&mut conn, fixture.tenant().await, &query)
        .await
        .unwrap();
    found.into_iter().map(HotelObservation::from).collect()
}

/// A search of a destination does not name a hotel, so the history does.
#[tokio::test(flavor = "multi_thread")]
async fn hotel_history_of_a_destination_names_the_hotel() {
    let fixture = WorkerFixture::new().await;
    let cheap = json!({"name": "Hotel One", "price": 90, "room_type": "Single", "link": "https://hotels.example/one"});
    let dear = json!({"name": "Hotel Two", "price": 120, "room_type": "Double", "link": "https://hotels.example/two"});
    fixture
        .upstream
        .on(Endpoint::HotelsSearch)
        .reply(Reply::json(json!({"properties": [dear, cheap]})));
    let mut body = markets();
    body["endpoint"] = json!("hotels/search");
    body["request"]
        .as_object_mut()
        .unwrap()
        .shift_remove("hotel_name");
    body["request"]["destination"] = json!("Barcelona");
    body["sweep"] = json!({});
    let worker = fixture.start_worker();
    let scan = fixture.submit_body(&body).await;
    fixture.wait_until_ended(scan).await;
    worker.stop().await;
    let rates = read_rates(&fixture, &[("destination", "Barcelona")]).await;
    assert_eq!(
        (rates.len(), &rates[0].hotel, &rates[0].room),
        (1, &Some("Hotel One".to_owned()), &None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grid_of_ten_thousand_items_is_one_response() {
    let fixture = WorkerFixture::new().await;
    let mut body = super::fixture::fares(100);
    body["endpoint"] = json!("flights/roundtrip");
    body["sweep"]["nights"] = json!((1..=50).collect::<Vec<_>>());
    body["sweep"]["samples"] = json!(2);
    let scan = fixture.submit_body(&body).await;
    for sql in [
        "update scan_items set state = 'done', search_status = 'ok', best_price = position, currency = 'USD'",
        "insert into item_offers (tenant_id, item_id, seller, link, band_low, band_high, verdict)
         select tenant_id, item_id, 'Example Air', 'https://flights.example/?' || repeat('x', 250), 180, 320, 'low' from scan_items",
        "analyze",
    ] {
        execute!(fixture.pool(), sql);
    }
    let begin = Instant::now();
    let grid = read_grid(
        &fixture,
        scan,
        &[("rows", "departure_date"), ("columns", "nights")],
    )
    .await;
    let took = begin.elapsed();
    println!("10,000 items to {} cells in {took:?}", grid.cells.len());
    assert_eq!(
        (grid.rows.values.len(), grid.columns.unwrap().values),
        (100, (1..=50).map(Value::from).collect())
    );
    assert!(
        grid.cells
            .iter()
            .enumerate()
            .all(|(at, cell)| cell.price == Some(at.into()) && cell.state == ItemState::Done)
    );
}
