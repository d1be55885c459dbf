//! `farescan history`: what is known about prices already, at no cost.

mod calendar;
mod series;

use super::Failure;
use super::client::ClientArgs;
use super::dates::{Dates, today};
use farescan_contract::series::Bucket;

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub enum HistoryCommand {
    /// Show the last known one-way fares as a calendar, with the age of each
    #[command(
        after_help = "Examples:\n  farescan history oneway TLV LHR --depart 2027-02\n  farescan history oneway TLV LHR --json | jq '.data[0].cells[] | select(.price)'"
    )]
    Oneway(FlightHistory),
    /// Show the last known round-trip fares by departure and nights
    #[command(
        after_help = "Examples:\n  farescan history roundtrip TLV LHR --depart 2027-02\n  farescan history roundtrip TLV LHR --depart 2027-02-01..2027-02-14 --currency EUR"
    )]
    Roundtrip(FlightHistory),
    /// Show the last known rates of a hotel by check-in and nights, or by market
    #[command(
        after_help = "Examples:\n  farescan history hotel \"Hotel Arts\" --checkin 2027-02\n  farescan history hotel \"Hotel Arts\" --checkin 2027-02 --nights 3 --markets"
    )]
    Hotel(HotelHistory),
    /// Show how prices changed from day to day or week to week
    #[command(
        after_help = "Examples:\n  farescan history series TLV LHR --depart 2027-02-04 --verdict\n  farescan history series --hotel \"Hotel Arts\" --checkin 2027-02-04 --bucket week"
    )]
    Series(SeriesArgs),
}

/// A route.
#[derive(Debug, clap::Args)]
pub struct FlightHistory {
    /// Origin: an airport code
    from: String,
    /// Destination
    to: String,
    /// Days of departure: `2027-02`, or `2027-02-01..2027-02-14` [default: the next 12 months]
    #[arg(long, value_name = "DATES")]
    depart: Option<Dates>,
    /// Only prices in this currency
    #[arg(long, value_name = "CODE")]
    currency: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
}

/// A hotel.
#[derive(Debug, clap::Args)]
pub struct HotelHistory {
    /// Name of the hotel, as in its scans
    hotel: String,
    /// Days of check-in: `2027-02`, or `2027-02-01..2027-02-14` [default: the next 12 months]
    #[arg(long, value_name = "DATES")]
    checkin: Option<Dates>,
    /// Only stays of this length; a calendar instead of a table
    #[arg(long, value_name = "NUMBER")]
    nights: Option<u16>,
    /// Compare markets; needs --nights
    #[arg(long, requires = "nights")]
    markets: bool,
    /// Only prices of this market
    #[arg(long, value_name = "COUNTRY", conflicts_with = "markets")]
    market: Option<String>,
    /// Only prices in this currency
    #[arg(long, value_name = "CODE")]
    currency: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
}

/// A product over time.
#[derive(Debug, clap::Args)]
pub struct SeriesArgs {
    /// Origin: an airport code
    #[arg(required_unless_present = "hotel", requires = "to")]
    from: Option<String>,
    /// Destination
    to: Option<String>,
    /// Name of a hotel, instead of a route
    #[arg(long, value_name = "HOTEL", conflicts_with = "from")]
    hotel: Option<String>,
    /// Days of departure; one day also shows the days to departure
    #[arg(long, value_name = "DATES", conflicts_with = "hotel")]
    depart: Option<Dates>,
    /// Days of check-in; one day also shows the days to check-in
    #[arg(long, value_name = "DATES", requires = "hotel")]
    checkin: Option<Dates>,
    /// Only prices of this market
    #[arg(long, value_name = "COUNTRY", requires = "hotel")]
    market: Option<String>,
    /// How long a row is: `day` or `week`
    #[arg(long, value_name = "LENGTH", default_value = "day")]
    bucket: Bucket,
    /// Only prices in this currency
    #[arg(long, value_name = "CODE")]
    currency: Option<String>,
    /// Compare each lowest price with your own past prices, seen as many days ahead
    #[arg(long)]
    verdict: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Prints a part of the history.
pub async fn run(command: HistoryCommand) -> Result<(), Failure> {
    match command {
        HistoryCommand::Oneway(args) => calendar::oneway(args).await,
        HistoryCommand::Roundtrip(args) => calendar::roundtrip(args).await,
        HistoryCommand::Hotel(args) => calendar::hotel(args).await,
        HistoryCommand::Series(args) => series::run(args).await,
    }
}

/// The first and the last day; the next 12 months if none is given.
fn bounds(dates: Option<&Dates>) -> Result<(jiff::civil::Date, jiff::civil::Date), Failure> {
    match dates {
        None => Ok((today(), today().checked_add(jiff::Span::new().months(12))?)),
        Some(dates) => dates.bounds().ok_or_else(|| {
            super::exit::CommandEnd::usage(
                "days from now (`+7d`) are only for monitors; expected a date, a month or a range",
            )
        }),
    }
}
