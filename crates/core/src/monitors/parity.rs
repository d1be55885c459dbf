//! The markets of a monitor over its runs (monitors.md, rules 96 to 98): what its rule
//! `parity_gap_percent` compares in one run, for the newest runs together.

use rust_decimal::Decimal;
use serde_json::{Map, Value};
use sqlx::PgPool;

use super::read::by_ids;
use super::store;
use crate::commands::CommandError;
use crate::contract::monitors::{
    DifferenceRange, MarketParity, Monitor, ParityHistory, ParityQuery, Rule, RunParity,
};
use crate::contract::scans::{Parity, ParityVerdict};
use crate::contract::{Endpoint, FieldValue as _, RawJson, ValidationError, ValidationErrors};
use crate::ids::{Kind, MonitorId, TenantId};
use crate::scans::cells::{ScanCells, compare_markets, load_ended, mark_implausible, market_of};
use crate::tenants::Keyring;
use jiff::Timestamp;

/// Further runs are left out once so many searches have been read; one scan has at most half of them.
const MAX_SEARCHES: usize = 20_000;

/// The newest runs of a monitor that compare its markets.
///
/// # Errors
/// `NotFound`; `ValidationErrors` for a monitor without several markets of one hotel, or a baseline
/// that is none of them.
pub async fn history(
    pool: &PgPool,
    ring: &Keyring,
    tenant: TenantId,
    id: MonitorId,
    query: &ParityQuery,
    now: Timestamp,
) -> Result<ParityHistory, CommandError> {
    let mut conn = pool.acquire().await?;
    let found = by_ids(&mut conn, ring, tenant, &[id], now).await?.pop();
    let baseline = baseline(&found.ok_or(Kind::Monitor)?, query)?;
    let newest = query.runs_or_default().get();
    let rows = store::run_prices(&mut conn, tenant, &[id], newest.into()).await?;
    let mut runs = Vec::new();
    let mut searches = 0;
    for row in rows.iter().rev() {
        let scan = row.scan_id.into();
        let Some(mut cells) = load_ended(&mut conn, tenant, scan).await? else {
            continue;
        };
        searches += cells.all.iter().map(|cell| cell.items.len()).sum::<usize>();
        if searches > MAX_SEARCHES {
            break;
        }
        mark_implausible(&mut conn, tenant, &mut cells.all).await?;
        let compared = compared_stays(&cells, &baseline);
        if !compared.is_empty() {
            runs.push((row.slot.to_jiff(), scan, compared));
        }
    }
    let all = runs.iter().flat_map(|(_, _, stays)| stays);
    Ok(ParityHistory {
        monitor_id: id,
        markets: by_market(all),
        runs: runs
            .iter()
            .map(|(slot, scan_id, stays)| RunParity {
                slot: *slot,
                scan_id: *scan_id,
                markets: by_market(stays.iter()),
            })
            .collect(),
        baseline,
    })
}

/// The markets of a scan of one hotel, in lower case; none of other scans, which would compare different
/// hotels.
pub fn markets(scan: &RawJson) -> Vec<String> {
    let scan = scan.read::<Map<String, Value>>().unwrap_or_default();
    let endpoint = scan.get("endpoint").map(Endpoint::read);
    if !matches!(
        endpoint,
        Some(Ok(Endpoint::HotelsByName | Endpoint::HotelsRooms))
    ) {
        return Vec::new();
    }
    let sweep = scan
        .get("sweep")
        .and_then(|sweep| sweep.get("proxy_country"));
    let markets = sweep.and_then(Value::as_array).into_iter().flatten();
    let markets = markets.filter_map(Value::as_str);
    markets.map(str::to_ascii_lowercase).collect()
}

/// The market that the others are compared with, in lower case.
fn baseline(monitor: &Monitor, query: &ParityQuery) -> Result<String, ValidationErrors> {
    let markets = markets(&monitor.scan);
    let given = query.baseline.as_ref();
    let refused = |expected: String| {
        let value = given.map_or(Value::Null, |given| given.to_value());
        Err(ValidationError::new("baseline", &value, expected).into())
    };
    if markets.len() < 2 {
        return refused(
            "a monitor of hotels/by-name or hotels/rooms that sweeps `proxy_country` over at least two markets; this one compares none"
                .to_owned(),
        );
    }
    let of_rule = monitor.alerts.iter().find_map(|rule| match rule {
        Rule::ParityGapPercent(rule) => Some(rule.baseline.as_str()),
        _ => None,
    });
    let chosen = given.map(|given| given.as_str()).or(of_rule);
    let chosen = chosen.map_or_else(|| markets[0].clone(), str::to_ascii_lowercase);
    if markets.contains(&chosen) {
        Ok(chosen)
    } else {
        refused(format!(
            "one of the monitor's markets: {}",
            markets.join(", ")
        ))
    }
}

