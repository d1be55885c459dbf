//! A monitor: whether it runs, its rules with what each remembers, its webhook, its slots and its
//! cost.

use farescan_contract::FieldValue as _;
use farescan_contract::monitors::{
    Monitor, MonitorForecast, MonitorPause, MonitorSchedule, MonitorSlot, MonitorStatus, OffReason,
    PriceMark, Rule, RuleScope, RuleStanding, SlotKind, SlotOutcome, Webhook,
};
use farescan_contract::scans::{PlanFit, RequestRange, WatchProgress};

use serde_json::{Map, Value as Json};

use crate::draft::plain;
use crate::numbers::{count, counted, request_range};
use crate::preview::plan_fit;
use crate::sheet::{Cell, Column, Figure, Link, Notice, Section, Sheet, Table, Tone, Value, cell};
use crate::{rule, schedule, strategy, trip};

/// Searches of a confirmation that are named.
const CONFIRMED: usize = 3;

/// Monitors as rows; `runs` are the prices of the runs of each, and the last one.
pub fn table(monitors: &[Monitor], runs: impl Fn(&Monitor) -> [Cell; 2]) -> Table {
    let columns = [
        Column::text("Name"),
        Column::detail("Trip").rank(5),
        Column::text("Lowest price of each run").rank(6),
        Column::number("Last").rank(4),
        Column::text("Last slot").rank(3),
        Column::text("Next slot").rank(1),
        Column::detail("Schedule").rank(4),
        Column::number("Requests this month").rank(2),
        Column::text("State"),
    ];
    let rows = monitors.iter().map(|monitor| {
        let [prices, last] = runs(monitor);
        let zoned = |at| Value::Zoned(at, monitor.schedule.timezone.clone());
        let slot = monitor.last_slot.as_ref();
        let cells = [
            vec![monitor.name.clone().into()],
            vec![trip::monitor_scan(&monitor.scan).into()],
            prices,
            last,
            slot.map_or_else(Cell::new, |slot| {
                vec![outcome(slot.outcome), zoned(slot.slot)]
            }),
            cell([monitor.next_slot.map(zoned)]),
            vec![schedule_words(&monitor.schedule).into()],
            cell([
                Some(count(monitor.requests.this_month).into()),
                limit(monitor).map(Value::Muted),
            ]),
            vec![state(monitor)],
        ];
        (Some(Link::of(monitor.id)), cells)
    });
    Table::new("Monitors", columns, rows)
}

/// Whether a monitor runs, and why not.
pub fn state(monitor: &Monitor) -> Value {
    let (tone, text) = match (monitor.status, monitor.status_reason) {
        (MonitorStatus::Active, _) if monitor.next_slot.is_none() => {
            (Tone::Warn, "no further slot")
        }
        (MonitorStatus::Active, _) => (Tone::Good, "active"),
        (MonitorStatus::Paused, Some(MonitorPause::KeyRejected)) => {
            (Tone::Bad, "paused: key rejected")
        }
        (MonitorStatus::Paused, Some(MonitorPause::NotSubscribed)) => {
            (Tone::Bad, "paused: not subscribed")
        }
        (MonitorStatus::Paused, _) => (Tone::Plain, "paused"),
    };
    Value::word(tone, text)
}

/// What became of a slot.
fn outcome(outcome: SlotOutcome) -> Value {
    let (tone, text) = match outcome {
        SlotOutcome::Ran => (Tone::Good, "ran"),
        SlotOutcome::Late => (Tone::Warn, "ran late"),
        SlotOutcome::Missed => (Tone::Bad, "missed"),
        SlotOutcome::Overlap => (Tone::Warn, "skipped: overlap"),
        SlotOutcome::MonthlyCeiling => (Tone::Warn, "skipped: monthly limit"),
        SlotOutcome::Failed => (Tone::Bad, "failed"),
    };
    Value::word(tone, text)
}

/// A monitor with its newest slots, and what its last run says if it watches.
pub fn sheet(monitor: &Monitor, newest: &[MonitorSlot], watch: Option<&WatchProgress>) -> Sheet {
    let forecast = monitor.forecast.as_ref();
    let month = forecast.map(|of| request_range(of.requests_per_month));
    let month = month.map(|month| format!("forecast of a month: {month}").into());
    let most = monitor.requests.max_per_month;
    let unlimited = most.is_none().then(|| "no limit set".into());
    let spent = Figure::new("Requests this month", count(monitor.requests.this_month));
    let next = monitor.next_slot;
    let next = next.map(|at| Value::Zoned(at, monitor.schedule.timezone.clone()));
    let next = Figure::new("Next slot", next.unwrap_or(Value::Absent("none")));
    let spent = spent.unit(limit(monitor)).notes(cell([unlimited, month]));
    Sheet {
        title: monitor.name.clone(),
        facts: vec![state(monitor), trip::whole_scan(&monitor.scan).into()],
        figures: watch.map(risk).into_iter().chain([next, spent]).collect(),
        sections: sections(monitor, newest).into(),
        ..Sheet::default()
    }
}

