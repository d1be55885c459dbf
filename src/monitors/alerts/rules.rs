//! When a rule fires and when it is armed again: pure functions over what was seen before and now (docs/decisions/0018).
//!
//! ```text
//!               it is true ─► fires
//!   armed ─────────────────────────────► fired ─► fires again: `new_low`, `drop_percent`, a step below the price last told
//!     ▲                                    │      (true still, or false by too little: nothing)
//!     └── it is false by rearm_percent ────┘
//! ```
//!
//! A price that was seen is real, also where the search was partial or others of the scope failed: it may fire. That nothing cheaper was
//! there is known of a *firm* price only: only such a price arms a rule again or raises what later prices are compared with. Without a
//! price nothing that is about prices moves. Not here: what a rule is shown (`sight`), where states are kept (`store`).

use rust_decimal::Decimal;

use super::kind::Kind;
use super::sight::{Price, Sight, Standing};
use super::state::{Anchor, Mark, Memory, State};
use crate::contract::Verdict;
use crate::contract::monitors::Rule;
use crate::contract::scans::ParityVerdict;

/// What one run came to for one rule and scope.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) after: State,
    pub(super) fired: Option<Fired>,
    /// There were prices, and none in a currency that can be compared: nothing has moved.
    pub(super) not_comparable: bool,
}

/// Why it fired.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fired {
    /// Which of the sight's prices it is about.
    pub(super) price: Option<usize>,
    /// What the price was compared with.
    pub(super) threshold: Option<Decimal>,
    /// What the threshold comes from: the lowest before.
    pub(super) reference: Option<Mark>,
    /// How far beyond the threshold, as a fraction of it: the strongest are told first.
    pub(super) strength: Decimal,
}

/// Shows a rule what a run has seen. `asked` is the currency of the request.
pub(super) fn step(rule: &Rule, asked: &str, before: &State, sight: &Sight) -> Step {
    match rule {
        Rule::PriceBelow(below) => priced(rule, asked, before, sight, |_, price, _| {
            let threshold = below.amount.get();
            Turn::of_price(
                price,
                threshold,
                price.amount < threshold,
                below.rearm_percent_or_default().get(),
            )
        }),
        Rule::DropPercent(drop) => priced(rule, asked, before, sight, |before, price, after| {
            let window = before.memory.window();
            let lowest = window
                .iter()
                .min_by(|one, other| one.price.cmp(&other.price));
            if price.firm || lowest.is_none_or(|lowest| price.amount < lowest.price) {
                after
                    .memory
                    .push(price.mark(), drop.runs_or_default().get().into());
            }
            let percent = drop.percent.get();
            after.told = told(before, lowest).cloned();
            let Some((lowest, threshold)) =
                lowest.and_then(|lowest| Some((lowest, less(lowest.price, percent)?)))
            else {
                return Turn::NOTHING_TO_COMPARE;
            };
            let turn = Turn::of_price(
                price,
                threshold,
                price.amount <= threshold,
                drop.rearm_percent_or_default().get(),
            );
            let further = after
                .told
                .as_ref()
                .and_then(|told| Some((told, below(told, price, percent)?)));
            // Whichever it fires by is what it is shown with.
            let (reference, threshold) = match further {
                Some(further) if !(before.armed && turn.holds) => further,
                _ => (lowest, threshold),
            };
            Turn {
                further: further.is_some(),
                threshold: Some(threshold),
                reference: Some(reference.clone()),
                strength: fraction(reference.price, price.amount),
                ..turn
            }
        }),
        Rule::NewLow(new_low) => priced(rule, asked, before, sight, |before, price, after| {
            let lowest = before.memory.lowest();
            if lowest.is_none_or(|lowest| price.amount < lowest.price) {
                after.memory = Memory::Lowest(Some(price.mark()));
            }
            after.told = told(before, lowest).cloned();
            let Some(lowest) = lowest else {
                return Turn::NOTHING_TO_COMPARE;
            };
            let rearm = new_low.rearm_percent_or_default().get();
            let turn = Turn::of_price(price, lowest.price, price.amount < lowest.price, rearm);
            let further = turn.holds
                && after
                    .told
                    .as_ref()
                    .is_some_and(|told| below(told, price, rearm).is_some());
            Turn {
                further,
                reference: Some(lowest.clone()),
                ..turn
            }
        }),
        Rule::Verdict(_) => priced(rule, asked, before, sight, |_, price, _| {
            let holds = price.verdict == Some(Verdict::Low);
            Turn {
                holds,
                rearms: price.firm && price.verdict.is_some() && !holds,
                ..Turn::NOTHING_TO_COMPARE
            }
        }),
        Rule::Available(_) => presence(asked, before, sight, true),
        Rule::SoldOut(_) => presence(asked, before, sight, false),
        Rule::ParityGapPercent(parity) => {
            let Some(gap) = &sight.gap else {
                return unmoved(before);
            };
            let threshold = parity.percent.get();
            let rearm = (threshold - parity.rearm_percent_or_default().get()).max(Decimal::ZERO);
            let holds = gap.verdict == ParityVerdict::Gap && gap.percent >= threshold;
            let strength = gap
                .percent
                .checked_div(Decimal::ONE_HUNDRED)
                .unwrap_or_default();
            let rearms = gap.percent <= rearm;
            let turn = Turn {
                holds,
                rearms,
                threshold: Some(threshold),
                strength,
                ..Turn::NOTHING_TO_COMPARE
            };
            let price = sight.prices.first().map(|price| (0, price));
            turned(
                before,
                following(before, price.map(|(_, price)| price)),
                price.map(|(at, _)| at),
                turn,
            )
        }
        Rule::Stale(stale) => absence(before, sight, stale.runs_or_default().get().into()),
    }
}

