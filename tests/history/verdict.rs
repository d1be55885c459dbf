//! Verdicts from the caller's own history: the service's answers against the guide's SQL over the
//! exported file, in DuckDB, and what they leave alone.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use farescan::contract::SearchStatus;
use farescan::history::Observation;
use farescan::history::daily_pack::pack_past_days;
use farescan::history::known_price::KnownPrice;
use farescan::history::past_prices::{PastQuestion, past_of_prices};
use farescan::ids::ItemId;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ToSpan as _};
use serde_json::{Value, json};

use super::fixture::HistoryFixture;
use crate::support::app::{KEY, ring, tenant};
use crate::support::{Rng, array, text};

pub(super) const ROUTE: &str = "from_airport=TLV&to_airport=LHR";
const OTHER: &str = "another-key-0123456789";

/// Makes partitions for the last days.
pub(super) async fn with_past(fixture: &HistoryFixture, days: i32) {
    execute!(
        fixture.pool(),
        "select create_partitions(now() - make_interval(days => $1), 2 + $1 / 28)",
        days
    );
}

pub(super) fn today(fixture: &HistoryFixture) -> Date {
    fixture.now.to_zoned(TimeZone::UTC).date()
}

/// A fare seen some days ago at an hour of the day.
pub(super) fn fare(
    fixture: &HistoryFixture,
    body: &Value,
    [ago, hour]: [i64; 2],
    price: i64,
    status: SearchStatus,
) -> Observation {
    let endpoint = match body.get("return_date") {
        None => "flights/oneway",
        Some(_) => "flights/roundtrip",
    };
    let midnight = today(fixture).to_zoned(TimeZone::UTC).unwrap().timestamp();
    Observation {
        observed_at: midnight + SignedDuration::from_hours(hour - 24 * ago),
        status,
        ..fixture.observation(endpoint, body.clone(), 0, Some(price))
    }
}

pub(super) fn oneway(departure: Date) -> Value {
    json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": departure})
}

/// A hundred prices from 100 up, seen one a day, each 40 days before its departure; and one of
/// today.
async fn ladder(fixture: &HistoryFixture, price: i64) -> Vec<Observation> {
    with_past(fixture, 120).await;
    let day = |ago: i64| today(fixture).saturating_add((40 - ago).days());
    let seen = |ago| {
        fare(
            fixture,
            &oneway(day(ago)),
            [ago, 12],
            99 + ago,
            SearchStatus::Ok,
        )
    };
    let mut seen: Vec<_> = (1..=100).map(seen).collect();
    seen.push(fare(
        fixture,
        &oneway(day(0)),
        [0, 0],
        price,
        SearchStatus::Ok,
    ));
    seen
}

fn calendar_of(fixture: &HistoryFixture) -> String {
    let day = today(fixture).saturating_add(40.days());
    format!("/v1/history/flights/latest?{ROUTE}&departure_from={day}&departure_to={day}")
}

async fn verdict(fixture: &HistoryFixture, key: &str) -> Value {
    let path = format!("{}&history_verdict=true", calendar_of(fixture));
    let answer = fixture.app.get_as(key, &path).await.expect(200).json();
    let is_judged = |row: &&Value| {
        row["endpoint"] == "flights/oneway" && row["product"]["passengers"] == json!([1])
    };
    let row = array(&answer["data"]).iter().find(is_judged).unwrap();
    row["history_verdict"].clone()
}

#[tokio::test]
async fn a_price_is_judged_by_the_prices_before_it_packed_or_not() {
    let fixture = HistoryFixture::open().await;
    let seen = ladder(&fixture, 116).await;
    fixture.insert(&seen).await;
    let since = today(&fixture).saturating_sub(100.days());
    let expected = json!({
        "class": "low", "percentile": 16.5, "n": 100, "lower": 16, "higher": 83, "bin": {"from_days": 31, "to_days": 60},
        "since": since,
        "sentence": format!("cheaper than 83 % of 100 prices seen 31 to 60 days before departure since {}", since.strftime("%-d %B %Y")),
    });
    assert_eq!(verdict(&fixture, KEY).await, expected);
    pack_past_days(fixture.pool(), fixture.now).await.unwrap();
    assert_eq!(verdict(&fixture, KEY).await, expected, "packed");

    let bucket = format!(
        "/v1/history/flights/series?{ROUTE}&history_verdict=true&since={}",
        today(&fixture).to_zoned(TimeZone::UTC).unwrap().timestamp()
    );
    let buckets = fixture.app.get(&bucket).await.expect(200).json();
    assert_eq!(
        buckets["data"][0]["history_verdict"], expected,
        "the day's lowest price"
    );
}

