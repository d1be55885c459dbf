//! The history as files.

use serde_json::{Value, json};

use crate::history::fixture::HistoryFixture;
use crate::support::app::{HttpResponse, KEY};

const FARES: &str = "/v1/history/flights?from_airport=TLV&to_airport=LHR";
const RATES: &str = "/v1/history/hotels?hotel_name=Grand+Hotel";
const LATEST_FARES: &str = "/v1/history/flights/latest?from_airport=TLV&to_airport=LHR&departure_from=2030-01-01&departure_to=2030-12-31";
const LATEST_RATES: &str = "/v1/history/hotels/latest?hotel_name=Grand+Hotel&checkin_from=2030-01-01&checkin_to=2030-12-31";

async fn as_form(fixture: &HistoryFixture, key: &str, form: &str, path: &str) -> HttpResponse {
    fixture
        .send(
            fixture
                .request("GET", path)
                .header("x-api-key", key)
                .header("accept", form),
        )
        .await
}

/// More than two pages of each list, many of them observed at the same time.
async fn full_archive() -> HistoryFixture {
    let fixture = HistoryFixture::open().await;
    let day =
        |number: i64| jiff::civil::date(2030, 1, 1).saturating_add(jiff::Span::new().days(number));
    let fares = (0..1_100).map(|number| {
        let currency = ["USD", "EUR", "GBP", "ILS"][usize::try_from(number % 4).unwrap()];
        let mut body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": day(number / 4).to_string(), "currency": currency});
        let endpoint = if number % 5 == 0 { "flights/roundtrip" } else { "flights/oneway" };
        if number % 5 == 0 {
            body["return_date"] = json!(day(number / 4 + 3).to_string());
        }
        fixture.observation(endpoint, body, number / 100, (number % 11 != 0).then_some(number + 1))
    });
    let rates = (0..1_100).map(|number| {
        let market = ["us", "de", "jp"][usize::try_from(number % 3).unwrap()];
        let (checkin, checkout) = (day(number / 6).to_string(), day(number / 6 + 1 + number % 2).to_string());
        let body =
            json!({"hotel_name": "Grand Hotel", "checkin_date": checkin, "checkout_date": checkout, "proxy_country": market});
        fixture.observation("hotels/by-name", body, number / 100, Some(number + 1))
    });
    let seen: Vec<_> = fares.chain(rates).collect();
    fixture.insert(&seen).await;
    fixture
}

/// Every row of a list, by pages if it has pages.
async fn paged(fixture: &HistoryFixture, path: &str) -> Vec<Value> {
    let (mut next, mut rows) = (format!("{path}&limit=400"), Vec::new());
    if path.contains("latest") {
        path.clone_into(&mut next);
    }
    loop {
        let page = fixture.app.get(&next).await.json();
        rows.extend(
            page["data"]
                .as_array()
                .unwrap_or_else(|| panic!("{page}"))
                .iter()
                .cloned(),
        );
        let Some(cursor) = page["next_cursor"].as_str() else {
            return rows;
        };
        next = format!("{path}&limit=400&cursor={cursor}");
    }
}

/// A row without its age, which changes during the test.
fn without_age(mut row: Value) -> Value {
    row.as_object_mut().unwrap().shift_remove("age_seconds");
    row
}

#[tokio::test]
async fn a_file_has_the_rows_of_all_pages_in_order() {
    let fixture = full_archive().await;
    for (path, count) in [
        (FARES.to_owned(), 1_100),
        (format!("{FARES}&currency=usd&departure_to=2030-02-28"), 59),
        (RATES.to_owned(), 1_100),
        (format!("{RATES}&proxy_country=de"), 367),
        (LATEST_FARES.to_owned(), 1_000),
        (format!("{LATEST_FARES}&currency=EUR"), 250),
        (LATEST_RATES.to_owned(), 1_100),
        (format!("{LATEST_RATES}&checkout_date=2030-01-02"), 3),
    ] {
        let rows: Vec<_> = paged(&fixture, &path)
            .await
            .into_iter()
            .map(without_age)
            .collect();
        assert_eq!(rows.len(), count, "{path}");
        let lines = as_form(&fixture, KEY, "application/x-ndjson", &path)
            .await
            .text();
        let lines: Vec<_> = lines
            .lines()
            .map(|line| without_age(serde_json::from_str(line).unwrap()).to_string())
            .collect();
        assert_eq!(
            lines,
            rows.iter().map(Value::to_string).collect::<Vec<_>>(),
            "{path}"
        );

        let csv = as_form(&fixture, KEY, "text/csv", &path).await.text();
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let names = reader.headers().unwrap().clone();
        let of = |row: &csv::StringRecord, name: &str| {
            row[names.iter().position(|column| column == name).unwrap()].to_owned()
        };
        let found: Vec<_> = reader
            .records()
            .map(Result::unwrap)
            .map(|row| (of(&row, "item_id"), of(&row, "price")))
            .collect();
        let text = |value: &Value| {
            value.as_str().map_or_else(
                || {
                    if value.is_null() {
                        String::new()
                    } else {
                        value.to_string()
                    }
                },
                str::to_owned,
            )
        };
        assert_eq!(
            found,
            rows.iter()
                .map(|row| (text(&row["item_id"]), text(&row["price"])))
                .collect::<Vec<_>>(),
            "{path}"
        );
    }
}

