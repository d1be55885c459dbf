//! `farescan openapi`: the description of the API, as this version serves it at `/openapi.json`.

use std::io::Write as _;

use crate::api::openapi_description;
use farescan_client::Failure;

/// Prints it. No service is needed.
pub fn run() -> Result<(), Failure> {
    writeln!(
        std::io::stdout(),
        "{}",
        openapi_description().to_pretty_json()?
    )?;
    Ok(())
}
