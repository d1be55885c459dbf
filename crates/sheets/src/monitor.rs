//! A monitor: whether it runs, its rules with what each remembers, its webhook, its slots and its
//! cost.

use farescan_contract::FieldValue as _;
use farescan_contract::ids::ScanId;
use farescan_contract::monitors::{
    Monitor, MonitorForecast, MonitorPause, MonitorSchedule, MonitorSlot, MonitorStatus, OffReason,
    PriceMark, Rule, RuleScope, RuleStanding, SlotKind, SlotOutcome, Webhook,
};
use farescan_contract::scans::{RequestRange, WatchProgress};
use jiff::Timestamp;
use rust_decimal::Decimal;

use crate::draft::plain;
use crate::numbers::{count, counted, request_range};
use crate::sheet::{Cell, Column, Figure, Link, Notice, Section, Sheet, Table, Tone, Value};
use crate::{rule, schedule, strategy, trip};

/// Searches of a confirmation that are named.
const CONFIRMED: usize = 3;
/// Runs of a small line.
const RUNS: usize = 30;

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub slot: Timestamp,
    pub scan: ScanId,
    /// The lowest plausible price, in major units, with its currency.
    pub best: Option<(Decimal, String)>,
    /// Prices that the rules left out.
    pub implausible: u32,
}

/// What is known of a monitor's runs, the oldest first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Runs<'a> {
    pub runs: &'a [Run],
    /// What the last one says, if it watches.
    pub watch: Option<&'a WatchProgress>,
}

/// Monitors as rows; `runs` are those of each monitor.
pub fn table<'a>(monitors: &[Monitor], runs: impl Fn(&Monitor) -> &'a [Run]) -> Table {
    let columns = [
        Column::text("Monitor"),
        Column::detail("Trip").rank(5),
        Column::text("Lowest price of each run").rank(6),
        Column::number("Last").rank(4),
        Column::text("Last slot").rank(3),
        Column::text("Next slot").rank(1),
        Column::number("Requests this month").rank(2),
        Column::text("State"),
    ];
    let rows = monitors.iter().map(|monitor| {
        let runs = runs(monitor);
        let zoned = |at| Value::Zoned(at, monitor.schedule.timezone.clone());
        let last = monitor.last_slot.as_ref();
        let last = last.map(|slot| vec![outcome(slot.outcome), zoned(slot.slot)]);
        let month = count(monitor.requests.this_month);
        let most = monitor.requests.max_per_month;
        let most = most.map(|most| Value::Muted(format!("of {}", count(most))));
        let cells = [
            vec![monitor.name.clone().into()],
            vec![trip::monitor_scan(&monitor.scan).into()],
            prices(&monitor.name, runs).into_iter().collect(),
            runs.last().map_or_else(Cell::new, price),
            last.unwrap_or_default(),
            monitor.next_slot.map(zoned).into_iter().collect(),
            std::iter::once(month.into()).chain(most).collect(),
            vec![state(monitor)],
        ];
        (Some(Link::Monitor(monitor.id)), cells)
    });
    Table::new("Monitors", columns, rows)
}

/// The lowest price of each run; a change of currency begins anew.
pub fn prices(name: &str, runs: &[Run]) -> Option<Value> {
    let last = runs.iter().rev().find_map(|run| run.best.as_ref());
    let currency = &last?.1;
    let price = |run: &Run| {
        let best = run.best.as_ref().filter(|(_, of)| of == currency);
        best.map(|(price, _)| *price)
    };
    let what = format!("{name}, lowest price of the last {} runs", runs.len());
    let prices = runs.iter().map(price).collect();
    Some(Value::Series(what, prices, currency.clone()))
}

/// The lowest price of a run, and how many are implausible.
pub fn price(run: &Run) -> Cell {
    let best = run.best.clone();
    let best = best.map(|(price, currency)| Value::Money(price, Some(currency)));
    best.into_iter().chain(implausible(run)).collect()
}

fn implausible(run: &Run) -> Option<Value> {
    let text = || Value::Muted(format!("{} implausible", count(run.implausible)));
    (run.implausible > 0).then(text)
}

