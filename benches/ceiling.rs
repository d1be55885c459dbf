//! Limits without marketplace latency: the most items a second, the latency of a submit, and the
//! latency from a submit to its call.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use farescan::contract::SearchStatus;
use farescan::ids::AttemptId;
use farescan::queue::WorkerId;
use farescan::queue::store::{self, BeginVerdict, CallEnding, CallRecord, ClaimResult, ClaimRow};
use farescan::search::StoredHeaders;
use jiff::Timestamp;
use sqlx::PgPool;
use tokio::time::sleep;

use super::environment::{BenchEnvironment, Program};
use super::meter::{Measurement, ProcessSet, ResourceUsage, Times, load, median, ms};
use super::scans::{
    analyze_tables, count, create_callers, open_lanes, scan_request, submit, wait_until_done,
};
use super::upstream::Upstream;
use super::{Res, runs};

const ITEMS: usize = 10_000;
const IN_FLIGHT: u32 = 200;
const BYTES: usize = 6_144;
/// Concurrent loops of the queue without HTTP.
const LOOPS: usize = 3;
/// Items of one claim.
const BATCH: usize = 100;
/// Searches submitted one after the other to an idle queue.
const SINGLES: usize = 300;

/// Runs all four measurements. A database belongs to one marketplace, so each upstream has its own.
pub async fn run() -> Res<()> {
    for (bytes, what) in [(BYTES, "6,144 bytes"), (0, "an empty array")] {
        let env = BenchEnvironment::new().await?;
        let upstream = Upstream::start(0, bytes)?;
        let mut serve = env.serve(&upstream.url())?;
        let api = serve.listening().await?.ok_or("no address")?;
        println!(
            "\nceiling: {ITEMS} items over HTTP, upstream at once and {what}, {IN_FLIGHT} in flight, stored durably"
        );
        let mut worker = env.worker(&upstream.url(), IN_FLIGHT)?;
        worker.listening().await?;
        let mut rates = Vec::new();
        for run in 1..=runs() {
            let usage = throughput(&env, api, &worker, &upstream, &format!("{what}-{run}")).await?;
            let rate = per_second(&usage);
            rates.push(rate);
            println!("  run {run}: {rate:.0} items/s; {usage}");
        }
        println!(
            "  median {:.0} items/s (aim 25,000, the trial had 21,000 to 23,000)",
            median(rates)
        );
        if bytes > 0 {
            idle_latency(&env, api, &upstream).await?;
        }
        worker.stop().await?;
        if bytes == 0 {
            queue_throughput(&env, api, &upstream).await?;
            submit_latency(&env, api, &upstream).await?;
        }
        serve.stop().await?;
        env.close().await;
    }
    Ok(())
}

fn per_second(usage: &ResourceUsage) -> f64 {
    f64::from(u32::try_from(ITEMS).unwrap_or(u32::MAX)) / usage.wall.as_secs_f64()
}

async fn throughput(
    env: &BenchEnvironment,
    api: SocketAddr,
    worker: &Program,
    upstream: &Upstream,
    name: &str,
) -> Res<ResourceUsage> {
    let name = name.replace([' ', ','], "-");
    let callers = create_callers(env.pool(), api, &name, 1).await?;
    submit(api, &callers[0], &scan_request(ITEMS)).await?;
    analyze_tables(env.pool()).await?;
    let done = "select count(*) from scan_items where state = 'done'";
    let before = count(env.pool(), done).await?;
    let parts = [
        ("worker", ProcessSet::Process(worker.pid())),
        ("Postgres", env.postgres()),
        ("upstream", ProcessSet::Process(upstream.pid())),
    ];
    let measurement = Measurement::start(&parts)?;
    open_lanes(env.pool()).await?;
    wait_until_done(env.pool()).await?;
    let usage = measurement.finish()?;
    if count(env.pool(), done).await? - before != i64::try_from(ITEMS)? {
        return Err("not all items were done".into());
    }
    Ok(usage)
}

