//! Flight searches.

use clap::ArgAction;
use serde_json::{Value, json};

use super::{OtherFields, SearchArguments, set_dates, set_others};
use crate::Failure;
use crate::dates::{DateArgs, Dates, NightsList};
use crate::exit::CommandEnd;
use farescan_contract::Endpoint;
use farescan_sheets::draft::ScanDraft;

/// What the fare must be.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct FlightOptions {
    /// Most stops of a journey: 0 is non-stop only
    #[arg(long, value_name = "NUMBER")]
    pub max_stops: Option<u32>,
    /// Only these airlines: `BA,LY`
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    pub airlines: Vec<String>,
    /// Not these airlines
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    pub without_airlines: Vec<String>,
    /// Only fares up to this price
    #[arg(long, value_name = "AMOUNT")]
    pub max_price: Option<u64>,
    /// Currency of the prices [default: USD]
    #[arg(long, value_name = "CODE", value_parser = super::currency)]
    pub currency: Option<String>,
    /// Cabin
    #[arg(long, value_name = "CABIN")]
    pub cabin: Option<Cabin>,
    /// Adults [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(0..=9))]
    pub adults: Option<u8>,
    /// Children [default: 0]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(0..=9))]
    pub children: Option<u8>,
    #[command(flatten)]
    pub others: OtherFields,
}

/// A cabin.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Cabin {
    Economy,
    Business,
}

impl FlightOptions {
    /// Sets the fields of the endpoint.
    pub fn apply(&self, fields: &mut ScanDraft) {
        let (airlines, without): (&[&str], &[&str]) = match fields.endpoint {
            Endpoint::FlightsRoundtrip => (
                &["departure_airline_codes", "return_airline_codes"],
                &[
                    "departure_exclude_airline_codes",
                    "return_exclude_airline_codes",
                ],
            ),
            _ => (&["airline_codes"], &["exclude_airline_codes"]),
        };
        fields.set("max_stops", self.max_stops);
        for (names, codes) in [
            (airlines, &self.airlines),
            (without, &self.without_airlines),
        ] {
            for name in names {
                fields.set(name, (!codes.is_empty()).then(|| json!(codes)));
            }
        }
        fields.set("max_price", self.max_price);
        fields.set("currency", self.currency.as_deref());
        fields.set(
            "seat_type",
            self.cabin.map(|cabin| match cabin {
                Cabin::Economy => 1,
                Cabin::Business => 3,
            }),
        );
        fields.set("passengers", self.passengers());
        set_others(fields, &self.others);
    }

    /// One number for each passenger: 1 is an adult, 2 a child.
    fn passengers(&self) -> Option<Value> {
        if self.adults.is_none() && self.children.is_none() {
            return None;
        }
        let adults = std::iter::repeat_n(1, self.adults.unwrap_or(1).into());
        let children = std::iter::repeat_n(2, self.children.unwrap_or(0).into());
        Some(adults.chain(children).collect())
    }
}

/// A route and its days of departure.
#[derive(Debug, Clone, clap::Args)]
pub struct RouteArgs {
    /// Origins: airport codes with commas
    #[arg(value_name = "FROM", value_delimiter = ',', required = true, num_args = 1,
        action = ArgAction::Set)]
    from: Vec<String>,
    /// Destinations
    #[arg(value_name = "TO", value_delimiter = ',', required = true, num_args = 1,
        action = ArgAction::Set)]
    to: Vec<String>,
    /// Days of departure, the same as --depart
    #[arg(value_name = "DATES", conflicts_with = "depart")]
    dates: Option<Dates>,
    /// Days of departure: `2027-02-04`, `2027-02`, `2027-02-01..2027-02-14`, or a list
    #[arg(long, value_name = "DATES", required_unless_present = "dates")]
    depart: Option<Dates>,
    #[command(flatten)]
    filter: DateArgs,
}

impl RouteArgs {
    /// The fields and the sweep of an endpoint.
    fn fields(&self, endpoint: Endpoint) -> Result<ScanDraft, Failure> {
        let mut fields = ScanDraft::new(endpoint);
        fields.vary("from_airport", self.from.clone());
        fields.vary("to_airport", self.to.clone());
        let dates = self.depart.as_ref().or(self.dates.as_ref());
        let dates = dates.ok_or_else(|| CommandEnd::usage("--depart is missing"))?;
        let names = ("departure_date", "--depart");
        set_dates(&mut fields, names, dates, &self.filter)?;
        Ok(fields)
    }
}

/// A one-way scan.
#[derive(Debug, Clone, clap::Args)]
pub struct OnewayArgs {
    #[command(flatten)]
    route: RouteArgs,
    #[command(flatten)]
    options: FlightOptions,
}

impl SearchArguments for OnewayArgs {
    fn draft(&self) -> Result<ScanDraft, Failure> {
        let mut fields = self.route.fields(Endpoint::FlightsOneway)?;
        self.options.apply(&mut fields);
        Ok(fields)
    }
}

/// A round-trip scan.
#[derive(Debug, Clone, clap::Args)]
pub struct RoundtripArgs {
    #[command(flatten)]
    route: RouteArgs,
    /// Nights until the return: `7`, `7,10..14`
    #[arg(
        long,
        value_name = "NIGHTS",
        required_unless_present = "return_dates",
        conflicts_with = "return_dates"
    )]
    nights: Option<NightsList>,
    /// Days of return, instead of --nights
    #[arg(long = "return", value_name = "DATES")]
    return_dates: Option<Dates>,
    #[command(flatten)]
    options: FlightOptions,
}

impl SearchArguments for RoundtripArgs {
    fn draft(&self) -> Result<ScanDraft, Failure> {
        let mut fields = self.route.fields(Endpoint::FlightsRoundtrip)?;
        match (&self.nights, &self.return_dates) {
            (Some(nights), _) => _ = fields.sweep.insert("nights".to_owned(), json!(nights.0)),
            (None, Some(dates)) => {
                let names = ("return_date", "--return");
                set_dates(&mut fields, names, dates, &DateArgs::default())?;
            }
            (None, None) => return Err(CommandEnd::usage("--nights or --return is missing")),
        }
        self.options.apply(&mut fields);
        Ok(fields)
    }
}
