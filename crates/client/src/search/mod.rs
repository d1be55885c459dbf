//! `farescan search`: one synchronous search as a table.

mod flights;
mod hotels;

use std::io::Write as _;

use farescan_ask::places;
use farescan_sheets::draft::ScanDraft;
use farescan_sheets::numbers::{count, counted};
use jiff::Span;
use serde::de::DeserializeOwned;

use super::Failure;
use super::age::roughly;
use super::client::{ClientArgs, ServiceResponse};
use super::dates::{Dates, today};
use super::exit::{CommandEnd, ExitStatus};
use super::render::{CellTone, ListTable, Text};
use super::request::{FlightOptions, HotelOptions};
use crate::wrap::note;
use farescan_contract::{Endpoint, SearchStatus};

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub enum SearchCommand {
    /// Search one-way fares of one date
    #[command(
        after_help = "Examples:\n  farescan search oneway TLV LHR 2027-02-04 --max-stops 0\n  farescan search oneway TLV LHR 2027-02-04 --json | jq '.[0].price_as_number'"
    )]
    Oneway(OnewaySearch),
    /// Search round-trip fares of one pair of dates
    #[command(
        after_help = "Examples:\n  farescan search roundtrip TLV LHR 2027-02-04 2027-02-11\n  farescan search roundtrip TLV LHR 2027-02-04 2027-02-11 --cabin business --currency EUR"
    )]
    Roundtrip(RoundtripSearch),
    /// Search the hotels of a place
    #[command(
        after_help = "Examples:\n  farescan search hotels Barcelona --checkin 2027-02-04 --nights 3\n  farescan search hotels Lisbon --checkin 2027-02-04 --nights 2 --set 'filters=[\"free_cancellation\"]'"
    )]
    Hotels(HotelsSearch),
    /// Price one hotel by its name
    #[command(
        after_help = "Examples:\n  farescan search hotel \"Hotel Arts\" --area Barcelona --checkin 2027-02-04 --nights 3\n  farescan search hotel \"Hotel Arts\" --area Barcelona --checkin 2027-02-04 --nights 3 --market de"
    )]
    Hotel(HotelSearchArgs),
    /// List the rooms of one hotel
    #[command(
        after_help = "Examples:\n  farescan search rooms es/arts-barcelona --checkin 2027-02-04 --nights 3\n  farescan search rooms --name \"Hotel Arts\" --checkin 2027-02-04 --nights 3"
    )]
    Rooms(RoomsSearch),
}

/// How a search is sent.
#[derive(Debug, clap::Args)]
struct SendArgs {
    /// Take an answer that you have already paid for and that is at most this old: 90min, 6h, 3d; 0s
    /// for none, and to store the new one
    #[arg(long, value_name = "AGE", value_parser = crate::age::seconds)]
    max_age: Option<u32>,
    #[command(flatten)]
    client: ClientArgs,
}

/// One-way fares.
#[derive(Debug, clap::Args)]
pub struct OnewaySearch {
    /// Origin: an airport code
    #[arg(value_parser = airport)]
    from: String,
    /// Destination
    #[arg(value_parser = airport)]
    to: String,
    /// Day of departure: `2027-02-04`
    #[arg(value_name = "DATE", value_parser = one_date)]
    date: String,
    #[command(flatten)]
    options: FlightOptions,
    #[command(flatten)]
    send: SendArgs,
}

/// Round-trip fares.
#[derive(Debug, clap::Args)]
pub struct RoundtripSearch {
    /// Origin: an airport code
    #[arg(value_parser = airport)]
    from: String,
    /// Destination
    #[arg(value_parser = airport)]
    to: String,
    /// Day of departure: `2027-02-04`
    #[arg(value_name = "DATE", value_parser = one_date)]
    date: String,
    /// Day of return
    #[arg(value_name = "RETURN", value_parser = one_date)]
    return_date: String,
    #[command(flatten)]
    options: FlightOptions,
    #[command(flatten)]
    send: SendArgs,
}

/// When, and from which market.
#[derive(Debug, clap::Args)]
struct StayArgs {
    /// First night: `2027-02-04`
    #[arg(long, value_name = "DATE", value_parser = one_date)]
    checkin: String,
    /// Nights of the stay
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=366))]
    nights: u16,
    /// Country whose prices are searched: `de`
    #[arg(long, value_name = "COUNTRY", value_parser = crate::request::country)]
    market: Option<String>,
}

/// The hotels of a place.
#[derive(Debug, clap::Args)]
pub struct HotelsSearch {
    /// City or area
    place: String,
    #[command(flatten)]
    stay: StayArgs,
    #[command(flatten)]
    options: HotelOptions,
    #[command(flatten)]
    send: SendArgs,
}

/// One hotel.
#[derive(Debug, clap::Args)]
pub struct HotelSearchArgs {
    /// Name of the hotel
    hotel: String,
    /// Where it is: a city or area
    #[arg(long, value_name = "PLACE")]
    area: Option<String>,
    #[command(flatten)]
    stay: StayArgs,
    #[command(flatten)]
    options: HotelOptions,
    #[command(flatten)]
    send: SendArgs,
}

/// The rooms of one hotel.
#[derive(Debug, clap::Args)]
pub struct RoomsSearch {
    /// Booking id of the hotel, such as `es/arts-barcelona`
    #[arg(required_unless_present = "name")]
    id: Option<String>,
    /// Name of the hotel instead of its id; finding the id costs one more request
    #[arg(long, value_name = "HOTEL", conflicts_with = "id")]
    name: Option<String>,
    #[command(flatten)]
    stay: StayArgs,
    #[command(flatten)]
    options: HotelOptions,
    #[command(flatten)]
    send: SendArgs,
}

