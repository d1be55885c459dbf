//! The window's verdicts against a computation by the letter of the rules, and examples.

use jiff::ToSpan as _;
use jiff::civil::{Date, date};
use proptest::prelude::*;
use rust_decimal::Decimal;

use super::*;
use crate::contract::SearchStatus;
use crate::contract::history_verdict::{BecameCheaper, PriceClass};
use crate::history::sample::{RawSample, Sample};

const TODAY: Date = date(2026, 11, 20);

/// A search: days before [`TODAY`], days from then to departure, nights, and the price in major
/// units.
#[derive(Debug, Clone, Copy)]
struct Seen {
    ago: i32,
    lead: i32,
    nights: Option<i32>,
    price: i32,
    status: SearchStatus,
}

impl Seen {
    fn day(self) -> i32 {
        day(TODAY) - self.ago
    }

    fn first_date(self) -> i32 {
        self.day() + self.lead
    }

    fn sample(self, hour: i64) -> Sample {
        let at = TODAY.saturating_sub(self.ago.days()).at(0, 0, 0, 0);
        let first = at.date().saturating_add(self.lead.days());
        let seen_at = at.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp();
        Sample::of(&RawSample {
            observed_at: seen_at + jiff::SignedDuration::from_hours(hour),
            first_date: first,
            last_date: self
                .nights
                .map(|nights| first.saturating_add(nights.days())),
            status: self.status,
            price: Some(Decimal::from(self.price)),
            band_low: None,
            band_high: None,
        })
    }
}

fn judged(seen: Seen) -> JudgedPrice {
    let price = Decimal::from(seen.price).into();
    JudgedPrice::new(seen.day(), seen.first_date(), seen.nights, price).unwrap()
}

/// Searches in the order of their times, with the hour of each.
fn in_time(history: &[Seen]) -> Vec<(i64, Seen)> {
    let hour = |index| i64::try_from(index).unwrap() % 24;
    let mut history: Vec<_> = history.iter().enumerate().collect();
    history.sort_by_key(|(index, seen)| (seen.day(), hour(*index)));
    history
        .into_iter()
        .map(|(index, seen)| (hour(index), *seen))
        .collect()
}

fn judge(api: Api, history: &[Seen], prices: &[Seen]) -> Vec<HistoryVerdict> {
    let mut all = DailyPrices::default();
    for (hour, seen) in in_time(history) {
        all.add(&seen.sample(hour));
    }
    let all = all.finish();
    let prices: Vec<_> = prices.iter().copied().map(judged).map(Some).collect();
    let verdicts = verdicts(api, &all, &prices).into_iter();
    verdicts.map(Option::unwrap).collect()
}

/// The rules, one by one, without a window, ranks or floating point.
mod oracle {
    use std::collections::BTreeMap;

    use super::*;

    type Price = (i32, i32, Option<i32>);

    /// The last price of each day, date and length.
    fn last_prices(history: &[Seen]) -> BTreeMap<Price, i32> {
        let counts = |seen: &Seen| seen.status == SearchStatus::Ok && seen.lead >= 0;
        let history = in_time(history).into_iter().map(|(_, seen)| seen);
        let priced = history
            .filter(counts)
            .map(|seen| ((seen.day(), seen.first_date(), seen.nights), seen.price));
        priced.collect()
    }

    /// The median of the three newest of 30 days.
    fn usual(last: &BTreeMap<Price, i32>, (day, first, nights): Price) -> Option<i32> {
        let earlier = (1..=30).filter_map(|ago| last.get(&(day - ago, first, nights)));
        let mut newest: Vec<_> = earlier.take(3).collect();
        newest.sort();
        (newest.len() == 3).then(|| *newest[1])
    }

    /// Whether a price is 2.25 times the usual one or more, or as much less, and no three other
    /// dates, one in ten, moved by the root of that.
    fn is_implausible(last: &BTreeMap<Price, i32>, judged: Seen) -> bool {
        let own = (judged.day(), judged.first_date(), judged.nights);
        let Some(own_usual) = usual(last, own) else {
            return false;
        };
        if 4 * judged.price < 9 * own_usual && 9 * judged.price > 4 * own_usual {
            return false;
        }
        let others: Vec<_> = last
            .iter()
            .filter(|(price, _)| price.0 == own.0 && **price != own)
            .filter_map(|(price, last_price)| Some((*last_price, usual(last, *price)?)))
            .collect();
        let (price, own_usual) = (i64::from(judged.price), i64::from(own_usual));
        let moved = others.iter().filter(|(other, other_usual)| {
            let (other, other_usual) = (i64::from(*other), i64::from(*other_usual));
            let (half, whole) = (other * other * own_usual, price * other_usual * other_usual);
            if price > own_usual {
                half >= whole
            } else {
                half <= whole
            }
        });
        let moved = moved.count();
        moved < 3 || 10 * moved < others.len()
    }

