//! `farescan quota set`: the caller's own limits of one API. Limits that are not named stay.

use std::io::Write as _;
use std::str::FromStr;

use farescan_sheets::numbers::count;
use reqwest::Method;
use serde_json::{Map, Value};

use super::show::text;
use crate::Failure;
use crate::client::ClientArgs;
use crate::exit::CommandEnd;
use crate::question::Confirmation;
use farescan_contract::Api;
use farescan_contract::plans::PlanName;
use farescan_contract::quota::{LaneQuota, Quota};

/// New limits.
#[derive(Debug, clap::Args)]
pub(super) struct LimitArgs {
    /// Which API: `flights` or `hotels`
    #[arg(value_name = "API")]
    api: Api,
    /// Requests of the plan that scans leave for your single searches; 0 for none
    #[arg(long, value_name = "NUMBER")]
    keep_in_reserve: Option<u64>,
    /// Most searches of scans a minute; `none` removes the limit
    #[arg(long, value_name = "NUMBER")]
    requests_per_minute: Option<LimitValue<u32>>,
    /// Most searches of scans at the same time; `none` removes the limit
    #[arg(long, value_name = "NUMBER")]
    max_in_flight: Option<LimitValue<u32>>,
    /// Your plan, until the marketplace reports it: `basic`, `pro`, `ultra` or `mega`; `none`
    /// forgets it
    #[arg(long, value_name = "PLAN")]
    plan: Option<LimitValue<PlanName>>,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    client: ClientArgs,
}

/// A new value, or `none`.
#[derive(Debug, Clone, Copy)]
struct LimitValue<T>(Option<T>);

impl<T: FromStr<Err: std::fmt::Display>> FromStr for LimitValue<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        text.parse()
            .map(|value| Self(Some(value)))
            .map_err(|error| format!("{error}; or `none`"))
    }
}

/// Replaces the named limits.
pub(super) async fn run(args: LimitArgs) -> Result<(), Failure> {
    let is_nothing = args.keep_in_reserve.is_none()
        && args.requests_per_minute.is_none()
        && args.max_in_flight.is_none()
        && args.plan.is_none();
    if is_nothing {
        return Err(CommandEnd::usage(format!(
            "no limit is named; nothing was changed\n  next: `farescan quota set {} --keep-in-reserve 200`, or see `farescan quota set --help`",
            args.api
        )));
    }
    let session = args.client.open()?;
    let quota: Quota = session.client.get("/v1/quota").await?;
    let lane = match args.api {
        Api::Flights => quota.flights,
        Api::Hotels => quota.hotels,
    };
    let reserve = lane.bounds.keep_in_reserve;
    if let Some(new) = args.keep_in_reserve.filter(|new| *new < reserve) {
        let question = format!(
            "Keep {} instead of {} in reserve? Scans that wait for the reserve continue at once and spend requests.",
            count(new),
            count(reserve)
        );
        args.confirmation.ask(session.screen, &question).await?;
    }
    let (path, patch) = (format!("/v1/quota/{}", args.api), patch(&args));
    let changed = session.change::<LaneQuota>(Method::PATCH, &path, &patch);
    let Some(lane) = changed.await? else {
        return Ok(());
    };
    let mut out = anstream::stdout();
    writeln!(out, "{}", text(args.api, &lane))?;
    Ok(())
}

/// The body of the API: only the named limits, so that the others stay even if another request
/// changes them meanwhile.
fn patch(args: &LimitArgs) -> Map<String, Value> {
    let fields = [
        ("keep_in_reserve", args.keep_in_reserve.map(Value::from)),
        (
            "requests_per_minute",
            args.requests_per_minute.map(|limit| Value::from(limit.0)),
        ),
        (
            "max_in_flight",
            args.max_in_flight.map(|limit| Value::from(limit.0)),
        ),
        (
            "plan",
            args.plan
                .map(|plan| Value::from(plan.0.map(|plan| plan.to_string()))),
        ),
    ];
    fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}
