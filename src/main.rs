//! Parse the command line, run the command, end with its exit code.

use std::process::ExitCode;

use clap::Parser as _;
use farescan::cli::Cli;

/// A fifth of a worker's CPU goes into small allocations, from several threads: docs/benchmarks.md has both.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    Cli::parse().run().await
}