/// A date as the service reads it.
fn one_date(text: &str) -> Result<String, String> {
    let date = text.parse::<Dates>().ok().and_then(|dates| dates.single());
    let date = date
        .ok_or("expected one date that exists, as 2027-02-04; `farescan scan` searches several")?;
    // Somewhere it may still be yesterday.
    let yesterday = today().saturating_sub(Span::new().days(1));
    if date < yesterday {
        return Err(format!(
            "the date has passed; expected {yesterday} or later"
        ));
    }
    Ok(date.to_string())
}

/// An airport code: a search for one that does not exist would be paid for. What has another form is
/// left to the service.
fn airport(text: &str) -> Result<String, String> {
    let is_code = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_code && !places::exists(text) {
        let meant = places::nearest(text);
        return Err(format!("no airport or city has this code{meant}"));
    }
    Ok(text.to_owned())
}

impl StayArgs {
    fn apply(&self, fields: &mut ScanDraft) -> Result<(), Failure> {
        let checkin: jiff::civil::Date = self.checkin.parse()?;
        let checkout = checkin.checked_add(jiff::Span::new().days(self.nights))?;
        fields.set("checkin_date", Some(self.checkin.as_str()));
        fields.set("checkout_date", Some(checkout.to_string()));
        fields.set("proxy_country", self.market.as_deref());
        Ok(())
    }
}

/// Runs a search.
pub async fn run(command: SearchCommand) -> Result<(), Failure> {
    match command {
        SearchCommand::Oneway(args) => flights::oneway(args).await,
        SearchCommand::Roundtrip(args) => flights::roundtrip(args).await,
        SearchCommand::Hotels(args) => hotels::of_place(args).await,
        SearchCommand::Hotel(args) => hotels::by_name(args).await,
        SearchCommand::Rooms(args) => hotels::rooms(args).await,
    }
}

/// Sends the search and prints its answer.
async fn search<T: DeserializeOwned>(
    send: SendArgs,
    fields: ScanDraft,
    table: impl FnOnce(&T, &str) -> Option<ListTable>,
) -> Result<(), Failure> {
    let session = send.client.open()?;
    let path = format!("/v1/{}", fields.endpoint);
    let age = send.max_age.map(|age| format!("max-age={age}"));
    let header = age.as_deref().map(|age| ("cache-control", age));
    let currency = fields
        .request
        .get("currency")
        .and_then(|currency| currency.as_str())
        .unwrap_or("USD")
        .to_ascii_uppercase();
    let answer = session
        .client
        .send_once(reqwest::Method::POST, &path, Some(&fields.request), header)
        .await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
    } else if let Ok(rows) = answer.read::<T>() {
        match table(&rows, &currency) {
            Some(table) => writeln!(out, "{}", table.render(session.screen))?,
            None => writeln!(out, "{}", nothing(fields.endpoint))?,
        }
    } else {
        // A row with a value of another type than documented: still the answer that was paid for.
        writeln!(out, "{}", answer.text.trim_end())?;
    }
    report(&answer)
}

fn nothing(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::FlightsOneway | Endpoint::FlightsRoundtrip => "No fares.",
        Endpoint::HotelsRooms => "No rooms.",
        _ => "Not available for these dates.",
    }
}

/// Prints the search status and what is left, and ends with 3 if the search did not complete.
fn report(answer: &ServiceResponse) -> Result<(), Failure> {
    let mut parts = vec![answer.header("x-search-status").map_or_else(
        || "search status not stated".to_owned(),
        |status| match answer.header("x-search-reason") {
            Some(reason) => format!("search {status} ({reason})"),
            None => format!("search {status}"),
        },
    )];
    let number = |name| {
        answer
            .header(name)
            .and_then(|text| text.parse::<u64>().ok())
    };
    parts.extend(number("x-search-results").map(|results| counted(results, "result")));
    parts.extend(
        number("x-upstream-requests").map(|spent| format!("{} spent", counted(spent, "request"))),
    );
    parts.extend(number("age").map(|age| format!("found {} ago", roughly(age))));
    parts.extend(
        number("x-plan-requests-remaining").map(|left| format!("{} left of the plan", count(left))),
    );
    note!("{}", parts.join(" · "));
    let status = answer
        .header("x-search-status")
        .and_then(SearchStatus::parse);
    let next = match status {
        Some(SearchStatus::Degraded) => {
            "the search did not complete, so this says nothing about prices\n  next: the same command again costs another request"
        }
        Some(SearchStatus::Partial) => {
            "a part of the search failed: there may be more than this\n  next: the same command again costs another request"
        }
        Some(SearchStatus::Ok | SearchStatus::Empty) | None => return Ok(()),
    };
    Err(CommandEnd::with(ExitStatus::Incomplete, next))
}

/// The lowest price of an answer; 0 is a row without a price.
fn lowest(prices: impl Iterator<Item = f64>) -> Option<f64> {
    prices.filter(|price| *price > 0.0).min_by(f64::total_cmp)
}

/// A price as the engine sent it; the lowest is marked.
fn price_text(price: Option<f64>, best: Option<f64>) -> Text {
    match price.filter(|price| *price > 0.0) {
        Some(price) if Some(price) == best => Text::new(format!("*{price}"), CellTone::Best),
        Some(price) => price.to_string().into(),
        None => Text::new("–", CellTone::Quiet),
    }
}
