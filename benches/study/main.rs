//! `script/study`: plays strategies against price processes and prints what they find for how many
//! requests.
//!
//! The strategies are the service's own planners (`farescan::planner`) and some that exist only for
//! comparison. Prices come from scenarios of the sandbox (`farescan::sandbox::scenarios`), without
//! HTTP and without a database; `tests/operation/laboratory.rs` shows that a scan through the whole
//! service makes the same requests and finds the same. docs/laboratory.md explains the
//! tables.
//!
//! A bench target, because it needs the library and its dependencies only; script/study builds it
//! with the development profile, whose library the tests have built already.

#![allow(clippy::unwrap_used, reason = "a panic ends the study and shows where")]

mod below;
mod cheapest;
mod comparators;
mod families;
mod implausible;
mod monitors;
mod statistics;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};

use families::StudyFamily;
use monitors::Compared;

/// What is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StudyName {
    /// The cheapest of 90 dates, asked once
    Cheapest,
    /// The cheapest of 90 dates, asked on each of 150 days
    Monitors,
    /// Watch budgets: a share of the 90 dates, searched on each of 150 days
    Watch,
    /// The first three
    All,
    /// Whether one of 90 dates is below a price
    Below,
    /// Which prices are marked implausible, if one in twenty is wrong
    Implausible,
}

/// Plays search strategies against price processes.
#[derive(Debug, Parser)]
#[command(name = "script/study")]
struct StudyArgs {
    /// What is played
    study: StudyName,
    /// A scenario's file, in place of the built-in families; may be given several times
    #[arg(long, value_name = "FILE")]
    scenario: Vec<PathBuf>,
    /// Worlds of each drawn family
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    first_seed: u64,
    /// Days on which the cheapest date is asked, for each world or recorded route
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    starts: u16,
    /// Days of each monitor; fewer for a recording that does not reach far ahead
    #[arg(long, value_name = "COUNT", default_value_t = 150, value_parser = clap::value_parser!(u16).range(2..=270))]
    days: u16,
    /// One JSON array in place of tables
    #[arg(long)]
    json: bool,
    /// Cargo adds it.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    match run(&StudyArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("script/study: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Adds rows to the JSON array.
fn add_rows(
    results: &mut Vec<serde_json::Value>,
    rows: &[impl serde::Serialize],
) -> serde_json::Result<()> {
    for row in rows {
        results.push(serde_json::to_value(row)?);
    }
    Ok(())
}

fn run(args: &StudyArgs) -> Result<(), Box<dyn std::error::Error>> {
    let families = StudyFamily::all(&args.scenario)?;
    let worlds = families::Worlds {
        first_seed: args.first_seed,
        seeds: args.seeds,
        starts: args.starts.into(),
    };
    let mut results = Vec::new();
    if args.study == StudyName::Implausible {
        let rows = implausible::run(&families, &worlds);
        if args.json {
            add_rows(&mut results, &rows)?;
        } else {
            implausible::print(&rows);
        }
    }
    if args.study == StudyName::Below {
        let rows = below::run(&families, &worlds);
        if args.json {
            add_rows(&mut results, &rows)?;
        } else {
            below::print(&rows);
        }
    }
    if matches!(args.study, StudyName::Cheapest | StudyName::All) {
        let begun = Instant::now();
        let rows = cheapest::run(&families, &worlds)?;
        if args.json {
            add_rows(&mut results, &rows)?;
        } else {
            cheapest::print(&rows);
            println!("played in {:.0?}\n", begun.elapsed());
        }
    }
    let both = [
        (StudyName::Monitors, Compared::Monitors),
        (StudyName::Watch, Compared::Watches),
    ];
    for (study, compared) in both {
        if args.study != study && args.study != StudyName::All {
            continue;
        }
        let begun = Instant::now();
        let rows = monitors::run(&families, &worlds, args.days.into(), compared)?;
        if args.json {
            add_rows(&mut results, &rows)?;
            continue;
        }
        match compared {
            Compared::Monitors => monitors::print(&rows, args.days),
            Compared::Watches => monitors::print_watches(&rows, args.days),
        }
        println!("played in {:.0?}\n", begun.elapsed());
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&results)?);
    }
    Ok(())
}
