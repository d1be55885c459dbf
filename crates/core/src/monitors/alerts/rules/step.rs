//! One run for one rule and scope, in the terms that rules share.
//!
//! Any price may fire a rule, even if its search was partial or others of the scope failed, but an
//! implausible one: that is an offer and no more (monitors.md, rule 84). Only a *firm* price
//! proves that nothing cheaper existed, so only it rearms a rule or raises the price that later runs
//! compare with. Without a price, no rule about prices changes; a report (`every_run`) is no
//! condition.

use rust_decimal::Decimal;

use super::{AlertRule, FiringCause, LowestPrice, PricePoint, RuleStep, ScopeState, ScopeView};
use crate::monitors::alerts::state::Anchor;

/// The condition of a rule for a run.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one comparison"
)]
pub(super) struct RuleCondition {
    /// Whether it is true.
    pub(super) holds: bool,
    /// Whether it is false by enough to rearm the rule.
    pub(super) rearms: bool,
    /// Whether the price is far enough below the price of the last alert to fire again, armed or
    /// not.
    pub(super) fires_again: bool,
    /// The stored history says too little.
    pub(super) not_comparable: bool,
    /// Why the rule fires, if it does.
    pub(super) cause: FiringCause,
}

impl RuleCondition {
    /// A condition that is either true or rearms the rule.
    pub(super) fn of(holds: bool) -> Self {
        Self {
            holds,
            rearms: !holds,
            ..Self::default()
        }
    }

    /// The stored history says too little about the price.
    pub(super) fn insufficient() -> Self {
        Self {
            not_comparable: true,
            ..Self::default()
        }
    }

    /// Rearms at `rearm` percent above the threshold, inclusive: 200 and 5 percent rearm at 210.
    pub(super) fn for_price(
        price: &LowestPrice,
        threshold: Decimal,
        holds: bool,
        rearm: Decimal,
    ) -> Self {
        let high_enough = plus_percent(threshold, rearm).is_some_and(|high| price.amount >= high);
        Self {
            holds,
            rearms: price.is_firm && !holds && high_enough,
            cause: FiringCause {
                threshold: Some(threshold),
                strength: drop_fraction(threshold, price.amount),
                ..FiringCause::default()
            },
            ..Self::default()
        }
    }

    /// The step from the state before to that after, whose `armed` follows from the condition.
    pub(super) fn step(
        self,
        before: &ScopeState,
        mut after: ScopeState,
        price: Option<usize>,
    ) -> RuleStep {
        let fires = before.armed && self.holds || self.fires_again;
        after.armed = !fires && (before.armed || self.rearms);
        let fired = fires.then(|| FiringCause {
            price,
            strength: self.cause.strength.max(Decimal::ZERO),
            ..self.cause
        });
        RuleStep {
            after,
            fired,
            not_comparable: self.not_comparable,
        }
    }
}

/// Applies a rule about prices: finds the comparable price and evaluates `condition_of`, which may
/// also update the state.
pub(super) fn price_step(
    rule: &dyn AlertRule,
    before: &ScopeState,
    view: &ScopeView,
    condition_of: impl FnOnce(&ScopeState, &LowestPrice, &mut ScopeState) -> RuleCondition,
) -> RuleStep {
    let prices = view.prices.iter();
    let previous_currency = before.currency.as_deref();
    let found = if rule.has_amount() {
        in_currency(prices, &view.requested_currency)
    } else {
        comparable_price(prices, &view.requested_currency, previous_currency)
    };
    let Some((at, price)) = found else {
        return RuleStep {
            not_comparable: !view.prices.is_empty(),
            ..unchanged(before)
        };
    };
    // Prices in the requested currency reset a state in another currency.
    let reset;
    let before = if previous_currency.is_some_and(|previous| previous != price.currency) {
        reset = ScopeState {
            armed: before.armed,
            ..rule.first_state()
        };
        &reset
    } else {
        before
    };
    let mut after = with_price(before, Some(price));
    condition_of(before, price, &mut after).step(before, after, Some(at))
}

/// The price to compare: in the requested currency, else in that of earlier prices, else the first.
pub(super) fn comparable_price<'a>(
    prices: impl Iterator<Item = &'a LowestPrice> + Clone,
    requested_currency: &str,
    previous_currency: Option<&str>,
) -> Option<(usize, &'a LowestPrice)> {
    in_currency(prices.clone(), requested_currency).or_else(|| match previous_currency {
        Some(previous) => in_currency(prices, previous),
        None => prices
            .enumerate()
            .min_by(|(_, one), (_, other)| one.currency.cmp(&other.currency)),
    })
}

fn in_currency<'a>(
    prices: impl Iterator<Item = &'a LowestPrice>,
    currency: &str,
) -> Option<(usize, &'a LowestPrice)> {
    prices
        .enumerate()
        .find(|(_, price)| price.currency == currency)
}

/// The state updated with the price of a run; `armed` is unchanged.
pub(super) fn with_price(before: &ScopeState, price: Option<&LowestPrice>) -> ScopeState {
    let mut after = before.clone();
    let Some(price) = price else { return after };
    after.currency = Some(price.currency.clone());
    after.last = Some(price.mark());
    let is_lower = |anchor: &Anchor| price.amount < anchor.mark.price;
    if let Some(cell) = &price.cell
        && (price.is_firm || before.anchor.as_ref().is_none_or(is_lower))
    {
        after.anchor = Some(Anchor {
            cell: cell.clone(),
            mark: price.mark(),
        });
    }
    after
}

pub(super) fn unchanged(before: &ScopeState) -> RuleStep {
    RuleStep {
        after: before.clone(),
        fired: None,
        not_comparable: false,
    }
}

/// The price at which a rule last fired. A fired rule without one (it fired in another currency, or
/// an older version stored its state) uses the lowest price so far.
pub(super) fn last_fired_price<'a>(
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
pub(super) fn further_drop(
    last: &PricePoint,
    price: &LowestPrice,
    percent: Decimal,
) -> Option<Decimal> {
    plus_percent(last.price, -percent)
        .filter(|threshold| price.amount <= *threshold && price.amount < last.price)
}

/// `amount` plus `percent`; `None` on overflow.
pub(super) fn plus_percent(amount: Decimal, percent: Decimal) -> Option<Decimal> {
    amount
        .checked_mul(Decimal::ONE_HUNDRED.checked_add(percent)?)?
        .checked_div(Decimal::ONE_HUNDRED)
}

/// How far `price` is below `from`, as a fraction of `from`.
pub(super) fn drop_fraction(from: Decimal, price: Decimal) -> Decimal {
    from.checked_sub(price)
        .and_then(|below| below.checked_div(from))
        .unwrap_or_default()
}
