//! Validates a monitor: its schedule, its scan and its rules. Reports all errors at once. Pure.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Map, Value};

use super::alerts::{RuleSubject, RuleTraits, rule_scope};
use super::monthly_limit;
use super::relative_dates::{as_written, resolve_dates};
use super::schedule::Schedule;
use crate::contract::monitors::{
    MonitorRequest, NotifySettings, ParityGapPercent, Rule, RuleScope, ScheduleRequest, WebhookUrl,
};
use crate::contract::scans::{Priority, Samples};
use crate::contract::{
    Endpoint, FieldValue as _, MAX_REPORTED_ERRORS, ValidationError, ValidationErrors, shorten,
};
use crate::scans::plan::{ScanPlan, earliest_today, plan_new};
use crate::webhooks::Guard;

/// The largest scan of a monitor, in bytes of JSON. Five hundred hotels by name take half of it.
const MAX_SCAN_BYTES: usize = 64 << 10;

/// A valid monitor.
#[derive(Debug)]
pub(super) struct ValidatedMonitor {
    pub(super) request: MonitorRequest,
    pub(super) schedule: Schedule,
    pub(super) next_slot: Timestamp,
    /// The scan of its next slot.
    pub(super) plan: ScanPlan,
}

/// Validates a monitor's body: its fields, its schedule, the scan of its next slot, and its rules
/// against that scan.
pub(super) fn validate_body(
    body: &Map<String, Value>,
    guard: Guard,
    now: Timestamp,
) -> Result<ValidatedMonitor, ValidationErrors> {
    let mut errors = ValidationErrors::default();
    let request = MonitorRequest::from_body(body)
        .map_err(|wrong| errors.merge(wrong))
        .ok();
    // Each readable part is checked even if another one is wrong, to report all errors at once.
    let written = body
        .get("schedule")
        .and_then(|schedule| ScheduleRequest::read(schedule).ok());
    let schedule = written.as_ref().and_then(Schedule::from_request);
    if let (Some(written), Some(schedule)) = (&written, &schedule) {
        errors.merge(schedule.check(written, now).err().unwrap_or_default());
    }
    let url = body
        .get("webhook_url")
        .and_then(|url| WebhookUrl::read(url).ok());
    if let Some(error) = url.and_then(|url| guard.check_field("webhook_url", url.as_str()).err()) {
        errors.push(error);
    }
    let notify = body
        .get("notify")
        .and_then(|notify| NotifySettings::read(notify).ok());
    if let Some(notify) = notify {
        errors.merge(notify.cross_field_errors().prefix("notify"));
    }
    let next_slot = schedule.as_ref().and_then(|schedule| schedule.after(now));
    if let Some(error) = body.get("scan").and_then(scan_too_large) {
        errors.push(error);
    }
    let plan = body
        .get("scan")
        .and_then(Value::as_object)
        .and_then(|scan| {
            let slot = next_slot.unwrap_or(now);
            let schedule = schedule
                .clone()
                .or_else(|| Schedule::parse("0 0 * * *", "UTC"))?;
            plan_new(
                &run_request(scan, &schedule, slot),
                earliest_today(now.max(slot)),
            )
            .map_err(|wrong| errors.merge(scan_errors(wrong, scan, schedule.date(slot))))
            .ok()
        });
    if let (Some(scan), Some(rules)) = (
        body.get("scan").and_then(Value::as_object),
        body.get("alerts").and_then(Value::as_array),
    ) {
        let mut wrong = ValidationErrors::default();
        for (index, rule) in rules.iter().enumerate() {
            if let Some(error) = Rule::read(rule)
                .ok()
                .and_then(|rule| rule_conflict(&rule, scan))
            {
                wrong.merge(ValidationErrors::from(error).prefix(&format!("[{index}]")));
            }
        }
        errors.merge(wrong.prefix("alerts"));
        if let Some(error) = too_few_samples(rules, scan) {
            errors.push(error);
        }
    }
    if let (Some(request), Some(plan)) = (&request, &plan)
        && let Some(error) = monthly_limit::limit_too_low(request, plan)
    {
        errors.push(error);
    }
    errors.ok_if_empty(|| {
        Some(ValidatedMonitor {
            request: request?,
            schedule: schedule?,
            next_slot: next_slot?,
            plan: plan?,
        })
    })
}