    /// One price for each day, date and length.
    fn daily(history: &[Seen], last: &BTreeMap<Price, i32>) -> BTreeMap<Price, i32> {
        let mut daily = BTreeMap::new();
        for seen in history {
            let is_counted = seen.status == SearchStatus::Ok && seen.lead >= 0;
            if is_counted && !is_implausible(last, *seen) {
                let lowest = daily
                    .entry((seen.day(), seen.first_date(), seen.nights))
                    .or_insert(seen.price);
                *lowest = seen.price.min(*lowest);
            }
        }
        daily
    }

    fn bin(lead: i32) -> i32 {
        match lead {
            0..=3 => 0,
            4..=7 => 1,
            8..=14 => 2,
            15..=30 => 3,
            31..=60 => 4,
            61..=90 => 5,
            91..=120 => 6,
            _ => 7,
        }
    }

    /// Twice the mean rank of a price, and the number of prices.
    fn rank(price: i32, all: &[i32]) -> (i128, i128) {
        let rank = all.iter().map(|other| match other.cmp(&price) {
            std::cmp::Ordering::Less => 2,
            std::cmp::Ordering::Equal => 1,
            std::cmp::Ordering::Greater => 0,
        });
        (rank.sum(), i128::try_from(all.len()).unwrap())
    }

    /// The percentile in tenths as a fraction: weight n / (n + 50) for the own share, the rest for
    /// the wider one.
    fn percentile(price: i32, own: &[i32], near: &[i32], all: &[i32]) -> (i128, i128) {
        let (rank_all, n_all) = rank(price, all);
        let mut share = (rank_all, 2 * n_all);
        for (twice_rank, n) in [rank(price, near), rank(price, own)] {
            // n / (n + 50) * rank / (2 n) + 50 / (n + 50) * share
            share = (twice_rank * share.1 + 100 * share.0, 2 * (n + 50) * share.1);
        }
        (1000 * share.0, share.1)
    }

    /// The percentile rounded half up; `None` where doubles may round to the other side.
    fn rounded((numerator, denominator): (i128, i128)) -> Option<f64> {
        let tenths = (2 * numerator + denominator) / (2 * denominator);
        let rest = (2 * numerator + denominator) % (2 * denominator);
        #[expect(clippy::cast_precision_loss, reason = "at most 1000")]
        (rest != 0).then(|| tenths as f64 / 10.0)
    }

    fn class(percentile: f64) -> PriceClass {
        [
            (20.0, PriceClass::Low),
            (40.0, PriceClass::Below),
            (60.0, PriceClass::Typical),
            (80.0, PriceClass::Above),
        ]
        .into_iter()
        .find(|(to, _)| percentile <= *to)
        .map_or(PriceClass::High, |(_, class)| class)
    }

    /// What is checked of a verdict; `None` where it depends on the last bit of a double.
    pub(super) type Checked = (
        PriceClass,
        Option<f64>,
        [u32; 3],
        Option<Date>,
        Option<[u32; 2]>,
    );