/// What a rule makes of the price of a run.
struct Turn {
    /// It is true now.
    holds: bool,
    /// It is false, by enough to be armed again.
    rearms: bool,
    /// It is so far below the price last told that it is news of its own, armed or not.
    further: bool,
    threshold: Option<Decimal>,
    reference: Option<Mark>,
    strength: Decimal,
}

impl Turn {
    const NOTHING_TO_COMPARE: Self = Self {
        holds: false,
        rearms: false,
        further: false,
        threshold: None,
        reference: None,
        strength: Decimal::ZERO,
    };

    /// Armed again at `rearm` percent above the threshold, that price included: 200 and 5 are armed again at 210.
    fn of_price(price: &Price, threshold: Decimal, holds: bool, rearm: Decimal) -> Self {
        let high_enough = more(threshold, rearm).is_some_and(|high| price.amount >= high);
        Self {
            holds,
            rearms: price.firm && !holds && high_enough,
            threshold: Some(threshold),
            strength: fraction(threshold, price.amount),
            ..Self::NOTHING_TO_COMPARE
        }
    }
}

/// A rule about the price: takes the one that compares, and moves by what `judge` says of it. `judge` may change what is remembered.
fn priced(
    rule: &Rule,
    asked: &str,
    before: &State,
    sight: &Sight,
    judge: impl FnOnce(&State, &Price, &mut State) -> Turn,
) -> Step {
    let amount_is_in = Kind::of(rule).has_amount.then_some(asked);
    let Some((at, price)) = comparable(
        asked,
        amount_is_in,
        before.currency.as_deref(),
        &sight.prices,
    ) else {
        return Step {
            not_comparable: !sight.prices.is_empty(),
            ..unmoved(before)
        };
    };
    // What was remembered in another currency is forgotten as soon as prices come in the one that was asked for.
    let anew = before
        .currency
        .as_ref()
        .is_some_and(|held| *held != price.currency);
    let before = if anew {
        &State {
            armed: before.armed,
            ..State::new(rule)
        }
    } else {
        before
    };
    let mut after = following(before, Some(price));
    let turn = judge(before, price, &mut after);
    turned(before, after, Some(at), turn)
}

/// The price at which a rule last fired. One that does not know it though it has fired (in another currency, or before that was kept) goes
/// by the lowest that it has seen until now.
fn told<'a>(before: &'a State, lowest: Option<&'a Mark>) -> Option<&'a Mark> {
    before.told.as_ref().or(lowest.filter(|_| !before.armed))
}

