//! `farescan keys new`: generates an entry of the master key.

use std::io::Write as _;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::tenants::Keyring;
use farescan_client::Failure;

/// Settings of `keys new`.
#[derive(Debug, clap::Args)]
pub struct NewKeyArgs {
    /// The entry's id [default: today's date and four random digits]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Write a new master key file (mode 0600) instead of printing the entry; never overwrites a file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Succeed if the file exists and holds a master key, for a step that runs before each start
    #[arg(long, requires = "out")]
    if_absent: bool,
    /// The existing file may be readable by its group
    #[arg(
        long = "master-key-group-readable",
        env = "FARESCAN_MASTER_KEY_GROUP_READABLE"
    )]
    group_readable: bool,
}

/// Prints the entry or writes the file.
pub fn run(args: &NewKeyArgs) -> Result<(), Failure> {
    let id = args.id.clone().unwrap_or_else(todays_id);
    let Some(path) = &args.out else {
        // Only the entry, so that a script can append it to the file.
        writeln!(
            anstream::stdout(),
            "{}",
            Keyring::generate_entry(&id)?.as_str()
        )?;
        return Ok(());
    };
    let file = path.display();
    if Keyring::create_file(path, &id)? {
        anstream::eprintln!(
            "created {file}: keep a copy with every backup of the database, but not in it"
        );
    } else if args.if_absent {
        Keyring::read(path, args.group_readable)?;
        anstream::eprintln!("{file} exists and holds a master key: unchanged");
    } else {
        return Err(
            format!("{file} exists and was not changed: move it away, or add an entry to it (`farescan keys new`)").into()
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
