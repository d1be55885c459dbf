//! `farescan keys new`: a fresh entry for the ring of master keys.

use std::io::Write as _;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::cli::Failure;
use crate::tenants::Keyring;

/// Settings of `keys new`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The entry's name in the ring [default: today's date and four random digits]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Write a new master key file (mode 0600) instead of printing the entry; a file that is there is never overwritten
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A file that is there and holds a master key is fine: for a step that runs before each start
    #[arg(long, requires = "out")]
    if_absent: bool,
    /// A file that is there may be readable for its group
    #[arg(
        long = "master-key-group-readable",
        env = "FARESCAN_MASTER_KEY_GROUP_READABLE"
    )]
    group_readable: bool,
}

/// Prints it, or writes the file.
pub fn run(args: &Args) -> Result<(), Failure> {
    let id = args.id.clone().unwrap_or_else(todays_id);
    let Some(path) = &args.out else {
        // Alone on standard output: it goes on top of the ring, before the older entries.
        writeln!(anstream::stdout(), "{}", Keyring::new_entry(&id)?.as_str())?;
        return Ok(());
    };
    let place = path.display();
    if Keyring::make(path, &id)? {
        anstream::eprintln!(
            "made {place}: keep a copy with every backup of the database, but not in it"
        );
    } else if args.if_absent {
        Keyring::read(path, args.group_readable)?;
        anstream::eprintln!("{place} is there and holds a master key: left as it is");
    } else {
        return Err(
            format!("{place} is there, and is left as it is: move it away, or add an entry to it (`farescan keys new`)").into()
        );
    }
    Ok(())
}

fn todays_id() -> String {
    format!(
        "{}-{:04x}",
        Timestamp::now().strftime("%Y-%m-%d"),
        rand::random::<u16>()
    )
}
