//! Parse the command line, run the command, end with its exit code.

use std::process::ExitCode;

use clap::Parser as _;
use farescan::cli::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    Cli::parse().run().await
}
