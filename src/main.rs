//! Parse the command line, run the command, end with its exit code.

use std::process::ExitCode;

use farescan::cli::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    Box::pin(Cli::read().run()).await
}