/// The market of a stay, how it compares, and how far prices of one market differ.
type ComparedStay = (String, Parity, Option<Decimal>);

/// The market of each stay, compared with the baseline.
fn compared_stays(cells: &ScanCells, baseline: &str) -> Vec<ComparedStay> {
    let compared = compare_markets(&cells.all, baseline).into_iter();
    let stays = compared.filter_map(|compared| {
        let market = market_of(&cells.all[compared.market])?;
        let market = market.to_ascii_lowercase();
        Some((market, compared.parity, compared.noise_percent))
    });
    stays.collect()
}

/// One line for each market, in the order in which they come.
fn by_market<'a>(stays: impl Iterator<Item = &'a ComparedStay>) -> Vec<MarketParity> {
    let mut markets: Vec<(MarketParity, Vec<Decimal>)> = Vec::new();
    for (name, parity, noise) in stays {
        let at = markets
            .iter()
            .position(|(market, _)| market.market == *name);
        let at = at.unwrap_or_else(|| {
            let market = MarketParity {
                market: name.clone(),
                ..MarketParity::default()
            };
            markets.push((market, Vec::new()));
            markets.len() - 1
        });
        let (market, differences) = &mut markets[at];
        let difference = parity.difference_percent;
        let count = match (parity.verdict, difference) {
            (ParityVerdict::Gap, Some(percent)) if percent.is_sign_negative() => {
                &mut market.cheaper
            }
            (ParityVerdict::Gap, Some(_)) => &mut market.dearer,
            (ParityVerdict::Noise, Some(_)) => &mut market.same,
            _ => {
                market.unknown += 1;
                continue;
            }
        };
        *count += 1;
        market.noise_percent = market.noise_percent.max(*noise);
        differences.extend(difference);
    }
    let markets = markets.into_iter().map(|(mut market, differences)| {
        let comparable = market.cheaper + market.dearer + market.same;
        let percent = Decimal::from(market.same) * Decimal::ONE_HUNDRED;
        let share = percent.checked_div(comparable.into());
        market.same_percent = share.map(|share| share.round_dp(2).normalize());
        market.difference_percent = range(differences);
        market
    });
    markets.collect()
}

fn range(mut differences: Vec<Decimal>) -> Option<DifferenceRange> {
    differences.sort_unstable();
    let (lowest, highest) = (*differences.first()?, *differences.last()?);
    let middle = (differences.len() - 1) / 2;
    let upper = differences.len() / 2;
    let median = (differences[middle] + differences[upper]) / Decimal::TWO;
    Some(DifferenceRange {
        lowest: lowest.normalize(),
        median: median.round_dp(2).normalize(),
        highest: highest.normalize(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stay(market: &str, verdict: ParityVerdict, percent: Option<i64>) -> ComparedStay {
        let percent = percent.map(Decimal::from);
        let parity = Parity {
            difference: percent,
            difference_percent: percent,
            samples: 3,
            baseline_samples: 3,
            verdict,
        };
        (
            market.to_owned(),
            parity,
            percent.map(|percent| percent.abs()),
        )
    }

    #[test]
    fn each_stay_is_counted_once_and_by_its_direction() {
        let stays = [
            stay("de", ParityVerdict::Gap, Some(-10)),
            stay("gb", ParityVerdict::Gap, Some(4)),
            stay("de", ParityVerdict::Gap, Some(8)),
            stay("de", ParityVerdict::Noise, Some(1)),
            stay("de", ParityVerdict::Noise, Some(0)),
            stay("de", ParityVerdict::Insufficient, Some(50)),
            stay("de", ParityVerdict::NotComparable, None),
        ];
        let [de, gb] = &by_market(stays.iter())[..] else {
            panic!("two markets");
        };
        assert_eq!((de.cheaper, de.dearer, de.same, de.unknown), (1, 1, 2, 2));
        assert_eq!(de.same_percent, Some(50.into()));
        let noise = "the widest of the stays that say something";
        assert_eq!(de.noise_percent, Some(10.into()), "{noise}");
        let range = de.difference_percent.as_ref().unwrap();
        assert_eq!(
            (range.lowest, range.median, range.highest),
            ((-10).into(), Decimal::new(5, 1), 8.into())
        );
        assert_eq!((gb.dearer, gb.same_percent), (1, Some(0.into())));
    }

    #[test]
    fn a_market_of_which_nothing_is_known_has_no_share() {
        let stays = [stay("de", ParityVerdict::Insufficient, None)];
        let markets = by_market(stays.iter());
        assert_eq!((markets[0].unknown, markets[0].same_percent), (1, None));
        assert!(markets[0].difference_percent.is_none());
    }
}
