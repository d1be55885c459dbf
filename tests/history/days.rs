//! Packing past days must change the cost of a query and nothing else.

use farescan::history::Observation;
use farescan::history::daily_pack::pack_past_days;
use farescan::ids::ItemId;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use sqlx::PgPool;

use super::fixture::HistoryFixture;
use crate::support::app::KEY;
use crate::support::db::{connect, execute};
use crate::support::{array, wait_until};

const FARES: &str = "/v1/history/flights/series?from_airport=TLV&to_airport=LHR";

/// All buckets and filters, and several time zones.
const QUERIES: [&str; 9] = [
    "",
    "&bucket=week",
    "&timezone=America/New_York",
    "&timezone=Asia/Kathmandu&bucket=week",
    "&timezone=Pacific/Apia",
    "&departure_date=2030-01-03",
    "&departure_from=2030-01-02&departure_to=2030-01-04&timezone=Europe/London",
    "&currency=EUR",
    "&return_date=2030-01-09",
];

async fn answers(fixture: &HistoryFixture) -> Vec<Value> {
    let mut answers = Vec::new();
    let cut = fixture.now - SignedDuration::from_secs(9 * 86_400 + 4_321);
    for query in QUERIES
        .iter()
        .map(|query| (*query).to_owned())
        .chain([format!("&since={cut}"), format!("&until={cut}")])
    {
        let answer = fixture.app.get(&format!("{FARES}{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        let mut answer = answer.json();
        // Without `until`, the range ends now.
        answer
            .as_object_mut()
            .unwrap()
            .retain(|field, _| field == "data" || field == "truncated");
        answers.push(answer);
    }
    answers
}

/// Observations of several products over the last three weeks.
fn three_weeks(fixture: &HistoryFixture, count: usize, rng: &mut StdRng) -> Vec<Observation> {
    (0..count)
        .map(|_| {
            let mut body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": format!("2030-01-0{}", rng.random_range(1..=6))});
            let mut endpoint = "flights/oneway";
            match rng.random_range(0..4) {
                0 => body["currency"] = "EUR".into(),
                1 => (endpoint, body["return_date"]) = ("flights/roundtrip", "2030-01-09".into()),
                _ => {}
            }
            let price = rng.random_bool(0.9).then(|| rng.random_range(50..400));
            fixture.observation(endpoint, body, -rng.random_range(0..21 * 1_440), price)
        })
        .collect()
}

async fn count(pool: &PgPool, sql: &'static str) -> i64 {
    value!(pool, sql)
}

async fn packed_days(pool: &PgPool) -> i64 {
    count(pool, "select count(*) from observed_days").await
}

/// Deletes observations without the trigger, so that only packed days remain.
async fn delete_all_observations(pool: &PgPool) {
    let sql = "alter table observations disable trigger all; delete from observations; alter table observations enable trigger all";
    execute!(pool, sql);
}

#[tokio::test]
async fn packed_days_give_the_same_answers_as_observations() {
    let (fixture, mut rng) = (
        HistoryFixture::open().await,
        StdRng::seed_from_u64(crate::faults::seed()),
    );
    let pool = fixture.pool();
    fixture.insert(&three_weeks(&fixture, 400, &mut rng)).await;
    let expected = answers(&fixture).await;
    assert!(
        expected
            .iter()
            .all(|answer| !array(&answer["data"]).is_empty())
    );
    let packed = pack_past_days(pool, fixture.now).await.unwrap();
    assert!(packed > 40, "three products and three weeks: {packed}");
    assert_eq!(answers(&fixture).await, expected);
    assert_eq!(pack_past_days(pool, fixture.now).await.unwrap(), 0, "once");
    // Today is packed only tomorrow.
    assert!(
        pack_past_days(pool, fixture.now + SignedDuration::from_hours(24))
            .await
            .unwrap()
            <= 3
    );
    assert_eq!(answers(&fixture).await, expected);
    delete_all_observations(pool).await;
    assert_eq!(
        answers(&fixture).await,
        expected,
        "answered from packed days"
    );
}

/// Late results arrive, some for abandoned items, and observations are deleted.
#[tokio::test]
async fn late_and_deleted_observations_change_answers_at_once() {
    let (fixture, mut rng) = (
        HistoryFixture::open().await,
        StdRng::seed_from_u64(crate::faults::seed()),
    );
    let pool = fixture.pool();
    let ahead = fixture.now + SignedDuration::from_hours(24);
    fixture.insert(&three_weeks(&fixture, 100, &mut rng)).await;
    for round in 0..8 {
        pack_past_days(pool, ahead).await.unwrap();
        fixture
            .insert(&three_weeks(&fixture, 1 + round % 3, &mut rng))
            .await;
        execute!(
            pool,
            "delete from observations where item_id in (select item_id from observations order by random() limit $1)",
            i64::try_from(round % 4).unwrap()
        );
        let shown = answers(&fixture).await;
        execute!(
            pool,
            "update series set unpacked_since = '1970-01-01 00:00:00+00'"
        );
        assert_eq!(
            shown,
            answers(&fixture).await,
            "equals the answer from observations"
        );
    }
    // Without observations no packed day may remain.
    execute!(pool, "delete from observations");
    assert!(
        answers(&fixture)
            .await
            .iter()
            .all(|answer| answer["data"] == json!([]))
    );
    pack_past_days(pool, ahead).await.unwrap();
    assert_eq!(packed_days(pool).await, 0);
    assert_eq!(
        count(
            pool,
            "select count(*) from series where unpacked_since is not null"
        )
        .await,
        0
    );
}

/// An insert and packing block each other correctly in both orders.
#[tokio::test]
async fn a_day_is_not_packed_during_an_uncommitted_insert() {
    let fixture = HistoryFixture::open().await;
    let pool = fixture.pool();
    let yesterday = -2 * 1_440;
    fixture
        .insert(&[fixture.fare("2030-01-01", yesterday, Some(200))])
        .await;
    // An uncommitted insert: packing skips its product.
    let mut recorder = farescan::db::begin(pool).await.unwrap();
    farescan::history::insert(
        &mut recorder,
        &[fixture.fare("2030-01-01", yesterday, Some(100))],
    )
    .await
    .unwrap();
    assert_eq!(pack_past_days(pool, fixture.now).await.unwrap(), 0);
    recorder.commit().await.unwrap();
    assert_eq!(pack_past_days(pool, fixture.now).await.unwrap(), 1);
    // Uncommitted packing: the insert waits for it and reopens its day.
    let mut packer = connect(&fixture.db.connect_options()).await;
    execute(
        &mut packer,
        "begin; select from series for update; update series set unpacked_since = null",
    )
    .await
    .unwrap();
    let late = fixture.fare("2030-01-01", yesterday, Some(300));
    let keeping = async { fixture.insert(&[late]).await };
    let waiting = async {
        wait_until("the recorder waits", async || {
            count(pool, "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
                .await
                > 0
        })
        .await;
        execute(&mut packer, "commit").await.unwrap();
    };
    tokio::join!(keeping, waiting);
    let rows = fixture.app.get(FARES).await.json();
    assert_eq!(
        (&rows["data"][0]["minimum"], &rows["data"][0]["prices"]),
        (&json!(100), &json!(3))
    );
}

/// Deletes during a read affect all of an answer or none of it: packed days, later observations,
/// and the boundary between them.
#[tokio::test]
async fn an_answer_is_one_consistent_snapshot() {
    for form in ["application/json", "application/x-ndjson"] {
        let fixture = HistoryFixture::open().await;
        let pool = fixture.pool();
        let today = 0;
        fixture
            .insert(&[
                fixture.fare("2030-01-01", -3 * 1_440, Some(200)),
                fixture.fare("2030-01-01", today, Some(100)),
            ])
            .await;
        assert_eq!(pack_past_days(pool, fixture.now).await.unwrap(), 1);
        // The reader has read the packed day when the lock blocks it.
        let mut forgetting = farescan::db::begin(pool).await.unwrap();
        execute!(
            &mut *forgetting,
            "lock table observations in access exclusive mode; delete from observations"
        );
        let path = format!(
            "{FARES}&until={}",
            fixture.now + SignedDuration::from_hours(1)
        );
        let asking = fixture.send(
            fixture
                .request("GET", &path)
                .header("x-api-key", KEY)
                .header("accept", form),
        );
        let committing = async {
            wait_until("the reader waits", async || {
                count(
                    pool,
                    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
                )
                .await
                    > 0
            })
            .await;
            forgetting.commit().await.unwrap();
        };
        let (answer, ()) = tokio::join!(asking, committing);
        let prices: Vec<_> = match form {
            "application/json" => array(&answer.json()["data"])
                .iter()
                .map(|row| row["prices"].clone())
                .collect(),
            _ => answer
                .text()
                .lines()
                .map(|row| serde_json::from_str::<Value>(row).unwrap()["prices"].clone())
                .collect(),
        };
        assert_eq!(
            prices,
            [json!(1), json!(1)],
            "{form}: as it was when the answer began"
        );
        let after = fixture.app.get(&path).await.json();
        assert_eq!(after["data"], json!([]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_inserts_and_packing_lose_nothing() {
    let (fixture, mut rng) = (
        HistoryFixture::open().await,
        StdRng::seed_from_u64(crate::faults::seed()),
    );
    let pool = fixture.pool();
    let batches: Vec<_> = (0..60)
        .map(|_| three_weeks(&fixture, 8, &mut rng))
        .collect();
    let recording = futures::future::join_all(batches.chunks(20).map(async |batches| {
        for batch in batches {
            fixture.insert(batch).await;
        }
    }));
    let done = tokio_util::sync::CancellationToken::new();
    let packing = async || {
        while !done.is_cancelled() {
            pack_past_days(pool, fixture.now).await.unwrap();
        }
    };
    tokio::join!(
        async {
            recording.await;
            done.cancel();
        },
        packing(),
        packing()
    );
    let shown = answers(&fixture).await;
    execute!(
        pool,
        "update series set unpacked_since = '1970-01-01 00:00:00+00'"
    );
    assert_eq!(shown, answers(&fixture).await);
    let samples: u64 = array(&shown[0]["data"])
        .iter()
        .map(|row| row["observations"].as_u64().unwrap())
        .sum();
    assert_eq!(samples, 480);
}

/// A database without packed days, with more observations of a product than one pass reads.
#[tokio::test]
async fn unpacked_history_is_packed_in_several_passes() {
    let fixture = HistoryFixture::open().await;
    let pool = fixture.pool();
    super::seed::routes(pool, fixture.tenant, 2, 250, 200).await;
    execute!(
        pool,
        "update series set unpacked_since = '1970-01-01 00:00:00+00'"
    );
    let path = "/v1/history/flights/series?from_airport=RAA&to_airport=LHR&until=";
    let path = format!("{path}{}", fixture.now);
    let expected = fixture.app.get(&path).await.json();
    assert_eq!(array(&expected["data"]).len(), 200);
    let packed = pack_past_days(pool, fixture.now).await.unwrap();
    assert!(
        (398..=402).contains(&packed),
        "200 days, but for today, of two products: {packed}"
    );
    assert_eq!(fixture.app.get(&path).await.json(), expected);
    delete_all_observations(pool).await;
    let today = array(&expected["data"]).len() - 1;
    assert_eq!(
        array(&fixture.app.get(&path).await.json()["data"])[..today],
        array(&expected["data"])[..today]
    );
}

/// An operator has removed a month of packed days but not the observations.
#[tokio::test]
async fn a_product_that_cannot_be_packed_blocks_no_other() {
    let fixture = HistoryFixture::open().await;
    let pool = fixture.pool();
    let months_ago = |months: i64| -(months * 31 * 1_440);
    execute!(
        pool,
        "select create_partitions(now() - interval '7 months', 8)"
    );
    let euro = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-01", "currency": "EUR"});
    let observations = [
        fixture.fare("2030-01-01", months_ago(5), Some(200)),
        fixture.observation("flights/oneway", euro, months_ago(1), Some(90)),
    ];
    fixture.insert(&observations).await;
    let expected = answers(&fixture).await;
    let gone = observations[0]
        .observed_at
        .to_zoned(TimeZone::UTC)
        .strftime("drop table observed_days_y%Ym%m")
        .to_string();
    execute(&mut connect(&fixture.db.connect_options()).await, &gone)
        .await
        .unwrap();
    assert_eq!(
        pack_past_days(pool, fixture.now).await.unwrap(),
        1,
        "the other product"
    );
    assert_eq!(pack_past_days(pool, fixture.now).await.unwrap(), 0);
    assert_eq!(answers(&fixture).await, expected);
}

#[tokio::test]
async fn an_unknown_pack_format_is_an_error() {
    let fixture = HistoryFixture::open().await;
    fixture
        .insert(&[fixture.fare("2030-01-01", -3 * 1_440, Some(200))])
        .await;
    pack_past_days(fixture.pool(), fixture.now).await.unwrap();
    execute!(
        fixture.pool(),
        "update observed_days set samples = '\\x02'::bytea || substr(samples, 2)"
    );
    fixture.app.get(FARES).await.expect(500);
    let again = fixture.fare("2030-01-01", -3 * 1_440, Some(100));
    fixture
        .insert(&[Observation {
            item: ItemId::new(),
            ..again
        }])
        .await;
    assert_eq!(
        fixture.app.get(FARES).await.json()["data"][0]["prices"],
        2,
        "unpacked days are read from observations"
    );
    assert_eq!(
        pack_past_days(fixture.pool(), Timestamp::now())
            .await
            .unwrap(),
        1
    );
    assert_eq!(fixture.app.get(FARES).await.json()["data"][0]["prices"], 2);
}
