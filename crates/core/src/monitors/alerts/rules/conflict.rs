//! Whether the rules of a monitor fit its scan. Reports all errors at once.

use serde_json::{Map, Value};

use super::{RuleSubject, of};
use crate::contract::monitors::{Rule, RuleScope};
use crate::contract::scans::Samples;
use crate::contract::{Endpoint, FieldValue as _, ValidationError, ValidationErrors};

/// The scan of a monitor, as its rules see it.
pub(in crate::monitors::alerts) struct RuleScan<'a> {
    pub(super) endpoint: Endpoint,
    request: &'a Map<String, Value>,
}

impl RuleScan<'_> {
    /// The values over which it sweeps a field.
    pub(super) fn swept(&self, field: &str) -> Option<&Vec<Value>> {
        self.request.get("sweep")?.get(field)?.as_array()
    }

    pub(super) fn has_currencies(&self) -> bool {
        let currencies = self.swept("currency");
        currencies.is_some_and(|currencies| currencies.len() > 1)
    }

    /// The error of a rule that compares prices of this scope.
    pub(super) fn currencies_conflict(&self, scope: RuleScope) -> Option<ValidationError> {
        let expected = "`cell` for a scan in several currencies; prices in different currencies cannot be compared";
        (self.has_currencies() && scope == RuleScope::Scan)
            .then(|| ValidationError::new("scope", &scope.to_value(), expected))
    }
}

/// The conflicts of readable rules with the scan.
pub(in crate::monitors) fn rule_conflicts(
    rules: &[Value],
    scan: &Map<String, Value>,
) -> ValidationErrors {
    let mut errors = ValidationErrors::default();
    let mut comparing_markets = None;
    for (index, rule) in rules.iter().enumerate() {
        let Ok(rule) = Rule::read(rule) else { continue };
        let conflict = rule_conflict(&rule, scan);
        // A scan without markets is reported already.
        let has_markets = |error: &ValidationError| error.path == "rearm_percent";
        if matches!(of(&rule).subject(), RuleSubject::Markets { .. })
            && conflict.as_ref().is_none_or(has_markets)
        {
            comparing_markets.get_or_insert(index);
        }
        let conflict = conflict.map(ValidationErrors::from).unwrap_or_default();
        errors.merge(conflict.prefix(&format!("alerts[{index}]")));
    }
    if let Some(error) = comparing_markets.and_then(|index| too_few_samples(index, scan)) {
        errors.push(error);
    }
    errors
}

fn rule_conflict(rule: &Rule, request: &Map<String, Value>) -> Option<ValidationError> {
    let endpoint = request.get("endpoint").and_then(Value::as_str);
    let endpoint = endpoint.and_then(Endpoint::parse)?;
    let strategy = request.get("strategy");
    if rule.confirms() && strategy.is_some_and(|strategy| strategy.get("watch").is_some()) {
        let expected = "0 for a scan that watches: it spends its `max_requests` on its question";
        return Some(ValidationError::new("confirm", &1.into(), expected));
    }
    of(rule).conflict(&RuleScan { endpoint, request })
}

/// The error of one sample per market, of the first rule that could never fire.
fn too_few_samples(index: usize, scan: &Map<String, Value>) -> Option<ValidationError> {
    let samples = match scan.get("sweep").and_then(|sweep| sweep.get("samples")) {
        None | Some(Value::Null) => 1,
        Some(samples) => Samples::read(samples).ok()?.get(),
    };
    let expected = format!(
        "at least 2 with the rule `alerts[{index}]`; one price per market cannot tell a gap from noise"
    );
    (samples < 2).then(|| ValidationError::new("scan.sweep.samples", &samples.into(), expected))
}