/// Submits one search at a time to an idle queue. Times are of the system clock, which all
/// processes share.
async fn idle_latency(env: &BenchEnvironment, api: SocketAddr, upstream: &Upstream) -> Res<()> {
    println!(
        "\nceiling: from an order to its call at the upstream, idle queue, {SINGLES} orders of one item"
    );
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
    };
    let caller = "bench-caller-idle-0";
    submit(api, caller, &scan_request(1)).await?;
    wait_until_done(env.pool()).await?;
    let (already, _) = upstream.counts().await?;
    let before = load()?;
    let mut orders = Vec::new();
    for number in 0..SINGLES {
        let sent = now();
        submit(api, caller, &scan_request(1)).await?;
        orders.push((sent, now()));
        wait_until_done(env.pool()).await?;
        // Not synchronous with periodic tasks.
        sleep(Duration::from_micros(20_000 + 137 * u64::try_from(number)?)).await;
    }
    let came = upstream.arrivals(already).await?;
    if came.len() != SINGLES {
        return Err(format!("{} calls for {SINGLES} orders", came.len()).into());
    }
    let pairs = || came.iter().zip(&orders);
    let from_sent = Times::of(
        pairs()
            .map(|(came, (sent, _))| came.saturating_sub(*sent))
            .collect(),
    );
    let from_promise = Times::of(
        pairs()
            .map(|(came, (_, promised))| came.saturating_sub(*promised))
            .collect(),
    );
    println!(
        "  from the order sent: median {}, p99 {}",
        ms(from_sent.median()),
        ms(from_sent.p99())
    );
    println!(
        "  from the 202 received: median {}, p99 {} (aim 2 and 6 ms, the trial had 2.6 and 12.5); load {before} to {}",
        ms(from_promise.median()),
        ms(from_promise.p99()),
        load()?
    );
    Ok(())
}

/// The queue without calls: claim, begin and record in batches, as the worker does, in concurrent
/// loops.
async fn queue_throughput(env: &BenchEnvironment, api: SocketAddr, upstream: &Upstream) -> Res<()> {
    println!(
        "\nceiling: the queue alone (claim, begin, record in batches of {BATCH}, {LOOPS} at a time), no HTTP, no answers"
    );
    let mut worker = env.worker(&upstream.url(), IN_FLIGHT)?;
    worker.listening().await?;
    let mut callers_of_runs = Vec::new();
    for run in 1..=runs() {
        callers_of_runs.push(create_callers(env.pool(), api, &format!("alone-{run}"), 1).await?);
    }
    worker.stop().await?;
    let mut rates = Vec::new();
    for (run, callers) in callers_of_runs.iter().enumerate() {
        submit(api, &callers[0], &scan_request(ITEMS)).await?;
        analyze_tables(env.pool()).await?;
        let measurement = Measurement::start(&[
            ("Postgres", env.postgres()),
            ("bench", ProcessSet::Process(std::process::id())),
        ])?;
        open_lanes(env.pool()).await?;
        let loops: Vec<_> = (0..LOOPS)
            .map(|_| tokio::spawn(run_queue_loop(env.pool().clone())))
            .collect();
        for one in loops {
            one.await??;
        }
        let usage = measurement.finish()?;
        wait_until_done(env.pool()).await?;
        rates.push(per_second(&usage));
        println!(
            "  run {}: {:.0} items/s; {usage}",
            run + 1,
            per_second(&usage)
        );
    }
    println!("  median {:.0} items/s", median(rates));
    Ok(())
}

async fn run_queue_loop(pool: PgPool) -> Res<()> {
    let worker = register_worker(&pool).await?;
    loop {
        let claims = claim(&pool, worker, BATCH).await?;
        if claims.is_empty() {
            let left: bool =
                sqlx::query_scalar("select exists (select from scans where finished_at is null)")
                    .fetch_one(&pool)
                    .await?;
            if !left {
                return Ok(());
            }
            sleep(Duration::from_millis(1)).await;
            continue;
        }
        finish(&pool, &claims).await?;
    }
}

