//! `farescan completions`: the words of the command line for a shell.

use std::io::Write as _;

use clap_complete::Shell;

use super::Failure;

/// Settings of `completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// Shell
    shell: Shell,
}

/// Prints the script.
pub fn run(args: &CompletionsArgs, mut program: clap::Command) -> Result<(), Failure> {
    // Into memory first: the generator panics where it cannot write, as on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "farescan", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}