    /// What was seen, with what every verdict on it needs.
    pub(super) struct SeenBefore<'a> {
        history: &'a [Seen],
        last: BTreeMap<Price, i32>,
        daily: BTreeMap<Price, i32>,
    }

    impl<'a> SeenBefore<'a> {
        pub(super) fn of(history: &'a [Seen]) -> Self {
            let last = last_prices(history);
            let daily = daily(history, &last);
            Self {
                history,
                last,
                daily,
            }
        }
    }

    pub(super) fn verdict(before: &SeenBefore<'_>, judged: Seen) -> Option<Checked> {
        if judged.lead < 0 {
            return Some((PriceClass::Insufficient, None, [0; 3], None, None));
        }
        let SeenBefore {
            history,
            last,
            daily,
        } = before;
        let past: Vec<_> = daily
            .iter()
            .map(|(&(day, first, nights), price)| (day, first, nights, *price))
            .filter(|(day, _, nights, _)| {
                *nights == judged.nights && *day < judged.day() && *day >= judged.day() - 180
            })
            .collect();
        let pool = |width: i32| -> Vec<i32> {
            let in_pool = past
                .iter()
                .filter(|(day, first, ..)| (bin(first - day) - bin(judged.lead)).abs() <= width);
            in_pool.map(|(.., price)| *price).collect()
        };
        let (own, near, all) = (pool(0), pool(1), pool(8));
        let count = |is_counted: &dyn Fn(i32) -> bool| {
            u32::try_from(own.iter().filter(|price| is_counted(**price)).count()).unwrap()
        };
        let counts = [
            u32::try_from(own.len()).unwrap(),
            count(&|price| price < judged.price),
            count(&|price| price > judged.price),
        ];
        let in_bin =
            |(day, first, ..): &&(i32, i32, Option<i32>, i32)| bin(first - day) == bin(judged.lead);
        let since = past
            .iter()
            .find(in_bin)
            .map(|(day, ..)| date(1970, 1, 1).saturating_add(day.days()));
        let is_flat = own.iter().any(|middle| {
            let outside = |order| {
                own.iter()
                    .filter(|price| price.cmp(&middle) == order)
                    .count()
            };
            5 * outside(std::cmp::Ordering::Less) < own.len()
                && 5 * outside(std::cmp::Ordering::Greater) < own.len()
        });
        let is_seen = history.iter().any(|seen| {
            let of = |seen: &Seen| (seen.day(), seen.first_date(), seen.nights, seen.price);
            of(seen) == of(&judged) && seen.status != SearchStatus::Degraded
        });
        if is_seen && is_implausible(last, judged) {
            return Some((PriceClass::Implausible, None, counts, since, None));
        }
        if own.len() < 20 || is_flat {
            return Some((PriceClass::Insufficient, None, counts, since, None));
        }
        let shown = rounded(percentile(judged.price, &own, &near, &all))?;
        let (mut n, mut cheaper) = (0, 0);
        for (day, first, nights, price) in past.iter().filter(in_bin) {
            let later: Vec<_> = (day + 1..=day + 14)
                .filter_map(|later| daily.get(&(later, *first, *nights)))
                .collect();
            if day + 14 >= judged.day() || later.is_empty() {
                continue;
            }
            if class(rounded(percentile(*price, &own, &near, &all))?) == class(shown) {
                n += 1;
                cheaper += u32::from(later.iter().any(|later| 10 * **later <= 9 * price));
            }
        }
        let frequency = (n >= 20).then_some([cheaper, n]);
        Some((class(shown), Some(shown), counts, since, frequency))
    }
}

fn checked(verdict: &HistoryVerdict) -> oracle::Checked {
    let frequency = |frequency: BecameCheaper| [frequency.count, frequency.n];
    (
        verdict.class,
        verdict.percentile,
        [verdict.n, verdict.lower, verdict.higher],
        verdict.since,
        verdict.became_cheaper.map(frequency),
    )
}

fn seen() -> impl Strategy<Value = Seen> {
    let status = prop_oneof![
        12 => Just(SearchStatus::Ok),
        1 => Just(SearchStatus::Partial),
        1 => Just(SearchStatus::Degraded),
    ];
    let nights = prop_oneof![6 => Just(None), 1 => (1..3_i32).prop_map(Some)];
    (-20..220_i32, -2..40_i32, nights, 1..60_i32, status).prop_map(
        |(ago, lead, nights, price, status)| Seen {
            ago,
            lead,
            nights,
            price,
            status,
        },
    )
}

/// Departures that are looked at again and again, so that prices are followed.
fn followed() -> impl Strategy<Value = Vec<Seen>> {
    let departure = (
        0..60_i32,
        prop::collection::vec((0..70_i32, 80..160_i32), 0..60),
    );
    prop::collection::vec(departure, 1..12).prop_map(|departures| {
        let seen = |(end, prices): (i32, Vec<(i32, i32)>)| {
            prices.into_iter().map(move |(lead, price)| Seen {
                ago: end + lead,
                lead,
                nights: None,
                price,
                status: SearchStatus::Ok,
            })
        };
        departures.into_iter().flat_map(seen).collect()
    })
}