/// So many percent below the price that was told, that threshold included: the threshold. Lower in any case: 0 percent below is not equal.
fn below(told: &Mark, price: &Price, percent: Decimal) -> Option<Decimal> {
    less(told.price, percent)
        .filter(|threshold| price.amount <= *threshold && price.amount < told.price)
}

/// The price to go by: in the currency that was asked for, else in that of the prices before, else the first there is. An amount is in one
/// currency and in no other.
fn comparable<'a>(
    asked: &str,
    amount_is_in: Option<&str>,
    held: Option<&str>,
    prices: &'a [Price],
) -> Option<(usize, &'a Price)> {
    let find = |currency: &str| {
        prices
            .iter()
            .enumerate()
            .find(|(_, price)| price.currency == currency)
    };
    match (amount_is_in, held) {
        (Some(currency), _) => find(currency),
        (None, Some(held)) => find(asked).or_else(|| find(held)),
        (None, None) => find(asked).or_else(|| {
            prices
                .iter()
                .enumerate()
                .min_by(|(_, a), (_, b)| a.currency.cmp(&b.currency))
        }),
    }
}

/// The state after a run with this price, still as armed as before.
fn following(before: &State, price: Option<&Price>) -> State {
    let mut after = before.clone();
    let Some(price) = price else { return after };
    after.currency = Some(price.currency.clone());
    after.last = Some(price.mark());
    if let Some(cell) = &price.cell
        && (price.firm
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

fn turned(before: &State, mut after: State, price: Option<usize>, turn: Turn) -> Step {
    let fires = before.armed && turn.holds || turn.further;
    after.armed = if fires {
        false
    } else {
        before.armed || turn.rearms
    };
    let fired = fires.then_some(Fired {
        price,
        threshold: turn.threshold,
        reference: turn.reference,
        strength: turn.strength.max(Decimal::ZERO),
    });
    Step {
        after,
        fired,
        not_comparable: false,
    }
}

fn unmoved(before: &State) -> Step {
    Step {
        after: before.clone(),
        fired: None,
        not_comparable: false,
    }
}

/// `available` (`wanted`) and `sold_out`: from the one to the other, so a first run has nothing to compare. A price of any currency is one.
fn presence(asked: &str, before: &State, sight: &Sight, wanted: bool) -> Step {
    let now = match sight.standing {
        Standing::Priced => true,
        Standing::Nothing => false,
        Standing::Unknown => return unmoved(before),
    };
    let price = comparable(asked, None, before.currency.as_deref(), &sight.prices);
    let fires = now == wanted && before.memory.presence() == Some(!wanted);
    let mut after = following(before, price.map(|(_, price)| price));
    after.memory = Memory::Presence(Some(now));
    after.armed = now != wanted;
    Step {
        after,
        fired: fires.then(|| Fired {
            price: price.map(|(at, _)| at),
            ..Fired::default()
        }),
        not_comparable: false,
    }
}

/// `stale`: true once so many runs in a row had no answer, false with the first answer. What was not searched at all does not count.
fn absence(before: &State, sight: &Sight, runs: u32) -> Step {
    let Some(answered) = sight.answered else {
        return unmoved(before);
    };
    let absent = if answered {
        0
    } else {
        before.memory.absent().saturating_add(1)
    };
    let mut after = following(before, sight.prices.first());
    after.memory = Memory::Absent(absent);
    let turn = Turn {
        holds: absent >= runs,
        rearms: answered,
        ..Turn::NOTHING_TO_COMPARE
    };
    let step = turned(before, after, None, turn);
    Step {
        fired: step.fired.map(|fired| Fired {
            threshold: Some(runs.into()),
            ..fired
        }),
        ..step
    }
}

/// So many percent more; `None` beyond what a number can hold.
fn more(amount: Decimal, percent: Decimal) -> Option<Decimal> {
    amount
        .checked_mul(Decimal::ONE_HUNDRED.checked_add(percent)?)?
        .checked_div(Decimal::ONE_HUNDRED)
}

fn less(amount: Decimal, percent: Decimal) -> Option<Decimal> {
    more(amount, -percent)
}

/// How far `price` lies below `from`, as a fraction of it.
fn fraction(from: Decimal, price: Decimal) -> Decimal {
    from.checked_sub(price)
        .and_then(|below| below.checked_div(from))
        .unwrap_or_default()
}
