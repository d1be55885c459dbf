//! `farescan monitors show`: one monitor, its rules and its last slots.

use std::io::Write as _;

use super::list::status;
use super::watch;
use crate::Failure;
use crate::client::{ClientArgs, ServiceResponse, ServiceSession};
use crate::format::{time, time_or, zone};
use crate::ids;
use crate::render::{CellTone, Column, ListTable, Text};
use crate::wrap::note;
use farescan_contract::FieldValue as _;
use farescan_contract::monitors::{
    Monitor, MonitorForecast, MonitorSlot, Rule, RuleScope, RuleStanding, SlotOutcome, SlotPage,
};
use farescan_contract::scans::StrategyProgress;
use farescan_contract::{ErrorType, Scan};
use farescan_sheets::draft::plain;
use farescan_sheets::numbers::{self, amount, counted};
use farescan_sheets::rule;
use farescan_sheets::schedule;
use farescan_sheets::strategy;
use farescan_sheets::trip;

/// The shown slots.
const SLOTS: u16 = 10;

/// One monitor.
#[derive(Debug, clap::Args)]
pub(super) struct MonitorShowArgs {
    /// Monitor: its id, the beginning of it, or `@last`
    #[arg(value_name = "MONITOR", default_value = "@last")]
    monitor: String,
    #[command(flatten)]
    client: ClientArgs,
}

/// Prints the monitor.
pub(super) async fn run(args: MonitorShowArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let id = ids::monitor(&session.client, &args.monitor).await?;
    let answer = session.client.ask(&format!("/v1/monitors/{id}")).await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
        return Ok(());
    }
    let monitor: Monitor = answer.read()?;
    write!(out, "{}", describe(&monitor))?;
    let slots: SlotPage = session
        .client
        .get(&format!("/v1/monitors/{id}/slots?limit={SLOTS}"))
        .await?;
    if let Some(words) = last_watch(&session, &monitor, &slots.data).await? {
        writeln!(out, "last run  {words}")?;
    }
    if !slots.data.is_empty() {
        writeln!(out, "\n{}", slot_table(&slots.data).render(session.screen))?;
    }
    note!("Times in {}.", zone());
    Ok(())
}

