//! The command line without a server: the commands that call a running service.

use std::process::ExitCode;

use farescan_client::ClientProgram;

#[tokio::main]
async fn main() -> ExitCode {
    ClientProgram::run().await
}
