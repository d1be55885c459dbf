//! `farescan monitors create`: the cost of a month, the question, the monitor.

use std::path::PathBuf;

use farescan_sheets::monitor::{forecast_line, month_of, same_as};
use farescan_sheets::numbers;
use farescan_sheets::rule::main_field;
use farescan_sheets::trip::body_title;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::channels::ChannelOptions;
use super::show::print_changed;
use super::watch::WatchOptions;
use crate::Failure;
use crate::client::ClientArgs;
use crate::exit::CommandEnd;
use crate::format::{time, zone};
use crate::pages::{Query, page_limit, rows};
use crate::question::Confirmation;
use crate::render::sheet::said;
use crate::request::{HotelArgs, OnewayArgs, RoundtripArgs, SearchArguments};
use crate::scan::{cost, read_body};
use crate::wrap::note;
use farescan_contract::FieldValue as _;
use farescan_contract::monitors::{
    LookbackDays, Monitor, MonitorPreview, MonitorRequest, Rule, RuleType,
};

/// A monitor by the kind of its scan, or the body of a file.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  farescan monitors create oneway TLV LHR --depart +7d..+13d --name \"a week in advance\" --cron \"0 6 * * *\" --alert price_below=150 --alert new_low\n  farescan monitors create oneway TLV LHR --depart +30d..+119d --watch cheapest --max-requests 18 --alert price_below=150\n  farescan monitors create monitor.json --yes"
)]
pub(super) struct CreateArgs {
    #[command(subcommand)]
    kind: Option<CreateKind>,
    /// File with the body of `POST /v1/monitors`; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    file: Option<PathBuf>,
    #[command(flatten)]
    command: CreateCommand,
}

/// The consent to create it, and the service.
#[derive(Debug, clap::Args)]
struct CreateCommand {
    #[command(flatten)]
    channels: ChannelOptions,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    client: ClientArgs,
}

/// The scan of each run. Its dates may be days from the run: `+7d..+13d`.
#[derive(Debug, clap::Subcommand)]
enum CreateKind {
    /// Watch one-way fares
    #[command(
        after_help = "Examples:\n  farescan monitors create oneway TLV LHR 2027-02 --alert price_below=150\n  farescan monitors create oneway TLV LHR --depart +7d..+13d --name \"a week ahead\" --cron \"30 7 * * mon-fri\" --max-requests-per-month 500 --yes"
    )]
    Oneway(Box<MonitorArgs<OnewayArgs, CreateCommand>>),
    /// Watch round-trip fares
    #[command(
        after_help = "Examples:\n  farescan monitors create roundtrip TLV LHR --depart 2027-02-04 --nights 7 --name trip --cron \"0 6 * * *\" --alert drop_percent=10\n  farescan monitors create roundtrip TLV LHR --depart +30d --nights 7,14 --name trips --cron \"0 6 * * 1\" --alert verdict"
    )]
    Roundtrip(Box<MonitorArgs<RoundtripArgs, CreateCommand>>),
    /// Watch the rates of a hotel
    #[command(
        after_help = "Examples:\n  farescan monitors create hotel \"Hotel Arts\" --checkin 2027-02-04 --nights 3 --name Arts --cron \"0 6 * * *\" --alert available\n  farescan monitors create hotel \"Hotel Arts\" --checkin +30d --nights 3 --markets us,de --samples 2 --name parity --cron \"0 6 * * *\" --alert parity_gap_percent=5,baseline=us"
    )]
    Hotel(Box<MonitorArgs<HotelArgs, CreateCommand>>),
}

/// The searches of each run, the monitor, and what else the command takes.
#[derive(Debug, clap::Args)]
pub(super) struct MonitorArgs<S: SearchArguments, C: clap::Args> {
    #[command(flatten)]
    searches: S,
    #[command(flatten)]
    monitor: MonitorOptions,
    #[command(flatten)]
    command: C,
}