/// Inserts a worker whose lease outlasts the run.
pub async fn register_worker(pool: &PgPool) -> Res<WorkerId> {
    let made = "insert into workers (lease_until) values (clock_timestamp() + interval '1 hour') returning worker_id";
    Ok(WorkerId(sqlx::query_scalar(made).fetch_one(pool).await?))
}

/// One claim.
pub async fn claim(pool: &PgPool, worker: WorkerId, slots: usize) -> Res<Vec<ClaimRow>> {
    match store::claim(pool, worker, slots).await? {
        ClaimResult::Claims(claims, _) => Ok(claims),
        ClaimResult::Fenced => Err("the lease has run out".into()),
    }
}

/// Begins and records the calls of claims.
pub async fn finish(pool: &PgPool, claims: &[ClaimRow]) -> Res<()> {
    let named: Vec<_> = claims
        .iter()
        .map(|row| (row.claim, AttemptId::new()))
        .collect();
    let verdicts = store::begin(pool, &named, &[], Timestamp::now()).await?;
    if verdicts
        .iter()
        .any(|verdict| *verdict != BeginVerdict::Begun)
    {
        return Err("a claim was not begun".into());
    }
    let calls: Vec<_> = claims
        .iter()
        .zip(&named)
        .map(|(row, (_, attempt))| call_record(row, *attempt))
        .collect();
    let mut tx = farescan::db::begin(pool).await?;
    let calls: Vec<_> = calls.iter().collect();
    let open = store::open_calls(&mut tx, &calls).await?;
    let without_offers: Vec<_> = calls.iter().map(|call| (*call, None)).collect();
    store::record_calls(&mut tx, &without_offers, &open, Timestamp::now()).await?;
    tx.commit().await?;
    if open.numbers.len() == calls.len() {
        Ok(())
    } else {
        Err("a call was recorded twice".into())
    }
}

fn call_record(row: &ClaimRow, attempt: AttemptId) -> CallRecord {
    CallRecord {
        tenant_id: row.claim.tenant.uuid(),
        item_id: row.claim.item.uuid(),
        number: row.claim.number,
        attempt_id: Some(attempt.uuid()),
        ended_at: Timestamp::now(),
        ending: CallEnding::Done,
        may_retry: false,
        http_status: Some(200),
        search_status: Some(SearchStatus::Ok),
        reason: None,
        error: None,
        search_headers: StoredHeaders::default(),
        latency_ms: 50,
        billed: 1,
        results: Some(10),
        best_price: Some("164".to_owned()),
        currency: Some("USD".to_owned()),
        pause_reason: None,
        pause_seconds: None,
    }
}

async fn submit_latency(env: &BenchEnvironment, api: SocketAddr, upstream: &Upstream) -> Res<()> {
    let times = 5 * runs();
    println!("\nceiling: submit of {ITEMS} items over HTTP, until its 202, {times} times");
    // The marketplace has accepted the callers: of others one item is stored.
    let mut worker = env.worker(&upstream.url(), IN_FLIGHT)?;
    worker.listening().await?;
    let callers = create_callers(env.pool(), api, "submit", times).await?;
    worker.stop().await?;
    // No worker runs, so the items stay pending.
    let before = load()?;
    let begun = Instant::now();
    let mut took = Vec::new();
    for caller in &callers {
        took.push(submit(api, caller, &scan_request(ITEMS)).await?);
    }
    let stored = count(
        env.pool(),
        "select count(*) from scan_items where state = 'pending'",
    )
    .await?;
    if stored != i64::try_from(ITEMS * times)? {
        return Err(format!("{stored} items are pending").into());
    }
    let times = Times::of(took);
    let (median, longest) = (times.median(), times.longest());
    let whole = begun.elapsed().as_secs_f64();
    println!(
        "  median {}, longest {} of {} in {whole:.1} s (aim 150 ms); load {before} to {}",
        ms(median),
        ms(longest),
        times.count(),
        load()?
    );
    Ok(())
}