/// The same with errors; on every seventh day all prices fall together.
fn with_errors(history: Vec<Seen>) -> Vec<Seen> {
    let wrong = |seen: Seen| Seen {
        price: match (seen.ago % 7, seen.price % 10) {
            (0, _) | (_, 1) => seen.price / 3,
            (_, 0) => seen.price * 3,
            _ => seen.price,
        },
        ..seen
    };
    history.into_iter().map(wrong).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_verdict_is_what_the_rules_say(
        scattered in prop::collection::vec(seen(), 0..250),
        followed in followed().prop_map(with_errors),
        judged in prop::collection::vec(seen(), 1..12),
    ) {
        let judged: Vec<_> = judged.into_iter().chain(followed.iter().step_by(5).copied()).collect();
        let history = [scattered, followed].concat();
        let found = judge(Api::Flights, &history, &judged);
        prop_assert_eq!(found.len(), judged.len());
        let before = oracle::SeenBefore::of(&history);
        for (found, judged) in found.iter().zip(judged) {
            if let Some(expected) = oracle::verdict(&before, judged) {
                prop_assert_eq!(checked(found), expected, "{:?}", judged);
            }
        }
    }

    /// What was seen on the price's own day or later, or more than 210 days before, changes
    /// nothing.
    #[test]
    fn a_verdict_does_not_know_the_future(
        history in followed(),
        later in prop::collection::vec(seen(), 0..60),
        judged in seen(),
    ) {
        let alone = judge(Api::Flights, &history, &[judged]);
        // Of the 30 days before, prices say which of the compared ones are plausible.
        let days = judged.day() - 210..judged.day();
        let other_days = later.into_iter().filter(|seen| {
            !days.contains(&seen.day()) && seen.first_date() != judged.first_date()
        });
        let with_later: Vec<_> = history
            .iter()
            .copied()
            .filter(|seen| days.contains(&seen.day()))
            .chain(other_days)
            .collect();
        prop_assert_eq!(judge(Api::Flights, &with_later, &[judged]), alone);
    }

    /// A lower price never has a higher percentile.
    #[test]
    fn percentiles_keep_the_order_of_prices(history in followed(), lead in 0..60_i32) {
        let prices: Vec<_> = (70..170)
            .map(|price| Seen { ago: 20, lead, nights: None, price, status: SearchStatus::Ok })
            .collect();
        let found = judge(Api::Flights, &history, &prices);
        prop_assert!(found.windows(2).all(|pair| pair[0].percentile <= pair[1].percentile));
    }
}

/// `count` prices from 100 up, one a day, of as many departures 40 days ahead.
fn ladder(count: i32) -> Vec<Seen> {
    let seen = |number| Seen {
        ago: 1 + number,
        lead: 40,
        nights: None,
        price: 100 + number,
        status: SearchStatus::Ok,
    };
    (0..count).map(seen).collect()
}

fn at(price: i32) -> Seen {
    Seen {
        ago: 0,
        lead: 45,
        nights: None,
        price,
        status: SearchStatus::Ok,
    }
}

#[test]
fn classes_are_fifths_of_the_past_prices() {
    // Every pool holds the same prices, so each percentile is the plain one.
    for (price, class, percentile) in [
        (50, PriceClass::Low, 0.0),
        (119, PriceClass::Low, 19.5),
        (120, PriceClass::Below, 20.5),
        (139, PriceClass::Below, 39.5),
        (140, PriceClass::Typical, 40.5),
        (160, PriceClass::Above, 60.5),
        (180, PriceClass::High, 80.5),
        (500, PriceClass::High, 100.0),
    ] {
        let found = &judge(Api::Flights, &ladder(100), &[at(price)])[0];
        assert_eq!(
            (found.class, found.percentile),
            (class, Some(percentile)),
            "{price}"
        );
    }
}

#[test]
fn few_prices_lean_on_other_days_ahead() {
    // Twenty prices of 200 to 219 in the bin, and eighty far lower ones in a bin that is not
    // beside it.
    let mut history = ladder(20);
    for seen in &mut history {
        seen.price += 100;
    }
    let lower = ladder(80).into_iter().map(|seen| Seen { lead: 5, ..seen });
    history.extend(lower);
    let found = &judge(Api::Flights, &history, &[at(200)])[0];
    // All: 80.5 of 100; near: (0.5 + 50 * 0.805) / 70; own: (0.5 + 50 * near) / 70.
    assert_eq!(
        (found.n, found.lower, found.percentile),
        (20, 0, Some(42.3))
    );
}