/// Whether a monitor runs, and why not.
pub fn state(monitor: &Monitor) -> Value {
    let (tone, text) = match (monitor.status, monitor.status_reason) {
        (MonitorStatus::Active, _) if monitor.next_slot.is_none() => {
            (Tone::Warn, "No further slot")
        }
        (MonitorStatus::Active, _) => (Tone::Good, "Active"),
        (MonitorStatus::Paused, Some(MonitorPause::KeyRejected)) => {
            (Tone::Bad, "Paused: key rejected")
        }
        (MonitorStatus::Paused, Some(MonitorPause::NotSubscribed)) => {
            (Tone::Bad, "Paused: not subscribed")
        }
        (MonitorStatus::Paused, _) => (Tone::Plain, "Paused"),
    };
    Value::Word(tone, text.to_owned())
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
    Value::Word(tone, text.to_owned())
}

/// A monitor, without its sections.
pub fn sheet(monitor: &Monitor, runs: Runs<'_>) -> Sheet {
    Sheet {
        title: monitor.name.clone(),
        facts: vec![state(monitor), trip::whole_scan(&monitor.scan).into()],
        figures: figures(monitor, runs),
        ..Sheet::default()
    }
}

fn figures(monitor: &Monitor, Runs { runs, watch }: Runs<'_>) -> Vec<Figure> {
    let recent = &runs[runs.len().saturating_sub(RUNS)..];
    let last = runs.iter().rev().find(|run| run.best.is_some());
    let last = last.map(|run| {
        let mut figure = Figure::new("Last lowest price", Value::Absent("–"));
        let mut price = price(run).into_iter();
        figure.value = price.next().unwrap_or(figure.value);
        let slot = Value::Zoned(run.slot, monitor.schedule.timezone.clone());
        let scan = Value::Link(Link::Scan(run.scan), None);
        figure.notes.extend([slot, scan].into_iter().chain(price));
        figure
    });
    let prices = prices(&monitor.name, recent);
    let prices = prices.map(|prices| {
        let runs = counted(recent.len() as u64, "run");
        Figure::new("Lowest price of each run", prices).note(format!("last {runs}"))
    });
    let zone = &monitor.schedule.timezone;
    let next = monitor.next_slot;
    let next = next.map_or(Value::Absent("none"), |at| Value::Zoned(at, zone.clone()));
    let mut month = Figure::new("Requests this month", count(monitor.requests.this_month));
    match monitor.requests.max_per_month {
        Some(most) => month.unit = Some(format!("of {}", count(most))),
        None => month = month.note("no limit set"),
    }
    let forecast = monitor.forecast.as_ref();
    let forecast = forecast.map(|of| request_range(of.requests_per_month));
    let forecast = forecast.map(|range| format!("forecast of a month: {range}").into());
    month.notes.extend(forecast);
    let next = Figure::new("Next slot", next);
    let of_runs = [last, prices, watch.map(risk)];
    of_runs.into_iter().flatten().chain([next, month]).collect()
}

/// What the last run of a watch declares about what it did not search.
fn risk(watch: &WatchProgress) -> Figure {
    let risk = watch.risk_of_miss;
    let risk = risk.map(|risk| format!("{} %", (risk * 1e3).round() / 10.0).into());
    let searched = watch.searched + watch.reused;
    let all = searched + watch.unsearched;
    Figure::new("Risk of a miss", risk.unwrap_or(Value::Absent("–")))
        .note(format!("last run: {searched} of {all} searched"))
        .note(strategy::watched(watch))
}

/// The parts of a monitor, with its newest slots if they were read.
pub fn sections(monitor: &Monitor, newest: &[MonitorSlot]) -> Vec<Section> {
    let limit = monitor.requests.max_per_month;
    let mut sections = vec![times(monitor), rules(monitor), webhook(monitor)];
    if !newest.is_empty() {
        sections.push(slots(newest, &monitor.schedule.timezone));
    }
    sections.push(month(monitor.forecast.as_ref(), limit));
    sections
}

/// When it runs.
pub fn times(monitor: &Monitor) -> Section {
    let MonitorSchedule { cron, timezone } = &monitor.schedule;
    let warnings = monitor.schedule_warnings.iter().cloned();
    let key = match monitor.key_custody {
        Some(_) => "stored, sealed, until you pause or delete the monitor",
        None => "not stored while the monitor is paused",
    };
    Section {
        title: "Schedule",
        sentence: Some(format!("{cron} in {timezone}")),
        figures: vec![
            Figure::new("Created", Value::Time("", monitor.created_at)),
            Figure::new("Changed", Value::Time("", monitor.updated_at)),
            Figure::new("Your key", key),
        ],
        notices: warnings.map(|text| warning("Note:", text)).collect(),
        ..Section::default()
    }
}

