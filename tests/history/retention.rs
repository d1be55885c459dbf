//! Retention and partitions.

use farescan::config::RetentionConfig;
use farescan::db::partitions::create_partitions_ahead;
use farescan::history::daily_pack::pack_past_days;
use farescan::upkeep::retention::remove_expired;
use jiff::{SignedDuration, Timestamp, ToSpan as _, civil::date, tz::TimeZone};
use serde_json::json;
use sqlx::PgPool;

use super::fixture::HistoryFixture;
use crate::faults::process::FarescanProcess;
use crate::support::db::{TestDb, connect, execute};
use crate::support::{SearchOutcome, TestService, array, fares, wait_until};
use crate::worker::fixture::WorkerFixture;

/// Tables with monthly partitions.
const TABLES: [&str; 3] = ["answers", "observations", "observed_days"];

fn noon(year: i16, month: i8, day: i8) -> Timestamp {
    date(year, month, day)
        .at(12, 0, 0, 0)
        .to_zoned(TimeZone::UTC)
        .unwrap()
        .timestamp()
}

/// The months of a table's partitions in order, such as `2026m03`.
async fn months(pool: &PgPool, table: &str) -> Vec<String> {
    let names = "select substr(c.relname, length($1) + 3) from pg_inherits i join pg_class c on c.oid = i.inhrelid
                 where i.inhparent = to_regclass($1) order by 1";
    values!(pool, names, table)
}

/// Tables named like a partition, attached or not.
async fn tables(pool: &PgPool, table: &str) -> i64 {
    let count = sqlx::query_scalar(
        "select count(*) from pg_class where relkind = 'r' and relname like $1 || '\\_y%'",
    );
    count.bind(table).fetch_one(pool).await.unwrap()
}

async fn make(pool: &PgPool, from: Timestamp, months: i32) {
    let made = "select create_partitions($1, $2)";
    execute!(pool, made, jiff_sqlx::Timestamp::from(from), months - 1);
}

/// A database whose first partition is the month of `from`.
async fn with_months(from: Timestamp, count: i32) -> TestDb {
    let db = TestDb::new().await;
    let mut conn = connect(&db.connect_options()).await;
    for table in TABLES {
        for month in months(db.pool(), table).await {
            execute(&mut conn, &format!("drop table {table}_y{month}"))
                .await
                .unwrap();
        }
    }
    make(db.pool(), from, count).await;
    db
}

fn days(answer: u32) -> RetentionConfig {
    RetentionConfig {
        answer_retention_days: answer,
        ..RetentionConfig::default()
    }
}

/// The clock moves through three years, a day at a time.
#[tokio::test]
async fn every_time_has_a_partition_long_in_advance() {
    let db = with_months(noon(2030, 1, 31), 1).await;
    let mut now = noon(2030, 1, 31).to_zoned(TimeZone::UTC);
    for _ in 0..(3 * 365) {
        create_partitions_ahead(db.pool(), now.timestamp())
            .await
            .unwrap();
        let ahead = now.checked_add(1.month()).unwrap();
        let there = months(db.pool(), "observations").await;
        for month in [&now, &ahead] {
            assert!(
                there.contains(&month.strftime("%Ym%m").to_string()),
                "{now}: {there:?}"
            );
        }
        now = now.checked_add(1.day()).unwrap();
    }
    for table in TABLES {
        assert_eq!(
            months(db.pool(), table).await,
            months(db.pool(), "observations").await
        );
    }
    assert_eq!(
        months(db.pool(), "answers").await.len(),
        39,
        "January 2030 to March 2033, and none twice"
    );
}

