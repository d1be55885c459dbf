//! What rules have in common, said once of each type: a new rule does not compile until it is said here.

use crate::contract::monitors::Rule;

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::monitors) enum Subject {
    /// Prices, and whether there are any.
    Prices,
    /// The prices of markets beside those of a baseline.
    Markets,
    /// Whether searches are answered. A slot without a run says something of that.
    Answers,
}

/// What a type of rules is like.
#[derive(Debug, Clone, Copy)]
pub(in crate::monitors) struct Kind {
    pub(in crate::monitors) subject: Subject,
    /// It compares the price with an amount of its own, which is in the currency of the request and in no other.
    pub(in crate::monitors) has_amount: bool,
}

impl Kind {
    pub(in crate::monitors) fn of(rule: &Rule) -> Self {
        let about = |subject| Self {
            subject,
            has_amount: false,
        };
        match rule {
            Rule::PriceBelow(_) => Self {
                has_amount: true,
                ..about(Subject::Prices)
            },
            Rule::DropPercent(_)
            | Rule::NewLow(_)
            | Rule::Verdict(_)
            | Rule::Available(_)
            | Rule::SoldOut(_) => about(Subject::Prices),
            Rule::ParityGapPercent(_) => about(Subject::Markets),
            Rule::Stale(_) => about(Subject::Answers),
        }
    }
}