impl<S: SearchArguments, C: clap::Args> MonitorArgs<S, C> {
    /// The body of the API, and the rest of the command.
    pub(super) fn body(self) -> Result<(Map<String, Value>, C), Failure> {
        let scan = self.searches.draft()?.into_body();
        Ok((self.monitor.body(scan), self.command))
    }
}

/// When it runs, and when it alerts.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Monitor")]
struct MonitorOptions {
    /// Name of the monitor [default: its route or hotel]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// When it runs: minute, hour, day of the month, month, day of the week
    #[arg(long, value_name = "FIELDS", default_value = "0 6 * * *")]
    cron: String,
    /// IANA time zone of --cron [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Rule, such as `price_below=150`, `drop_percent=10,runs=7`, `new_low` (of 30 days) or
    /// `new_low=90`, `percentile_at_most=20`, `back_in_stock`, `verdict`, `available`, `sold_out`,
    /// `stale=3`, `every_run`, `plan_ends_before_reset`; may be repeated
    #[arg(long = "alert", value_name = "RULE", value_parser = rule)]
    alerts: Vec<Value>,
    /// https address that gets the alerts
    #[arg(long, value_name = "URL")]
    webhook_url: Option<String>,
    /// Most billed requests of a calendar month
    #[arg(long, value_name = "NUMBER")]
    max_requests_per_month: Option<u32>,
    #[command(flatten)]
    watch: WatchOptions,
}

/// `TYPE[=MAIN][,FIELD=VALUE]…` as a rule of the API.
pub(super) fn rule(text: &str) -> Result<Value, String> {
    let mut parts = text.split(',');
    let first = parts.next().unwrap_or_default();
    let (word, main) = first
        .split_once('=')
        .map_or((first, None), |(word, main)| (word, Some(main)));
    let rule_type: RuleType = word.parse().map_err(|error| format!("{error}"))?;
    let mut body = Map::from_iter([("type".to_owned(), json!(word))]);
    let scalar = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    match (main_field(rule_type), main) {
        (Some(field), Some(main)) => _ = body.insert(field.to_owned(), scalar(main)),
        (None, Some(_)) => {
            let has_scope = rule_type.fields().iter().any(|field| field.name == "scope");
            let or = if has_scope {
                format!(", or {word},scope=cell")
            } else {
                String::new()
            };
            return Err(format!("`{word}` has no value; expected {word}{or}"));
        }
        (_, None) => {}
    }
    for part in parts {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| format!("found {part:?}; expected FIELD=VALUE"))?;
        body.insert(name.to_owned(), scalar(value));
    }
    if rule_type == RuleType::NewLow {
        let days = || LookbackDays::THIRTY.to_value();
        body.entry("days").or_insert_with(days);
    }
    let body = Value::Object(body);
    Rule::read(&body).map_err(|errors| errors.to_string())?;
    Ok(body)
}

/// Previews, asks, creates.
pub(super) async fn run(args: CreateArgs) -> Result<(), Failure> {
    let (body, command) = match (args.kind, args.file) {
        (Some(CreateKind::Oneway(create)), _) => create.body()?,
        (Some(CreateKind::Roundtrip(create)), _) => create.body()?,
        (Some(CreateKind::Hotel(create)), _) => create.body()?,
        (None, Some(file)) => (read_body(&file)?, args.command),
        (None, None) => return Err(CommandEnd::usage("a kind of scan or a file is missing")),
    };
    create(body, command.channels, command.confirmation, command.client).await
}

