//! `farescan scan`: many searches as one request: its cost first, then its progress, then a calendar
//! or a table.

pub mod cost;
pub mod follow;
pub mod results;
mod risk;
mod submit;

pub use submit::read_body;

use std::path::PathBuf;

use serde_json::Number;

use super::Failure;
use super::amount;
use super::client::ClientArgs;
use super::question::Confirmation;
use super::request::{HotelArgs, OnewayArgs, RoundtripArgs};

/// A scan by its kind, or the body of a file.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ScanArgs {
    #[command(subcommand)]
    kind: Option<ScanKind>,
    /// File with the body of `POST /v1/scans`; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    file: Option<PathBuf>,
    #[command(flatten)]
    submit: SubmitArgs,
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
enum ScanKind {
    /// Scan one-way fares over dates and airports
    #[command(
        after_help = "Examples:\n  farescan scan oneway TLV LHR,CDG --depart 2027-02 --weekdays thu,fri --max-stops 0\n  farescan scan oneway TLV LHR --depart 2027-02-01..2027-03-15 --max-requests 60 --yes --csv > fares.csv"
    )]
    Oneway(Box<OnewayScan>),
    /// Scan round-trip fares over dates and nights
    #[command(
        after_help = "Examples:\n  farescan scan roundtrip TLV LHR --depart 2027-02 --nights 7,10..14\n  farescan scan roundtrip TLV LHR,LGW --depart 2027-02-04 --nights 3..7 --detach --yes"
    )]
    Roundtrip(Box<RoundtripScan>),
    /// Scan one hotel over dates, nights and markets
    #[command(
        after_help = "Examples:\n  farescan scan hotel \"Hotel Arts\" --area Barcelona --checkin 2027-02-04 --nights 3 --markets us,de,gb --samples 3\n  farescan scan hotel \"Hotel Arts\" --area Barcelona --checkin 2027-02 --nights 2,3"
    )]
    Hotel(Box<HotelScan>),
}

/// One way.
#[derive(Debug, clap::Args)]
struct OnewayScan {
    #[command(flatten)]
    fields: OnewayArgs,
    #[command(flatten)]
    submit: SubmitArgs,
}

/// Round trip.
#[derive(Debug, clap::Args)]
struct RoundtripScan {
    #[command(flatten)]
    fields: RoundtripArgs,
    #[command(flatten)]
    submit: SubmitArgs,
}

/// One hotel.
#[derive(Debug, clap::Args)]
struct HotelScan {
    #[command(flatten)]
    fields: HotelArgs,
    #[command(flatten)]
    submit: SubmitArgs,
}

/// How it is submitted and shown.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Scan")]
struct SubmitArgs {
    /// Hard limit of billed requests, retries included
    #[arg(long, value_name = "NUMBER")]
    max_requests: Option<u32>,
    /// Most attempts of a search that does not complete [default: 1]
    #[arg(long, value_name = "NUMBER")]
    attempts: Option<u8>,
    /// Take answers that you have already paid for and that are at most this old: 90min, 6h, 3d; 0s
    /// for none [default: the age of your account, if you have set one]
    #[arg(long, value_name = "AGE", value_parser = crate::age::seconds)]
    max_age: Option<u32>,
    /// Search only what can still be the answer, from the stored prices
    #[arg(long, value_name = "WHAT", value_parser = ["cheapest", "below"])]
    find: Option<String>,
    /// With --find below: the price; the search ends with the first one below it
    #[arg(long, value_name = "AMOUNT", value_parser = amount::amount, requires = "find")]
    below: Option<Number>,
    /// With --find: search so that at most this share of such questions was missed, as counted: 5%,
    /// 0.05
    #[arg(long, value_name = "RISK", requires = "find", value_parser = risk::share)]
    max_risk: Option<f64>,
    /// Name of the scan
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Tag for `farescan scans --tag`; may be repeated
    #[arg(long = "tag", value_name = "TEXT")]
    tags: Vec<String>,
    /// With --yes: also if the plan has too few requests left
    #[arg(long)]
    allow_overage: bool,
    /// Submit and do not wait for the end
    #[arg(long, short)]
    detach: bool,
    /// Print the items as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    client: ClientArgs,
}

/// Previews, asks, submits, follows, prints.
pub async fn run(args: ScanArgs) -> Result<(), Failure> {
    let (body, submit) = match (args.kind, args.file) {
        (Some(ScanKind::Oneway(scan)), _) => (scan.fields.fields()?.into_scan(), scan.submit),
        (Some(ScanKind::Roundtrip(scan)), _) => (scan.fields.fields()?.into_scan(), scan.submit),
        (Some(ScanKind::Hotel(scan)), _) => (scan.fields.fields()?.into_scan(), scan.submit),
        (None, Some(file)) => (submit::read_body(&file)?, args.submit),
        (None, None) => return Err("a kind of scan or a file is missing".into()),
    };
    submit::run(body, submit).await
}
