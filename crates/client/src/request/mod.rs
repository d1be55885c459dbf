//! From arguments to the request of the API: the fields that all searches share, and the swept
//! ones.
//!
//! Here: the words of the command line, and whether a country or currency exists. Not here: whether
//! another value is valid, which the service decides with all faults at once.

mod flights;
mod hotels;

pub use flights::{FlightOptions, OnewayArgs, RoundtripArgs};
pub use hotels::{HotelArgs, HotelOptions};

use serde_json::{Map, Value, json};

use super::Failure;
use super::dates::FieldOrSweep;
use super::exit::CommandEnd;
use farescan_contract::{Endpoint, codes};

/// The body of a scan: fields and sweep.
#[derive(Debug, Clone)]
pub struct ScanFields {
    pub endpoint: Endpoint,
    pub request: Map<String, Value>,
    pub sweep: Map<String, Value>,
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

impl ScanFields {
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            request: Map::new(),
            sweep: Map::new(),
        }
    }

    /// Sets a field; `None` leaves it absent.
    pub fn set(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.request.insert(name.to_owned(), value.into());
        }
    }

    /// Sets a field to one value, or sweeps it over several.
    pub fn vary(&mut self, name: &str, values: &[String]) {
        match values {
            [] => {}
            [one] => self.set(name, Some(one.as_str())),
            several => _ = self.sweep.insert(name.to_owned(), json!(several)),
        }
    }

    /// Sets or sweeps a date.
    ///
    /// # Errors
    /// Exit code 2 with `flag`.
    pub fn dates(
        &mut self,
        name: &str,
        flag: &str,
        dates: Result<FieldOrSweep, String>,
    ) -> Result<(), Failure> {
        match dates.map_err(|error| CommandEnd::usage(format!("{flag}: {error}")))? {
            FieldOrSweep::Field(value) => _ = self.request.insert(name.to_owned(), value),
            FieldOrSweep::Sweep(value) => _ = self.sweep.insert(name.to_owned(), value),
        }
        Ok(())
    }

    /// The fields of `--set`, which have precedence.
    pub fn set_others(&mut self, others: &OtherFields) {
        for (name, value) in &others.set {
            self.request.insert(name.clone(), value.clone());
        }
    }

    /// The body of `POST /v1/scans`.
    pub fn into_scan(self) -> Map<String, Value> {
        let mut body = Map::from_iter([
            ("endpoint".to_owned(), json!(self.endpoint)),
            ("request".to_owned(), Value::Object(self.request)),
        ]);
        if !self.sweep.is_empty() {
            body.insert("sweep".to_owned(), Value::Object(self.sweep));
        }
        body
    }
}
