//! What a stored answer costs in the database: bytes of each table, and of the write-ahead log.
//!
//! One caller scans one-way fares of the sandbox at a pace at which nearly each call is stored
//! alone. A checkpoint follows every 300 items, as after five minutes of one call a second: the
//! first change of a page after it writes the whole page to the log.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use farescan::sandbox::{self, SandboxOptions};
use serde_json::json;
use sqlx::{FromRow, PgPool};
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::Res;
use super::environment::BenchEnvironment;
use super::scans::{count, submit, wait_until_done};

/// The sandbox's, without limits.
const CALLER: &str = "sandbox-unlimited.bytes";
/// Neither the seed nor an airport of the dictionaries' training.
const SEED: u64 = 5;
const FROM: &str = "MUC";
const TO: [&str; 12] = [
    "LIS", "MAN", "PRG", "OSL", "KRK", "NCE", "AGP", "BRU", "HEL", "EDI", "OPO", "VCE",
];
const DAYS: i64 = 250;
const ITEMS_A_SECOND: i32 = 20;
/// Items between two checkpoints.
const CHECKPOINT: i64 = 300;

#[derive(FromRow)]
struct TableSize {
    name: String,
    heap: i64,
    toast: i64,
    indexes: i64,
}

#[derive(FromRow)]
struct LogShare {
    name: String,
    bytes: i64,
    pages: i64,
}

pub async fn run() -> Res<()> {
    let env = BenchEnvironment::new().await?;
    let pool = env.pool();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let upstream = format!("http://{}", listener.local_addr()?);
    let options = SandboxOptions {
        seed: SEED,
        latency_factor: 0.0,
        ..SandboxOptions::default()
    };
    tokio::spawn(sandbox::serve(listener, options, std::future::pending()));
    let mut serve = env.serve(&upstream)?;
    let api = serve.listening().await?.ok_or("no address")?;
    let mut worker = env.worker(&upstream, 50)?;
    worker.listening().await?;
    // The first item is stored alone: the caller is not accepted before it.
    submit(api, CALLER, &scan_request(1)).await?;
    wait_until_done(pool).await?;
    let pace = "update lanes
                set own_per_minute = 60 * $1, emission = make_interval(secs => 1.0 / $1), burst = 1";
    sqlx::query(pace).bind(ITEMS_A_SECOND).execute(pool).await?;
    // The log is read at the end.
    for keep in [
        "alter system set wal_keep_size = '4GB'",
        "select pg_reload_conf()",
    ] {
        sqlx::query(keep).execute(pool).await?;
    }
    let before = sizes(pool).await?;
    sqlx::query("checkpoint").execute(pool).await?;
    let started = log_end(pool).await?;
    submit(api, CALLER, &scan_request(DAYS)).await?;
    checkpoint_often(pool).await?;
    wait_until_done(pool).await?;
    let log = log_shares(pool, &started, &log_end(pool).await?).await?;
    print(pool, &before, &sizes(pool).await?, &log).await?;
    worker.stop().await?;
    serve.stop().await?;
    env.close().await;
    Ok(())
}

fn scan_request(days: i64) -> serde_json::Value {
    let first = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date()
        .saturating_add(jiff::Span::new().days(30));
    let last = first.saturating_add(jiff::Span::new().days(days - 1));
    let places = if days == 1 { &TO[..1] } else { &TO[..] };
    json!({
        "endpoint": "flights/oneway",
        "request": {"from_airport": FROM, "currency": "EUR"},
        "sweep": {"to_airport": places, "departure_date": {"from": first.to_string(), "to": last.to_string()}},
    })
}

async fn checkpoint_often(pool: &PgPool) -> Res<()> {
    let mut next = CHECKPOINT;
    while next < DAYS * i64::try_from(TO.len())? {
        if count(pool, "select count(*) from answers").await? >= next {
            sqlx::query("checkpoint").execute(pool).await?;
            next += CHECKPOINT;
        }
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// The tables after a vacuum; partitions count as their parent.
async fn sizes(pool: &PgPool) -> Res<BTreeMap<String, TableSize>> {
    sqlx::query("vacuum analyze").execute(pool).await?;
    let rows: Vec<TableSize> = sqlx::query_as(
        "select coalesce(pg_partition_root(c.oid), c.oid)::regclass::text as name,
                sum(pg_relation_size(c.oid))::bigint as heap,
                sum(coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0))::bigint as toast,
                sum(pg_indexes_size(c.oid))::bigint as indexes
         from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace group by 1",
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.name.clone(), row))
        .collect())
}

/// Where the write-ahead log ends.
async fn log_end(pool: &PgPool) -> Res<String> {
    let position = sqlx::query_scalar("select pg_current_wal_insert_lsn()::text");
    Ok(position.fetch_one(pool).await?)
}

/// The log between two positions by table, with its indexes.
async fn log_shares(pool: &PgPool, from: &str, to: &str) -> Res<Vec<LogShare>> {
    sqlx::query("create extension if not exists pg_walinspect")
        .execute(pool)
        .await?;
    let shares = sqlx::query_as(
        "select coalesce(coalesce(pg_partition_root(t.oid), t.oid)::regclass::text, w.resource_manager) as name,
                sum(w.record_length)::bigint as bytes, sum(w.fpi_length)::bigint as pages
         from pg_get_wal_records_info($1::pg_lsn, $2::pg_lsn) w
         left join pg_class c on c.oid = pg_filenode_relation(0, substring(w.block_ref from 'rel \\d+/\\d+/(\\d+)')::oid)
         left join pg_index x on x.indexrelid = c.oid
         left join pg_class t on t.oid = coalesce(x.indrelid, c.oid)
         group by 1 order by 2 desc",
    );
    Ok(shares.bind(from).bind(to).fetch_all(pool).await?)
}

async fn print(
    pool: &PgPool,
    before: &BTreeMap<String, TableSize>,
    after: &BTreeMap<String, TableSize>,
    log: &[LogShare],
) -> Res<()> {
    let items = DAYS * i64::try_from(TO.len())?;
    let body = count(pool, "select avg(length(body))::bigint from answers").await?;
    println!(
        "\nbytes of each of {items} one-way answers (body {body} bytes), {ITEMS_A_SECOND} a second:"
    );
    let line = |name: &str, numbers: [i64; 6]| {
        let numbers = numbers.map(|number| format!("{number:>8}")).concat();
        println!("{name:<18}{numbers}");
    };
    println!(
        "{:<18}    heap   toast indexes     all     log  of it whole pages",
        "table"
    );
    let mut total = [0; 6];
    let names: BTreeSet<_> = after
        .keys()
        .chain(log.iter().map(|share| &share.name))
        .collect();
    for name in names {
        let stored = |part: fn(&TableSize) -> i64| {
            let size = |of: &BTreeMap<String, TableSize>| of.get(name).map_or(0, part);
            size(after) - size(before)
        };
        let parts = [
            stored(|table| table.heap),
            stored(|table| table.toast),
            stored(|table| table.indexes),
        ];
        let written = log.iter().find(|share| &share.name == name);
        let [bytes, pages] = written.map_or([0; 2], |share| [share.bytes, share.pages]);
        let numbers = [
            parts[0],
            parts[1],
            parts[2],
            parts.iter().sum(),
            bytes,
            pages,
        ];
        total = std::array::from_fn(|at| total[at] + numbers[at]);
        let each = numbers.map(|number| number / items);
        if each != [0; 6] {
            line(name, each);
        }
    }
    line("all", total.map(|number| number / items));
    Ok(())
}
