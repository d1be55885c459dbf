//! The types of alert rules, a file each: when it fires and rearms, a pure function of its state and
//! a new run, and what else is its own (docs/decisions/0018).
//!
//! ```text
//!           condition true: fires
//!   armed ─────────────────────────────► fired ─► fires again: `new_low`, `drop_percent`, a
//!     ▲                                    │      step below the price of the last alert
//!     └── false by rearm_percent ──────────┘      (still true, or false by less: nothing)
//! ```
//!
//! `every_run` has no such condition: it stays armed and fires in each run.
//!
//! Here: what a type has, and the type of each rule. Not here: the view of a run (`run_snapshot`), the
//! storage of states (`store`).

mod available;
mod back_in_stock;
mod conflict;
mod drop_percent;
mod every_run;
mod new_low;
mod parity_gap_percent;
mod percentile_at_most;
mod plan_ends_before_reset;
mod price_below;
mod sold_out;
mod stale;
mod step;
mod verdict_low;

use std::borrow::Cow;

use rust_decimal::Decimal;
use serde_json::Value;

pub(in crate::monitors) use conflict::rule_conflicts;

use self::conflict::RuleScan;
use super::run_snapshot::{LowestPrice, ScopeView};
use super::state::{PricePoint, RuleMemory, ScopeState, short_key};
use crate::contract::ValidationError;
use crate::contract::history_verdict::HistoryVerdict;
use crate::contract::monitors::{Rule, RuleScope};
use crate::history::past_prices::{LastAnswer, PastQuestion};

/// The type of a rule: the only place that knows all of them.
pub(super) fn of(rule: &Rule) -> &dyn AlertRule {
    match rule {
        Rule::PriceBelow(rule) => rule,
        Rule::DropPercent(rule) => rule,
        Rule::Verdict(rule) => rule,
        Rule::NewLow(rule) => rule,
        Rule::Available(rule) => rule,
        Rule::SoldOut(rule) => rule,
        Rule::ParityGapPercent(rule) => rule,
        Rule::Stale(rule) => rule,
        Rule::PercentileAtMost(rule) => rule,
        Rule::BackInStock(rule) => rule,
        Rule::EveryRun(rule) => rule,
        Rule::PlanEndsBeforeReset(rule) => rule,
    }
}

/// What a rule has by its type. The defaults are those of a rule about prices.
pub(super) trait AlertRule {
    /// Applies the rule to the view of a run.
    fn step(&self, before: &ScopeState, view: &ScopeView) -> RuleStep;

    fn subject(&self) -> RuleSubject<'_> {
        RuleSubject::Prices
    }

    /// What it asks the stored history.
    fn past(&self) -> Option<PastNeed> {
        None
    }

    /// Whether it compares the price with a fixed amount, in the requested currency.
    fn has_amount(&self) -> bool {
        false
    }

    /// The state before the first run.
    fn first_state(&self) -> ScopeState {
        ScopeState::new(true, RuleMemory::Stateless)
    }

    /// The key of a cell in its states.
    fn state_key<'a>(&self, key: &'a str) -> Cow<'a, str> {
        short_key(key)
    }

    /// The default of a field if it depends on other fields.
    fn dependent_default(&self, _field: &str) -> Option<Value> {
        None
    }

    /// Why it does not fit the scan of its monitor.
    fn conflict(&self, _scan: &RuleScan<'_>) -> Option<ValidationError> {
        None
    }

    /// What the stored daily prices lack to replay it.
    fn not_replayed(&self) -> Option<&'static str> {
        None
    }
}

/// The result of one run for one rule and scope.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RuleStep {
    pub(super) after: ScopeState,
    pub(super) fired: Option<FiringCause>,
    /// There were prices, but none in a comparable currency, or the stored history says too little.
    pub(super) not_comparable: bool,
}

/// Why a rule fired.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FiringCause {
    /// The index of the price among the view's offers.
    pub(super) price: Option<usize>,
    /// The value that the price was compared with.
    pub(super) threshold: Option<Decimal>,
    /// The earlier price that the threshold derives from.
    pub(super) reference: Option<PricePoint>,
    /// How far beyond the threshold, as a fraction of it. Alerts are ordered by it.
    pub(super) strength: Decimal,
    /// The verdict of the stored history, of a rule that compares with it.
    pub(super) verdict: Option<HistoryVerdict>,
    /// The empty answer before the price, of a rule that compares with it.
    pub(super) last_answer: Option<LastAnswer>,
}

/// The subject of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleSubject<'a> {
    /// Prices and availability.
    Prices,
    /// The prices of markets, compared with a baseline.
    Markets { baseline: &'a str },
    /// Whether searches are answered; a slot without a run counts too.
    Answers,
    /// When the caller's plan ends.
    Plan,
}

/// What a rule needs to know of a price's past (monitors.md, rules 74 to 78).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PastNeed {
    /// Its verdict.
    Verdict,
    /// The lowest price of so many days.
    LowestOfDays(u16),
    /// The last complete answer.
    LastAnswer,
}

impl PastNeed {
    pub(super) fn add_to(self, question: &mut PastQuestion) {
        match self {
            Self::Verdict => question.verdicts = true,
            Self::LowestOfDays(days) => question.lowest_of_days.push(days),
            Self::LastAnswer => question.last_answer = true,
        }
    }
}

/// The scope of a rule.
pub(in crate::monitors) fn rule_scope(rule: &Rule) -> RuleScope {
    rule.scope().unwrap_or(match of(rule).subject() {
        RuleSubject::Markets { .. } => RuleScope::Cell,
        _ => RuleScope::Scan,
    })
}
