//! `farescan monitors edit`: changes a monitor; what is not named stays.

use std::path::PathBuf;

use reqwest::Method;
use serde_json::{Map, Number, Value, json};

use super::channels::ChannelOptions;
use super::create::rule;
use super::show::print_changed;
use super::watch::{NONE, WatchChange, set_amount};
use crate::Failure;
use crate::amount;
use crate::client::{ClientArgs, ClientError, ServiceSession};
use crate::exit::CommandEnd;
use crate::ids;
use crate::question::Confirmation;
use crate::scan::read_body;
use farescan_contract::ids::MonitorId;
use farescan_contract::monitors::{Monitor, MonitorPreview};
use farescan_sheets::monitor::forecast_line;

/// A monitor and what changes.
#[derive(Debug, clap::Args)]
pub(super) struct EditArgs {
    /// Monitor: its id, the beginning of it, or `@last`
    #[arg(value_name = "MONITOR")]
    monitor: String,
    /// New name
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// New times: minute, hour, day of the month, month, day of the week
    #[arg(long, value_name = "FIELDS")]
    cron: Option<String>,
    /// New IANA time zone of the times
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// File with the new scan: the body of `POST /v1/scans`; `-` is standard input
    #[arg(long, value_name = "FILE")]
    scan: Option<PathBuf>,
    /// What to watch with few requests: `cheapest`, `below` (a price); `none` searches
    /// everything in each run
    #[arg(long, value_name = "WHAT", value_parser = ["cheapest", "below", NONE])]
    watch: Option<String>,
    /// With a watch `below`: the price, also of its rule `price_below`
    #[arg(long, value_name = "AMOUNT", value_parser = amount::amount)]
    below: Option<Number>,
    /// Hard limit of billed requests of a run, retries included; `none` removes the limit
    #[arg(long, value_name = "NUMBER", value_parser = limit)]
    max_requests: Option<Value>,
    /// Rule that replaces all rules, such as `price_below=150`; may be repeated
    #[arg(long = "alert", value_name = "RULE", value_parser = rule)]
    alerts: Vec<Value>,
    /// Remove all rules
    #[arg(long, conflicts_with = "alerts")]
    no_alerts: bool,
    /// New https address that gets the alerts; `none` removes it
    #[arg(long, value_name = "URL")]
    webhook_url: Option<String>,
    #[command(flatten)]
    channels: ChannelOptions,
    /// Most billed requests of a calendar month; `none` removes the limit
    #[arg(long, value_name = "NUMBER", value_parser = limit)]
    max_requests_per_month: Option<Value>,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    client: ClientArgs,
}

/// A number, or null for `none`.
fn limit(text: &str) -> Result<Value, String> {
    if text == NONE {
        return Ok(Value::Null);
    }
    text.parse::<u32>()
        .map(Value::from)
        .map_err(|error| format!("{error}; expected a number or `{NONE}`"))
}

/// Shows the cost of a month if it changes, asks, changes the monitor.
pub(super) async fn run(args: EditArgs) -> Result<(), Failure> {
    let (session, id) = ids::open::<MonitorId>(&args.client, &args.monitor).await?;
    let path = format!("/v1/monitors/{id}");
    let monitor: Monitor = session.client.get(&path).await?;
    let mut patch = patch(&args, &monitor)?;
    let channels = args.channels.changed(&session).await?;
    patch.extend(channels.map(|channels| ("channels".to_owned(), channels)));
    if patch.is_empty() {
        return Err(CommandEnd::usage(format!(
            "no change is named; nothing was changed\n  next: `farescan monitors edit {id} --max-requests-per-month 500`, or see `farescan monitors edit --help`"
        )));
    }
    if may_cost_more(&patch, &monitor) {
        ask(&session, args.confirmation, &monitor, &patch).await?;
    }
    let changed = session.change(Method::PATCH, &path, &patch).await?;
    print_changed(&session, changed)
}