/// A partition that was created separately and attached has the same keys, checks and storage.
#[tokio::test]
async fn a_partition_has_its_tables_keys_checks_and_storage() {
    let db = with_months(noon(2031, 5, 1), 1).await;
    let differences: Vec<String> = values!(db.pool(), "select p.relname || '.' || a.attname from pg_class p
         join pg_inherits i on i.inhparent = p.oid
         join pg_attribute a on a.attrelid = p.oid and a.attnum > 0 and not a.attisdropped
         join pg_attribute b on b.attrelid = i.inhrelid and b.attname = a.attname
         where (a.atttypid, a.attnotnull, a.attstorage) is distinct from (b.atttypid, b.attnotnull, b.attstorage)
         union all
         select p.relname || ': indexes' from pg_class p join pg_inherits i on i.inhparent = p.oid
         where p.relkind = 'p'
           and (select count(*) from pg_index x where x.indrelid = p.oid) <> (select count(*) from pg_index x where x.indrelid = i.inhrelid)
         union all
         select p.relname || ': checks' from pg_class p join pg_inherits i on i.inhparent = p.oid
         where p.relkind = 'p'
           and (select count(*) from pg_constraint x where x.conrelid = p.oid and x.contype = 'c')
               <> (select count(*) from pg_constraint x where x.conrelid = i.inhrelid and x.contype = 'c')");
    assert!(differences.is_empty(), "{differences:?}");
}

/// A pass drops at most one whole month per table, once its last moment is old enough.
#[tokio::test]
async fn a_month_is_dropped_once_all_of_it_is_too_old() {
    let db = with_months(noon(2030, 1, 1), 8).await;
    let config = RetentionConfig {
        observation_retention_months: 4,
        ..days(90)
    };
    // January ends 90 days before May 2nd.
    for (now, answers, observations) in [
        (noon(2030, 4, 30), "2030m01", "2030m01"),
        (noon(2030, 5, 1), "2030m01", "2030m01"),
        (noon(2030, 5, 2), "2030m02", "2030m01"),
        (noon(2030, 5, 29), "2030m02", "2030m01"),
        // February ends 90 days before May 30th, and January four months before June 1st.
        (noon(2030, 5, 30), "2030m03", "2030m01"),
        (noon(2030, 6, 1), "2030m03", "2030m02"),
        (noon(2030, 6, 1), "2030m03", "2030m02"),
    ] {
        remove_expired(db.pool(), &config, now).await.unwrap();
        let first = [
            months(db.pool(), "answers").await[0].clone(),
            months(db.pool(), "observations").await[0].clone(),
        ];
        assert_eq!(first, [answers, observations], "{now}");
    }
    // After a long pause, each pass drops one month per table until none is old enough.
    let later = noon(2030, 8, 20);
    let mut passes = 0;
    while !remove_expired(db.pool(), &config, later)
        .await
        .unwrap()
        .partitions
        .is_empty()
    {
        passes += 1;
    }
    assert_eq!(
        months(db.pool(), "answers").await,
        ["2030m05", "2030m06", "2030m07", "2030m08"]
    );
    assert_eq!(
        months(db.pool(), "observations").await,
        ["2030m04", "2030m05", "2030m06", "2030m07", "2030m08"]
    );
    assert_eq!(passes, 2);
    assert_eq!(
        (
            tables(db.pool(), "answers").await,
            tables(db.pool(), "observations").await,
            tables(db.pool(), "observed_days").await
        ),
        (4, 5, 5),
        "dropped, not only detached"
    );
    // Kept forever by default.
    let for_good = RetentionConfig {
        observation_retention_months: 0,
        ..days(0)
    };
    assert!(
        remove_expired(db.pool(), &for_good, noon(2090, 1, 1))
            .await
            .unwrap()
            .partitions
            .is_empty()
    );
}

/// The next pass continues after any interrupted step.
#[tokio::test]
async fn a_dead_processs_detach_is_finished_an_operators_is_not() {
    for step in 0..4 {
        let db = with_months(noon(2030, 1, 1), 6).await;
        let mut conn = connect(&db.connect_options()).await;
        // An operator has detached January.
        execute(
            &mut conn,
            "alter table answers detach partition answers_y2030m01 concurrently",
        )
        .await
        .unwrap();
        let begun = "insert into retiring_partitions values ('answers_y2030m02', 'answers', now())";
        execute(&mut conn, begun).await.unwrap();
        if step >= 1 {
            execute(
                &mut conn,
                "alter table answers detach partition answers_y2030m02 concurrently",
            )
            .await
            .unwrap();
        }
        if step >= 2 {
            execute(&mut conn, "drop table answers_y2030m02")
                .await
                .unwrap();
        }
        if step >= 3 {
            execute(&mut conn, "delete from retiring_partitions")
                .await
                .unwrap();
        }
        // Whatever the retention is now, a started drop is finished and nothing else is touched.
        remove_expired(db.pool(), &days(36_500), noon(2030, 6, 1))
            .await
            .unwrap();
        assert_eq!(
            months(db.pool(), "answers").await,
            ["2030m03", "2030m04", "2030m05", "2030m06"],
            "after step {step}"
        );
        assert_eq!(
            tables(db.pool(), "answers").await,
            5,
            "the operator's January is still there"
        );
        let left: i64 = value!(db.pool(), "select count(*) from retiring_partitions");
        assert_eq!(left, 0);
    }
}

/// A detach was interrupted because a reader outlasted every timeout.
#[tokio::test]
async fn a_long_reader_does_not_block_other_queries() {
    let db = with_months(noon(2030, 1, 1), 6).await;
    let mut reader = connect(&db.connect_options()).await;
    execute(&mut reader, "begin; select count(*) from answers")
        .await
        .unwrap();
    // The session's lock_timeout of 5 s ends the wait.
    let error = remove_expired(db.pool(), &days(90), noon(2030, 6, 1))
        .await
        .unwrap_err();
    assert!(
        error
            .as_database_error()
            .is_some_and(|error| error.code().is_some_and(|code| code == "55P03")),
        "{error}"
    );
    let mut writer = connect(&db.connect_options()).await;
    execute(
        &mut writer,
        "set statement_timeout = '2s'; set lock_timeout = '2s'",
    )
    .await
    .unwrap();
    let row = "insert into answers values (gen_random_uuid(), gen_random_uuid(), 1, '2030-05-05', ''); select count(*) from answers";
    execute(&mut writer, row)
        .await
        .expect("others read and write meanwhile");
    let made = sqlx::query("select create_partitions('2031-01-01', 0)")
        .execute(db.pool())
        .await;
    assert!(made.is_ok(), "and so does a new partition");
    execute(&mut reader, "commit").await.unwrap();
    let retired = remove_expired(db.pool(), &days(90), noon(2030, 6, 1))
        .await
        .unwrap();
    assert_eq!(retired.partitions[0], "answers_y2030m01");
    assert!(
        !months(db.pool(), "answers")
            .await
            .contains(&"2030m01".to_owned())
    );
}

/// During a long backup, buckets and listed observations agree.
#[tokio::test]
async fn no_bucket_counts_a_dropped_observation() {
    // Which tables the backup has read, and whether the month is visible after the pass.
    for (holds, shows) in [
        ("select count(*) from observations", false),
        ("select count(*) from observed_days", false),
        (
            "select count(*) from observations; select count(*) from observed_days",
            false,
        ),
        // Locked but not read: the month is not even hidden.
        (
            "lock table observed_days in share update exclusive mode",
            true,
        ),
    ] {
        let fixture = HistoryFixture::open().await;
        let pool = fixture.pool();
        execute!(
            pool,
            "select create_partitions(now() - interval '7 months', 8)"
        );
        fixture
            .insert(&[
                fixture.fare("2030-01-01", -5 * 31 * 1_440, Some(100)),
                fixture.fare("2030-01-01", -1_440 * 2, Some(200)),
            ])
            .await;
        pack_past_days(pool, fixture.now).await.unwrap();
        let config = RetentionConfig {
            observation_retention_months: 3,
            ..days(0)
        };
        // All months before the first observation.
        let first = (fixture.now - SignedDuration::from_hours(5 * 31 * 24))
            .to_zoned(TimeZone::UTC)
            .strftime("%Ym%m")
            .to_string();
        while months(pool, "observations").await[0] < first {
            assert_eq!(
                remove_expired(pool, &config, fixture.now)
                    .await
                    .unwrap()
                    .partitions
                    .len(),
                2
            );
        }
        let mut reader = connect(&fixture.db.connect_options()).await;
        execute(&mut reader, &format!("begin; {holds}"))
            .await
            .unwrap();
        let error = remove_expired(pool, &config, fixture.now)
            .await
            .unwrap_err();
        assert!(
            error
                .as_database_error()
                .is_some_and(|error| error.code().is_some_and(|code| code == "55P03")),
            "{error}"
        );
        let route = "from_airport=TLV&to_airport=LHR";
        let since = fixture.now - SignedDuration::from_hours(300 * 24);
        let series = fixture
            .app
            .get(&format!("/v1/history/flights/series?{route}&since={since}"))
            .await
            .json();
        let list = fixture
            .app
            .get(&format!("/v1/history/flights?{route}"))
            .await
            .json();
        let actual: Vec<_> = array(&series["data"])
            .iter()
            .map(|row| row["minimum"].clone())
            .collect();
        let listed: Vec<_> = array(&list["data"])
            .iter()
            .rev()
            .map(|row| row["price"].clone())
            .collect();
        assert_eq!(actual, listed, "while another has done: {holds}");
        assert_eq!(actual.len(), if shows { 2 } else { 1 }, "{holds}");
        execute(&mut reader, "commit").await.unwrap();
        remove_expired(pool, &config, fixture.now).await.unwrap();
        assert!(
            months(pool, "observations").await[0] > first
                && months(pool, "observed_days").await[0] > first
        );
    }
}

#[tokio::test]
async fn only_one_process_drops_partitions_at_a_time() {
    let db = with_months(noon(2030, 1, 1), 6).await;
    let mut other = connect(&db.connect_options()).await;
    execute(
        &mut other,
        "select pg_advisory_lock(hashtextextended('farescan.retention', 0))",
    )
    .await
    .unwrap();
    let config = days(1);
    assert!(
        remove_expired(db.pool(), &config, noon(2030, 6, 1))
            .await
            .unwrap()
            .partitions
            .is_empty()
    );
    drop(other);
    let all = futures::future::join_all(
        (0..8).map(|_| remove_expired(db.pool(), &config, noon(2030, 6, 1))),
    )
    .await;
    let partitions: usize = all
        .into_iter()
        .map(|retired| retired.unwrap().partitions.len())
        .sum();
    assert_eq!(
        6 - months(db.pool(), "answers").await.len(),
        partitions,
        "each month once"
    );
}

#[tokio::test]
async fn expired_answers_keep_items_expired_scans_keep_their_cost() {
    let service = TestService::start().await;
    let stored = service
        .submit_and_complete(&fares(2), |_| SearchOutcome::Ok(100))
        .await;
    let old = service
        .submit_and_complete(&fares(3), |_| SearchOutcome::Ok(200))
        .await;
    let live = service.submit(&fares(1)).await;
    let pool = service.pool();
    execute!(
        pool,
        "update scans set finished_at = now() - interval '31 days' where scan_id = $1::text::uuid",
        uuid_of(&old)
    );
    let before = service.get("/v1/usage").await["totals"].clone();
    let config = RetentionConfig {
        scan_retention_days: 30,
        ..days(1)
    };
    let retired = remove_expired(pool, &config, Timestamp::now())
        .await
        .unwrap();
    assert_eq!(retired.scans, 1);
    assert_eq!(
        service.app.get(&format!("/v1/scans/{old}")).await.kind(),
        "404 not_found"
    );
    for scan in [&stored, &live] {
        assert_eq!(
            service.app.get(&format!("/v1/scans/{scan}")).await.status,
            200
        );
    }
    assert_eq!(
        service.get("/v1/usage").await["totals"],
        before,
        "billed requests stay counted"
    );
    let items = service
        .get(&format!("/v1/scans/{stored}/items?expand=answer"))
        .await;
    let item = &items["data"][0];
    assert_eq!(
        (
            &item["search_status"],
            &item["best_price"],
            item.get("answer")
        ),
        (&json!("ok"), &json!(100), None)
    );
    // Kept forever by default.
    assert_eq!(
        remove_expired(pool, &days(1), Timestamp::now())
            .await
            .unwrap()
            .scans,
        0
    );
}

fn uuid_of(id: &str) -> String {
    let id: farescan::ids::ScanId = id.parse().unwrap();
    id.uuid().to_string()
}

/// A running worker creates missing partitions and drops expired ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_creates_and_drops_partitions_by_itself() {
    let fixture = WorkerFixture::new().await;
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let name = |months: i64| {
        now.checked_add(months.months())
            .unwrap()
            .strftime("%Ym%m")
            .to_string()
    };
    make(
        fixture.pool(),
        now.checked_sub(6.months()).unwrap().timestamp(),
        3,
    )
    .await;
    // In one statement: between two, the worker may create the first one again.
    let drop_month = async |month: String| {
        let tables = TABLES.map(|table| format!("{table}_y{month}")).join(", ");
        let mut conn = fixture.pool().acquire().await.unwrap();
        execute(&mut conn, &format!("drop table {tables}"))
            .await
            .unwrap();
    };
    drop_month(name(0)).await;
    let settings = [
        ("FARESCAN_UPKEEP_SECONDS", "1"),
        ("FARESCAN_ANSWER_RETENTION_DAYS", "30"),
    ];
    let process = FarescanProcess::start_with(&fixture, 4, &settings);
    process.wait_for_log("listening").await;
    let scan = fixture.submit(2, &json!({})).await;
    fixture.wait_until_ended(scan).await;
    for _ in 0..2 {
        drop_month(name(1)).await;
        wait_until("next month is there again", async || {
            months(fixture.pool(), "answers").await.contains(&name(1))
        })
        .await;
    }
    wait_until("the old months are gone", async || {
        months(fixture.pool(), "answers").await[0] >= name(-2)
    })
    .await;
    assert_eq!(
        months(fixture.pool(), "observations").await[0],
        name(-6),
        "the history is kept"
    );
    assert_eq!(fixture.count("select count(*) from answers").await, 2);
}

/// An answer that waited in the spool for months can still be stored.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_a_partition_is_given_one() {
    let fixture = WorkerFixture::new().await;
    let worker = fixture.start_worker();
    let first = fixture.submit(1, &json!({})).await;
    fixture.wait_until_ended(first).await;
    let mut conn = fixture.pool().acquire().await.unwrap();
    for table in TABLES {
        for month in months(fixture.pool(), table).await {
            execute(&mut conn, &format!("drop table {table}_y{month}"))
                .await
                .unwrap();
        }
    }
    let second = fixture.submit(3, &json!({"label": "after"})).await;
    fixture.wait_until_ended(second).await;
    assert_eq!(fixture.count("select count(*) from answers").await, 3);
    assert_eq!(fixture.count("select count(*) from observations").await, 3);
    worker.stop().await;
}