#[test]
fn sentences_say_what_was_counted() {
    let same: Vec<_> = ladder(50)
        .into_iter()
        .map(|seen| Seen { price: 100, ..seen })
        .collect();
    let stays: Vec<_> = ladder(40)
        .into_iter()
        .map(|seen| Seen {
            nights: Some(2),
            lead: 150,
            ..seen
        })
        .collect();
    let stay = Seen {
        nights: Some(2),
        lead: 130,
        ..at(139)
    };
    for (api, history, price, sentence) in [
        (
            Api::Flights,
            ladder(100),
            at(116),
            "cheaper than 83 % of 100 prices seen 31 to 60 days before departure since 12 August 2026",
        ),
        (
            Api::Flights,
            ladder(100),
            at(99),
            "cheaper than all 100 prices seen 31 to 60 days before departure since 12 August 2026",
        ),
        (
            Api::Flights,
            ladder(100),
            at(196),
            "dearer than 96 % of 100 prices seen 31 to 60 days before departure since 12 August 2026",
        ),
        (
            Api::Hotels,
            stays,
            stay,
            "dearer than 97 % of 40 prices seen 121 or more days before check-in since 11 October 2026",
        ),
        (
            Api::Flights,
            ladder(19),
            at(1),
            "only 19 prices seen 31 to 60 days before departure since 1 November 2026: a verdict needs 20",
        ),
        (
            Api::Flights,
            ladder(1),
            at(1),
            "only 1 price seen 31 to 60 days before departure since 19 November 2026: a verdict needs 20",
        ),
        (
            Api::Flights,
            vec![],
            at(1),
            "no other price was seen 31 to 60 days before departure in the last 180 days",
        ),
        (
            Api::Flights,
            same,
            at(99),
            "most of 50 prices seen 31 to 60 days before departure since 1 October 2026 are the same",
        ),
        (
            Api::Flights,
            ladder(100),
            Seen { lead: -1, ..at(1) },
            "seen after departure: there is nothing to compare with",
        ),
    ] {
        assert_eq!(judge(api, &history, &[price])[0].sentence, sentence);
    }
}

#[test]
fn an_implausible_price_has_a_class_of_its_own_and_does_not_count() {
    let departure = |ago, price| Seen {
        ago,
        lead: 40 + ago,
        nights: None,
        price,
        status: SearchStatus::Ok,
    };
    let mut history = ladder(100);
    history.extend([(4, 130), (3, 140), (1, 150)].map(|(ago, price)| departure(ago, price)));
    let without = judge(Api::Flights, &history, &[at(116)]);
    history.extend([departure(0, 40), departure(0, 130)]);
    let found = judge(
        Api::Flights,
        &history,
        &[departure(0, 40), at(116), departure(0, 130)],
    );
    assert_eq!(
        (found[0].class, found[0].percentile, found[0].became_cheaper),
        (PriceClass::Implausible, None, None)
    );
    assert_eq!(
        found[0].sentence,
        "implausible: the median of the last three days with a price, from 16 November 2026 on, was 140"
    );
    assert_eq!(found[1], without[0]);
    assert_eq!(found[2].usual, None);
    // Later prices are not compared with it either.
    let tomorrow = [Seen { ago: -1, ..at(116) }];
    let mut plain = history.clone();
    plain.retain(|seen| seen.price != 40);
    assert_eq!(
        judge(Api::Flights, &history, &tomorrow),
        judge(Api::Flights, &plain, &tomorrow)
    );
}

#[test]
fn the_interval_is_wilsons() {
    // The values of Wilson's formula with z = 1.96, computed apart.
    for (count, n, expected) in [
        (0, 20, ["0", "0", "16.1"]),
        (24, 84, ["28.6", "20", "39"]),
        (20, 20, ["100", "83.9", "100"]),
    ] {
        let found = formula::became_cheaper(count, n);
        let percents = [found.percent, found.percent_from, found.percent_to];
        assert_eq!(percents.map(|percent| percent.to_string()), expected);
    }
}
