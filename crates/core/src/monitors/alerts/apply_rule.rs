//! When a rule fires and rearms: pure functions of its state and a new run (docs/decisions/0018).
//!
//! ```text
//!           condition true: fires
//!   armed ─────────────────────────────► fired ─► fires again: `new_low`, `drop_percent`, a
//!     ▲                                    │      step below the price of the last alert
//!     └── false by rearm_percent ──────────┘      (still true, or false by less: nothing)
//! ```
//!
//! Any price may fire a rule, even if its search was partial or others of the scope failed, but an
//! implausible one: that is an offer and no more (monitors.md, rule 84). Only a *firm* price
//! proves that nothing cheaper existed, so only it rearms a rule or raises the price that later runs
//! compare with. Without a price, no rule about prices changes. Not here: the view of a run
//! (`run_snapshot`), the storage of states (`store`).

use std::sync::Arc;

use rust_decimal::Decimal;

use super::rule_traits::RuleTraits;
use super::run_snapshot::{LowestPrice, PriceAvailability, ScopeView};
use super::state::{Anchor, PricePoint, RuleMemory, ScopeState};
use crate::contract::Verdict;
use crate::contract::monitors::{NewLow, PercentileAtMost, Rule};
use crate::contract::scans::ParityVerdict;
use crate::history::past_prices::PastOfPrice;

/// The result of one run for one rule and scope.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RuleStep {
    pub(super) after: ScopeState,
    pub(super) fired: Option<FiringCause>,
    /// There were prices, but none in a comparable currency; the state is unchanged.
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
    /// What the stored history says, of a rule that compares with it.
    pub(super) past: Option<Arc<PastOfPrice>>,
}

/// Applies a rule to the view of a run.
#[expect(clippy::too_many_lines, reason = "one arm for each rule type")]
pub(super) fn apply_rule(
    rule: &Rule,
    requested_currency: &str,
    before: &ScopeState,
    view: &ScopeView,
) -> RuleStep {
    match rule {
        Rule::PriceBelow(below) => {
            price_rule(rule, requested_currency, before, view, |_, price, _| {
                let threshold = below.amount.get();
                RuleCondition::for_price(
                    price,
                    threshold,
                    price.amount < threshold,
                    below.rearm_percent_or_default().get(),
                )
            })
        }
        Rule::DropPercent(drop) => price_rule(
            rule,
            requested_currency,
            before,
            view,
            |before, price, after| {
                let window = before.memory.window();
                let lowest = window
                    .iter()
                    .min_by(|one, other| one.price.cmp(&other.price));
                if price.is_firm || lowest.is_none_or(|lowest| price.amount < lowest.price) {
                    after
                        .memory
                        .push(price.mark(), drop.runs_or_default().get().into());
                }
                let percent = drop.percent.get();
                after.last_fired = last_fired_price(before, lowest).cloned();
                let Some((lowest, threshold)) =
                    lowest.and_then(|lowest| Some((lowest, minus_percent(lowest.price, percent)?)))
                else {
                    return RuleCondition::NOTHING_TO_COMPARE;
                };
                let condition = RuleCondition::for_price(
                    price,
                    threshold,
                    price.amount <= threshold,
                    drop.rearm_percent_or_default().get(),
                );
                let fires_again = after
                    .last_fired
                    .as_ref()
                    .and_then(|last| Some((last, further_drop(last, price, percent)?)));
                // The alert shows the comparison by which the rule fires.
                let (reference, threshold) = match fires_again {
                    Some(fires_again) if !(before.armed && condition.holds) => fires_again,
                    _ => (lowest, threshold),
                };
                RuleCondition {
                    fires_again: fires_again.is_some(),
                    threshold: Some(threshold),
                    reference: Some(reference.clone()),
                    strength: drop_fraction(reference.price, price.amount),
                    ..condition
                }
            },
        ),
        Rule::NewLow(new_low) => price_rule(
            rule,
            requested_currency,
            before,
            view,
            |before, price, after| new_low_condition(new_low, before, price, after),
        ),
        Rule::Verdict(_) => price_rule(rule, requested_currency, before, view, |_, price, _| {
            let holds = price.verdict == Some(Verdict::Low);
            RuleCondition {
                holds,
                rearms: price.is_firm && price.verdict.is_some() && !holds,
                ..RuleCondition::NOTHING_TO_COMPARE
            }
        }),
        Rule::PercentileAtMost(rule_body) => {
            price_rule(rule, requested_currency, before, view, |_, price, _| {
                percentile_condition(rule_body, price)
            })
        }
        Rule::BackInStock(_) => {
            let offered = ScopeView {
                prices: view.offers().cloned().collect(),
                ..ScopeView::default()
            };
            price_rule(
                rule,
                requested_currency,
                before,
                &offered,
                |before, price, _| back_in_stock_condition(before, price),
            )
        }
        Rule::Available(_) => presence_rule(requested_currency, before, view, true),
        Rule::SoldOut(_) => presence_rule(requested_currency, before, view, false),
        Rule::ParityGapPercent(parity) => {
            let Some(gap) = &view.gap else {
                return unchanged(before);
            };
            let threshold = parity.percent.get();
            let rearm = (threshold - parity.rearm_percent_or_default().get()).max(Decimal::ZERO);
            let holds = gap.verdict == ParityVerdict::Gap && gap.percent >= threshold;
            let strength = gap
                .percent
                .checked_div(Decimal::ONE_HUNDRED)
                .unwrap_or_default();
            let rearms = gap.percent <= rearm;
            let condition = RuleCondition {
                holds,
                rearms,
                threshold: Some(threshold),
                strength,
                ..RuleCondition::NOTHING_TO_COMPARE
            };
            let price = view.prices.first().map(|price| (0, price));
            finish_step(
                before,
                with_price(before, price.map(|(_, price)| price)),
                price.map(|(at, _)| at),
                condition,
            )
        }
        Rule::Stale(stale) => stale_rule(before, view, stale.runs_or_default().get().into()),
        Rule::PlanEndsBeforeReset(_) => {
            let Some(plan_ends) = view.plan_ends else {
                return unchanged(before);
            };
            let condition = RuleCondition {
                holds: plan_ends,
                rearms: !plan_ends,
                ..RuleCondition::NOTHING_TO_COMPARE
            };
            finish_step(before, before.clone(), None, condition)
        }
    }
}

