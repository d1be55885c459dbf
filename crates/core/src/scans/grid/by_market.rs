//! Compared stays as one line for each market (monitors.md, rule 97). Pure.

use rust_decimal::Decimal;

use crate::contract::scans::{DifferenceRange, MarketParity, Parity, ParityVerdict};

/// The market of a stay, how it compares, and how far prices of one market differ.
pub type ComparedStay = (String, Parity, Option<Decimal>);

/// One line for each market, in the order in which they come.
pub fn by_market<'a>(stays: impl Iterator<Item = &'a ComparedStay>) -> Vec<MarketParity> {
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
