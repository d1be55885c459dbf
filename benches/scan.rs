//! Scan throughput: 10,000 items of one caller, and of more, against the arithmetic limit of the
//! calls in flight; in a database that has worked, and in a new one.

use std::time::Duration;

use super::environment::BenchEnvironment;
use super::meter::{Measurement, ProcessSet, median, peak_memory};
use super::scans::{
    analyze_tables, count, create_callers, open_lanes, scan_request, submit, wait_until_done,
};
use super::upstream::Upstream;
use super::{Res, runs};

const ITEMS: usize = 10_000;
/// Items of the warm-up.
const WARM: usize = 2_000;
const IN_FLIGHT: u32 = 200;
const DELAY_MS: u64 = 50;
const BYTES: usize = 6_144;

/// Both cases.
pub async fn run() -> Res<()> {
    case(
        "one",
        1,
        "aim 0.85, the trial had 0.76; worker 1.0 CPU s and 60 MB",
    )
    .await?;
    case("fifty", 50, "aim 0.80, the trial had 0.60").await
}

/// Many callers, and the first items of a new database: each once.
pub async fn run_unusual() -> Res<()> {
    measured("fivehundred", 500, "no aim", 1, true).await?;
    measured("fivethousand", 5_000, "no aim", 1, true).await?;
    println!("\na new database, without a warm-up and not analyzed:");
    measured(
        "new",
        1,
        "Postgres within 1.2 times of the others",
        1,
        false,
    )
    .await
}

async fn case(name: &str, how_many: usize, aim: &str) -> Res<()> {
    measured(name, how_many, aim, runs(), true).await
}

async fn measured(name: &str, how_many: usize, aim: &str, runs: usize, is_warm: bool) -> Res<()> {
    let limit = f64::from(IN_FLIGHT) / Duration::from_millis(DELAY_MS).as_secs_f64();
    println!(
        "\nscan: {ITEMS} items of {how_many} caller(s), upstream {DELAY_MS} ms and {BYTES} bytes, {IN_FLIGHT} in flight, stored durably"
    );
    let env = BenchEnvironment::new().await?;
    let upstream = Upstream::start(DELAY_MS, BYTES)?;
    let mut serve = env.serve(&upstream.url())?;
    let api = serve.listening().await?.ok_or("no address")?;
    let mut worker = env.worker(&upstream.url(), IN_FLIGHT)?;
    worker.listening().await?;
    if is_warm {
        // Warms up connections, code and plans.
        let first = create_callers(env.pool(), api, &format!("{name}-first"), how_many).await?;
        for caller in &first {
            submit(api, caller, &scan_request((WARM / how_many).max(1))).await?;
        }
        open_lanes(env.pool()).await?;
        wait_until_done(env.pool()).await?;
    }
    let mut ratios = Vec::new();
    for run in 1..=runs {
        let callers = create_callers(env.pool(), api, &format!("{name}-{run}"), how_many).await?;
        for caller in &callers {
            submit(api, caller, &scan_request(ITEMS / how_many)).await?;
        }
        if is_warm {
            analyze_tables(env.pool()).await?;
        }
        let before = stored(&env).await?;
        let parts = [
            ("worker", ProcessSet::Process(worker.pid())),
            ("Postgres", env.postgres()),
            ("upstream", ProcessSet::Process(upstream.pid())),
            ("API", ProcessSet::Process(serve.pid())),
            ("bench", ProcessSet::Process(std::process::id())),
        ];
        let measurement = Measurement::start(&parts)?;
        open_lanes(env.pool()).await?;
        wait_until_done(env.pool()).await?;
        let usage = measurement.finish()?;
        let expected = i64::try_from(ITEMS)?;
        if stored(&env).await?.since(before) != [expected; 4] {
            return Err(format!(
                "some items were lost or stored twice: {:?} after {before:?}",
                stored(&env).await?
            )
            .into());
        }
        let rate = f64::from(u32::try_from(ITEMS)?) / usage.wall.as_secs_f64();
        ratios.push(rate / limit);
        println!(
            "  run {run}: {rate:.0} items/s = {:.2} of {limit:.0}/s; worker {:.0} MB at most; {usage}",
            rate / limit,
            peak_memory(worker.pid())?
        );
    }
    println!(
        "  median {:.2} of the limit, best {:.2} ({aim})",
        median(ratios.clone()),
        ratios.iter().copied().fold(0.0, f64::max)
    );
    worker.stop().await?;
    serve.stop().await?;
    env.close().await;
    Ok(())
}

/// Counts that grow by one with each item: done items, ended attempts, answers, observations.
#[derive(Debug, Clone, Copy)]
struct Stored([i64; 4]);

impl Stored {
    /// The growth since `before`.
    fn since(self, before: Self) -> [i64; 4] {
        std::array::from_fn(|at| self.0[at] - before.0[at])
    }
}

async fn stored(env: &BenchEnvironment) -> Res<Stored> {
    let pool = env.pool();
    Ok(Stored([
        count(pool, "select count(*) from scan_items where state = 'done' and search_status = 'ok' and best_price is not null")
            .await?,
        count(pool, "select count(*) from attempts where ended_at is not null").await?,
        count(pool, "select count(*) from answers").await?,
        count(pool, "select count(*) from observations").await?,
    ]))
}