/// The condition of a rule for the price of a run.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one comparison"
)]
struct RuleCondition {
    /// Whether it is true.
    holds: bool,
    /// Whether it is false by enough to rearm the rule.
    rearms: bool,
    /// Whether the price is far enough below the price of the last alert to fire again, armed or
    /// not.
    fires_again: bool,
    threshold: Option<Decimal>,
    reference: Option<PricePoint>,
    strength: Decimal,
    /// The stored history says too little.
    not_comparable: bool,
}

impl RuleCondition {
    const NOTHING_TO_COMPARE: Self = Self {
        holds: false,
        rearms: false,
        fires_again: false,
        threshold: None,
        reference: None,
        strength: Decimal::ZERO,
        not_comparable: false,
    };

    /// The stored history says too little about the price.
    const INSUFFICIENT: Self = Self {
        not_comparable: true,
        ..Self::NOTHING_TO_COMPARE
    };

    /// Rearms at `rearm` percent above the threshold, inclusive: 200 and 5 percent rearm at 210.
    fn for_price(price: &LowestPrice, threshold: Decimal, holds: bool, rearm: Decimal) -> Self {
        let high_enough = plus_percent(threshold, rearm).is_some_and(|high| price.amount >= high);
        Self {
            holds,
            rearms: price.is_firm && !holds && high_enough,
            threshold: Some(threshold),
            strength: drop_fraction(threshold, price.amount),
            ..Self::NOTHING_TO_COMPARE
        }
    }
}

/// Applies a rule about prices: finds the comparable price and evaluates `condition_of`, which may
/// also update the state.
fn price_rule(
    rule: &Rule,
    requested_currency: &str,
    before: &ScopeState,
    view: &ScopeView,
    condition_of: impl FnOnce(&ScopeState, &LowestPrice, &mut ScopeState) -> RuleCondition,
) -> RuleStep {
    let amount_currency = RuleTraits::of(rule)
        .has_amount
        .then_some(requested_currency);
    let Some((at, price)) = comparable_price(
        requested_currency,
        amount_currency,
        before.currency.as_deref(),
        view.prices.iter(),
    ) else {
        return RuleStep {
            not_comparable: !view.prices.is_empty(),
            ..unchanged(before)
        };
    };
    // Prices in the requested currency reset a state in another currency.
    let currency_changed = before
        .currency
        .as_ref()
        .is_some_and(|previous_currency| *previous_currency != price.currency);
    let before = if currency_changed {
        &ScopeState {
            armed: before.armed,
            ..ScopeState::new(rule)
        }
    } else {
        before
    };
    let mut after = with_price(before, Some(price));
    let condition = condition_of(before, price, &mut after);
    let mut step = finish_step(before, after, Some(at), condition);
    if let Some(fired) = &mut step.fired
        && RuleTraits::of(rule).past.is_some()
    {
        fired.past.clone_from(&price.past);
    }
    step
}

