//! `farescan rotate-key`: moves everything that a key owns to a new key.

use std::io::Write as _;

use farescan_sheets::numbers::counted;
use serde_json::json;

use super::Failure;
use super::client::profiles::Profiles;
use super::client::{ClientArgs, checked_key};
use super::login::read_key;
use super::question::Confirmation;
use crate::wrap::note;
use farescan_contract::key_rotation::KeyRotation;

/// Settings of `rotate-key`.
#[derive(Debug, clap::Args)]
pub struct RotateKeyArgs {
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    client: ClientArgs,
}

/// Asks for the new key without echo, or reads it from a pipe; rotates; stores the new key if the
/// old one was stored here.
pub async fn run(args: RotateKeyArgs) -> Result<(), Failure> {
    let connection = args.client.connection.resolve()?;
    let session = args.client.open()?;
    let new_key = read_key("New key of the marketplace (not shown): ")?;
    let new_key = checked_key(&new_key)?;
    let question = format!(
        "Move all scans, monitors and prices at {} to the new key? The marketplace checks it with one or two requests.",
        connection.url
    );
    args.confirmation.ask(session.screen, &question).await?;
    let answer = session
        .client
        .send(
            reqwest::Method::POST,
            "/v1/account/rotate-key",
            Some(&json!({"new_key": new_key})),
            None,
        )
        .await?;
    if connection.is_stored {
        let path = Profiles::load()?.store(&connection.profile, &connection.url, new_key)?;
        note!("The new key is stored in {}.", path.display());
    } else {
        note!("Set FARESCAN_API_KEY to the new key: the old one owns nothing now.");
    }
    let Some(rotation) = session.read_or_print::<KeyRotation>(&answer)? else {
        return Ok(());
    };
    let mut out = anstream::stdout();
    writeln!(
        out,
        "Everything belongs to the new key; {} of live work replaced",
        counted(rotation.held_keys, "stored key")
    )?;
    Ok(())
}
