//! Days that have passed are read packed: that must show in what a question costs, and in nothing else.

use farescan::history::Observation;
use farescan::history::days::pack_passed;
use farescan::ids::ItemId;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use sqlx::PgPool;

use super::archive::{Archive, wait_until};
use crate::support::app::KEY;
use crate::support::db::{connect, execute};

const FARES: &str = "/v1/history/flights/series?from_airport=TLV&to_airport=LHR";

/// Every way to part time, with ends that cut days, and every filter.
const QUESTIONS: [&str; 9] = [
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

async fn answers(archive: &Archive) -> Vec<Value> {
    let mut answers = Vec::new();
    let cut = archive.now - SignedDuration::from_secs(9 * 86_400 + 4_321);
    for question in QUESTIONS
        .iter()
        .map(|question| (*question).to_owned())
        .chain([format!("&since={cut}"), format!("&until={cut}")])
    {
        let answer = archive.app.get(&format!("{FARES}{question}")).await;
        assert_eq!(answer.status, 200, "{question}: {}", answer.text());
        let mut answer = answer.json();
        // A question without an end ends now.
        answer
            .as_object_mut()
            .unwrap()
            .retain(|field, _| field == "data" || field == "truncated");
        answers.push(answer);
    }
    answers
}

/// Three weeks of some products, up to now.
fn weeks(archive: &Archive, count: usize, dice: &mut StdRng) -> Vec<Observation> {
    (0..count)
        .map(|_| {
            let mut body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": format!("2030-01-0{}", dice.random_range(1..=6))});
            let mut endpoint = "flights/oneway";
            match dice.random_range(0..4) {
                0 => body["currency"] = "EUR".into(),
                1 => (endpoint, body["return_date"]) = ("flights/roundtrip", "2030-01-09".into()),
                _ => {}
            }
            let price = dice.random_bool(0.9).then(|| dice.random_range(50..400));
            archive.seen(endpoint, body, -dice.random_range(0..21 * 1_440), price)
        })
        .collect()
}

async fn count(pool: &PgPool, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
}

async fn packed_days(pool: &PgPool) -> i64 {
    count(pool, "select count(*) from observed_days").await
}

/// Takes all observations away behind the program's back: what is still told is what was packed.
async fn lose_observations(pool: &PgPool) {
    let sql = "alter table observations disable trigger all; delete from observations; alter table observations enable trigger all";
    sqlx::raw_sql(sql).execute(pool).await.unwrap();
}

#[tokio::test]
async fn a_packed_day_tells_what_its_observations_told() {
    let (archive, mut dice) = (
        Archive::open().await,
        StdRng::seed_from_u64(crate::faults::seed()),
    );
    let pool = archive.db.pool();
    archive.keep(&weeks(&archive, 400, &mut dice)).await;
    let expected = answers(&archive).await;
    assert!(
        expected
            .iter()
            .all(|answer| !answer["data"].as_array().unwrap().is_empty())
    );
    let packed = pack_passed(pool, archive.now).await.unwrap();
    assert!(packed > 40, "three products and three weeks: {packed}");
    assert_eq!(answers(&archive).await, expected);
    assert_eq!(pack_passed(pool, archive.now).await.unwrap(), 0, "once");
    // Today's are not among them; tomorrow they are.
    assert!(
        pack_passed(pool, archive.now + SignedDuration::from_hours(24))
            .await
            .unwrap()
            <= 3
    );
    assert_eq!(answers(&archive).await, expected);
    lose_observations(pool).await;
    assert_eq!(
        answers(&archive).await,
        expected,
        "it was the packed days that told it"
    );
}

/// Answers come late, some of an item that was given up; scans are deleted with what they saw.
#[tokio::test]
async fn whatever_comes_late_or_goes_is_told_at_once() {
    let (archive, mut dice) = (
        Archive::open().await,
        StdRng::seed_from_u64(crate::faults::seed()),
    );
    let pool = archive.db.pool();
    let ahead = archive.now + SignedDuration::from_hours(24);
    archive.keep(&weeks(&archive, 100, &mut dice)).await;
    for round in 0..8 {
        pack_passed(pool, ahead).await.unwrap();
        archive
            .keep(&weeks(&archive, 1 + round % 3, &mut dice))
            .await;
        sqlx::query("delete from observations where item_id in (select item_id from observations order by random() limit $1)")
            .bind(i64::try_from(round % 4).unwrap())
            .execute(pool)
            .await
            .unwrap();
        let told = answers(&archive).await;
        sqlx::raw_sql("update series set unpacked_since = '1970-01-01 00:00:00+00'")
            .execute(pool)
            .await
            .unwrap();
        assert_eq!(told, answers(&archive).await, "as the observations tell it");
    }
    // All of it goes: no day is left that nothing stands behind.
    sqlx::raw_sql("delete from observations")
        .execute(pool)
        .await
        .unwrap();
    assert!(
        answers(&archive)
            .await
            .iter()
            .all(|answer| answer["data"] == json!([]))
    );
    pack_passed(pool, ahead).await.unwrap();
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

/// The two orders in which a recorder and a packer can meet.
#[tokio::test]
async fn a_day_is_not_packed_while_some_of_it_is_on_its_way() {
    let archive = Archive::open().await;
    let pool = archive.db.pool();
    let yesterday = -2 * 1_440;
    archive
        .keep(&[archive.fare("2030-01-01", yesterday, Some(200))])
        .await;
    // A recorder that has written and not yet committed: its product is passed over.
    let mut recorder = farescan::db::begin(pool).await.unwrap();
    farescan::history::record(
        &mut recorder,
        &[archive.fare("2030-01-01", yesterday, Some(100))],
    )
    .await
    .unwrap();
    assert_eq!(pack_passed(pool, archive.now).await.unwrap(), 0);
    recorder.commit().await.unwrap();
    assert_eq!(pack_passed(pool, archive.now).await.unwrap(), 1);
    // A packer that has the product and has not yet committed: the recorder waits for it, and its day is open again.
    let mut packer = connect(&archive.db.connect_options()).await;
    execute(
        &mut packer,
        "begin; select from series for update; update series set unpacked_since = null",
    )
    .await
    .unwrap();
    let late = archive.fare("2030-01-01", yesterday, Some(300));
    let keeping = async { archive.keep(&[late]).await };
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
    let rows = archive.app.get(FARES).await.json();
    assert_eq!(
        (&rows["data"][0]["minimum"], &rows["data"][0]["prices"]),
        (&json!(100), &json!(3))
    );
}

/// What is taken out while it is read is in all of an answer or in none of it: packed days, what came since, and where the one ends.
#[tokio::test]
async fn an_answer_is_of_one_moment() {
    for form in ["application/json", "application/x-ndjson"] {
        let archive = Archive::open().await;
        let pool = archive.db.pool();
        let today = 0;
        archive
            .keep(&[
                archive.fare("2030-01-01", -3 * 1_440, Some(200)),
                archive.fare("2030-01-01", today, Some(100)),
            ])
            .await;
        assert_eq!(pack_passed(pool, archive.now).await.unwrap(), 1);
        // The reader is past the packed day when he meets the lock.
        let mut forgetting = farescan::db::begin(pool).await.unwrap();
        sqlx::raw_sql("lock table observations in access exclusive mode; delete from observations")
            .execute(&mut *forgetting)
            .await
            .unwrap();
        let path = format!(
            "{FARES}&until={}",
            archive.now + SignedDuration::from_hours(1)
        );
        let asking = archive.app.send(
            archive
                .app
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
            "application/json" => answer.json()["data"]
                .as_array()
                .unwrap()
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
        let after = archive.app.get(&path).await.json();
        assert_eq!(after["data"], json!([]));
    }
}

/// Everybody at once, in any order: nothing is lost, and nobody waits for ever.
#[tokio::test(flavor = "multi_thread")]
async fn recorders_and_packers_that_meet_lose_nothing() {
    let (archive, mut dice) = (
        Archive::open().await,
        StdRng::seed_from_u64(crate::faults::seed()),
    );
    let pool = archive.db.pool();
    let batches: Vec<_> = (0..60).map(|_| weeks(&archive, 8, &mut dice)).collect();
    let recording = futures::future::join_all(batches.chunks(20).map(async |batches| {
        for batch in batches {
            archive.keep(batch).await;
        }
    }));
    let done = tokio_util::sync::CancellationToken::new();
    let packing = async || {
        while !done.is_cancelled() {
            pack_passed(pool, archive.now).await.unwrap();
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
    let told = answers(&archive).await;
    sqlx::raw_sql("update series set unpacked_since = '1970-01-01 00:00:00+00'")
        .execute(pool)
        .await
        .unwrap();
    assert_eq!(told, answers(&archive).await);
    let looks: u64 = told[0]["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["observations"].as_u64().unwrap())
        .sum();
    assert_eq!(looks, 480);
}

/// A database from before days were packed, with more of one product than a pass takes.
#[tokio::test]
async fn much_history_from_before_is_packed_pass_by_pass() {
    let archive = Archive::open().await;
    let pool = archive.db.pool();
    super::seed::routes(pool, archive.tenant, 2, 250, 200).await;
    sqlx::raw_sql("update series set unpacked_since = '1970-01-01 00:00:00+00'")
        .execute(pool)
        .await
        .unwrap();
    let path = "/v1/history/flights/series?from_airport=RAA&to_airport=LHR&until=";
    let path = format!("{path}{}", archive.now);
    let expected = archive.app.get(&path).await.json();
    assert_eq!(expected["data"].as_array().unwrap().len(), 200);
    let packed = pack_passed(pool, archive.now).await.unwrap();
    assert!(
        (398..=402).contains(&packed),
        "200 days, but for today, of two products: {packed}"
    );
    assert_eq!(archive.app.get(&path).await.json(), expected);
    lose_observations(pool).await;
    let today = expected["data"].as_array().unwrap().len() - 1;
    assert_eq!(
        archive.app.get(&path).await.json()["data"]
            .as_array()
            .unwrap()[..today],
        expected["data"].as_array().unwrap()[..today]
    );
}

/// An operator has taken a month of them away, and left the observations.
#[tokio::test]
async fn who_cannot_be_packed_keeps_nobody_waiting() {
    let archive = Archive::open().await;
    let pool = archive.db.pool();
    let months_ago = |months: i64| -(months * 31 * 1_440);
    sqlx::raw_sql("select make_partitions(now() - interval '7 months', 8)")
        .execute(pool)
        .await
        .unwrap();
    let euro = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-01", "currency": "EUR"});
    let seen = [
        archive.fare("2030-01-01", months_ago(5), Some(200)),
        archive.seen("flights/oneway", euro, months_ago(1), Some(90)),
    ];
    archive.keep(&seen).await;
    let expected = answers(&archive).await;
    let gone = seen[0]
        .observed_at
        .to_zoned(TimeZone::UTC)
        .strftime("drop table observed_days_y%Ym%m")
        .to_string();
    execute(&mut connect(&archive.db.connect_options()).await, &gone)
        .await
        .unwrap();
    assert_eq!(
        pack_passed(pool, archive.now).await.unwrap(),
        1,
        "the later one's"
    );
    assert_eq!(pack_passed(pool, archive.now).await.unwrap(), 0);
    assert_eq!(answers(&archive).await, expected);
}

/// What another version has packed is not guessed at.
#[tokio::test]
async fn a_form_that_is_not_known_is_no_answer() {
    let archive = Archive::open().await;
    archive
        .keep(&[archive.fare("2030-01-01", -3 * 1_440, Some(200))])
        .await;
    pack_passed(archive.db.pool(), archive.now).await.unwrap();
    sqlx::raw_sql("update observed_days set looks = '\\x02'::bytea || substr(looks, 2)")
        .execute(archive.db.pool())
        .await
        .unwrap();
    let answer = archive.app.get(FARES).await;
    assert_eq!(answer.status, 500, "{}", answer.text());
    let again = archive.fare("2030-01-01", -3 * 1_440, Some(100));
    archive
        .keep(&[Observation {
            item: ItemId::new(),
            ..again
        }])
        .await;
    assert_eq!(
        archive.app.get(FARES).await.json()["data"][0]["prices"],
        2,
        "what is unpacked is read from what is true"
    );
    assert_eq!(
        pack_passed(archive.db.pool(), Timestamp::now())
            .await
            .unwrap(),
        1
    );
    assert_eq!(archive.app.get(FARES).await.json()["data"][0]["prices"], 2);
}