/// What the newest run says of a monitor that watches. A run whose scan was deleted says nothing.
async fn last_watch(
    session: &ServiceSession,
    monitor: &Monitor,
    slots: &[MonitorSlot],
) -> Result<Option<String>, Failure> {
    let newest = slots.iter().find_map(|slot| slot.scan_id);
    let Some(scan) = newest.filter(|_| watch::is_watch(monitor)) else {
        return Ok(None);
    };
    match session
        .client
        .get::<Scan>(&format!("/v1/scans/{scan}"))
        .await
    {
        Ok(scan) => Ok(match &scan.strategy {
            Some(StrategyProgress::Watch(watch)) => Some(strategy::watched(watch)),
            _ => None,
        }),
        Err(error) if error.error_type() == Some(ErrorType::NotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Prints a monitor that was created or changed, with a new secret of its webhook.
pub(super) fn print_changed(
    session: &ServiceSession,
    answer: &ServiceResponse,
) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
        return Ok(());
    }
    let monitor: Monitor = answer.read()?;
    write!(out, "{}", describe(&monitor))?;
    if let Some(secret) = &monitor.webhook_secret {
        writeln!(out, "secret    {}", secret.0.as_str())?;
        note!("The secret signs the deliveries to the webhook. It is shown this once: keep it.");
    }
    Ok(())
}

/// The monitor in lines.
fn describe(monitor: &Monitor) -> String {
    let mut lines = vec![
        format!("{}  {}", monitor.id, monitor.name),
        format!(
            "{}; next {}",
            status(monitor).text,
            time_or(monitor.next_slot, "–")
        ),
        format!(
            "schedule  {} in {}",
            monitor.schedule.cron, monitor.schedule.timezone
        ),
        format!("scan      {}", trip::whole_scan(&monitor.scan)),
    ];
    lines.extend(
        monitor
            .schedule_warnings
            .iter()
            .map(|warning| format!("note      {warning}")),
    );
    for (position, alert) in monitor.alerts.iter().enumerate() {
        let standing = monitor
            .rule_standings
            .as_ref()
            .and_then(|standings| standings.get(position));
        let state = match standing.and_then(|standing| standing.armed) {
            Some(true) => ", can fire",
            Some(false) => ", has fired and waits for a recovery",
            None => "",
        };
        let fired = standing.and_then(|standing| {
            let fired = standing.last_fired.as_ref()?;
            Some(format!(
                ", last at {} on {}",
                amount(fired.price),
                time(fired.at)
            ))
        });
        lines.push(format!(
            "alert     {}{state}{}",
            rule_words(alert, standing),
            fired.unwrap_or_default()
        ));
    }
    if let Some(webhook) = &monitor.webhook {
        let state = match (webhook.off_reason, webhook.failing_since) {
            (Some(reason), _) => format!("disabled: {reason}"),
            (None, Some(since)) => format!("failing since {}", time(since)),
            (None, None) => webhook
                .delivered_at
                .map_or("nothing delivered yet".to_owned(), |at| {
                    format!("last delivery {}", time(at))
                }),
        };
        lines.push(format!("webhook   {} ({state})", webhook.url));
    }
    if let Some(notify) = &monitor.notify {
        let held = monitor.held.map(|held| {
            let until = time(held.notify_at);
            format!(" ({} held until {until})", held.fired)
        });
        lines.push(format!(
            "notify    {}{}",
            schedule::notify(notify, &monitor.schedule.timezone),
            held.unwrap_or_default()
        ));
    }
    let limit = monitor
        .requests
        .max_per_month
        .map(|max| format!(" of at most {max}"))
        .unwrap_or_default();
    lines.push(format!(
        "spent     {} this month{limit}",
        counted(monitor.requests.this_month, "request")
    ));
    if let Some(forecast) = &monitor.forecast {
        lines.push(format!("forecast  {}", forecast_line(forecast)));
    }
    lines.join("\n") + "\n"
}

/// A rule, what it is applied to, and the margin after which it can fire again.
fn rule_words(alert: &Rule, standing: Option<&RuleStanding>) -> String {
    let currency = standing.and_then(|standing| standing.currency.as_deref());
    let fields = alert.to_value();
    let scope = standing
        .filter(|standing| standing.scope == RuleScope::Cell)
        .map(|_| ", each date or market alone".to_owned());
    let margin = fields
        .get("rearm_percent")
        .map(|margin| format!(", margin {} %", plain(margin)));
    let words = std::iter::once(rule::sentence(alert, currency));
    words.chain(scope).chain(margin).collect()
}

/// `30 runs of 31 to 62 requests: 930 to 1,860 requests a month`.
pub(super) fn forecast_line(forecast: &MonitorForecast) -> String {
    format!(
        "{} of {}: {} a month",
        counted(forecast.slots, "run"),
        numbers::request_range(forecast.requests_per_run),
        numbers::request_range(forecast.requests_per_month)
    )
}

fn slot_table(slots: &[MonitorSlot]) -> ListTable {
    let mut table = ListTable::new([
        Column::text("Slot"),
        Column::text("Outcome"),
        Column::number("Alerts").rank(1),
        Column::text("Scan").rank(2),
        Column::text("Why").rank(3),
    ]);
    for slot in slots {
        let tone = match slot.outcome {
            SlotOutcome::Ran | SlotOutcome::Late => CellTone::Plain,
            _ => CellTone::Warning,
        };
        table.row([
            time(slot.slot).into(),
            Text::new(outcome(slot), tone),
            slot.judged
                .map(|judged| judged.alerts.to_string())
                .unwrap_or_default()
                .into(),
            slot.scan_id
                .map(|id| id.to_string())
                .unwrap_or_default()
                .into(),
            why(slot).into(),
        ]);
    }
    table
}

/// What became of a slot, and of the confirmation of its prices.
fn outcome(slot: &MonitorSlot) -> String {
    let outcome = slot.outcome;
    match (slot.judged, &slot.confirmation) {
        (None, Some(_)) => format!("{outcome}, waits for confirmation"),
        (Some(judged), _) if judged.unconfirmed > 0 => {
            format!("{outcome}, {} unconfirmed", judged.unconfirmed)
        }
        _ => outcome.to_string(),
    }
}

/// The reason of a slot, and how many prices its rules left out.
fn why(slot: &MonitorSlot) -> String {
    let implausible = slot.judged.map_or(0, |judged| judged.implausible);
    let left_out = (implausible > 0).then(|| format!("{implausible} implausible"));
    let reason = slot.reason.clone().into_iter().chain(left_out);
    reason.collect::<Vec<_>>().join("; ")
}
