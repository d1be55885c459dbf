//! Buckets, their time zones and the cost of their queries.

use farescan::contract::SearchStatus;
use farescan::history::daily_pack::pack_past_days;
use farescan::history::{Observation, ObservedPrice};
use jiff::Timestamp;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Row as _};

use super::fixture::HistoryFixture;
use crate::isolation::statements;
use crate::support::app::KEY;
use crate::support::{array, text};

const FARES: &str = "/v1/history/flights/series?from_airport=TLV&to_airport=LHR";

fn at(fixture: &HistoryFixture, time: &str, day: &str, price: Option<i64>) -> Observation {
    Observation {
        observed_at: time.parse().unwrap(),
        ..fixture.fare(day, 0, price)
    }
}

/// Creates partitions for these months: they exist only around now, but these tests use fixed
/// times.
async fn with_partitions(fixture: &HistoryFixture, months: &[&str]) {
    for month in months {
        execute!(
            fixture.pool(),
            "select create_partitions($1::timestamptz, 0)",
            jiff_sqlx::Timestamp::from(
                format!("{month}-15T00:00:00Z")
                    .parse::<Timestamp>()
                    .unwrap(),
            )
        );
    }
}

async fn rows(fixture: &HistoryFixture, query: &str) -> Vec<Value> {
    let answer = fixture.app.get(&format!("{FARES}{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    array(&answer.json()["data"]).clone()
}

fn actual(rows: &[Value], fields: &[&str]) -> Vec<Value> {
    rows.iter()
        .map(|row| fields.iter().map(|field| row[*field].clone()).collect())
        .collect()
}

#[tokio::test]
async fn a_bucket_has_minimum_median_maximum_and_gaps() {
    let fixture = HistoryFixture::open().await;
    with_partitions(&fixture, &["2026-03"]).await;
    let day = "2027-01-14";
    let mut seen = vec![
        at(&fixture, "2026-03-02T00:00:00Z", day, Some(200)),
        at(&fixture, "2026-03-02T08:00:00Z", day, Some(100)),
        at(&fixture, "2026-03-02T23:59:59Z", day, Some(163)),
        at(&fixture, "2026-03-02T12:00:00Z", day, Some(164)),
        at(&fixture, "2026-03-02T13:00:00Z", day, None),
        at(&fixture, "2026-03-03T00:00:00Z", day, Some(90)),
        at(&fixture, "2026-03-05T01:00:00Z", day, None),
    ];
    seen.push(Observation {
        status: SearchStatus::Empty,
        results: Some(0),
        ..at(&fixture, "2026-03-02T14:00:00Z", day, None)
    });
    // A degraded answer's price does not count.
    let cheap = ObservedPrice {
        price: 1.into(),
        seller: None,
        band_low: None,
        band_high: None,
        verdict: None,
    };
    seen.push(Observation {
        best: Some(cheap),
        ..at(&fixture, "2026-03-02T15:00:00Z", day, None)
    });
    fixture.insert(&seen).await;
    let rows = rows(
        &fixture,
        "&since=2026-03-01T00:00:00Z&until=2026-04-01T00:00:00Z",
    )
    .await;
    assert_eq!(rows.len(), 3, "no row where nobody looked");
    let first = json!({
        "bucket": "2026-03-02", "endpoint": "flights/oneway", "from_airport": "TLV", "to_airport": "LHR",
        "product": {"sort_type": "Overall", "passengers": [1]}, "currency": "USD", "observations": 7, "prices": 4,
        "minimum": 100, "median": 163.5, "maximum": 200, "implausible": 0, "lowest_implausible": null, "price_insights_low": 180, "price_insights_high": 320,
        "empty": 1, "degraded": 2, "degraded_share": 0.2857
    });
    assert_eq!(rows[0], first);
    let fields = ["bucket", "prices", "median", "degraded_share"];
    assert_eq!(
        actual(&rows[1..], &fields),
        [
            json!(["2026-03-03", 1, 90, 0.0]),
            json!(["2026-03-05", 0, null, 1.0])
        ]
    );
}

#[tokio::test]
async fn buckets_follow_the_time_zone_and_weeks_begin_on_monday() {
    let fixture = HistoryFixture::open().await;
    with_partitions(&fixture, &["2026-03", "2026-02"]).await;
    let day = "2027-01-14";
    fixture
        .insert(&[
            at(&fixture, "2026-03-28T22:30:00Z", day, Some(1)),
            // London's clocks go forward at 01:00 on the 29th, so its 29th ends an hour early.
            at(&fixture, "2026-03-28T23:30:00Z", day, Some(2)),
            at(&fixture, "2026-03-29T00:30:00Z", day, Some(3)),
            at(&fixture, "2026-03-29T22:59:59Z", day, Some(4)),
            at(&fixture, "2026-03-29T23:00:00Z", day, Some(5)),
            at(&fixture, "2026-03-30T00:00:00Z", day, Some(6)),
        ])
        .await;
    let range = "&since=2026-03-01T00:00:00Z&until=2026-04-01T00:00:00Z";
    let fields = ["bucket", "minimum", "maximum"];
    for (query, expected) in [
        (
            "",
            json!([
                ["2026-03-28", 1, 2],
                ["2026-03-29", 3, 5],
                ["2026-03-30", 6, 6]
            ]),
        ),
        (
            "&timezone=utc",
            json!([
                ["2026-03-28", 1, 2],
                ["2026-03-29", 3, 5],
                ["2026-03-30", 6, 6]
            ]),
        ),
        (
            "&timezone=Europe/London",
            json!([
                ["2026-03-28", 1, 2],
                ["2026-03-29", 3, 4],
                ["2026-03-30", 5, 6]
            ]),
        ),
        (
            "&timezone=Asia/Kolkata",
            json!([["2026-03-29", 1, 3], ["2026-03-30", 4, 6]]),
        ),
        (
            "&bucket=week",
            json!([["2026-03-23", 1, 5], ["2026-03-30", 6, 6]]),
        ),
        (
            "&bucket=week&timezone=Europe/London",
            json!([["2026-03-23", 1, 4], ["2026-03-30", 5, 6]]),
        ),
    ] {
        let rows = rows(&fixture, &format!("{range}{query}")).await;
        assert_eq!(Value::from(actual(&rows, &fields)), expected, "{query}");
    }
    // The end of the range cuts its bucket.
    let cut = rows(
        &fixture,
        "&since=2026-03-29T00:00:00Z&until=2026-03-29T23:00:00Z",
    )
    .await;
    assert_eq!(actual(&cut, &fields), [json!(["2026-03-29", 3, 4])]);
}

#[tokio::test]
async fn products_are_separate_and_every_filter_narrows() {
    let fixture = HistoryFixture::open().await;
    let body = |more: Value| {
        let mut body =
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-05"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    fixture
        .insert(&[
            fixture.fare("2030-01-01", -60, Some(10)),
            fixture.fare("2030-01-02", -60, Some(20)),
            fixture.observation(
                "flights/oneway",
                body(json!({"currency": "EUR"})),
                -60,
                Some(30),
            ),
            fixture.observation(
                "flights/oneway",
                body(json!({"passengers": [1, 1]})),
                -60,
                Some(40),
            ),
            fixture.observation(
                "flights/roundtrip",
                body(json!({"return_date": "2030-01-08"})),
                -60,
                Some(50),
            ),
        ])
        .await;
    let lowest = |rows: Vec<Value>| {
        let mut prices: Vec<_> = rows
            .iter()
            .map(|row| row["minimum"].as_i64().unwrap())
            .collect();
        prices.sort_unstable();
        prices
    };
    for (query, expected) in [
        ("", vec![10, 30, 40, 50]),
        ("&departure_date=2030-01-02", vec![20]),
        ("&departure_from=2030-01-02", vec![20, 30, 40, 50]),
        ("&departure_to=2030-01-01", vec![10]),
        ("&currency=eur", vec![30]),
        ("&return_date=2030-01-08", vec![50]),
        ("&until=2026-01-01T00:00:00Z", vec![]),
    ] {
        assert_eq!(lowest(rows(&fixture, query).await), expected, "{query}");
    }
    let stranger = fixture
        .request("GET", FARES)
        .header("x-api-key", "another-key-0123456789");
    assert_eq!(fixture.send(stranger).await.json()["data"], json!([]));
}

#[tokio::test]
async fn hotel_markets_and_lengths_of_stay_are_separate() {
    let fixture = HistoryFixture::open().await;
    let stay = |market: &str, checkout: &str, price| {
        let body = json!({"hotel_name": "Grand Hotel", "checkin_date": "2030-01-05", "checkout_date": checkout, "proxy_country": market});
        fixture.observation("hotels/by-name", body, -60, Some(price))
    };
    fixture
        .insert(&[
            stay("de", "2030-01-06", 100),
            stay("de", "2030-01-07", 190),
            stay("us", "2030-01-06", 120),
        ])
        .await;
    let path = "/v1/history/hotels/series?hotel_name=Grand+Hotel";
    for (query, expected) in [
        ("", json!([["de", 2, 100], ["us", 1, 120]])),
        ("&proxy_country=US", json!([["us", 1, 120]])),
        ("&checkout_date=2030-01-07", json!([["de", 1, 190]])),
        ("&adults=2", json!([["de", 2, 100], ["us", 1, 120]])),
        ("&adults=3", json!([])),
        ("&checkin_date=2030-01-06", json!([])),
    ] {
        let answer = fixture.app.get(&format!("{path}{query}")).await.json();
        let mut rows = actual(
            array(&answer["data"]),
            &["proxy_country", "prices", "minimum"],
        );
        rows.sort_by_key(|row| row[0].to_string());
        assert_eq!(Value::from(rows), expected, "{query}");
    }
}

#[tokio::test]
async fn truncation_is_reported_and_exports_have_all_products() {
    let fixture = HistoryFixture::open().await;
    let trips: Vec<_> = (0..30)
        .flat_map(|party| {
            let body =
                json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-05", "max_price": 100 + party});
            [-60, -60 * 30].map(|minutes| fixture.observation("flights/oneway", body.clone(), minutes, Some(party + 1)))
        })
        .collect();
    fixture.insert(&trips).await;
    let answer = fixture.app.get(FARES).await.json();
    assert_eq!(
        (array(&answer["data"]).len(), &answer["truncated"]),
        (24, &json!(true))
    );
    let narrow = fixture
        .app
        .get(&format!("{FARES}&currency=EUR"))
        .await
        .json();
    assert_eq!(
        (&narrow["data"], &narrow["truncated"], &narrow["timezone"]),
        (&json!([]), &json!(false), &json!("UTC"))
    );

    let file = |form: &str| {
        fixture.send(
            fixture
                .request("GET", FARES)
                .header("x-api-key", KEY)
                .header("accept", form.to_owned()),
        )
    };
    let lines = file("application/x-ndjson").await;
    let lines: Vec<Value> = lines
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 60);
    assert_eq!(lines[..24], array(&answer["data"])[..], "in one order");
    let csv = file("text/csv").await;
    assert_eq!(
        csv.header("content-disposition"),
        "attachment; filename=\"flights-series.csv\""
    );
    let csv = csv.text();
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let names = reader.headers().unwrap().clone();
    let last = names.iter().rfind(|name| !name.starts_with("product."));
    assert_eq!(
        (&names[0], last),
        ("bucket", Some("degraded_share")),
        "the fields of the product come last"
    );
    let of = |row: &csv::StringRecord, name: &str| {
        row[names.iter().position(|column| column == name).unwrap()].to_owned()
    };
    let read: Vec<_> = reader
        .records()
        .map(Result::unwrap)
        .map(|row| (of(&row, "bucket"), of(&row, "median")))
        .collect();
    let actual = |row: &Value| (text(&row["bucket"]), row["median"].to_string());
    assert_eq!(read, lines.iter().map(actual).collect::<Vec<_>>());
}

#[tokio::test]
async fn invalid_queries_are_refused_with_the_reason() {
    let fixture = HistoryFixture::open().await;
    for (path, words) in [
        ("flights/series?from_airport=TLV", "`to_airport` is missing"),
        (
            "flights/series?from_airport=TLV&to_airport=LHR&bucket=month",
            "`bucket`: found \"month\"; expected one of `day`, `week`",
        ),
        (
            "flights/series?from_airport=TLV&to_airport=LHR&timezone=London",
            "`timezone`: found \"London\"; expected the name of an IANA time zone",
        ),
        (
            "flights/series?from_airport=TLV&to_airport=LHR&timezone=../etc/passwd",
            "`timezone`: found",
        ),
        (
            "flights/series?from_airport=TLV&to_airport=LHR&timezone=%2B02:00",
            "`timezone`: found",
        ),
        (
            "flights/series?from_airport=TLV&to_airport=LHR&since=2026-01-01T00:00:00Z&until=2027-06-01T00:00:00Z",
            "`until`: found \"2027-06-01T00:00:00Z\"; expected a time up to 2027-02-05T00:00:00Z",
        ),
        (
            "flights/series?from_airport=TLV&to_airport=LHR&since=2020-01-01T00:00:00Z",
            "`until` is missing; expected a time up to",
        ),
        (
            "flights/series?from_airport=TLV&to_airport=LHR&since=2999-01-01T00:00:00Z",
            "`since`: found",
        ),
        (
            "flights/series?from_airport=TLV&to_airport=LHR&departure_date=2030-01-01&departure_from=2030-01-01",
            "`departure_date`: found",
        ),
        (
            "flights/series?from_airport=TLV&to_airport=LHR&since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z",
            "`since`: found \"2026-02-01T00:00:00Z\"; expected a time before 2026-01-01T00:00:00Z, where the range ends",
        ),
        // The lists give the same messages.
        (
            "flights?from_airport=TLV&to_airport=LHR&since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z",
            "`since`: found \"2026-02-01T00:00:00Z\"; expected a time before 2026-01-01T00:00:00Z, where the range ends",
        ),
        (
            "hotels?destination=Rome&since=2026-02-01T00:00:00Z&until=2026-02-01T00:00:00Z",
            "`since`: found \"2026-02-01T00:00:00Z\"; expected a time before 2026-02-01T00:00:00Z, where the range ends",
        ),
        (
            "hotels/series?bucket=day",
            "`hotel_name` is missing; expected exactly one of",
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

/// A statement of the program with its parameters replaced by these values, in order.
fn filled(words: &str, values: &[&str]) -> String {
    let all = statements::queries();
    let statement = all
        .iter()
        .find(|one| one.is(words))
        .unwrap_or_else(|| panic!("no statement begins with {words}"));
    let mut sql = statement.words();
    for (at, value) in values.iter().enumerate().rev() {
        sql = sql.replace(&format!("${}", at + 1), &format!("({value})"));
    }
    sql
}

async fn plan(fixture: &HistoryFixture, sql: &str) -> String {
    let rows = sqlx::raw_sql(AssertSqlSafe(format!("explain (costs off) {sql}")))
        .fetch_all(fixture.pool())
        .await
        .unwrap();
    rows.iter()
        .map(|row| row.get::<String, _>(0))
        .collect::<Vec<_>>()
        .join("\n")
}

/// No plan may scan a whole table that grows with the history.
#[tokio::test]
async fn every_query_on_a_large_history_uses_an_index() {
    let fixture = HistoryFixture::open().await;
    fixture
        .insert(&[fixture.fare("2030-01-01", 0, Some(200))])
        .await;
    super::seed::routes(fixture.pool(), fixture.tenant, 20, 50, 200).await;
    pack_past_days(fixture.pool(), Timestamp::now())
        .await
        .unwrap();
    execute!(fixture.pool(), "analyze observed_days");
    let (tenant, any) = (format!("'{}'::uuid", fixture.tenant.uuid()), "null");
    let endpoints = "array['flights/oneway', 'flights/roundtrip']";
    let (since, until) = ("now() - interval '200 days'", "now()");
    let product = [&tenant, endpoints, "'LHR'", "'RAH'", any, any, any, any];
    let list = |first: &str, cursor: [&str; 3]| {
        let tail = [
            first, first, any, any, any, cursor[0], cursor[1], cursor[2], "51",
        ];
        filled(
            "select s.endpoint, s.origin, s.place, s.product as \"product: Json<RawProduct>\", s.currency, s.market, o.first_date",
            &[&product[..], &tail].concat(),
        )
    };
    let cursor = ["now() - interval '20 days'", "gen_random_uuid()", "1"];
    let series = "(select series from series where origin = 'RAH')";
    let of_product = |words: &str, more: &[&str]| {
        filled(words, &[&[&*tenant, series, since, until], more].concat())
    };
    let products = filled(
        "select s.series, s.endpoint, s.origin, s.place, s.product as \"product: Json<RawProduct>\", s.currency, s.market, s.unpacked_since",
        &[&product[..], &[any, any, "13"]].concat(),
    );
    let calendar = {
        let tail = [
            "current_date",
            "current_date + 60",
            any,
            any,
            any,
            any,
            any,
            "5001",
        ];
        filled(
            "select s.series, s.endpoint, s.origin, s.place, s.product as \"product: Json<RawProduct>\", s.currency, s.market, l.first_date",
            &[&product[..], &tail].concat(),
        )
    };
    let day = "current_date + 10";
    for (what, sql) in [
        ("the first page", list(any, [any; 3])),
        ("a later page", list(any, cursor)),
        ("a page of one date", list(day, [any; 3])),
        ("the products", products),
        (
            "days that are packed",
            of_product("select samples from observed_days", &[]),
        ),
        (
            "days that are not",
            of_product(
                "select observed_at as \"observed_at!\", first_date as \"first_date!\", last_date, search_status",
                &["20000"],
            ),
        ),
        ("the calendar", calendar),
    ] {
        let plan = plan(&fixture, &sql).await;
        // Scans of empty months and of the few products are allowed.
        let passes: Vec<_> = plan
            .lines()
            .filter(|line| line.contains("Seq Scan on") && !line.contains("Seq Scan on series"))
            .filter(|line| super::seed::is_of_a_full_month(line))
            .collect();
        assert!(passes.is_empty(), "{what}: {passes:?}\n{plan}");
        let parted = !["the products", "the calendar"].contains(&what);
        assert!(
            what == "the products" || plan.contains("Index"),
            "{what}:\n{plan}"
        );
        assert!(
            !parted || plan.contains("observations_y") || plan.contains("observed_days_y"),
            "{what}:\n{plan}"
        );
        if what.ends_with("page") {
            assert!(
                !plan.contains("Bitmap Heap Scan on observations"),
                "{what}: in the order of the index:\n{plan}"
            );
        }
    }
}
