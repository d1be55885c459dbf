//! Benchmarks: `script/bench <name>` prints figures, and ratios to a limit or to a peer measured in
//! the same minute.
//!
//! The benches run the program as separate processes, the embedded Postgres as the program starts
//! it (fsync and synchronous_commit on), and HTTP over loopback. The marketplace is a small hyper
//! server in its own process ([`upstream`]), so that its CPU is counted apart. Each figure comes
//! with the load of the machine and the CPU that other processes used: on a shared machine only the
//! ratios are meaningful.
//!
//! Not here: correctness (`tests/`) and results (`docs/benchmarks.md`).

mod bytes;
mod ceiling;
mod claim;
mod dictionaries;
mod environment;
mod gateway;
mod load;
mod meter;
mod nginx;
mod pages;
mod parent;
mod peers;
mod scan;
mod scans;
mod upstream;

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

/// Any error ends the run: figures of an incomplete run are meaningless.
type Res<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "script/bench scan|callers|ceiling|claim|bytes|gateway|pages|peers|history|all   FARESCAN_BENCH_RUNS=<count> repeats, 3 if unset";

fn main() -> ExitCode {
    // Cargo adds this flag.
    let arguments: Vec<_> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("farescan: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Res<()> {
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    if let ["upstream", delay_ms, bytes] = words[..] {
        return upstream::run(delay_ms.parse()?, bytes.parse()?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    parent::end_with_cargo()?;
    // A signal drops the started processes: Postgres would go on otherwise.
    runtime.block_on(async {
        let mut term = signal(SignalKind::terminate())?;
        let mut int = signal(SignalKind::interrupt())?;
        tokio::select! {
            ended = bench(&words) => ended,
            _ = term.recv() => Err("stopped".into()),
            _ = int.recv() => Err("stopped".into()),
        }
    })
}

async fn bench(words: &[&str]) -> Res<()> {
    match words {
        ["scan"] => scan::run().await,
        ["callers"] => scan::run_unusual().await,
        ["ceiling"] => ceiling::run().await,
        ["claim"] => claim::run().await,
        ["bytes"] => bytes::run().await,
        ["dictionaries", version] => dictionaries::run(version.parse()?).await,
        ["gateway"] => gateway::run().await,
        ["pages"] => pages::run().await,
        ["peers"] => peers::run().await,
        ["all"] => {
            scan::run().await?;
            scan::run_unusual().await?;
            ceiling::run().await?;
            claim::run().await?;
            bytes::run().await?;
            gateway::run().await?;
            pages::run().await?;
            peers::run().await
        }
        _ => Err(USAGE.into()),
    }
}

/// How often each figure is measured.
fn runs() -> usize {
    std::env::var("FARESCAN_BENCH_RUNS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(3)
}