/// The same for a body.
pub async fn create(
    mut body: Map<String, Value>,
    channels: ChannelOptions,
    confirmation: Confirmation,
    client: ClientArgs,
) -> Result<(), Failure> {
    let session = client.open()?;
    let rules = body.get("alerts").and_then(Value::as_array);
    if rules.is_some_and(|rules| !rules.is_empty()) {
        channels.name_in(&session, &mut body).await?;
    }
    let preview: MonitorPreview = session.client.post("/v1/monitors/preview", &body).await?;
    let cost_of_month = month_of(&preview.forecast, &body);
    if !confirmation.yes || session.screen.interactive {
        note!("{}", forecast_line(&preview.forecast));
        note!("{}", cost::plans(&preview.forecast.plans).trim_end());
        let slots: Vec<_> = preview
            .next_slots
            .iter()
            .take(3)
            .map(|slot| time(*slot))
            .collect();
        note!("First runs: {} ({})", slots.join(", "), zone());
    }
    for warning in cost_of_month.notices.iter().map(said) {
        note!("{warning}");
    }
    let path = Query::new("/v1/monitors").with("limit", Some(page_limit(None)));
    let monitors: Vec<Monitor> = rows(&session.client, &path.path(), None).await?;
    let same = same_as(&monitors, &body);
    for warning in preview.schedule_warnings.iter().chain(&same) {
        note!("Note: {warning}");
    }
    let requests = numbers::request_range(preview.forecast.requests_per_month);
    let mut question = format!("Create it, for {requests} a month?");
    let rules = body.get("alerts").and_then(Value::as_array);
    if rules.is_none_or(|rules| rules.is_empty()) {
        note!(
            "Note: it has no rule, so it never alerts: it only collects prices. Add one with --alert, such as `--alert new_low`."
        );
        question = format!("Create it without a rule, for {requests} a month?");
    }
    confirmation.ask(session.screen, &question).await?;
    let answer = session.create("/v1/monitors", &body).await?;
    print_changed(&session, session.read_or_print(&answer)?)
}

impl MonitorOptions {
    fn body(self, mut scan: Map<String, Value>) -> Map<String, Value> {
        let mut alerts = self.alerts;
        self.watch.set(&mut scan, &mut alerts);
        let system = || TimeZone::system().iana_name().unwrap_or("UTC").to_owned();
        let timezone = self.timezone.unwrap_or_else(system);
        let name = self
            .name
            .unwrap_or_else(|| body_title(&scan).unwrap_or_default());
        let mut body = MonitorRequest::draft(&name, [&self.cron, &timezone], scan, alerts);
        if let Some(url) = self.webhook_url {
            body.insert("webhook_url".to_owned(), url.into());
        }
        if let Some(max) = self.max_requests_per_month {
            body.insert("max_requests_per_month".to_owned(), max.into());
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_word_with_its_values() {
        for (text, body) in [
            ("new_low", json!({"type": "new_low", "days": 30})),
            ("new_low=90", json!({"type": "new_low", "days": 90})),
            (
                "price_below=150",
                json!({"type": "price_below", "amount": 150}),
            ),
            (
                "drop_percent=10,runs=3",
                json!({"type": "drop_percent", "percent": 10, "runs": 3}),
            ),
            (
                "parity_gap_percent=5,baseline=us",
                json!({"type": "parity_gap_percent", "percent": 5, "baseline": "us"}),
            ),
            (
                "percentile_at_most=20,scope=cell",
                json!({"type": "percentile_at_most", "percentile": 20, "scope": "cell"}),
            ),
            ("new_low,days=7", json!({"type": "new_low", "days": 7})),
            ("back_in_stock", json!({"type": "back_in_stock"})),
            (
                "sold_out,scope=cell",
                json!({"type": "sold_out", "scope": "cell"}),
            ),
        ] {
            assert_eq!(rule(text), Ok(body), "{text}");
        }
        for (text, says) in [
            ("cheap", "price_below"),
            ("price_below", "amount"),
            ("price_below=-1", "above 0"),
            ("verdict=3", "no value"),
            ("new_low=366", "from 1 to 365"),
            ("stale=3,x", "FIELD=VALUE"),
            ("percentile_at_most=91", "from 0 to 90"),
        ] {
            let error = rule(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