#[tokio::test]
async fn without_the_parameter_nothing_changes_and_files_have_no_verdicts() {
    let fixture = HistoryFixture::open().await;
    let seen = ladder(&fixture, 116).await;
    fixture.insert(&seen).await;
    let calendar = calendar_of(&fixture);
    let series = format!("/v1/history/flights/series?{ROUTE}");
    for path in [&calendar, &series] {
        let plain = fixture.app.get(path).await.expect(200).json();
        let mut judged = fixture
            .app
            .get(&format!("{path}&history_verdict=true"))
            .await
            .expect(200)
            .json();
        for row in judged["data"].as_array_mut().unwrap() {
            assert!(
                row.as_object_mut()
                    .unwrap()
                    .shift_remove("history_verdict")
                    .is_some(),
                "{row}"
            );
        }
        let without_age = |answer: Value| {
            let mut answer = answer;
            for row in answer["data"].as_array_mut().unwrap() {
                row.as_object_mut().unwrap().shift_remove("age_seconds");
            }
            // The default end of a range is now.
            answer.as_object_mut().unwrap().shift_remove("until");
            answer.as_object_mut().unwrap().shift_remove("since");
            answer
        };
        assert_eq!(without_age(judged), without_age(plain), "{path}");
        let off = fixture
            .app
            .get(&format!("{path}&history_verdict=false"))
            .await;
        assert!(!off.text().contains("history_verdict"), "{path}");
        for format in ["csv", "ndjson", "parquet"] {
            let file = fixture
                .app
                .get(&format!("{path}&format={format}"))
                .await
                .expect(200);
            let is_named = file
                .bytes
                .windows(15)
                .any(|bytes| bytes == b"history_verdict");
            assert!(!is_named, "{path} {format}");
            let refused = fixture
                .app
                .get(&format!("{path}&format={format}&history_verdict=true"))
                .await;
            assert_eq!(refused.kind(), "400 invalid_request");
            let message = refused.message();
            assert!(
                message.starts_with("`history_verdict`: found true; expected false, since"),
                "{message}"
            );
        }
    }
}

#[tokio::test]
async fn only_the_callers_own_complete_prices_count() {
    let fixture = HistoryFixture::open().await;
    let seen = ladder(&fixture, 116).await;
    fixture.insert(&seen).await;
    let alone = verdict(&fixture, KEY).await;
    // Another caller saw the same product at other prices.
    let other = tenant(fixture.pool(), &ring(), OTHER).await;
    let others: Vec<_> = seen
        .iter()
        .map(|seen| {
            let mut seen = Observation {
                tenant: other,
                item: ItemId::new(),
                ..seen.clone()
            };
            let best = seen.best.as_mut().unwrap();
            best.price += rust_decimal::Decimal::from(1_000);
            seen
        })
        .collect();
    fixture.insert(&others).await;
    assert_eq!(verdict(&fixture, KEY).await, alone);
    let theirs = verdict(&fixture, OTHER).await;
    assert_eq!(
        [&theirs["n"], &theirs["lower"]],
        [&json!(100), &json!(16)],
        "theirs count for them"
    );
    // Neither do partial and degraded answers, products of other passengers and other lengths.
    let mut others = Vec::new();
    for ago in 1..=60 {
        let day = today(&fixture).saturating_add((45 - ago).days());
        others.push(fare(
            &fixture,
            &oneway(day),
            [ago, 1],
            1,
            SearchStatus::Partial,
        ));
        others.push(fare(
            &fixture,
            &oneway(day),
            [ago, 2],
            1,
            SearchStatus::Degraded,
        ));
        let mut couple = oneway(day);
        couple["passengers"] = json!([1, 1]);
        others.push(fare(&fixture, &couple, [ago, 3], 1, SearchStatus::Ok));
        let mut trip = oneway(day);
        trip["return_date"] = json!(day.saturating_add(3.days()));
        others.push(fare(&fixture, &trip, [ago, 4], 1, SearchStatus::Ok));
    }
    fixture.insert(&others).await;
    assert_eq!(verdict(&fixture, KEY).await, alone);
    pack_past_days(fixture.pool(), fixture.now).await.unwrap();
    assert_eq!(verdict(&fixture, KEY).await, alone, "packed");
}