fn warning(lead: &str, text: String) -> Notice {
    Notice {
        tone: Tone::Warn,
        lead: lead.to_owned(),
        text,
        next: &[],
    }
}

/// Its rules, each with what it remembers.
pub fn rules(monitor: &Monitor) -> Section {
    let columns = [
        Column::text("Rule"),
        Column::detail("Margin").rank(3),
        Column::text("State"),
        Column::text("Remembers").rank(2),
        Column::text("Last told").rank(1),
    ];
    let standings = monitor.rule_standings.as_deref().unwrap_or_default();
    let rules = monitor.alerts.iter().enumerate();
    let rows = rules.map(|(place, rule)| (None, rule_cells(rule, standings.get(place))));
    let has_rules = !monitor.alerts.is_empty();
    let sentence = if has_rules {
        "Tells you once, then again after the price has gone back up."
    } else {
        "No rules: this monitor only collects prices."
    };
    Section {
        title: "Alert rules",
        sentence: Some(sentence.to_owned()),
        table: has_rules.then(|| Table::new("Rules", columns, rows)),
        ..Section::default()
    }
}

fn rule_cells(rule: &Rule, standing: Option<&RuleStanding>) -> [Cell; 5] {
    let currency = standing.and_then(|standing| standing.currency.clone());
    let by_cell = standing.filter(|standing| standing.scope == RuleScope::Cell);
    let by_cell = by_cell.map(|_| word(Tone::Plain, "each date or market alone"));
    let sentence = rule::sentence(rule, currency.as_deref());
    let margin = rule.to_value().get("rearm_percent").map(plain);
    let mark = |mark: &PriceMark| {
        vec![
            Value::Money(mark.price, currency.clone()),
            Value::Time("", mark.at),
        ]
    };
    let lowest = standing.and_then(|standing| standing.lowest.as_ref());
    let fired = standing.and_then(|standing| standing.last_fired.as_ref());
    [
        std::iter::once(sentence.into()).chain(by_cell).collect(),
        margin
            .map(|margin| format!("margin {margin} %").into())
            .into_iter()
            .collect(),
        vec![watching(standing)],
        lowest.map_or_else(Cell::new, |lowest| {
            std::iter::once("lowest".into())
                .chain(mark(lowest))
                .collect()
        }),
        fired.map_or_else(|| vec![Value::Absent("never")], mark),
    ]
}

/// Whether the rule can fire.
fn watching(standing: Option<&RuleStanding>) -> Value {
    let cells = standing.and_then(|standing| standing.cells.zip(standing.armed_cells));
    match (standing.and_then(|standing| standing.armed), cells) {
        (None, _) => word(Tone::Plain, "no run yet"),
        (Some(true), Some((cells, armed))) => {
            word(Tone::Info, &format!("watching {armed} of {cells}"))
        }
        (Some(true), None) => word(Tone::Info, "watching"),
        (Some(false), _) => word(Tone::Warn, "told you"),
    }
}

fn word(tone: Tone, text: &str) -> Value {
    Value::Word(tone, text.to_owned())
}

/// Where and when its alerts are sent.
pub fn webhook(monitor: &Monitor) -> Section {
    const TITLE: &str = "Webhook";
    let Some(webhook) = &monitor.webhook else {
        return Section {
            title: TITLE,
            sentence: Some("No webhook: alerts are only shown here.".to_owned()),
            ..Section::default()
        };
    };
    let zone = &monitor.schedule.timezone;
    let zoned = |at| Value::Zoned(at, zone.clone());
    let delivered = webhook.delivered_at.map(|at| Value::Time("", at));
    let delivered = delivered.unwrap_or(Value::Absent("never"));
    let held = monitor.held.map(|held| {
        let fired = Value::Count(held.fired);
        Figure::new("Held", fired)
            .note("until")
            .note(zoned(held.notify_at))
    });
    let next = monitor.next_digest_at.filter(|_| held.is_none());
    let next = next.map(|at| Figure::new("Next digest", zoned(at)));
    let figures = [
        Figure::new("URL", Value::Code(webhook.url.clone())),
        webhook_state(webhook),
        Figure::new("Last delivered", delivered),
    ];
    let notify = monitor.notify.as_ref();
    Section {
        title: TITLE,
        sentence: notify.map(|notify| schedule::notify(notify, zone)),
        figures: figures.into_iter().chain(held).chain(next).collect(),
        ..Section::default()
    }
}

