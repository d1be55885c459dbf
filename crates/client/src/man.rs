//! `farescan man`: the manual pages.

use std::io::Write as _;
use std::path::PathBuf;

use super::Failure;

/// Settings of `man`.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Write a page for each command into this folder, instead of the first page to standard output
    #[arg(long, short, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Prints the page, or writes all pages.
pub fn run(args: &ManArgs, program: clap::Command) -> Result<(), Failure> {
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(program).render(&mut page)?;
        std::io::stdout().write_all(&page)?;
        return Ok(());
    };
    let failed = |error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(program, folder).map_err(failed)?;
    anstream::eprintln!(
        "{} has the pages; `man -l {}` shows the first",
        folder.display(),
        folder.join("farescan.1").display()
    );
    Ok(())
}
