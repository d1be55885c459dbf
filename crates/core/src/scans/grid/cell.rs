//! The items of one cell, and the item that represents it: pure.

use rust_decimal::Decimal;

use crate::contract::scans::ItemState;
use crate::contract::{SearchStatus, Verdict};
use crate::ids::ItemId;

/// The result of one item.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemObservation {
    pub item: ItemId,
    pub state: ItemState,
    pub search_status: Option<SearchStatus>,
    pub reason: Option<String>,
    /// The best price with its currency.
    pub price: Option<(Decimal, String)>,
    pub offer: Option<BestOffer>,
    /// Its price is one of the scan's implausible ones.
    pub is_implausible: bool,
}

/// The offer with an item's best price.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BestOffer {
    /// The carrier, or the room type.
    pub seller: Option<String>,
    pub board: Option<String>,
    pub link: Option<String>,
    pub band_low: Option<Decimal>,
    pub band_high: Option<Decimal>,
    pub verdict: Option<Verdict>,
}

/// The item that represents a cell, of items in the order of their positions: the cheapest plausible
/// one, else the cheapest (the first of equals) in the currency of the first price, since prices in different currencies do not
/// compare. Without a price, the item with the least certain result, so that a cell is `empty` only
/// if all its items are. `None` for no items.
pub(in crate::scans) fn representative(items: &[ItemObservation]) -> Option<&ItemObservation> {
    let priced = || {
        items.iter().filter_map(|observation| {
            observation
                .price
                .as_ref()
                .map(|(price, currency)| (price, currency, observation))
        })
    };
    let currency = priced().next().map(|(_, currency, _)| currency);
    let cheapest = priced()
        .filter(|(_, other, _)| Some(*other) == currency)
        .min_by_key(|(price, _, observation)| (observation.is_implausible, *price));
    cheapest.map(|(.., observation)| observation).or_else(|| {
        items
            .iter()
            .min_by_key(|observation| certainty(observation))
    })
}

/// The rank of a result; 0 is the least certain.
fn certainty(observation: &ItemObservation) -> u8 {
    match (observation.state, observation.search_status) {
        (ItemState::Running, _) => 0,
        (ItemState::Pending, _) => 1,
        (ItemState::Done, None | Some(SearchStatus::Degraded)) => 2,
        (ItemState::Done, Some(SearchStatus::Partial)) => 3,
        (ItemState::Failed, _) => 4,
        (ItemState::Cancelled, _) => 5,
        (ItemState::Skipped, _) => 6,
        // Complete, but its offers have no price or were all filtered out.
        (ItemState::Done, Some(SearchStatus::Ok)) => 7,
        (ItemState::Done, Some(SearchStatus::Empty)) => 8,
    }
}

/// `after - before`, and the same in percent of `before`, rounded to two decimals; no percentage if
/// `before` is 0, or a price is too large for one.
pub(in crate::scans) fn difference(before: Decimal, after: Decimal) -> (Decimal, Option<Decimal>) {
    let difference = after.saturating_sub(before);
    let percent = difference
        .checked_mul(Decimal::ONE_HUNDRED)
        .and_then(|difference| difference.checked_div(before))
        .map(|percent| percent.round_dp(2).normalize());
    (difference.normalize(), percent)
}