fn webhook_state(webhook: &Webhook) -> Figure {
    let figure = |tone, text| Figure::new("State", word(tone, text));
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
pub fn slots(slots: &[MonitorSlot], zone: &str) -> Section {
    let columns = [
        Column::text("Slot"),
        Column::text("Outcome"),
        Column::text("Scan").rank(3),
        Column::number("Rules fired").rank(2),
        Column::text("Details").rank(1),
    ];
    let rows = slots.iter().map(|slot| (None, slot_cells(slot, zone)));
    let none = "No slot yet. The first one is above; or run the monitor now.";
    Section {
        title: "What became of each slot",
        sentence: slots.is_empty().then(|| none.to_owned()),
        table: (!slots.is_empty()).then(|| Table::new("Slots", columns, rows)),
        ..Section::default()
    }
}

fn slot_cells(slot: &MonitorSlot, zone: &str) -> [Cell; 5] {
    let at = Value::Zoned(slot.slot, zone.to_owned());
    let by_hand = (slot.kind == SlotKind::Manual).then(|| word(Tone::Plain, "by hand"));
    let scan = slot.scan_id;
    let fired = slot.judged.map(|judged| Value::Count(judged.fired.into()));
    [
        std::iter::once(at).chain(by_hand).collect(),
        vec![outcome(slot.outcome)],
        scan.map(|scan| Value::Link(Link::Scan(scan), None))
            .into_iter()
            .collect(),
        fired.into_iter().collect(),
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
    let mut details: Vec<_> = slot.reason.clone().into_iter().map(Value::Text).collect();
    details.extend(left_out);
    if let Some(confirmation) = &slot.confirmation {
        let prices = counted(confirmation.items.len() as u64, "price");
        let what = match judged {
            None => "waits for the confirmation of",
            Some(_) => "confirmation: one more search of",
        };
        details.push(Value::Muted(format!("{what} {prices}:")));
        let items = (1..).zip(&confirmation.items).take(CONFIRMED);
        details.extend(items.map(|(number, item)| {
            Value::Link(Link::Item(*item), Some(format!("search {number}")))
        }));
        if confirmation.items.len() > CONFIRMED {
            details.push("…".into());
        }
    }
    details
}

/// What a month costs; `None`: the scan is not valid any more.
pub fn month(forecast: Option<&MonitorForecast>, limit: Option<u32>) -> Section {
    const TITLE: &str = "Cost of a month";
    let Some(forecast) = forecast else {
        let text = "Usually its dates have passed. Create a monitor with dates relative to its runs, such as +7d.";
        let lead = "The scan of the next run is not valid any more.";
        return Section {
            title: TITLE,
            notices: vec![warning(lead, text.to_owned())],
            ..Section::default()
        };
    };
    let limit_words = limit.map(|limit| {
        let requests = counted(limit, "request");
        format!("{requests} a month. A slot whose run does not fit is skipped.")
    });
    let limit_words = limit_words.map_or(Value::Absent("none"), Value::Text);
    Section {
        title: TITLE,
        sentence: Some("The month that begins with the next slot.".to_owned()),
        figures: vec![
            Figure::new("Runs", count(forecast.slots)),
            Figure::new("Each run", request_range(forecast.requests_per_run)),
            Figure::new(
                "The month",
                Value::Strong(request_range(forecast.requests_per_month)),
            ),
            Figure::new("Your limit", limit_words),
        ],
        notices: limit_warning(forecast, limit).into_iter().collect(),
        ..Section::default()
    }
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
    let text = "With your limit the last ones of a month are skipped.";
    let is_short = limit.is_some_and(|limit| u64::from(limit) < all.most);
    is_short.then(|| warning(&lead, text.to_owned()))
}