/// Its schedule, its rules, its webhook, its slots and the cost of a month.
pub fn sections(monitor: &Monitor, newest: &[MonitorSlot]) -> [Section; 5] {
    let limit = monitor.requests.max_per_month;
    [
        times(monitor),
        rules(monitor),
        webhook(monitor),
        slots(newest, &monitor.schedule.timezone),
        month(monitor.forecast.as_ref(), limit),
    ]
}

fn limit(monitor: &Monitor) -> Option<String> {
    let most = monitor.requests.max_per_month;
    most.map(|most| format!("of {}", count(most)))
}

/// What the last run of a watch declares about what it did not search.
fn risk(watch: &WatchProgress) -> Figure {
    let risk = watch.risk_of_miss;
    let risk = risk.map(|risk| format!("{} %", (risk * 1e3).round() / 10.0).into());
    Figure::new("Risk of a miss", risk.unwrap_or(Value::Absent("–")))
        .note(format!("last run: {}", strategy::watched(watch)))
}

/// `0 6 * * * in Europe/London`.
fn schedule_words(schedule: &MonitorSchedule) -> String {
    let MonitorSchedule { cron, timezone } = schedule;
    format!("{cron} in {timezone}")
}

/// When it runs.
fn times(monitor: &Monitor) -> Section {
    let warnings = monitor.schedule_warnings.iter();
    let key = match monitor.key_custody {
        Some(_) => "stored, sealed, until you pause or delete the monitor",
        None => "not stored while the monitor is paused",
    };
    Section {
        sentence: Some(schedule_words(&monitor.schedule)),
        notices: warnings
            .map(|text| Notice::warning("Note:", text))
            .collect(),
        figures: vec![
            Figure::new("Created", Value::at(monitor.created_at)),
            Figure::new("Changed", Value::at(monitor.updated_at)),
            Figure::new("Your key", key),
        ],
        ..Section::new("Schedule")
    }
}

/// Its rules, each with what it remembers.
fn rules(monitor: &Monitor) -> Section {
    let columns = [
        Column::text("Rule"),
        Column::detail("Margin").rank(3),
        Column::text("State"),
        Column::text("Remembers").rank(2),
        Column::text("Last fired").rank(1),
    ];
    let standings = monitor.rule_standings.as_deref().unwrap_or_default();
    let rules = monitor.alerts.iter().enumerate();
    let rows = rules.map(|(place, rule)| (None, rule_cells(rule, standings.get(place))));
    let sentence = if monitor.alerts.is_empty() {
        "No rules: this monitor only collects prices. A rule tells when a price deserves an alert."
    } else {
        "A rule alerts once, and again only after its condition has ended."
    };
    Section {
        sentence: Some(sentence.to_owned()),
        table: Some(Table::new("Rules", columns, rows)),
        ..Section::new("Alert rules")
    }
}

fn rule_cells(rule: &Rule, standing: Option<&RuleStanding>) -> [Cell; 5] {
    let currency = standing.and_then(|standing| standing.currency.clone());
    let by_cell = standing.filter(|standing| standing.scope == RuleScope::Cell);
    let by_cell = by_cell.map(|_| Value::word(Tone::Plain, "each date or market alone"));
    let sentence = rule::sentence(rule, currency.as_deref());
    let margin = rule.to_value().get("rearm_percent").map(plain);
    let margin = margin.map(|margin| format!("margin {margin} %").into());
    let mark = |mark: &PriceMark| {
        let price = Value::Money(mark.price, currency.clone());
        vec![price, Value::at(mark.at)]
    };
    let lowest = standing.and_then(|standing| standing.lowest.as_ref());
    let fired = standing.and_then(|standing| standing.last_fired.as_ref());
    [
        cell([Some(sentence.into()), by_cell]),
        cell([margin]),
        vec![armed(standing)],
        lowest.map_or_else(Cell::new, |lowest| {
            [vec!["lowest".into()], mark(lowest)].concat()
        }),
        fired.map_or_else(|| vec![Value::Absent("never")], mark),
    ]
}

