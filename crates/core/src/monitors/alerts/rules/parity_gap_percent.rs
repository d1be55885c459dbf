//! `parity_gap_percent`: the markets of one stay, compared with a baseline.

use rust_decimal::Decimal;
use serde_json::Value;

use super::step::{RuleCondition, unchanged, with_price};
use super::{
    AlertRule, FiringCause, RuleScan, RuleStep, RuleSubject, ScopeState, ScopeView, ValidationError,
};
use crate::contract::monitors::{ParityGapPercent, RuleType};
use crate::contract::scans::ParityVerdict;
use crate::contract::{Endpoint, FieldValue as _, shorten};

impl AlertRule for ParityGapPercent {
    fn step(&self, before: &ScopeState, view: &ScopeView) -> RuleStep {
        let Some(gap) = &view.gap else {
            return unchanged(before);
        };
        let threshold = self.percent.get();
        let rearm = (threshold - self.rearm_percent_or_default().get()).max(Decimal::ZERO);
        let strength = gap.percent.checked_div(Decimal::ONE_HUNDRED);
        let condition = RuleCondition {
            holds: gap.verdict == ParityVerdict::Gap && gap.percent >= threshold,
            rearms: gap.percent <= rearm,
            cause: FiringCause {
                threshold: Some(threshold),
                strength: strength.unwrap_or_default(),
                ..FiringCause::default()
            },
            ..RuleCondition::default()
        };
        let price = view.prices.first();
        condition.step(before, with_price(before, price), price.map(|_| 0))
    }

    fn subject(&self) -> RuleSubject<'_> {
        RuleSubject::Markets {
            baseline: self.baseline.as_str(),
        }
    }

    fn dependent_default(&self, field: &str) -> Option<Value> {
        (field == "rearm_percent").then(|| self.rearm_percent_or_default().to_value())
    }

    fn conflict(&self, scan: &RuleScan<'_>) -> Option<ValidationError> {
        let rule_type = RuleType::ParityGapPercent.to_value();
        let refused = |expected: &str| Some(ValidationError::new("type", &rule_type, expected));
        if !matches!(
            scan.endpoint,
            Endpoint::HotelsByName | Endpoint::HotelsRooms
        ) {
            return refused(
                "a scan of hotels/by-name or hotels/rooms; other scans would compare different hotels",
            );
        }
        let markets = scan.swept("proxy_country");
        let Some(markets) = markets.filter(|markets| markets.len() > 1) else {
            return refused("a scan that sweeps `proxy_country` over at least two markets");
        };
        let baseline = self.baseline.as_str();
        let is_baseline = |market: &str| market.eq_ignore_ascii_case(baseline);
        if !markets
            .iter()
            .any(|market| market.as_str().is_some_and(is_baseline))
        {
            let expected = format!("one of the swept markets, {}", quoted_list(markets));
            return Some(ValidationError::new(
                "baseline",
                &self.baseline.to_value(),
                expected,
            ));
        }
        let rearm = self.rearm_percent_or_default();
        let expected =
            "less than the rule's `percent`; otherwise the rule would fire once and never again";
        (rearm.get() >= self.percent.get())
            .then(|| ValidationError::new("rearm_percent", &rearm.to_value(), expected))
    }

    fn not_replayed(&self) -> Option<&'static str> {
        Some("it needs several samples of each market in one run")
    }
}

/// The strings of a list in backticks, at most `MAX_QUOTED`.
fn quoted_list(words: &[Value]) -> String {
    const MAX_QUOTED: usize = 20;
    let first = words.iter().filter_map(Value::as_str).take(MAX_QUOTED);
    let quoted: Vec<_> = first.map(|word| format!("`{}`", shorten(word))).collect();
    let more = if words.len() > MAX_QUOTED {
        " and more"
    } else {
        ""
    };
    format!("{}{more}", quoted.join(", "))
}
