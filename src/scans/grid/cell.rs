//! What the items of one cell come to: pure.

use rust_decimal::Decimal;

use crate::contract::scans::ItemState;
use crate::contract::{SearchStatus, Verdict};
use crate::ids::ItemId;

/// What one item of a cell has seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) item: ItemId,
    pub(crate) state: ItemState,
    pub(crate) search_status: Option<SearchStatus>,
    pub(crate) reason: Option<String>,
    /// With its currency.
    pub(crate) price: Option<(Decimal, String)>,
    pub(crate) offer: Option<BestOffer>,
}

/// What is known of the offer that has an item's price.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct BestOffer {
    /// The carrier, or the room type.
    pub(crate) seller: Option<String>,
    pub(crate) board: Option<String>,
    pub(crate) link: Option<String>,
    pub(crate) band_low: Option<Decimal>,
    pub(crate) band_high: Option<Decimal>,
    pub(crate) verdict: Option<Verdict>,
}

/// The item that speaks for a cell, of items in the order of their positions: the cheapest (the first of equals), in the currency of the
/// first price, since prices of different currencies do not compare. Without a price, the item that leaves most open: `empty` is said
/// only if all are empty. `None` for no items.
pub(in crate::scans) fn speaker(items: &[Seen]) -> Option<&Seen> {
    let priced = || {
        items.iter().filter_map(|seen| {
            seen.price
                .as_ref()
                .map(|(price, currency)| (price, currency, seen))
        })
    };
    let currency = priced().next().map(|(_, currency, _)| currency);
    let cheapest = priced()
        .filter(|(_, other, _)| Some(*other) == currency)
        .min_by_key(|(price, ..)| *price);
    cheapest
        .map(|(.., seen)| seen)
        .or_else(|| items.iter().min_by_key(|seen| openness(seen)))
}

/// What is most open first.
fn openness(seen: &Seen) -> u8 {
    match (seen.state, seen.search_status) {
        (ItemState::Running, _) => 0,
        (ItemState::Pending, _) => 1,
        (ItemState::Done, None | Some(SearchStatus::Degraded)) => 2,
        (ItemState::Done, Some(SearchStatus::Partial)) => 3,
        (ItemState::Failed, _) => 4,
        (ItemState::Cancelled, _) => 5,
        (ItemState::Skipped, _) => 6,
        // Complete, and its offers show no price or fell to a filter.
        (ItemState::Done, Some(SearchStatus::Ok)) => 7,
        (ItemState::Done, Some(SearchStatus::Empty)) => 8,
    }
}

/// How far `after` lies from `before`, and in percent of it to a hundredth; no percentage of nothing.
pub(in crate::scans) fn difference(before: Decimal, after: Decimal) -> (Decimal, Option<Decimal>) {
    let difference = after - before;
    let percent = (difference * Decimal::ONE_HUNDRED)
        .checked_div(before)
        .map(|percent| percent.round_dp(2).normalize());
    (difference.normalize(), percent)
}