/// Whether the rule can fire.
fn armed(standing: Option<&RuleStanding>) -> Value {
    let cells = standing.and_then(|standing| standing.cells.zip(standing.armed_cells));
    match (standing.and_then(|standing| standing.armed), cells) {
        (None, _) => Value::word(Tone::Plain, "no run yet"),
        (Some(true), Some((cells, armed))) => {
            Value::word(Tone::Info, format!("waiting for {armed} of {cells}"))
        }
        (Some(true), None) => Value::word(Tone::Info, "waiting"),
        (Some(false), _) => Value::word(Tone::Warn, "alerted"),
    }
}

/// Where and when its alerts are sent.
fn webhook(monitor: &Monitor) -> Section {
    let section = Section::new("Where alerts go");
    let channels = monitor.channels.len() as u64;
    let channels = (channels > 0).then(|| Figure::new("Channels", Value::Count(channels)));
    let Some(webhook) = &monitor.webhook else {
        let nobody = "No channel and no webhook: alerts are only shown here.";
        return Section {
            sentence: channels.is_none().then(|| nobody.to_owned()),
            figures: channels.into_iter().collect(),
            ..section
        };
    };
    let zone = &monitor.schedule.timezone;
    let zoned = |at| Value::Zoned(at, zone.clone());
    let delivered = webhook.delivered_at.map(Value::at);
    let held = monitor.held.map(|held| {
        let held_until = Figure::new("Held", Value::Count(held.fired)).note("until");
        held_until.note(zoned(held.notify_at))
    });
    let next = monitor.next_digest_at.filter(|_| held.is_none());
    let figures = [
        channels,
        Some(Figure::new("Webhook", Value::Code(webhook.url.clone()))),
        Some(webhook_state(webhook)),
        Some(Figure::new(
            "Last delivered",
            delivered.unwrap_or(Value::Absent("never")),
        )),
        held,
        Figure::of("Next digest", next.map(zoned)),
    ];
    let notify = monitor.notify.as_ref();
    Section {
        sentence: notify.map(|notify| schedule::notify(notify, zone)),
        figures: figures.into_iter().flatten().collect(),
        ..section
    }
}

fn webhook_state(webhook: &Webhook) -> Figure {
    let figure = |tone, text| Figure::new("State", Value::word(tone, text));
    match (webhook.off_at, webhook.failing_since) {
        (Some(off), _) => figure(Tone::Bad, "off")
            .note(Value::Time("since", off))
            .note(match webhook.off_reason {
                Some(OffReason::Gone) => "the receiver answered 410",
                Some(OffReason::Failing) => "it failed for five days",
                None => "switched off",
            }),
        (None, Some(since)) => figure(Tone::Warn, "failing").note(Value::Time("since", since)),
        (None, None) => figure(Tone::Good, "on"),
    }
}

/// The slots that were decided, newest first, in the zone of the schedule.
fn slots(slots: &[MonitorSlot], zone: &str) -> Section {
    let columns = [
        Column::text("Slot"),
        Column::text("Outcome"),
        Column::text("Scan").rank(2),
        Column::number("Rules fired").rank(1),
        Column::text("Details"),
    ];
    let rows = slots.iter().map(|slot| (None, slot_cells(slot, zone)));
    let none = slots.is_empty().then(|| "No run yet.".to_owned());
    Section {
        sentence: none,
        table: Some(Table::new("Slots", columns, rows)),
        ..Section::new("Past runs")
    }
}

fn slot_cells(slot: &MonitorSlot, zone: &str) -> [Cell; 5] {
    let at = Value::Zoned(slot.slot, zone.to_owned());
    let by_hand = (slot.kind == SlotKind::Manual).then(|| Value::word(Tone::Plain, "by hand"));
    let scan = slot.scan_id.map(|scan| Value::Link(Link::of(scan), None));
    let fired = slot.judged.map(|judged| Value::Count(judged.fired.into()));
    [
        cell([Some(at), by_hand]),
        vec![outcome(slot.outcome)],
        cell([scan]),
        cell([fired]),
        details(slot),
    ]
}