/// The error of a scan that is too large: every list and every slot reads it.
fn scan_too_large(scan: &Value) -> Option<ValidationError> {
    let bytes = scan.to_string().len();
    (bytes > MAX_SCAN_BYTES).then(|| {
        ValidationError::with_found(
            "scan",
            format!("{bytes} bytes of JSON"),
            format!("at most {MAX_SCAN_BYTES} bytes; shorten the lists or use several monitors"),
        )
    })
}

/// The errors of the scan, at their paths in the monitor's body. A relative date is shown as
/// written, with the date that it gives for the slot of `date`.
fn scan_errors(wrong: ValidationErrors, scan: &Map<String, Value>, date: Date) -> ValidationErrors {
    if wrong.len() > MAX_REPORTED_ERRORS {
        return wrong.prefix("scan"); // The list says how many more errors there are.
    }
    let mut errors = ValidationErrors::default();
    for mut error in wrong {
        if error.expected == Date::expected() {
            error
                .expected
                .push_str(", or days after the slot's date, from +0d to +999d");
        }
        if let Some(written) = error
            .found
            .as_ref()
            .and_then(|found| as_written(scan, &error.path, found, date))
        {
            error.found = Some(written);
        }
        errors.push(error);
    }
    errors.prefix("scan")
}

/// The scan request of a slot: with its dates resolved, and `scheduled` as the default priority.
pub(super) fn run_request(
    scan: &Map<String, Value>,
    schedule: &Schedule,
    slot: Timestamp,
) -> Map<String, Value> {
    let mut request = resolve_dates(scan, schedule.date(slot));
    if request.get("priority").is_none_or(Value::is_null) {
        request.insert("priority".to_owned(), Priority::Scheduled.to_value());
    }
    request
}

/// The conflict of a rule with this scan. The match names every type, so a new rule type must state
/// its requirements here.
fn rule_conflict(rule: &Rule, scan: &Map<String, Value>) -> Option<ValidationError> {
    let endpoint = scan
        .get("endpoint")
        .and_then(Value::as_str)
        .and_then(Endpoint::parse)?;
    let has_currencies =
        swept_values(scan, "currency").is_some_and(|currencies| currencies.len() > 1);
    let is_watch = scan
        .get("strategy")
        .is_some_and(|strategy| strategy.get("watch").is_some());
    if rule.confirms() && is_watch {
        let expected = "0 for a scan that watches: it spends its `max_requests` on its question";
        return Some(ValidationError::new("confirm", &1.into(), expected));
    }
    match rule {
        Rule::ParityGapPercent(parity) => parity_rule_conflict(rule, parity, endpoint, scan),
        Rule::DropPercent(drop) if drop.percent.get() >= 100.into() => {
            Some(ValidationError::new("percent", &drop.percent.to_value(), "a number below 100; no price drops by more"))
        }
        Rule::PercentileAtMost(at_most) if at_most.percentile.get() + at_most.rearm_percent_or_default().get() > 100.into() => {
            let rearm = at_most.rearm_percent_or_default().to_value();
            Some(ValidationError::new("rearm_percent", &rearm, "at most 100 together with `percentile`; otherwise the rule would fire once and never again"))
        }
        Rule::DropPercent(_) | Rule::NewLow(_) | Rule::PercentileAtMost(_) => (has_currencies && rule_scope(rule) == RuleScope::Scan).then(|| {
            let expected = "`cell` for a scan in several currencies; prices in different currencies cannot be compared";
            ValidationError::new("scope", &RuleScope::Scan.to_value(), expected)
        }),
        Rule::PriceBelow(below) => has_currencies
            .then(|| ValidationError::new("amount", &below.amount.to_value(), "no `price_below` rule on a scan in several currencies")),
        Rule::Verdict(_) => (!matches!(endpoint, Endpoint::FlightsOneway | Endpoint::FlightsRoundtrip))
            .then(|| ValidationError::new("type", &rule.rule_type().to_value(), "a flight scan; hotels have no verdict")),
        Rule::Available(_)
        | Rule::SoldOut(_)
        | Rule::Stale(_)
        | Rule::BackInStock(_)
        | Rule::PlanEndsBeforeReset(_) => None,
    }
}

