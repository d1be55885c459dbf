//! Scan throughput: 10,000 items of one caller, and of 50, against the arithmetic limit of the calls in flight.

use std::time::Duration;

use super::meter::{Span, Who, middle, peak_memory};
use super::orders::{all_done, callers, count, open, order, settle, submit};
use super::stage::Stage;
use super::upstream::Upstream;
use super::{Res, runs};

const ITEMS: usize = 10_000;
/// Items that go before, not counted.
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

async fn case(name: &str, how_many: usize, aim: &str) -> Res<()> {
    let limit = f64::from(IN_FLIGHT) / Duration::from_millis(DELAY_MS).as_secs_f64();
    println!(
        "\nscan: {ITEMS} items of {how_many} caller(s), upstream {DELAY_MS} ms and {BYTES} bytes, {IN_FLIGHT} in flight, stored durably"
    );
    let stage = Stage::new().await?;
    let upstream = Upstream::start(DELAY_MS, BYTES)?;
    let serve = stage.serve(&upstream.url())?;
    let api = serve.listening().await?.ok_or("no address")?;
    let worker = stage.worker(&upstream.url(), IN_FLIGHT)?;
    worker.listening().await?;
    // Connections, code and plans are there when it counts.
    let first = callers(stage.pool(), api, &format!("{name}-first"), how_many).await?;
    for caller in &first {
        submit(api, caller, &order(WARM / how_many)).await?;
    }
    open(stage.pool()).await?;
    all_done(stage.pool()).await?;
    let mut ratios = Vec::new();
    for run in 1..=runs() {
        let callers = callers(stage.pool(), api, &format!("{name}-{run}"), how_many).await?;
        for caller in &callers {
            submit(api, caller, &order(ITEMS / how_many)).await?;
        }
        settle(stage.pool()).await?;
        let before = stored(&stage).await?;
        let parts = [
            ("worker", Who::Process(worker.pid())),
            ("Postgres", stage.postgres()),
            ("upstream", Who::Process(upstream.pid())),
            ("API", Who::Process(serve.pid())),
            ("bench", Who::Process(std::process::id())),
        ];
        let span = Span::begin(&parts)?;
        open(stage.pool()).await?;
        all_done(stage.pool()).await?;
        let spent = span.end()?;
        let expected = i64::try_from(ITEMS)?;
        if stored(&stage).await?.zip(before) != [expected; 4] {
            return Err(format!(
                "not all was stored, or some twice: {:?} after {before:?}",
                stored(&stage).await?
            )
            .into());
        }
        let rate = f64::from(u32::try_from(ITEMS)?) / spent.wall.as_secs_f64();
        ratios.push(rate / limit);
        println!(
            "  run {run}: {rate:.0} items/s = {:.2} of {limit:.0}/s; worker {:.0} MB at most; {spent}",
            rate / limit,
            peak_memory(worker.pid())?
        );
    }
    println!(
        "  median {:.2} of the limit, best {:.2} ({aim})",
        middle(ratios.clone()),
        ratios.iter().copied().fold(0.0, f64::max)
    );
    worker.stop().await?;
    serve.stop().await?;
    stage.close().await;
    Ok(())
}

/// What must grow by one with each item: settled items, calls on record, answers, observations.
#[derive(Debug, Clone, Copy)]
struct Stored([i64; 4]);

impl Stored {
    /// By how much it has grown.
    fn zip(self, before: Self) -> [i64; 4] {
        std::array::from_fn(|at| self.0[at] - before.0[at])
    }
}

async fn stored(stage: &Stage) -> Res<Stored> {
    let pool = stage.pool();
    Ok(Stored([
        count(pool, "select count(*) from scan_items where state = 'done' and search_status = 'ok' and best_price is not null")
            .await?,
        count(pool, "select count(*) from attempts where ended_at is not null").await?,
        count(pool, "select count(*) from answers").await?,
        count(pool, "select count(*) from observations").await?,
    ]))
}
