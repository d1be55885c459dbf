//! Warnings about misleading cron expressions and watches that report nothing. Pure. A warning
//! rejects nothing.

use jiff::{SignedDuration, Timestamp};

use serde_json::Value;

use super::Schedule;
use crate::contract::monitors::RuleType;
use crate::contract::scans::WatchGoal;

/// The number of slots checked to find the days of a schedule.
const CHECKED_SLOTS: usize = 60;

/// Fields with steps: index, name, number of values, and the period that they restart with.
const STEPS: [(usize, &str, u32, &str); 2] = [(0, "minute", 60, "hour"), (1, "hour", 24, "day")];

/// The warnings of a valid schedule.
pub fn warnings(cron: &str, zone: &str, now: Timestamp) -> Vec<String> {
    let fields: Vec<_> = cron.split_whitespace().collect();
    let mut warnings = Vec::new();
    for (index, name, size, whole) in STEPS {
        let steps = fields
            .get(index)
            .and_then(|field| field.strip_prefix("*/"))
            .and_then(|steps| steps.parse::<u32>().ok());
        match steps {
            Some(steps) if steps >= size => warnings.push(format!(
                "`*/{steps}` in the {name} field matches only {name} 0, once in each {whole}; steps restart with each {whole}"
            )),
            Some(steps) if steps > 1 && !size.is_multiple_of(steps) => warnings.push(format!(
                "`*/{steps}` in the {name} field restarts with each {whole}; the last step of each is {} {name}s, not {steps}",
                size % steps
            )),
            _ => {}
        }
    }
    if let [_, _, day, month, weekday] = fields[..]
        && means_either_day(day, month, weekday, zone, now)
    {
        warnings.push(format!(
            "day of the month `{day}` and day of the week `{weekday}` are both set; the schedule runs on days \
             that match either of them, not only on days that match both"
        ));
    }
    warnings
}

/// The warning of a scan that watches for a price below an amount, unless a rule `price_below` fires
/// on all that it finds.
pub fn unreported_watch(scan: &Value, rules: Option<&Value>) -> Option<String> {
    let strategy = scan.get("strategy")?;
    let is_below = strategy.get("watch")? == WatchGoal::Below.as_str();
    let below = strategy.get("below")?;
    let reports = |rule: &Value| {
        rule["type"] == RuleType::PriceBelow.as_str() && rule["amount"].as_f64() >= below.as_f64()
    };
    let rules = rules.and_then(Value::as_array);
    let is_reported = rules.is_some_and(|rules| rules.iter().any(reports));
    (is_below && !is_reported).then(|| {
        format!(
            "the watch looks for a price below {below}, but no rule `price_below` in `alerts` has that amount or \
             more, so what it finds may not be reported; add {{\"type\": \"price_below\", \"amount\": {below}}}"
        )
    })
}

/// Whether both day fields are set and some slot is not on the given day of the week.
fn means_either_day(day: &str, month: &str, weekday: &str, zone: &str, now: Timestamp) -> bool {
    let at_noon = |day: &str| Schedule::parse(&format!("0 12 {day} {month} {weekday}"), zone);
    if day == "*" || weekday == "*" {
        return false;
    }
    let (Some(schedule), Some(by_weekday)) = (at_noon(day), at_noon("*")) else {
        return false;
    };
    let is_slot =
        |slot: Timestamp| by_weekday.after(slot - SignedDuration::from_secs(1)) == Some(slot);
    schedule
        .slots_after(now)
        .take(CHECKED_SLOTS)
        .any(|slot| !is_slot(slot))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(cron: &str) -> String {
        warnings(cron, "UTC", "2027-01-01T00:00:00Z".parse().unwrap()).join("; ")
    }

    #[test]
    fn a_watch_has_a_warning_unless_a_rule_reports_all_it_finds() {
        use serde_json::json;

        let scan = json!({"strategy": {"watch": "below", "below": 150.5}});
        let has_warning = |rules: &Value| unreported_watch(&scan, Some(rules)).is_some();
        let rule = |amount: f64| json!({"type": "price_below", "amount": amount});
        for (rules, expected) in [
            (json!([]), true),
            (json!([rule(120.0)]), true),
            (json!([{"type": "new_low", "days": 30}]), true),
            (json!([rule(150.5)]), false),
            (json!([rule(120.0), rule(200.0)]), false),
        ] {
            assert_eq!(has_warning(&rules), expected, "{rules}");
        }
        assert!(unreported_watch(&scan, None).is_some());
        let other = json!({"strategy": {"watch": "cheapest"}});
        assert_eq!(unreported_watch(&other, None), None);
    }

    #[test]
    fn a_misleading_cron_expression_gets_a_warning() {
        for cron in [
            "0 6 * * *",
            "*/30 * * * *",
            "0 */6 * * *",
            "30 7 * * mon-fri",
            "0 6 1 * *",
            "0 6 1,15 * *",
            "* * * * *",
        ] {
            assert_eq!(warned(cron), "", "{cron}");
        }
        assert!(
            warned("*/90 * * * *").contains("matches only minute 0, once in each hour"),
            "{}",
            warned("*/90 * * * *")
        );
        assert!(
            warned("*/25 * * * *").contains("the last step of each is 10 minutes, not 25"),
            "{}",
            warned("*/25 * * * *")
        );
        assert!(
            warned("0 */5 * * *").contains("the last step of each is 4 hours, not 5"),
            "{}",
            warned("0 */5 * * *")
        );
        assert!(
            warned("0 */48 * * *").contains("matches only hour 0, once in each day"),
            "{}",
            warned("0 */48 * * *")
        );
        let both = warned("0 6 13 * fri");
        assert!(
            both.contains("day of the month `13` and day of the week `fri` are both set"),
            "{both}"
        );
    }
}
