//! The traits of each rule type. A new rule type does not compile until it has them.

use crate::contract::monitors::Rule;

/// The subject of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::monitors) enum RuleSubject {
    /// Prices and availability.
    Prices,
    /// The prices of markets, compared with a baseline.
    Markets,
    /// Whether searches are answered; a slot without a run counts too.
    Answers,
    /// When the caller's plan ends.
    Plan,
}

/// What a rule needs to know of a price's past (monitors.md, rules 74 to 78).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::monitors) enum PastNeed {
    /// Its verdict.
    Verdict,
    /// The lowest price of so many days.
    LowestOfDays(u16),
    /// The last complete answer.
    LastAnswer,
}

/// The traits of a rule type.
#[derive(Debug, Clone, Copy)]
pub(in crate::monitors) struct RuleTraits {
    pub(in crate::monitors) subject: RuleSubject,
    /// Whether it compares the price with a fixed amount, in the requested currency.
    pub(in crate::monitors) has_amount: bool,
    /// What it asks the stored history.
    pub(in crate::monitors) past: Option<PastNeed>,
}

impl RuleTraits {
    pub(in crate::monitors) fn of(rule: &Rule) -> Self {
        let about = |subject| Self {
            subject,
            has_amount: false,
            past: None,
        };
        let asking = |need| Self {
            past: Some(need),
            ..about(RuleSubject::Prices)
        };
        match rule {
            Rule::PriceBelow(_) => Self {
                has_amount: true,
                ..about(RuleSubject::Prices)
            },
            Rule::NewLow(rule) => asking(PastNeed::LowestOfDays(rule.days.get())),
            Rule::PercentileAtMost(_) => asking(PastNeed::Verdict),
            Rule::BackInStock(_) => asking(PastNeed::LastAnswer),
            Rule::DropPercent(_) | Rule::Verdict(_) | Rule::Available(_) | Rule::SoldOut(_) => {
                about(RuleSubject::Prices)
            }
            Rule::ParityGapPercent(_) => about(RuleSubject::Markets),
            Rule::Stale(_) => about(RuleSubject::Answers),
            Rule::PlanEndsBeforeReset(_) => about(RuleSubject::Plan),
        }
    }
}
