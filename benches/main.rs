//! What farescan can do, measured: `script/bench <name>` prints figures, and ratios to a limit or to a peer that ran in the same minute.
//!
//! Everything is real: the program as its own processes, the embedded Postgres as the program starts it (fsync and synchronous_commit on),
//! HTTP over loopback. The marketplace is a small hyper server in a process of its own ([`upstream`]), so its CPU is not ours. Beside every
//! figure stands how busy the machine was, and how much of it others used: on a shared machine only the ratios say something.
//!
//! Not here: whether anything is right (`tests/`), and what the figures were (`docs/benchmarks.md`).

mod ceiling;
mod claim;
mod gateway;
mod load;
mod meter;
mod nginx;
mod orders;
mod scan;
mod stage;
mod upstream;

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

/// Whatever goes wrong ends the run with its text: a figure of half a run is none.
type Res<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "script/bench scan|ceiling|claim|gateway|history|all   FARESCAN_BENCH_RUNS=<count> repeats, 3 if unset";

fn main() -> ExitCode {
    // Cargo adds a flag of its own.
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
    // Told to stop, what was started is ended: Postgres would run on otherwise.
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
        ["ceiling"] => ceiling::run().await,
        ["claim"] => claim::run().await,
        ["gateway"] => gateway::run().await,
        ["all"] => {
            scan::run().await?;
            ceiling::run().await?;
            claim::run().await?;
            gateway::run().await
        }
        _ => Err(USAGE.into()),
    }
}

/// How often a figure is taken.
fn runs() -> usize {
    std::env::var("FARESCAN_BENCH_RUNS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(3)
}