/// Why a slot ended so, and what its rules left out.
fn details(slot: &MonitorSlot) -> Cell {
    let judged = slot.judged;
    let left_out = judged.into_iter().flat_map(|judged| {
        [
            (judged.not_comparable, "rule", "could not compare"),
            (judged.implausible, "implausible price", "left out"),
            (judged.unconfirmed, "alert", "unconfirmed"),
        ]
    });
    let left_out = left_out
        .filter(|(number, ..)| *number > 0)
        .map(|(number, what, how)| Value::Muted(format!("{} {how}", counted(number, what))));
    let reason = slot.reason.clone().map(Value::Text);
    // A narrow column shows its beginning.
    let mut details: Cell = left_out.chain(reason).collect();
    if let Some(confirmation) = &slot.confirmation {
        let prices = counted(confirmation.items.len() as u64, "price");
        let what = match judged {
            None => "waits for the confirmation of",
            Some(_) => "confirmation: one more search of",
        };
        details.push(Value::Muted(format!("{what} {prices}:")));
        let items = (1..).zip(&confirmation.items).take(CONFIRMED);
        details.extend(
            items.map(|(number, item)| {
                Value::Link(Link::of(*item), Some(format!("search {number}")))
            }),
        );
        if confirmation.items.len() > CONFIRMED {
            details.push("…".into());
        }
    }
    details
}

/// `30 runs of 31 to 62 requests: 930 to 1,860 requests a month`.
pub fn forecast_line(forecast: &MonitorForecast) -> String {
    let run = request_range(forecast.requests_per_run);
    let month = request_range(forecast.requests_per_month);
    format!(
        "{} of {run}: {month} a month",
        counted(forecast.slots, "run")
    )
}

/// [`month`] of the monitor that a checked body describes.
pub fn month_of(forecast: &MonitorForecast, body: &Map<String, Json>) -> Section {
    let limit = body.get("max_requests_per_month").and_then(Json::as_u64);
    let limit = limit.and_then(|limit| u32::try_from(limit).ok());
    month(Some(forecast), limit)
}

/// What a month costs; `None`: the scan is not valid any more.
pub fn month(forecast: Option<&MonitorForecast>, limit: Option<u32>) -> Section {
    let section = Section::new("Cost of a month");
    let Some(forecast) = forecast else {
        let lead = "The scan of the next run is not valid any more.";
        let text = "Usually its dates have passed. Create a monitor with dates relative to its runs, such as +7d.";
        return Section {
            notices: vec![Notice::warning(lead, text)],
            ..section
        };
    };
    let most = limit.map(|limit| format!("{} a month", counted(limit, "request")).into());
    Section {
        sentence: Some(forecast_line(forecast)),
        notices: [limit_warning(forecast, limit), plan_warning(forecast)]
            .into_iter()
            .flatten()
            .collect(),
        figures: vec![Figure::new(
            "Your limit",
            most.unwrap_or(Value::Absent("none")),
        )],
        ..section
    }
}

/// That one of these monitors has the search and the schedule of a new one.
pub fn same_as(monitors: &[Monitor], body: &Map<String, Json>) -> Option<String> {
    let schedule = body.get("schedule")?;
    let is_same = |of: &&Monitor| {
        let times = serde_json::to_value(&of.schedule).ok();
        let scan = of.scan.read::<Json>().ok();
        times.as_ref() == Some(schedule) && scan.as_ref() == body.get("scan")
    };
    let same = monitors.iter().find(is_same)?;
    Some(format!(
        "Your monitor {:?} has the same search and schedule: both would pay for each run.",
        same.name
    ))
}

/// What all runs of the month may need, where that is more than the limit.
fn limit_warning(forecast: &MonitorForecast, limit: Option<u32>) -> Option<Notice> {
    let all = |requests: u64| requests.saturating_mul(forecast.slots.into());
    let all = RequestRange {
        least: all(forecast.requests_per_run.least),
        expected: None,
        most: all(forecast.requests_per_run.most),
    };
    let lead = format!("All runs of the month may need {}.", request_range(all));
    let text = "A slot whose run does not fit your limit is skipped: the last ones of a month.";
    let is_short = limit.is_some_and(|limit| u64::from(limit) < all.most);
    is_short.then(|| Notice::warning(lead, text))
}

/// That the caller's plan does not include what the month may need.
fn plan_warning(forecast: &MonitorForecast) -> Option<Notice> {
    let mut own = forecast.plans.iter().filter(|plan| plan.current);
    let own = own.find(|plan| plan.fit != PlanFit::Included)?;
    let lead = format!(
        "Your plan {} does not suffice: {}.",
        own.plan,
        plan_fit(own).1
    );
    let month = request_range(forecast.requests_per_month);
    let text = format!(
        "A month needs {month}, and the plan has {}.",
        count(own.requests_left)
    );
    Some(Notice::warning(lead, text))
}