#[tokio::test]
async fn a_judged_calendar_has_at_most_twelve_products() {
    let fixture = HistoryFixture::open().await;
    let day = today(&fixture).saturating_add(30.days());
    let seen: Vec<_> = (0..13)
        .map(|number| {
            let mut body = oneway(day);
            body["max_price"] = json!(500 + number);
            fixture.observation("flights/oneway", body, 0, Some(100))
        })
        .collect();
    fixture.insert(&seen).await;
    let path =
        format!("/v1/history/flights/latest?{ROUTE}&departure_from={day}&departure_to={day}");
    for (query, rows, truncated) in [("", 13, false), ("&history_verdict=true", 12, true)] {
        let answer = fixture
            .app
            .get(&format!("{path}{query}"))
            .await
            .expect(200)
            .json();
        assert_eq!(
            (array(&answer["data"]).len(), &answer["truncated"]),
            (rows, &json!(truncated))
        );
    }
}

/// The statement of the guide, judging every price.
fn statement() -> String {
    let guide = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/docs/guides/is-that-a-good-price.md"
    );
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, statement) = guide.split_once("```sql\n").unwrap();
    let (statement, _) = statement.split_once("```").unwrap();
    let newest = "    QUALIFY day = max(day) OVER (PARTITION BY trip, departure_date)\n";
    assert!(
        statement.contains(newest),
        "the guide judges the newest prices"
    );
    statement.replace(newest, "")
}

/// What DuckDB answers to a statement over `fares.parquet`, as objects.
fn duckdb(file: &[u8], statement: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fares.parquet"), file).unwrap();
    let program = "import duckdb, json, sys
duckdb.sql('set enable_progress_bar = false')
found = duckdb.sql(sys.stdin.read())
rows = [dict(zip(found.columns, row)) for row in found.fetchall()]
print(json.dumps(rows, default=str))";
    let python = std::env::var("FARESCAN_DUCKDB_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut child = Command::new(python)
        .args(["-c", program])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3, or the program that FARESCAN_DUCKDB_PYTHON names");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(statement.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "Python with DuckDB (script/setup duckdb): {complaints}"
    );
    array(&serde_json::from_slice(&output.stdout).unwrap()).clone()
}

/// Prices of a fare ladder with steps, two currencies, lengths of trip, gaps and bad answers.
fn random_fares(fixture: &HistoryFixture, random: &mut Rng) -> Vec<Observation> {
    let mut below = |bound: u64| i64::try_from(random.below(bound)).unwrap();
    let mut seen = Vec::new();
    for departure in 0..40 {
        let day = today(fixture).saturating_add((3 * departure - 70).days());
        let mut body = oneway(day);
        if departure % 4 == 3 {
            body["currency"] = json!("EUR");
        }
        if departure % 5 == 4 {
            body["return_date"] = json!(day.saturating_add((2 + departure % 2).days()));
        }
        let mut step = below(12);
        for ago in (0..200).rev() {
            if below(4) == 0 {
                step = (step + below(5) - 2).clamp(0, 14);
            }
            for hour in 0..below(3) {
                let status = match below(20) {
                    0 => SearchStatus::Partial,
                    1 => SearchStatus::Degraded,
                    _ => SearchStatus::Ok,
                };
                let price = 80 + 15 * step + below(2) * below(7);
                // Errors, and a sale of all dates.
                let price = match (below(30), ago) {
                    (0, _) => price * 3,
                    (1, _) | (_, 50..=52) => price / 3,
                    _ => price,
                };
                seen.push(fare(fixture, &body, [ago, hour * 7], price, status));
            }
        }
    }
    seen
}

/// What the service says of each lowest price of a departure and day.
async fn service_verdicts(fixture: &HistoryFixture) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for departure in 0..40 {
        let day = today(fixture).saturating_add((3 * departure - 70).days());
        let path =
            format!("/v1/history/flights/series?{ROUTE}&departure_date={day}&history_verdict=true");
        let answer = fixture.app.get(&path).await.expect(200).json();
        for row in array(&answer["data"]) {
            let key = ["endpoint", "currency", "bucket"].map(|field| text(&row[field]));
            found.insert(format!("{key:?} {day}"), row.clone());
        }
    }
    found
}

/// The verdict of a row of SQL, in the form of the service.
fn as_answered(row: &Value) -> Value {
    let mut verdict = json!({
        "class": row["verdict"], "percentile": row["percentile"], "n": row["n"], "lower": row["lower"], "higher": row["higher"],
        "since": row["since"],
    });
    if !row["n_like"].is_null() {
        verdict["became_cheaper"] = json!({
            "n": row["n_like"], "count": row["n_cheaper"], "percent_from": row["percent_from"], "percent_to": row["percent_to"],
        });
    }
    verdict
}