/// The values over which a scan sweeps a field.
fn swept_values<'a>(scan: &'a Map<String, Value>, field: &str) -> Option<&'a Vec<Value>> {
    scan.get("sweep")
        .and_then(|sweep| sweep.get(field))
        .and_then(Value::as_array)
}

/// The conflict of a market comparison with this scan.
fn parity_rule_conflict(
    rule: &Rule,
    parity: &ParityGapPercent,
    endpoint: Endpoint,
    scan: &Map<String, Value>,
) -> Option<ValidationError> {
    let refused = |expected: &str| {
        Some(ValidationError::new(
            "type",
            &rule.rule_type().to_value(),
            expected,
        ))
    };
    if !matches!(endpoint, Endpoint::HotelsByName | Endpoint::HotelsRooms) {
        return refused(
            "a scan of hotels/by-name or hotels/rooms; other scans would compare different hotels",
        );
    }
    let Some(markets) = swept_values(scan, "proxy_country").filter(|markets| markets.len() > 1)
    else {
        return refused("a scan that sweeps `proxy_country` over at least two markets");
    };
    let is_baseline = |market: &Value| {
        market
            .as_str()
            .is_some_and(|word| word.eq_ignore_ascii_case(parity.baseline.as_str()))
    };
    if !markets.iter().any(is_baseline) {
        let expected = format!("one of the swept markets, {}", quoted_list(markets));
        return Some(ValidationError::new(
            "baseline",
            &parity.baseline.to_value(),
            expected,
        ));
    }
    let rearm = parity.rearm_percent_or_default();
    let expected =
        "less than the rule's `percent`; otherwise the rule would fire once and never again";
    (rearm.get() >= parity.percent.get())
        .then(|| ValidationError::new("rearm_percent", &rearm.to_value(), expected))
}

/// The error of a market comparison with one sample per market. It names the first rule that could
/// never fire.
fn too_few_samples(rules: &[Value], scan: &Map<String, Value>) -> Option<ValidationError> {
    let samples = match scan.get("sweep").and_then(|sweep| sweep.get("samples")) {
        None | Some(Value::Null) => 1,
        Some(samples) => Samples::read(samples).ok()?.get(),
    };
    let compares = |rule: &Value| {
        let rule = Rule::read(rule)
            .ok()
            .filter(|rule| RuleTraits::of(rule).subject == RuleSubject::Markets);
        // `rule_conflict` already reports a scan without markets.
        rule.is_some_and(|rule| {
            rule_conflict(&rule, scan).is_none_or(|error| error.path == "rearm_percent")
        })
    };
    let index = rules.iter().position(compares).filter(|_| samples < 2)?;
    let expected = format!(
        "at least 2 with the rule `alerts[{index}]`; one price per market cannot tell a gap from noise"
    );
    Some(ValidationError::new(
        "scan.sweep.samples",
        &samples.into(),
        &expected,
    ))
}

/// The strings of a list in backticks, at most `MAX_QUOTED`.
fn quoted_list(words: &[Value]) -> String {
    const MAX_QUOTED: usize = 20;
    let listed: Vec<_> = words
        .iter()
        .filter_map(Value::as_str)
        .take(MAX_QUOTED)
        .map(|word| format!("`{}`", shorten(word)))
        .collect();
    let more = if words.len() > MAX_QUOTED {
        " and more"
    } else {
        ""
    };
    format!("{}{more}", listed.join(", "))
}

/// [`validate_body`] on a blocking thread: a large plan takes long.
pub(super) async fn validate(
    body: Map<String, Value>,
    guard: Guard,
    now: Timestamp,
) -> Result<ValidatedMonitor, ValidationErrors> {
    match tokio::task::spawn_blocking(move || validate_body(&body, guard, now)).await {
        Ok(checked) => checked,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
