//! From arguments to the request of the API: the fields that all searches share, and the swept ones.
//!
//! Here: the words of the command line, and whether a country or currency exists. Not here: whether
//! another value is valid, which the service decides with all faults at once.

mod flights;
mod hotels;

pub use flights::{FlightOptions, OnewayArgs, RoundtripArgs};
pub use hotels::{HotelArgs, HotelOptions};

use farescan_contract::codes;
use farescan_sheets::draft::ScanDraft;
use serde_json::Value;

use super::Failure;
use super::dates::{DateArgs, Dates};
use super::exit::CommandEnd;

/// Arguments that say what is searched.
pub trait SearchArguments: clap::Args {
    /// Their fields and sweep.
    ///
    /// # Errors
    /// Exit code 2 for dates that cannot be swept together.
    fn draft(&self) -> Result<ScanDraft, Failure>;
}

/// A field that has no option of its own: `--set use_fallback=false`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct OtherFields {
    /// Any other field of the request, as text or JSON; the service names the fields it knows
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = field_value)]
    pub set: Vec<(String, Value)>,
}

/// A country that exists.
pub fn country(text: &str) -> Result<String, String> {
    codes::country(text).map_err(|expected| format!("expected {expected}"))?;
    Ok(text.to_owned())
}

/// A currency that exists.
pub fn currency(text: &str) -> Result<String, String> {
    codes::currency(text).map_err(|expected| format!("expected {expected}"))?;
    Ok(text.to_owned())
}

fn field_value(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("expected FIELD=VALUE, such as use_fallback=false")?;
    let json = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok((name.to_owned(), json))
}

/// The fields of `--set`, which have precedence.
fn set_others(draft: &mut ScanDraft, others: &OtherFields) {
    draft.request.extend(others.set.iter().cloned());
}

/// Sets or sweeps a date.
///
/// # Errors
/// Exit code 2 with `flag`.
fn set_dates(
    draft: &mut ScanDraft,
    (name, flag): (&str, &str),
    dates: &Dates,
    filter: &DateArgs,
) -> Result<(), Failure> {
    dates
        .set(draft, name, filter)
        .map_err(|error| CommandEnd::usage(format!("{flag}: {error}")))
}