/// The body of the API: only what is named.
fn patch(args: &EditArgs, monitor: &Monitor) -> Result<Map<String, Value>, Failure> {
    let mut patch = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            patch.insert(name.to_owned(), value);
        }
    };
    set("name", args.name.as_deref().map(Value::from));
    if args.cron.is_some() || args.timezone.is_some() {
        let old = &monitor.schedule;
        let schedule = json!({
            "cron": args.cron.as_ref().unwrap_or(&old.cron),
            "timezone": args.timezone.as_ref().unwrap_or(&old.timezone),
        });
        set("schedule", Some(schedule));
    }
    set("scan", scan(args, monitor)?.map(Value::Object));
    set("alerts", rules(args, monitor)?);
    let url = args.webhook_url.as_deref();
    set(
        "webhook_url",
        url.map(|url| Value::from((url != NONE).then_some(url))),
    );
    set(
        "max_requests_per_month",
        args.max_requests_per_month.clone(),
    );
    Ok(patch)
}

/// The new rules: those that were named, or the stored ones with the new amount of the watch.
fn rules(args: &EditArgs, monitor: &Monitor) -> Result<Option<Value>, Failure> {
    if args.no_alerts || !args.alerts.is_empty() {
        return Ok(Some(json!(args.alerts)));
    }
    let Some(below) = &args.below else {
        return Ok(None);
    };
    let stored: Map<String, Value> = monitor.scan.read()?;
    let mut rules = monitor.alerts.iter().map(|rule| json!(rule)).collect();
    set_amount(&mut rules, &stored, below);
    Ok(Some(Value::Array(rules)))
}

/// The new scan: that of the file or the stored one, with the watch that was named.
fn scan(args: &EditArgs, monitor: &Monitor) -> Result<Option<Map<String, Value>>, Failure> {
    let change = WatchChange {
        watch: args.watch.as_deref(),
        below: args.below.as_ref(),
        max_requests: args.max_requests.as_ref(),
    };
    let file = args.scan.as_deref().map(read_body).transpose()?;
    if change.is_empty() {
        return Ok(file);
    }
    let mut scan = match file {
        Some(scan) => scan,
        None => monitor.scan.read()?,
    };
    change.apply(&mut scan)?;
    Ok(Some(scan))
}

/// Whether more runs, more searches or a higher limit are possible.
fn may_cost_more(patch: &Map<String, Value>, monitor: &Monitor) -> bool {
    let raises_limit = patch.get("max_requests_per_month").is_some_and(|new| {
        let old = monitor.requests.max_per_month.map(u64::from);
        old.is_some_and(|old| new.as_u64().is_none_or(|new| new > old))
    });
    let rules = patch.get("alerts").and_then(Value::as_array);
    let confirms = rules.is_some_and(|rules| rules.iter().any(|rule| rule["confirm"] == 1));
    patch.contains_key("schedule") || patch.contains_key("scan") || raises_limit || confirms
}

/// Shows the forecast of the changed monitor and asks.
async fn ask(
    session: &ServiceSession,
    confirmation: Confirmation,
    monitor: &Monitor,
    patch: &Map<String, Value>,
) -> Result<(), Failure> {
    let mut body = monitor.backtest_body()?;
    for (field, value) in &mut body {
        if let Some(new) = patch.get(field).filter(|_| field != "name") {
            *value = new.clone();
        }
    }
    let cost = match session
        .client
        .post::<MonitorPreview>("/v1/monitors/preview", &body)
        .await
    {
        Ok(preview) => format!("{}.", forecast_line(&preview.forecast)),
        // The service accepts the change: it ignores errors of fields that stay.
        Err(error) if is_about_unchanged(&error, patch) => {
            format!(
                "Its cost is not known, because the service cannot plan the rest of it:\n{error}\n"
            )
        }
        Err(error) => return Err(error.into()),
    };
    let question = format!("Change {:?}? {cost}", monitor.name);
    confirmation.ask(session.screen, &question).await
}

/// Whether every fault that the error names is in a field that stays, as a date that has passed
/// since the monitor was created.
fn is_about_unchanged(error: &ClientError, patch: &Map<String, Value>) -> bool {
    let ClientError::Service { detail, .. } = error else {
        return false;
    };
    let is_unchanged = |path: &str| {
        let field = path.split(['.', '[']).next().unwrap_or_default();
        // A monthly limit depends on the scan too.
        let is_limit_of_scan = field == "max_requests_per_month" && patch.contains_key("scan");
        !(patch.contains_key(field) || is_limit_of_scan)
    };
    !detail.details.is_empty()
        && detail
            .details
            .iter()
            .all(|fault| is_unchanged(&fault.field))
}