#[tokio::test]
async fn files_have_names_and_columns() {
    let fixture = HistoryFixture::open().await;
    let fare = "product.max_stops,product.airline_codes,product.exclude_airline_codes,product.departure_time_min,product.departure_time_max,\
                product.departure_arrival_time_min,product.departure_arrival_time_max,product.sort_type,product.max_price,\
                product.seat_type,product.passengers,product.max_departure_stops,product.max_return_stops,\
                product.departure_airline_codes,product.return_airline_codes,product.departure_exclude_airline_codes,\
                product.return_exclude_airline_codes,product.departure_departure_time_min,product.departure_departure_time_max,\
                product.return_departure_time_min,product.return_departure_time_max,product.return_arrival_time_min,\
                product.return_arrival_time_max";
    let rate = "product.adults,product.children,product.budget_per_night,product.filters,product.area,product.free_cancellation";
    for (path, file, columns) in [
        (
            FARES,
            "flights.csv",
            format!(
                "endpoint,from_airport,to_airport,departure_date,return_date,price,currency,carrier,results,price_insights_low,\
                 price_insights_high,verdict,search_status,reason,observed_at,item_id,{fare}"
            ),
        ),
        (
            RATES,
            "hotels.csv",
            format!(
                "endpoint,place,checkin_date,checkout_date,proxy_country,price,currency,hotel,room,results,search_status,reason,\
                 observed_at,item_id,{rate}"
            ),
        ),
        (
            LATEST_FARES,
            "flights-latest.csv",
            format!(
                "endpoint,from_airport,to_airport,departure_date,return_date,price,currency,carrier,price_insights_low,\
                 price_insights_high,verdict,observed_at,age_seconds,item_id,{fare}"
            ),
        ),
        (
            LATEST_RATES,
            "hotels-latest.csv",
            format!(
                "endpoint,place,checkin_date,checkout_date,proxy_country,price,currency,hotel,room,observed_at,age_seconds,item_id,{rate}"
            ),
        ),
    ] {
        // A caller without any scan gets a file without rows.
        for key in [KEY, "another-key-0123456789"] {
            let answer = as_form(&fixture, key, "text/csv", path).await;
            assert_eq!(answer.text(), format!("{columns}\r\n"), "{path}");
            assert_eq!(
                answer.header("content-disposition"),
                format!("attachment; filename=\"{file}\"")
            );
            assert_eq!(
                (answer.header("vary"), answer.header("cache-control")),
                ("accept", "no-store")
            );
        }
        assert_eq!(
            as_form(&fixture, KEY, "application/x-ndjson", path)
                .await
                .text(),
            ""
        );
        assert_eq!(
            as_form(&fixture, KEY, "text/html", path).await.kind(),
            "406 invalid_request",
            "{path}"
        );
        let paged = as_form(&fixture, KEY, "text/csv", &format!("{path}&limit=5")).await;
        assert_eq!(paged.kind(), "400 invalid_request", "{path}");
        assert!(
            paged.message().starts_with("`limit`")
                || paged.message().starts_with("unknown field `limit`"),
            "{}",
            paged.message()
        );
    }
}

#[tokio::test]
async fn another_tenant_gets_an_empty_file() {
    let fixture = full_archive().await;
    for path in [FARES, RATES, LATEST_FARES, LATEST_RATES] {
        let theirs = as_form(
            &fixture,
            "another-key-0123456789",
            "application/x-ndjson",
            path,
        )
        .await;
        assert_eq!((theirs.status, theirs.text().as_str()), (200, ""), "{path}");
    }
}
