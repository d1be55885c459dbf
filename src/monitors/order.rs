//! Whether a monitor can be: its schedule, its scan and its rules, all faults at once. Pure.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Map, Value};

use super::alerts::{Kind, Subject, scope};
use super::ceiling;
use super::relative::{as_written, resolved};
use super::schedule::Schedule;
use crate::contract::monitors::{
    MonitorRequest, ParityGapPercent, Rule, RuleScope, ScheduleRequest, WebhookUrl,
};
use crate::contract::scans::{Priority, Samples};
use crate::contract::{Endpoint, Fault, Faults, FieldValue as _, MAX_LISTED, shorten};
use crate::scans::plan::{Plan, earliest_today, plan};
use crate::webhooks::Guard;

/// The most bytes of a monitor's scan, as JSON: five hundred hotels by name take half of it.
const MAX_SCAN_BYTES: usize = 64 << 10;

/// A monitor that can be.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) request: MonitorRequest,
    pub(super) schedule: Schedule,
    pub(super) next_slot: Timestamp,
    /// What its next slot would search.
    pub(super) plan: Plan,
}

/// Reads a monitor's body: every fault of it, of its schedule, of the scan that its next slot would make, of its rules beside that scan.
pub(super) fn check(
    body: &Map<String, Value>,
    guard: Guard,
    now: Timestamp,
) -> Result<Checked, Faults> {
    let mut faults = Faults::default();
    let request = MonitorRequest::from_body(body)
        .map_err(|wrong| faults.merge(wrong))
        .ok();
    // What can be read is looked at in any case, so that all faults are told at once.
    let written = body
        .get("schedule")
        .and_then(|schedule| ScheduleRequest::read(schedule).ok());
    let schedule = written.as_ref().and_then(Schedule::of);
    if let (Some(written), Some(schedule)) = (&written, &schedule) {
        faults.merge(schedule.check(written, now).err().unwrap_or_default());
    }
    let url = body
        .get("webhook_url")
        .and_then(|url| WebhookUrl::read(url).ok());
    if let Some(fault) = url.and_then(|url| guard.check_field("webhook_url", url.as_str()).err()) {
        faults.push(fault);
    }
    let next_slot = schedule.as_ref().and_then(|schedule| schedule.after(now));
    if let Some(fault) = body.get("scan").and_then(too_long) {
        faults.push(fault);
    }
    let plan = body
        .get("scan")
        .and_then(Value::as_object)
        .and_then(|scan| {
            let slot = next_slot.unwrap_or(now);
            let schedule = schedule
                .clone()
                .or_else(|| Schedule::read("0 0 * * *", "UTC"))?;
            plan(&order(scan, &schedule, slot), earliest_today(now.max(slot)))
                .map_err(|wrong| faults.merge(of_scan(wrong, scan, schedule.date(slot))))
                .ok()
        });
    if let (Some(scan), Some(rules)) = (
        body.get("scan").and_then(Value::as_object),
        body.get("alerts").and_then(Value::as_array),
    ) {
        let mut wrong = Faults::default();
        for (index, rule) in rules.iter().enumerate() {
            if let Some(fault) = Rule::read(rule)
                .ok()
                .and_then(|rule| misplaced(&rule, scan))
            {
                wrong.merge(Faults::from(fault).prefix(&format!("[{index}]")));
            }
        }
        faults.merge(wrong.prefix("alerts"));
        if let Some(fault) = sampled_once(rules, scan) {
            faults.push(fault);
        }
    }
    if let (Some(request), Some(plan)) = (&request, &plan)
        && let Some(fault) = ceiling::too_low(request, plan)
    {
        faults.push(fault);
    }
    faults.or_else_build(|| {
        Some(Checked {
            request: request?,
            schedule: schedule?,
            next_slot: next_slot?,
            plan: plan?,
        })
    })
}

/// A monitor is kept, listed and read for each of its slots: longer than any that is meant, its scan is refused.
fn too_long(scan: &Value) -> Option<Fault> {
    let bytes = scan.to_string().len();
    (bytes > MAX_SCAN_BYTES).then(|| Fault {
        path: "scan".to_owned(),
        held: Some(format!("{bytes} bytes of JSON")),
        allowed: format!("at most {MAX_SCAN_BYTES} bytes: shorter lists, or several monitors"),
    })
}

/// The faults of the scan at their place in the monitor's body, which takes relative dates too: what was written is told, beside what it
/// came to for the slot of `date`.
fn of_scan(wrong: Faults, scan: &Map<String, Value>, date: Date) -> Faults {
    if wrong.len() > MAX_LISTED {
        return wrong.prefix("scan"); // It says how many more there are.
    }
    let mut faults = Faults::default();
    for mut fault in wrong {
        if fault.allowed == Date::allowed() {
            fault
                .allowed
                .push_str(", or days after the slot's own date, from +0d to +999d");
        }
        if let Some(written) = fault
            .held
            .as_ref()
            .and_then(|held| as_written(scan, &fault.path, held, date))
        {
            fault.held = Some(written);
        }
        faults.push(fault);
    }
    faults.prefix("scan")
}

