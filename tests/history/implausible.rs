//! An implausible price is not the lowest, median or highest price of a bucket (history.md, rules 19
//! and 46): it is counted beside them.

use farescan::contract::SearchStatus;
use farescan::history::Observation;
use farescan::history::daily_pack::pack_past_days;
use jiff::ToSpan as _;
use jiff::civil::Date;
use serde_json::{Value, json};

use super::fixture::HistoryFixture;
use super::verdict::{ROUTE, fare, oneway, today, with_past};
use crate::cli::bare_command;
use crate::operation::process::run;
use crate::support::app::KEY;
use crate::support::array;

/// Departures of the tests.
const DATES: i64 = 4;

/// The observations of some departures, and when they were made.
struct Seen {
    fixture: HistoryFixture,
}

impl Seen {
    /// Each departure was found at 150 on each of the days from five to two days ago.
    async fn at_150() -> Self {
        let fixture = HistoryFixture::open().await;
        with_past(&fixture, 30).await;
        let seen = Self { fixture };
        let past: Vec<_> = (0..DATES)
            .flat_map(|date| (2..=5).map(move |ago| (date, ago)))
            .map(|(date, ago)| seen.price(date, [ago, 12], 150))
            .collect();
        seen.fixture.insert(&past).await;
        seen
    }

    fn departure(&self, date: i64) -> Date {
        today(&self.fixture).saturating_add((40 + date).days())
    }

    fn price(&self, date: i64, when: [i64; 2], price: i64) -> Observation {
        let body = oneway(self.departure(date));
        fare(&self.fixture, &body, when, price, SearchStatus::Ok)
    }

    /// The prices of yesterday: date, hour and price.
    async fn yesterday(&self, prices: &[(i64, i64, i64)]) {
        let prices = prices.iter();
        let prices: Vec<_> = prices
            .map(|(date, hour, price)| self.price(*date, [1, *hour], *price))
            .collect();
        self.fixture.insert(&prices).await;
    }

    /// A time of yesterday.
    fn at(&self, hour: i64) -> String {
        self.price(0, [1, hour], 1).observed_at.to_string()
    }

    fn path(&self, more: &str) -> String {
        format!(
            "/v1/history/flights/series?{ROUTE}&since={}{more}",
            self.at(0)
        )
    }

    async fn buckets(&self, more: &str) -> Vec<Value> {
        let answer = self.fixture.app.get(&self.path(more)).await.expect(200);
        array(&answer.json()["data"]).clone()
    }

    /// The only bucket since yesterday.
    async fn bucket(&self, more: &str) -> Value {
        let buckets = self.buckets(more).await;
        assert_eq!(buckets.len(), 1, "{more}: {buckets:?}");
        statistics(&buckets[0])
    }
}

fn statistics(bucket: &Value) -> Value {
    let fields = [
        "observations",
        "prices",
        "minimum",
        "median",
        "maximum",
        "implausible",
        "lowest_implausible",
    ];
    fields.map(|field| bucket[field].clone()).to_vec().into()
}

