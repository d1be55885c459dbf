//! `farescan login`: stores the key for a service, without showing it.

use std::io::{BufRead as _, IsTerminal as _};

use secrecy::SecretString;

use super::Failure;
use super::client::profiles::Profiles;
use super::client::{ConnectionArgs, checked_key};
use crate::wrap::note;

/// Settings of `login`.
#[derive(Debug, clap::Args)]
pub struct LoginArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Asks for the key on the terminal without echo, or reads it from a pipe, and stores it in the
/// platform's configuration folder. Sends nothing.
pub fn run(args: &LoginArgs) -> Result<(), Failure> {
    let connection = args.connection.resolve_address()?;
    let mut profiles = Profiles::load()?;
    let key = read_key(&format!(
        "Key of the marketplace for {} (not shown): ",
        connection.url
    ))?;
    let path = profiles.store(&connection.profile, &connection.url, checked_key(&key)?)?;
    note!(
        "Stored for {} in {}, readable for you alone. `farescan verify` checks it with one request to each API.",
        connection.url,
        path.display()
    );
    Ok(())
}

/// Reads a key: from the terminal without echo, else one line of standard input.
pub fn read_key(prompt: &str) -> Result<SecretString, Failure> {
    let text = if std::io::stdin().is_terminal() {
        rpassword::prompt_password(prompt)
            .map_err(|error| format!("the key cannot be read from the terminal: {error}"))?
    } else {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        line
    };
    Ok(text.trim().into())
}
