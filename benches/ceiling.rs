//! What is left when the marketplace takes no time: the most items a second, what a submit costs, and how soon an idle queue calls.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use farescan::contract::SearchStatus;
use farescan::ids::AttemptId;
use farescan::queue::WorkerId;
use farescan::queue::store::{self, Claimed, Ending, FinishedCall, Verdict, Visit};
use jiff::Timestamp;
use serde_json::Map;
use sqlx::PgPool;
use tokio::time::sleep;

use super::meter::{Span, Spent, Times, Who, load, middle, ms};
use super::orders::{all_done, callers, count, open, order, settle, submit};
use super::stage::{Program, Stage};
use super::upstream::Upstream;
use super::{Res, runs};

const ITEMS: usize = 10_000;
const IN_FLIGHT: u32 = 200;
const BYTES: usize = 6_144;
/// Visits to the database at a time in the queue alone.
const LOOPS: usize = 3;
/// Items of one visit.
const BATCH: usize = 100;
/// Searches that an idle queue is given, one after the other.
const SINGLES: usize = 300;

/// All four.
pub async fn run() -> Res<()> {
    let stage = Stage::new().await?;
    let upstream = Upstream::start(0, BYTES)?;
    let small = Upstream::start(0, 0)?;
    let serve = stage.serve(&upstream.url())?;
    let api = serve.listening().await?.ok_or("no address")?;
    for (upstream, what) in [(&upstream, "6,144 bytes"), (&small, "an empty array")] {
        println!(
            "\nceiling: {ITEMS} items over HTTP, upstream at once and {what}, {IN_FLIGHT} in flight, stored durably"
        );
        let worker = stage.worker(&upstream.url(), IN_FLIGHT)?;
        worker.listening().await?;
        let mut rates = Vec::new();
        for run in 1..=runs() {
            let spent =
                throughput(&stage, api, &worker, upstream, &format!("{what}-{run}")).await?;
            let rate = per_second(&spent);
            rates.push(rate);
            println!("  run {run}: {rate:.0} items/s; {spent}");
        }
        println!(
            "  median {:.0} items/s (aim 25,000, the trial had 21,000 to 23,000)",
            middle(rates)
        );
        if what.starts_with('6') {
            idle(&stage, api, upstream).await?;
        }
        worker.stop().await?;
    }
    alone(&stage, api, &small).await?;
    submits(&stage, api).await?;
    serve.stop().await?;
    stage.close().await;
    Ok(())
}

fn per_second(spent: &Spent) -> f64 {
    f64::from(u32::try_from(ITEMS).unwrap_or(u32::MAX)) / spent.wall.as_secs_f64()
}

async fn throughput(
    stage: &Stage,
    api: SocketAddr,
    worker: &Program,
    upstream: &Upstream,
    name: &str,
) -> Res<Spent> {
    let name = name.replace([' ', ','], "-");
    let callers = callers(stage.pool(), api, &name, 1).await?;
    submit(api, &callers[0], &order(ITEMS)).await?;
    settle(stage.pool()).await?;
    let done = "select count(*) from scan_items where state = 'done'";
    let before = count(stage.pool(), done).await?;
    let parts = [
        ("worker", Who::Process(worker.pid())),
        ("Postgres", stage.postgres()),
        ("upstream", Who::Process(upstream.pid())),
    ];
    let span = Span::begin(&parts)?;
    open(stage.pool()).await?;
    all_done(stage.pool()).await?;
    let spent = span.end()?;
    if count(stage.pool(), done).await? - before != i64::try_from(ITEMS)? {
        return Err("not all items were done".into());
    }
    Ok(spent)
}