/// `new_low` (monitors.md, rule 77).
fn new_low_condition(
    rule: &NewLow,
    before: &ScopeState,
    price: &LowestPrice,
    after: &mut ScopeState,
) -> RuleCondition {
    let past = price.past.as_ref();
    let lowest = past.and_then(|past| past.lowest.get(&rule.days.get()));
    let Some((lowest, at)) = lowest.copied() else {
        return RuleCondition::INSUFFICIENT;
    };
    let lowest = PricePoint { price: lowest, at };
    let rearm = rule.rearm_percent_or_default().get();
    let condition =
        RuleCondition::for_price(price, lowest.price, price.amount < lowest.price, rearm);
    after.memory = RuleMemory::Lowest(Some(if condition.holds {
        price.mark()
    } else {
        lowest.clone()
    }));
    after.last_fired = last_fired_price(before, Some(&lowest)).cloned();
    let fires_again = condition.holds
        && after
            .last_fired
            .as_ref()
            .is_some_and(|last| further_drop(last, price, rearm).is_some());
    RuleCondition {
        fires_again,
        reference: Some(lowest),
        ..condition
    }
}

/// `percentile_at_most` (monitors.md, rule 75).
fn percentile_condition(rule: &PercentileAtMost, price: &LowestPrice) -> RuleCondition {
    let verdict = price.past.as_ref().and_then(|past| past.verdict.as_ref());
    // A percentile has one decimal; that of an `insufficient` verdict is null.
    let percentile = verdict.and_then(|verdict| Decimal::from_f64_retain(verdict.percentile?));
    let Some(percentile) = percentile.map(|percentile| percentile.round_dp(1)) else {
        return RuleCondition::INSUFFICIENT;
    };
    let threshold = rule.percentile.get();
    let holds = percentile <= threshold;
    RuleCondition {
        holds,
        rearms: price.is_firm
            && !holds
            && percentile >= threshold + rule.rearm_percent_or_default().get(),
        threshold: Some(threshold),
        strength: (threshold - percentile) / Decimal::ONE_HUNDRED,
        ..RuleCondition::NOTHING_TO_COMPARE
    }
}

/// `back_in_stock` (monitors.md, rule 78). It has fired for an empty answer that is older than the
/// price at which it last fired.
fn back_in_stock_condition(before: &ScopeState, price: &LowestPrice) -> RuleCondition {
    let Some(answer) = price.past.as_ref().and_then(|past| past.last_answer) else {
        return RuleCondition::INSUFFICIENT;
    };
    let is_newer = |last: &PricePoint| answer.at > last.at;
    RuleCondition {
        holds: answer.is_empty,
        rearms: !answer.is_empty,
        fires_again: answer.is_empty && before.last_fired.as_ref().is_some_and(is_newer),
        ..RuleCondition::NOTHING_TO_COMPARE
    }
}

/// The price at which a rule last fired. A fired rule without one (it fired in another currency, or
/// an older version stored its state) uses the lowest price so far.
fn last_fired_price<'a>(
    before: &'a ScopeState,
    lowest: Option<&'a PricePoint>,
) -> Option<&'a PricePoint> {
    before
        .last_fired
        .as_ref()
        .or(lowest.filter(|_| !before.armed))
}

/// The threshold `percent` below the price of the last alert, if the price reaches it. The price
/// must be lower even at 0 percent.
fn further_drop(last: &PricePoint, price: &LowestPrice, percent: Decimal) -> Option<Decimal> {
    minus_percent(last.price, percent)
        .filter(|threshold| price.amount <= *threshold && price.amount < last.price)
}

