//! Other queues at the work of a scan, by turns with ours: the same marketplace, the same Postgres
//! server, as many calls in flight.
//!
//! graphile-worker and pg-boss are Node.js programs (`benches/peers/*.mjs`), installed with npm into
//! `target/tmp/peers`. Each call of theirs stores its answer in a row of a table; they keep no ledger
//! before the call, no history, no pace and no fairness between callers (docs/benchmarks.md).

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::environment::{BenchEnvironment, Program};
use super::meter::{Measurement, ProcessSet, ResourceUsage, median};
use super::scans::{
    analyze_tables, count, create_callers, open_lanes, scan_request, submit, wait_until_done,
};
use super::upstream::Upstream;
use super::{Res, runs};

const ITEMS: usize = 10_000;
/// Items of the warm-up of each queue.
const WARM: usize = 2_000;
const IN_FLIGHT: u32 = 200;
const DELAY_MS: u64 = 50;
const BYTES: usize = 6_144;
const PEERS: [&str; 2] = ["graphile-worker", "pg-boss"];

/// What every queue uses beside its own process.
struct Around<'a> {
    env: &'a BenchEnvironment,
    upstream: &'a Upstream,
}

impl Around<'_> {
    /// Starts a measurement of a queue's process.
    fn measure(&self, queue: u32) -> Res<Measurement> {
        Measurement::start(&[
            ("queue", ProcessSet::Process(queue)),
            ("Postgres", self.env.postgres()),
            ("upstream", ProcessSet::Process(self.upstream.pid())),
            ("bench", ProcessSet::Process(std::process::id())),
        ])
    }
}

/// All queues, each as often as [`runs`] says.
pub async fn run() -> Res<()> {
    let Some(folder) = install()? else {
        return Ok(());
    };
    println!(
        "\npeers: {ITEMS} answers, upstream {DELAY_MS} ms and {BYTES} bytes, {IN_FLIGHT} in flight, by turns"
    );
    let env = BenchEnvironment::new().await?;
    let upstream = Upstream::start(DELAY_MS, BYTES)?;
    let mut serve = env.serve(&upstream.url())?;
    let api = serve.listening().await?.ok_or("no address")?;
    let mut worker = env.worker(&upstream.url(), IN_FLIGHT)?;
    worker.listening().await?;
    let mut peers = Vec::new();
    for name in PEERS {
        peers.push(Peer::start(&folder, name, &env, &upstream).await?);
    }
    let around = Around {
        env: &env,
        upstream: &upstream,
    };
    scan(&around, api, "warm-one", 1, WARM, &worker).await?;
    scan(&around, api, "warm-fifty", 50, WARM, &worker).await?;
    for peer in &mut peers {
        peer.work(&around, WARM)?;
    }
    let mut rates = vec![Vec::new(); 2 + peers.len()];
    for run in 1..=runs() {
        println!("  run {run}");
        for (at, callers) in [1, 50].into_iter().enumerate() {
            let name = format!("run-{run}-{callers}");
            let usage = scan(&around, api, &name, callers, ITEMS, &worker).await?;
            rates[at].push(report(&format!("farescan, {callers} caller(s)"), &usage));
        }
        for (at, peer) in peers.iter_mut().enumerate() {
            let usage = peer.work(&around, ITEMS)?;
            rates[2 + at].push(report(peer.name, &usage));
        }
    }
    let [one, fifty, graphile_worker, pg_boss] =
        [0, 1, 2, 3].map(|at: usize| median(rates[at].clone()));
    for (name, peer) in PEERS.into_iter().zip([graphile_worker, pg_boss]) {
        println!(
            "  of {name}'s answers a second: {:.2} with one caller, {:.2} with 50 (medians)",
            one / peer,
            fifty / peer
        );
    }
    drop(peers);
    worker.stop().await?;
    serve.stop().await?;
    env.close().await;
    Ok(())
}

/// Prints a run; returns its answers a second.
fn report(name: &str, usage: &ResourceUsage) -> f64 {
    let rate = f64::from(u32::try_from(ITEMS).unwrap_or(u32::MAX)) / usage.wall.as_secs_f64();
    println!("    {name}: {rate:.0} answers/s; {usage}");
    rate
}

/// Installs the other queues beside this build; `None`, with a word, where that is not possible.
fn install() -> Res<Option<PathBuf>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
    fs::create_dir_all(&folder)?;
    for file in fs::read_dir(source)? {
        let file = file?;
        fs::copy(file.path(), folder.join(file.file_name()))?;
    }
    let installed = Command::new("npm")
        .args([
            "install",
            "--no-package-lock",
            "--no-fund",
            "--no-audit",
            "--silent",
        ])
        .current_dir(&folder)
        .stdin(Stdio::null())
        .status();
    match installed {
        Ok(status) if status.success() => Ok(Some(folder)),
        Ok(_) => {
            println!(
                "peers: skipped, because npm cannot install graphile-worker and pg-boss (is there a network?)"
            );
            Ok(None)
        }
        Err(error) => {
            println!("peers: skipped, because npm does not run ({error}); install Node.js 20");
            Ok(None)
        }
    }
}

/// A scan of this many items; its rows are counted.
async fn scan(
    around: &Around<'_>,
    api: SocketAddr,
    name: &str,
    callers: usize,
    items: usize,
    worker: &Program,
) -> Res<ResourceUsage> {
    let env = around.env;
    let done = "select count(*) from scan_items where state = 'done' and best_price is not null";
    let callers_of_run = create_callers(env.pool(), api, name, callers).await?;
    for caller in &callers_of_run {
        submit(api, caller, &scan_request(items / callers)).await?;
    }
    analyze_tables(env.pool()).await?;
    let before = count(env.pool(), done).await?;
    let measurement = around.measure(worker.pid())?;
    open_lanes(env.pool()).await?;
    wait_until_done(env.pool()).await?;
    let usage = measurement.finish()?;
    if count(env.pool(), done).await? - before != i64::try_from(items)? {
        return Err("some items were lost or stored twice".into());
    }
    Ok(usage)
}

/// A queue of another project, in a process of its own.
struct Peer {
    name: &'static str,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Peer {
    async fn start(
        folder: &Path,
        name: &'static str,
        env: &BenchEnvironment,
        upstream: &Upstream,
    ) -> Res<Self> {
        let database = name.replace('-', "_");
        sqlx::query(sqlx::AssertSqlSafe(format!("create database {database}")))
            .execute(env.pool())
            .await?;
        let options = env.pool().connect_options();
        let socket = options.get_socket().ok_or("no socket")?;
        let url = format!(
            "postgresql://{}@localhost:{}/{database}?host={}",
            options.get_username(),
            options.get_port(),
            socket.display()
        );
        let mut child = Command::new("node")
            .args(["main.mjs", name, &url, &upstream.url()])
            .arg(IN_FLIGHT.to_string())
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self {
            name,
            child,
            output,
        })
    }

    /// Adds jobs, then works until all are done.
    fn work(&mut self, around: &Around<'_>, items: usize) -> Res<ResourceUsage> {
        self.command(&format!("fill {items}"), "filled")?;
        let measurement = around.measure(self.child.id())?;
        self.command("start", "done")?;
        measurement.finish()
    }

    fn command(&mut self, command: &str, expected: &str) -> Res<()> {
        writeln!(self.child.stdin.as_mut().ok_or("no input")?, "{command}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.trim() == expected {
            Ok(())
        } else {
            Err(format!("{}: {line:?} after `{command}`", self.name).into())
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
