//! Hotel searches.

use serde_json::json;

use super::{OtherFields, SearchArguments, set_dates, set_others};
use crate::Failure;
use crate::dates::{DateArgs, Dates, NightsList};
use farescan_contract::Endpoint;
use farescan_sheets::draft::ScanDraft;

/// What the rate must be.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct HotelOptions {
    /// Adults in the room [default: 2]
    #[arg(long, value_name = "NUMBER")]
    pub adults: Option<u32>,
    /// Children in the room [default: 0]
    #[arg(long, value_name = "NUMBER")]
    pub children: Option<u32>,
    /// Currency of the prices [default: USD]
    #[arg(long, value_name = "CODE", value_parser = super::currency)]
    pub currency: Option<String>,
    #[command(flatten)]
    pub others: OtherFields,
}

impl HotelOptions {
    /// Sets the fields.
    pub fn apply(&self, fields: &mut ScanDraft) {
        fields.set("adults", self.adults);
        fields.set("children", self.children);
        fields.set("currency", self.currency.as_deref());
        set_others(fields, &self.others);
    }
}

/// A scan of one hotel.
#[derive(Debug, Clone, clap::Args)]
pub struct HotelArgs {
    /// Name of the hotel
    #[arg(value_name = "HOTEL")]
    pub hotel: String,
    /// Where it is: a city or area
    #[arg(long, value_name = "PLACE")]
    pub area: Option<String>,
    /// First nights: `2027-02-04`, `2027-02`, `2027-02-01..2027-02-14`, or a list
    #[arg(long, value_name = "DATES")]
    pub checkin: Dates,
    /// Nights of the stay: `3`, `2,5..7`
    #[arg(long, value_name = "NIGHTS")]
    pub nights: NightsList,
    /// Countries whose prices are compared, the baseline first: `us,de,gb`
    #[arg(long, value_name = "COUNTRIES", value_delimiter = ',', value_parser = super::country)]
    pub markets: Vec<String>,
    /// How often each search is made, because prices are noisy
    #[arg(long, value_name = "NUMBER")]
    pub samples: Option<u8>,
    /// Only rates that can be cancelled without cost
    #[arg(long)]
    pub free_cancellation: bool,
    #[command(flatten)]
    pub filter: DateArgs,
    #[command(flatten)]
    pub options: HotelOptions,
}

impl SearchArguments for HotelArgs {
    fn draft(&self) -> Result<ScanDraft, Failure> {
        let mut fields = ScanDraft::new(Endpoint::HotelsByName);
        fields.set("hotel_name", Some(self.hotel.as_str()));
        fields.set("area", self.area.as_deref());
        let names = ("checkin_date", "--checkin");
        set_dates(&mut fields, names, &self.checkin, &self.filter)?;
        fields
            .sweep
            .insert("nights".to_owned(), json!(self.nights.0));
        fields.vary("proxy_country", self.markets.clone());
        if let Some(samples) = self.samples {
            fields.sweep.insert("samples".to_owned(), samples.into());
        }
        fields.set("free_cancellation", self.free_cancellation.then_some(true));
        self.options.apply(&mut fields);
        Ok(fields)
    }
}
