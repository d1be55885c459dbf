//! `farescan scan`: many searches as one request: its cost first, then its progress, then a calendar
//! or a table.

pub mod cost;
pub mod follow;
pub mod results;
mod risk;
mod submit;

pub use submit::{read_body, run as submit};

use std::path::PathBuf;

use serde_json::{Map, Number, Value};

use super::Failure;
use super::amount;
use super::client::ClientArgs;
use super::question::Confirmation;
use super::request::{HotelArgs, OnewayArgs, RoundtripArgs, SearchArguments};

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
    Oneway(Box<SearchedArgs<OnewayArgs>>),
    /// Scan round-trip fares over dates and nights
    #[command(
        after_help = "Examples:\n  farescan scan roundtrip TLV LHR --depart 2027-02 --nights 7,10..14\n  farescan scan roundtrip TLV LHR,LGW --depart 2027-02-04 --nights 3..7 --detach --yes"
    )]
    Roundtrip(Box<SearchedArgs<RoundtripArgs>>),
    /// Scan one hotel over dates, nights and markets
    #[command(
        after_help = "Examples:\n  farescan scan hotel \"Hotel Arts\" --area Barcelona --checkin 2027-02-04 --nights 3 --markets us,de,gb --samples 3\n  farescan scan hotel \"Hotel Arts\" --area Barcelona --checkin 2027-02 --nights 2,3"
    )]
    Hotel(Box<SearchedArgs<HotelArgs>>),
}

/// The searches, and how they are submitted.
#[derive(Debug, clap::Args)]
struct SearchedArgs<S: SearchArguments> {
    #[command(flatten)]
    searches: S,
    #[command(flatten)]
    submit: SubmitArgs,
}

impl<S: SearchArguments> SearchedArgs<S> {
    fn body(self) -> Result<(Map<String, Value>, SubmitArgs), Failure> {
        Ok((self.searches.draft()?.into_body(), self.submit))
    }
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
    #[command(flatten)]
    follow: FollowArgs,
}

/// The consent to the cost, and what is done with the scan.
#[derive(Debug, clap::Args)]
pub struct FollowArgs {
    /// With --yes: also if the plan has too few requests left
    #[arg(long)]
    pub allow_overage: bool,
    /// Submit and do not wait for the end
    #[arg(long, short)]
    pub detach: bool,
    /// Print the items as CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    #[command(flatten)]
    pub confirmation: Confirmation,
    #[command(flatten)]
    pub client: ClientArgs,
}

/// Previews, asks, submits, follows, prints.
pub async fn run(args: ScanArgs) -> Result<(), Failure> {
    let (mut body, options) = match (args.kind, args.file) {
        (Some(ScanKind::Oneway(scan)), _) => scan.body()?,
        (Some(ScanKind::Roundtrip(scan)), _) => scan.body()?,
        (Some(ScanKind::Hotel(scan)), _) => scan.body()?,
        (None, Some(file)) => (submit::read_body(&file)?, args.submit),
        (None, None) => return Err("a kind of scan or a file is missing".into()),
    };
    submit::add_options(&mut body, &options);
    submit(body, options.follow).await
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use farescan_sheets::draft::ScanDraft;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        scan: ScanArgs,
    }

    /// The command that the dashboard shows submits the body that it shows it for.
    #[test]
    fn the_words_of_a_body_make_the_same_body() {
        for body in [
            json!({
                "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "airline_codes": ["LY"], "use_fallback": false},
                "sweep": {"to_airport": ["LHR", "CDG"],
                          "departure_date": {"from": "2027-02-01", "to": "2027-02-28", "step_days": 2, "weekdays": ["thu", "fri"]}},
                "label": "February", "tags": ["a", "b"], "max_requests": 40, "max_age_seconds": 3600, "retry": {"max_attempts": 2},
                "strategy": {"find": "below", "below": 150.5, "max_risk": 0.05}
            }),
            json!({
                "endpoint": "flights/roundtrip", "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-02-01"},
                "sweep": {"nights": [3, 7]}
            }),
            json!({
                "endpoint": "hotels/by-name", "request": {"hotel_name": "Arts", "area": "Barcelona"},
                "sweep": {"checkin_date": ["2027-02-01", "2027-02-03"], "nights": [3], "proxy_country": ["us", "de"], "samples": 3}
            }),
        ] {
            let draft = ScanDraft::of(body.as_object().unwrap()).unwrap();
            let command = draft.command().unwrap();
            let words = command.replace('\'', "");
            let words = words.split(' ').skip(1);
            let parsed = Command::try_parse_from(words).unwrap().scan;
            let (mut made, options) = match parsed.kind.unwrap() {
                ScanKind::Oneway(scan) => scan.body().unwrap(),
                ScanKind::Roundtrip(scan) => scan.body().unwrap(),
                ScanKind::Hotel(scan) => scan.body().unwrap(),
            };
            submit::add_options(&mut made, &options);
            assert_eq!(Value::Object(made), body, "{command}");
        }
    }
}
