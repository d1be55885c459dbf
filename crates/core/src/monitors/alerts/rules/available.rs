//! `available`: it fires on a change, as `sold_out` does, so a first run never fires.

use super::step::{comparable_price, unchanged, with_price};
use super::{AlertRule, FiringCause, RuleMemory, RuleStep, ScopeState, ScopeView};
use crate::contract::monitors::Available;
use crate::monitors::alerts::run_snapshot::PriceAvailability;

/// What a rule that waits for a change of availability lacks in stored days.
pub(super) const NO_ABSENCES: &str =
    "only days with a price are replayed, not those on which nothing was on offer";

impl AlertRule for Available {
    fn step(&self, before: &ScopeState, view: &ScopeView) -> RuleStep {
        presence_step(before, view, true)
    }

    fn first_state(&self) -> ScopeState {
        unknown_presence()
    }

    fn not_replayed(&self) -> Option<&'static str> {
        Some(NO_ABSENCES)
    }
}

/// Unarmed: the rule has to see the opposite first.
pub(super) fn unknown_presence() -> ScopeState {
    ScopeState::new(false, RuleMemory::Presence(None))
}

/// Fires when there is a price after there was none, or, if not `wanted`, the other way round. A
/// price in any currency counts.
pub(super) fn presence_step(before: &ScopeState, view: &ScopeView, wanted: bool) -> RuleStep {
    let now = match view.availability {
        PriceAvailability::Priced => true,
        PriceAvailability::NoOffers => false,
        PriceAvailability::Unknown => return unchanged(before),
    };
    let previous_currency = before.currency.as_deref();
    let price = comparable_price(view.offers(), &view.requested_currency, previous_currency);
    let mut after = with_price(before, price.map(|(_, price)| price));
    after.memory = RuleMemory::Presence(Some(now));
    after.armed = now != wanted;
    let fires = now == wanted && before.memory.presence() == Some(!wanted);
    RuleStep {
        after,
        fired: fires.then(|| FiringCause {
            price: price.map(|(at, _)| at),
            ..FiringCause::default()
        }),
        not_comparable: false,
    }
}