/// The order of the run of a slot: its dates worked out, and behind what somebody waits for unless it says otherwise.
pub(super) fn order(
    scan: &Map<String, Value>,
    schedule: &Schedule,
    slot: Timestamp,
) -> Map<String, Value> {
    let mut order = resolved(scan, schedule.date(slot));
    if order.get("priority").is_none_or(Value::is_null) {
        order.insert("priority".to_owned(), Priority::Scheduled.to_value());
    }
    order
}

/// What is wrong with a rule beside this scan. Every type is named: one that is new says here what it needs.
fn misplaced(rule: &Rule, scan: &Map<String, Value>) -> Option<Fault> {
    let endpoint = scan
        .get("endpoint")
        .and_then(Value::as_str)
        .and_then(Endpoint::parse)?;
    let has_currencies = swept(scan, "currency").is_some_and(|currencies| currencies.len() > 1);
    match rule {
        Rule::ParityGapPercent(parity) => misplaced_parity(rule, parity, endpoint, scan),
        Rule::DropPercent(drop) if drop.percent.get() >= 100.into() => {
            Some(Fault::new("percent", &drop.percent.to_value(), "a number below 100: no price drops by more"))
        }
        Rule::DropPercent(_) | Rule::NewLow(_) => (has_currencies && scope(rule) == RuleScope::Scan).then(|| {
            let allowed = "`cell` for a scan in several currencies: prices of different currencies do not compare";
            Fault::new("scope", &RuleScope::Scan.to_value(), allowed)
        }),
        Rule::PriceBelow(below) => has_currencies
            .then(|| Fault::new("amount", &below.amount.to_value(), "no `price_below` for a scan in several currencies")),
        Rule::Verdict(_) => (!matches!(endpoint, Endpoint::FlightsOneway | Endpoint::FlightsRoundtrip))
            .then(|| Fault::new("type", &rule.rule_type().to_value(), "a scan of flights: hotels have no verdict")),
        Rule::Available(_) | Rule::SoldOut(_) | Rule::Stale(_) => None,
    }
}

/// The list that a scan sweeps a field over.
fn swept<'a>(scan: &'a Map<String, Value>, field: &str) -> Option<&'a Vec<Value>> {
    scan.get("sweep")
        .and_then(|sweep| sweep.get(field))
        .and_then(Value::as_array)
}

/// What is wrong with a comparison of markets beside this scan.
fn misplaced_parity(
    rule: &Rule,
    parity: &ParityGapPercent,
    endpoint: Endpoint,
    scan: &Map<String, Value>,
) -> Option<Fault> {
    let refused = |allowed: &str| Some(Fault::new("type", &rule.rule_type().to_value(), allowed));
    if !matches!(endpoint, Endpoint::HotelsByName | Endpoint::HotelsRooms) {
        return refused(
            "a scan of hotels/by-name or hotels/rooms: any other would compare different hotels",
        );
    }
    let Some(markets) = swept(scan, "proxy_country").filter(|markets| markets.len() > 1) else {
        return refused("a scan that sweeps `proxy_country` over two markets at least");
    };
    let is_baseline = |market: &Value| {
        market
            .as_str()
            .is_some_and(|word| word.eq_ignore_ascii_case(parity.baseline.as_str()))
    };
    if !markets.iter().any(is_baseline) {
        let allowed = format!("one of the swept markets, {}", among(markets));
        return Some(Fault::new("baseline", &parity.baseline.to_value(), allowed));
    }
    let rearm = parity.rearm_percent_or_default();
    let allowed = "less than its `percent`: no difference could be smaller by that, and it would fire once and never again";
    (rearm.get() >= parity.percent.get())
        .then(|| Fault::new("rearm_percent", &rearm.to_value(), allowed))
}

/// What is wrong with a scan that compares markets by one price each: the first rule that could never fire is named.
fn sampled_once(rules: &[Value], scan: &Map<String, Value>) -> Option<Fault> {
    let samples = match scan.get("sweep").and_then(|sweep| sweep.get("samples")) {
        None | Some(Value::Null) => 1,
        Some(samples) => Samples::read(samples).ok()?.get(),
    };
    let compares = |rule: &Value| {
        let rule = Rule::read(rule)
            .ok()
            .filter(|rule| Kind::of(rule).subject == Subject::Markets);
        // A scan without markets is told as that.
        rule.is_some_and(|rule| {
            misplaced(&rule, scan).is_none_or(|fault| fault.path == "rearm_percent")
        })
    };
    let index = rules.iter().position(compares).filter(|_| samples < 2)?;
    let allowed = format!(
        "at least 2 with the rule `alerts[{index}]`: one price on each side cannot tell a gap from noise"
    );
    Some(Fault::new("scan.sweep.samples", &samples.into(), &allowed))
}

/// The words of a list as they were written: so many that a message stays one.
fn among(words: &[Value]) -> String {
    const MOST: usize = 20;
    let listed: Vec<_> = words
        .iter()
        .filter_map(Value::as_str)
        .take(MOST)
        .map(|word| format!("`{}`", shorten(word)))
        .collect();
    let more = if words.len() > MOST { " and more" } else { "" };
    format!("{}{more}", listed.join(", "))
}

/// The same on a thread where long work disturbs nobody.
pub(super) async fn checked(
    body: Map<String, Value>,
    guard: Guard,
    now: Timestamp,
) -> Result<Checked, Faults> {
    match tokio::task::spawn_blocking(move || check(&body, guard, now)).await {
        Ok(checked) => checked,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