/// One search at a time is ordered while nothing else is to do. Times are of the machine's clock, which all processes share.
async fn idle(stage: &Stage, api: SocketAddr, upstream: &Upstream) -> Res<()> {
    println!(
        "\nceiling: from an order to its call at the upstream, idle queue, {SINGLES} orders of one item"
    );
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
    };
    let caller = "bench-caller-idle-0";
    submit(api, caller, &order(1)).await?;
    all_done(stage.pool()).await?;
    let (already, _) = upstream.counts().await?;
    let before = load()?;
    let mut orders = Vec::new();
    for number in 0..SINGLES {
        let sent = now();
        submit(api, caller, &order(1)).await?;
        orders.push((sent, now()));
        all_done(stage.pool()).await?;
        // Not in step with anything that ticks.
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

/// The queue's moves without calls: claim, begin and record in batches, as the worker makes them, by a few loops at once.
async fn alone(stage: &Stage, api: SocketAddr, upstream: &Upstream) -> Res<()> {
    println!(
        "\nceiling: the queue's moves alone (claim, begin, record in batches of {BATCH}, {LOOPS} at a time), no HTTP, no answers"
    );
    let worker = stage.worker(&upstream.url(), IN_FLIGHT)?;
    worker.listening().await?;
    let mut callers_of_runs = Vec::new();
    for run in 1..=runs() {
        callers_of_runs.push(callers(stage.pool(), api, &format!("alone-{run}"), 1).await?);
    }
    worker.stop().await?;
    let mut rates = Vec::new();
    for (run, callers) in callers_of_runs.iter().enumerate() {
        submit(api, &callers[0], &order(ITEMS)).await?;
        settle(stage.pool()).await?;
        let span = Span::begin(&[
            ("Postgres", stage.postgres()),
            ("bench", Who::Process(std::process::id())),
        ])?;
        open(stage.pool()).await?;
        let loops: Vec<_> = (0..LOOPS)
            .map(|_| tokio::spawn(moves(stage.pool().clone())))
            .collect();
        for one in loops {
            one.await??;
        }
        let spent = span.end()?;
        all_done(stage.pool()).await?;
        rates.push(per_second(&spent));
        println!(
            "  run {}: {:.0} items/s; {spent}",
            run + 1,
            per_second(&spent)
        );
    }
    println!("  median {:.0} items/s", middle(rates));
    Ok(())
}

async fn moves(pool: PgPool) -> Res<()> {
    let worker = worker_row(&pool).await?;
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

/// A lease that lasts as long as the run.
pub async fn worker_row(pool: &PgPool) -> Res<WorkerId> {
    let made = "insert into workers (lease_until) values (clock_timestamp() + interval '1 hour') returning worker_id";
    Ok(WorkerId(sqlx::query_scalar(made).fetch_one(pool).await?))
}

/// One visit to the lanes.
pub async fn claim(pool: &PgPool, worker: WorkerId, slots: usize) -> Res<Vec<Claimed>> {
    match store::claim(pool, worker, slots).await? {
        Visit::Claims(claims, _) => Ok(claims),
        Visit::Fenced => Err("the lease has run out".into()),
    }
}

/// Puts claims on record and their ends too.
pub async fn finish(pool: &PgPool, claims: &[Claimed]) -> Res<()> {
    let named: Vec<_> = claims
        .iter()
        .map(|claimed| (claimed.claim, AttemptId::new()))
        .collect();
    let verdicts = store::begin(pool, &named, Timestamp::now()).await?;
    if verdicts.iter().any(|verdict| *verdict != Verdict::Begun) {
        return Err("a claim was not begun".into());
    }
    let calls: Vec<_> = claims
        .iter()
        .zip(&named)
        .map(|(claimed, (_, attempt))| ended(claimed, *attempt))
        .collect();
    let mut tx = farescan::db::begin(pool).await?;
    let fresh =
        store::record_calls(&mut tx, &calls.iter().collect::<Vec<_>>(), Timestamp::now()).await?;
    tx.commit().await?;
    if fresh.len() == calls.len() {
        Ok(())
    } else {
        Err("a call was recorded twice".into())
    }
}

fn ended(claimed: &Claimed, attempt: AttemptId) -> FinishedCall {
    FinishedCall {
        tenant_id: claimed.claim.tenant.uuid(),
        item_id: claimed.claim.item.uuid(),
        number: claimed.claim.number,
        attempt_id: Some(attempt.uuid()),
        ended_at: Timestamp::now(),
        ending: Ending::Done,
        may_retry: false,
        http_status: Some(200),
        search_status: Some(SearchStatus::Ok),
        reason: None,
        error: None,
        search_headers: Map::new(),
        latency_ms: 50,
        billed: 1,
        results: Some(10),
        best_price: Some("164".to_owned()),
        currency: Some("USD".to_owned()),
        pause_reason: None,
        pause_seconds: None,
    }
}

async fn submits(stage: &Stage, api: SocketAddr) -> Res<()> {
    let times = 5 * runs();
    println!("\nceiling: submit of {ITEMS} items over HTTP, until its 202, {times} times");
    // Nobody takes them: no worker runs.
    let before = load()?;
    let begun = Instant::now();
    let mut took = Vec::new();
    for number in 0..times {
        took.push(submit(api, &format!("bench-caller-submit-{number}"), &order(ITEMS)).await?);
    }
    let stored = count(
        stage.pool(),
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