#[tokio::test]
async fn the_statement_of_the_guide_gives_the_services_verdicts() {
    if std::env::var("FARESCAN_DUCKDB_PYTHON").is_ok_and(|python| python == "none") {
        return eprintln!("left out: DuckDB could not be installed (script/setup duckdb)");
    }
    let fixture = HistoryFixture::open().await;
    with_past(&fixture, 200).await;
    let seen = random_fares(&fixture, &mut Rng(7));
    for batch in seen.chunks(500) {
        fixture.insert(batch).await;
    }
    pack_past_days(fixture.pool(), fixture.now).await.unwrap();
    let answered = service_verdicts(&fixture).await;
    let path = format!("/v1/history/flights?{ROUTE}&format=parquet");
    let file = fixture.app.get(&path).await.expect(200);
    let rows = duckdb(&file.bytes, &statement());
    let implausible = |row: &&Value| row["implausible"] != 0;
    let marked = answered.values().filter(implausible).count();
    assert!(marked >= 30, "{marked}");
    let (mut compared, mut classes, mut frequencies) = (0, BTreeMap::<String, usize>::new(), 0);
    for row in &rows {
        let trip = &row["trip"];
        let key = [&trip["endpoint"], &trip["currency"], &row["day"]].map(text);
        let bucket = &answered[&format!("{key:?} {}", text(&row["departure_date"]))];
        // The lowest price of a bucket may be a partial one, which SQL leaves out.
        let price: f64 = text(&row["price"]).parse().unwrap();
        if bucket["minimum"].as_f64() != Some(price) {
            continue;
        }
        let mut verdict = bucket["history_verdict"].clone();
        let fields = verdict.as_object_mut().unwrap();
        fields.shift_remove("bin");
        fields.shift_remove("sentence");
        if let Some(frequency) = fields.get_mut("became_cheaper") {
            frequency.as_object_mut().unwrap().shift_remove("percent");
            frequencies += 1;
        }
        // Neither names an implausible price as the lowest.
        assert_eq!(verdict, as_answered(row), "{row}");
        *classes.entry(text(&row["verdict"])).or_default() += 1;
        compared += 1;
    }
    assert!(compared >= 1_000, "{compared} of {} rows", rows.len());
    assert_eq!(classes.len(), 6, "{classes:?}");
    assert!(frequencies >= 100, "{frequencies}");
}

/// A search from before midnight whose run began still earlier is packed before the run is judged.
#[tokio::test]
async fn a_run_over_midnight_is_not_judged_by_its_own_packed_prices() {
    let fixture = HistoryFixture::open().await;
    with_past(&fixture, 10).await;
    let departure = |days: i32| oneway(today(&fixture).saturating_add(days.days()));
    let at = |days: i32, ago, price| {
        fare(
            &fixture,
            &departure(days),
            [ago, 12],
            price,
            SearchStatus::Ok,
        )
    };
    // The run began an hour after the first of yesterday's prices and an hour before the second.
    let earlier = at(40, 1, 200);
    let own = Observation {
        observed_at: earlier.observed_at + SignedDuration::from_hours(2),
        ..at(41, 1, 100)
    };
    let same_dates = Observation {
        observed_at: own.observed_at,
        ..at(42, 1, 90)
    };
    let before = earlier.observed_at + SignedDuration::from_hours(1);
    let subject = at(42, 0, 120).subject;
    let judged = KnownPrice::of(&subject, 120.into(), &subject.series.currency, fixture.now);
    let judged = KnownPrice {
        before,
        ..judged.unwrap()
    };
    fixture.insert(&[earlier, own, same_dates]).await;
    pack_past_days(fixture.pool(), fixture.now).await.unwrap();
    let question = PastQuestion {
        verdicts: true,
        lowest_of_days: vec![30],
        last_answer: false,
        plausibility: false,
    };
    let mut conn = fixture.pool().acquire().await.unwrap();
    let past = past_of_prices(&mut conn, fixture.tenant, &question, &[judged], None)
        .await
        .unwrap();
    let verdict = past[0].verdict.as_ref().unwrap();
    assert_eq!((verdict.n, verdict.lower, verdict.higher), (1, 0, 1));
    assert!(past[0].lowest.is_empty(), "{:?}", past[0].lowest);
}