/// The price to compare: in the requested currency, else in that of earlier prices, else the first.
/// A rule with an amount compares in the requested currency only.
fn comparable_price<'a>(
    requested_currency: &str,
    amount_currency: Option<&str>,
    previous_currency: Option<&str>,
    prices: impl Iterator<Item = &'a LowestPrice> + Clone,
) -> Option<(usize, &'a LowestPrice)> {
    let find = |currency: &str| {
        prices
            .clone()
            .enumerate()
            .find(|(_, price)| price.currency == currency)
    };
    match (amount_currency, previous_currency) {
        (Some(currency), _) => find(currency),
        (None, Some(previous_currency)) => {
            find(requested_currency).or_else(|| find(previous_currency))
        }
        (None, None) => find(requested_currency).or_else(|| {
            prices
                .clone()
                .enumerate()
                .min_by(|(_, a), (_, b)| a.currency.cmp(&b.currency))
        }),
    }
}

/// The state updated with the price of a run; `armed` is unchanged.
fn with_price(before: &ScopeState, price: Option<&LowestPrice>) -> ScopeState {
    let mut after = before.clone();
    let Some(price) = price else { return after };
    after.currency = Some(price.currency.clone());
    after.last = Some(price.mark());
    if let Some(cell) = &price.cell
        && (price.is_firm
            || before
                .anchor
                .as_ref()
                .is_none_or(|anchor| price.amount < anchor.mark.price))
    {
        after.anchor = Some(Anchor {
            cell: cell.clone(),
            mark: price.mark(),
        });
    }
    after
}

fn finish_step(
    before: &ScopeState,
    mut after: ScopeState,
    price: Option<usize>,
    condition: RuleCondition,
) -> RuleStep {
    let fires = before.armed && condition.holds || condition.fires_again;
    after.armed = if fires {
        false
    } else {
        before.armed || condition.rearms
    };
    let fired = fires.then_some(FiringCause {
        price,
        threshold: condition.threshold,
        reference: condition.reference,
        strength: condition.strength.max(Decimal::ZERO),
        past: None,
    });
    RuleStep {
        after,
        fired,
        not_comparable: condition.not_comparable,
    }
}

fn unchanged(before: &ScopeState) -> RuleStep {
    RuleStep {
        after: before.clone(),
        fired: None,
        not_comparable: false,
    }
}

/// `available` (`wanted`) and `sold_out` fire on a change, so a first run never fires. A price in
/// any currency counts.
fn presence_rule(
    requested_currency: &str,
    before: &ScopeState,
    view: &ScopeView,
    wanted: bool,
) -> RuleStep {
    let now = match view.availability {
        PriceAvailability::Priced => true,
        PriceAvailability::NoOffers => false,
        PriceAvailability::Unknown => return unchanged(before),
    };
    let price = comparable_price(
        requested_currency,
        None,
        before.currency.as_deref(),
        view.offers(),
    );
    let fires = now == wanted && before.memory.presence() == Some(!wanted);
    let mut after = with_price(before, price.map(|(_, price)| price));
    after.memory = RuleMemory::Presence(Some(now));
    after.armed = now != wanted;
    RuleStep {
        after,
        fired: fires.then(|| FiringCause {
            price: price.map(|(at, _)| at),
            ..FiringCause::default()
        }),
        not_comparable: false,
    }
}

/// `stale` fires after `runs` consecutive runs without an answer, and rearms with the first answer.
/// Runs without any search do not count.
fn stale_rule(before: &ScopeState, view: &ScopeView, runs: u32) -> RuleStep {
    let Some(answered) = view.answered else {
        return unchanged(before);
    };
    let unanswered = if answered {
        0
    } else {
        before.memory.absent().saturating_add(1)
    };
    let mut after = with_price(before, view.prices.first());
    after.memory = RuleMemory::Absent(unanswered);
    let condition = RuleCondition {
        holds: unanswered >= runs,
        rearms: answered,
        ..RuleCondition::NOTHING_TO_COMPARE
    };
    let step = finish_step(before, after, None, condition);
    RuleStep {
        fired: step.fired.map(|fired| FiringCause {
            threshold: Some(runs.into()),
            ..fired
        }),
        ..step
    }
}

/// `amount` plus `percent`; `None` on overflow.
fn plus_percent(amount: Decimal, percent: Decimal) -> Option<Decimal> {
    amount
        .checked_mul(Decimal::ONE_HUNDRED.checked_add(percent)?)?
        .checked_div(Decimal::ONE_HUNDRED)
}

fn minus_percent(amount: Decimal, percent: Decimal) -> Option<Decimal> {
    plus_percent(amount, -percent)
}

/// How far `price` is below `from`, as a fraction of `from`.
fn drop_fraction(from: Decimal, price: Decimal) -> Decimal {
    from.checked_sub(price)
        .and_then(|below| below.checked_div(from))
        .unwrap_or_default()
}