#[tokio::test]
async fn one_wrong_price_is_not_the_lowest_of_its_bucket() {
    let seen = Seen::at_150().await;
    seen.yesterday(&[(0, 8, 150), (0, 12, 60), (1, 12, 160)])
        .await;
    let expected = json!([3, 2, 150, 155, 160, 1, 60]);
    for packed in [false, true] {
        if packed {
            pack_past_days(seen.fixture.pool(), seen.fixture.now)
                .await
                .unwrap();
        }
        for query in ["", "&history_verdict=true"] {
            assert_eq!(seen.bucket(query).await, expected, "{query} {packed}");
        }
        let week = seen.bucket("&bucket=week&timezone=Asia/Tokyo").await;
        assert_eq!(week, expected, "{packed}");
    }
    let all = format!("&since={}", seen.price(0, [5, 0], 1).observed_at);
    let path = format!("/v1/history/flights/series?{ROUTE}{all}");
    let days = seen.fixture.app.get(&path).await.expect(200).json();
    let implausible = array(&days["data"]).iter().map(|day| &day["implausible"]);
    assert_eq!(implausible.collect::<Vec<_>>(), [0, 0, 0, 0, 1]);
    // What the marketplace answered is listed.
    let listed = seen
        .fixture
        .column(&format!("/v1/history/flights?{ROUTE}"), "price")
        .await;
    assert!(listed.contains(&json!(60)), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_the_terminal_leave_it_out_too() {
    let seen = Seen::at_150().await;
    seen.yesterday(&[(0, 8, 150), (0, 12, 60)]).await;
    let file = |format: &str| seen.path(&format!("&format={format}"));
    let lines = seen.fixture.app.get(&file("ndjson")).await.expect(200);
    let line: Value = serde_json::from_str(lines.text().trim()).unwrap();
    assert_eq!(statistics(&line), json!([2, 1, 150, 150, 150, 1, 60]));
    let csv = seen.fixture.app.get(&file("csv")).await.expect(200).text();
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let names = reader.headers().unwrap().clone();
    let row = reader.records().next().unwrap().unwrap();
    let of = |name: &str| &row[names.iter().position(|column| column == name).unwrap()];
    assert_eq!(
        ["minimum", "implausible", "lowest_implausible"].map(of),
        ["150", "1", "60"]
    );

    let home = tempfile::tempdir().unwrap();
    let departure = seen.departure(0).to_string();
    let args = ["history", "series", "TLV", "LHR", "--depart", &departure];
    let mut command = bare_command(home.path(), &args);
    command
        .env("FARESCAN_URL", seen.fixture.url())
        .env("FARESCAN_API_KEY", KEY);
    let shown = run(&mut command);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let yesterday = today(&seen.fixture).saturating_sub(1.days()).to_string();
    let mut rows = shown.out.lines().map(str::trim_start);
    let row = rows.find(|line| line.starts_with(&yesterday));
    let row = row.unwrap_or_default();
    assert!(row.contains("*150") && row.contains("(60)"), "{shown:?}");
    let note = "Left out as implausible, the lowest of a row in brackets above: 1 price\n";
    assert!(
        shown.out.contains(note) && shown.out.contains("lowest 150 on"),
        "{shown:?}"
    );
}

#[tokio::test]
async fn a_sale_of_many_dates_is_the_lowest_price_of_its_bucket() {
    let seen = Seen::at_150().await;
    seen.yesterday(&[(0, 8, 60), (1, 9, 62), (2, 10, 64)]).await;
    // Two others are not several.
    let some = json!([3, 0, null, null, null, 3, 60]);
    assert_eq!(seen.bucket("").await, some);
    let judged = &seen.buckets("&history_verdict=true").await[0];
    assert_eq!(statistics(judged), some);
    assert_eq!(judged.get("history_verdict"), None, "{judged}");

    // A later price of the day removes the marks, even one that the query leaves out.
    seen.yesterday(&[(3, 16, 66)]).await;
    assert_eq!(seen.bucket("").await, json!([4, 4, 60, 63, 66, 0, null]));
    let three = json!([3, 3, 60, 62, 64, 0, null]);
    for query in [
        format!("&until={}", seen.at(12)),
        format!("&departure_to={}", seen.departure(2)),
    ] {
        assert_eq!(seen.bucket(&query).await, three, "{query}");
    }
    let judged = &seen.buckets("&history_verdict=true").await[0];
    assert_eq!(judged["history_verdict"]["class"], "insufficient");
}

#[tokio::test]
async fn what_is_too_high_is_left_out_and_what_cannot_be_compared_counts() {
    let seen = Seen::at_150().await;
    seen.yesterday(&[(0, 8, 4_000), (0, 9, 400), (0, 10, 155)])
        .await;
    let expected = json!([3, 1, 155, 155, 155, 2, 400]);
    assert_eq!(seen.bucket("").await, expected);
    // A departure that was never seen before, and one that has passed.
    seen.yesterday(&[(9, 8, 20), (-50, 9, 10)]).await;
    let expected = json!([5, 3, 10, 20, 155, 2, 400]);
    assert_eq!(seen.bucket("").await, expected);
}
