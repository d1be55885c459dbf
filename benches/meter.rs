//! Measurements: CPU and memory of processes, the load of the machine, and statistics of latencies.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use super::Res;

/// Linux counts CPU time for programs in hundredths of a second (`getconf CLK_TCK`).
const TICKS: f64 = 100.0;

/// A process, or a process with its children, including those that have ended.
#[derive(Clone, Copy)]
pub enum ProcessSet {
    Process(u32),
    Tree(u32),
}

impl ProcessSet {
    /// CPU seconds since the start.
    pub fn cpu(self) -> Res<f64> {
        let ticks = match self {
            Self::Process(pid) => stat(pid)?.own,
            Self::Tree(pid) => {
                let root = stat(pid)?;
                root.own
                    + root.ended_children
                    + children(pid)
                        .into_iter()
                        .filter_map(|pid| Some(stat(pid).ok()?.own))
                        .sum::<u64>()
            }
        };
        Ok(seconds(ticks))
    }

    /// Resident memory now, in MB.
    pub fn memory(self) -> Res<f64> {
        match self {
            Self::Process(pid) => memory(pid, "VmRSS:"),
            Self::Tree(pid) => Ok(memory(pid, "VmRSS:")?
                + children(pid)
                    .into_iter()
                    .filter_map(|pid| memory(pid, "VmRSS:").ok())
                    .sum::<f64>()),
        }
    }
}

/// The peak resident memory of a process, in MB.
pub fn peak_memory(pid: u32) -> Res<f64> {
    memory(pid, "VmHWM:")
}

struct Ticks {
    own: u64,
    ended_children: u64,
    parent: u32,
}

/// proc(5): `pid (name) state ppid …`; the name may hold anything.
fn stat(pid: u32) -> Res<Ticks> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = text.rsplit_once(") ").ok_or("no process")?;
    let fields: Vec<_> = rest.split(' ').collect();
    let number = |at: usize| {
        fields
            .get(at)
            .and_then(|field| field.parse::<u64>().ok())
            .ok_or("a field of stat is missing")
    };
    Ok(Ticks {
        own: number(11)? + number(12)?,
        ended_children: number(13)? + number(14)?,
        parent: u32::try_from(number(1)?)?,
    })
}

fn children(of: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| stat(*pid).is_ok_and(|stat| stat.parent == of))
        .collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "ticks of a run are far below 2^52"
)]
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / TICKS
}

fn memory(pid: u32, field: &str) -> Res<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .ok_or("no such field")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}

/// A running measurement of processes and of the whole machine.
pub struct Measurement {
    begun: Instant,
    busy: f64,
    load: String,
    parts: Vec<(&'static str, ProcessSet, f64)>,
}

impl Measurement {
    pub fn start(parts: &[(&'static str, ProcessSet)]) -> Res<Self> {
        let parts = parts
            .iter()
            .map(|(name, processes)| Ok((*name, *processes, processes.cpu()?)))
            .collect::<Res<Vec<_>>>()?;
        Ok(Self {
            parts,
            busy: busy()?,
            load: load()?,
            begun: Instant::now(),
        })
    }

    pub fn finish(self) -> Res<ResourceUsage> {
        let wall = self.begun.elapsed();
        let busy = busy()? - self.busy;
        let cpu = self
            .parts
            .iter()
            .map(|(name, processes, before)| Ok((*name, processes.cpu()? - before)))
            .collect::<Res<Vec<_>>>()?;
        let ours: f64 = cpu.iter().map(|(_, seconds)| seconds).sum();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let whole = wall.as_secs_f64() * f64::from(u32::try_from(cores)?);
        Ok(ResourceUsage {
            wall,
            cpu,
            load: (self.load, load()?),
            others: ((busy - ours) / whole).max(0.0),
        })
    }
}

/// The result of a measurement.
pub struct ResourceUsage {
    pub wall: Duration,
    cpu: Vec<(&'static str, f64)>,
    load: (String, String),
    others: f64,
}

impl ResourceUsage {
    /// CPU seconds of a part.
    pub fn cpu(&self, part: &str) -> f64 {
        self.cpu
            .iter()
            .find(|(name, _)| *name == part)
            .map_or(0.0, |(_, seconds)| *seconds)
    }
}

impl fmt::Display for ResourceUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpu: Vec<_> = self
            .cpu
            .iter()
            .map(|(name, seconds)| format!("{name} {seconds:.2}"))
            .collect();
        let (before, after) = &self.load;
        write!(
            f,
            "CPU s: {}; load {before} to {after}, others used {:.0} % of the machine",
            cpu.join(", "),
            self.others * 100.0
        )
    }
}

/// The load average of the last minute.
pub fn load() -> Res<String> {
    Ok(fs::read_to_string("/proc/loadavg")?
        .split(' ')
        .next()
        .unwrap_or_default()
        .to_owned())
}

/// CPU seconds that the whole machine was busy since its start, stolen time included.
fn busy() -> Res<f64> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("cpu "))
        .ok_or("no cpu line")?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    // user nice system idle iowait irq softirq steal; the guests' are within user and nice.
    Ok(seconds(
        fields
            .iter()
            .take(8)
            .enumerate()
            .filter(|(at, _)| !matches!(at, 3 | 4))
            .map(|(_, ticks)| ticks)
            .sum(),
    ))
}

/// Times, sorted.
pub struct Times(Vec<Duration>);

impl Times {
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The quantile of this permille.
    fn within(&self, permille: usize) -> Duration {
        let at = (self.0.len() * permille).div_ceil(1000).saturating_sub(1);
        self.0.get(at).copied().unwrap_or_default()
    }

    pub fn median(&self) -> Duration {
        self.within(500)
    }

    pub fn p95(&self) -> Duration {
        self.within(950)
    }

    pub fn p99(&self) -> Duration {
        self.within(990)
    }

    pub fn longest(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }
}

/// Milliseconds with two decimals.
pub fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

/// The median of figures.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures
        .get(figures.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or_default()
}
