//! The markets of one run, compared with one of them (monitors.md, rule 97). Pure. Not here: the runs of a
//! monitor (`parity`).

use serde_json::{Map, Value};

use crate::contract::monitors::Rule;
use crate::contract::scans::MarketReport;
use crate::contract::{Endpoint, FieldValue as _, RawJson};
use crate::scans::cells::{ScanCells, compare_markets, market_of};
use crate::scans::grid::by_market::{ComparedStay, by_market};

/// The markets of a scan of one hotel, in lower case; none of other scans, which would compare different
/// hotels.
pub fn markets(scan: &RawJson) -> Vec<String> {
    let scan = scan.read::<Map<String, Value>>().unwrap_or_default();
    let endpoint = scan.get("endpoint").map(Endpoint::read);
    if !endpoint.is_some_and(|endpoint| endpoint.is_ok_and(is_of_one_hotel)) {
        return Vec::new();
    }
    let sweep = scan
        .get("sweep")
        .and_then(|sweep| sweep.get("proxy_country"));
    let markets = sweep.and_then(Value::as_array).into_iter().flatten();
    let markets = markets.filter_map(Value::as_str);
    markets.map(str::to_ascii_lowercase).collect()
}

const fn is_of_one_hotel(endpoint: Endpoint) -> bool {
    matches!(endpoint, Endpoint::HotelsByName | Endpoint::HotelsRooms)
}

/// The markets of an ended run, compared with that of the monitor's first rule `parity_gap_percent`, or else
/// with the first of the scan; `None` of scans that compare none.
pub(super) fn market_report<'a>(
    cells: &ScanCells,
    rules: impl IntoIterator<Item = &'a Rule>,
) -> Option<MarketReport> {
    let first = cells.all.iter().find_map(market_of);
    let first = first.filter(|_| is_of_one_hotel(cells.endpoint))?;
    let baseline = baseline_of(rules).unwrap_or(first).to_ascii_lowercase();
    let markets = by_market(compared_stays(cells, &baseline).iter());
    (!markets.is_empty()).then_some(MarketReport { baseline, markets })
}

pub(super) fn baseline_of<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Option<&'a str> {
    rules.into_iter().find_map(|rule| match rule {
        Rule::ParityGapPercent(rule) => Some(rule.baseline.as_str()),
        _ => None,
    })
}

/// The market of each stay, compared with the baseline.
pub(super) fn compared_stays(cells: &ScanCells, baseline: &str) -> Vec<ComparedStay> {
    let compared = compare_markets(&cells.all, baseline).into_iter();
    let stays = compared.filter_map(|compared| {
        let market = market_of(&cells.all[compared.market])?;
        let market = market.to_ascii_lowercase();
        Some((market, compared.parity, compared.noise_percent))
    });
    stays.collect()
}
