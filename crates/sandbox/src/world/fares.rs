//! Fares: the price level of a route on a date, each flight's price, and the band.
//!
//! Prices are in US dollars for one adult in economy. The *usual* price depends on distance and
//! season. The *current* price adds factors for weekday, holidays, lead time, a drift with the
//! current date, and chance. So the band (from the usual price) and the verdict (today's cheapest
//! price in that band) follow from the same distribution as the fares.

use jiff::civil::Date;

use super::seasons;
use super::timetable::{AirportPair, Leg};
use crate::draws::{Draw, day_number, days_between};

/// The band around the usual cheapest price.
const BAND: (f64, f64) = (0.87, 1.16);

/// The price levels of one direction for one travel date, on one day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FareDay {
    /// The route's level in this season.
    usual: f64,
    /// The level today.
    current: f64,
    luck: Draw,
}

impl FareDay {
    pub(crate) fn new(world: Draw, pair: AirportPair, date: Date, today: Date) -> Self {
        let (from, to) = (&pair.from.code, &pair.to.code);
        // Both directions of a pair have the same competition.
        let both = world.of("fares").of(from.min(to)).of(from.max(to));
        let route = world.of("fares").of(from).of("to").of(to);
        let luck = route.day(date);
        let usual = (50.0 + 1.42 * pair.kilometres().powf(0.62))
            * both.of("competition").between(0.82, 1.18)
            * seasons::season(date, pair.to.latitude);
        let current = usual
            * seasons::flight_weekday(date)
            * seasons::holiday(date)
            * seasons::flight_lead(days_between(today, date))
            * (1.0 + 0.07 * route.of("drift").wave(today, 19))
            * (1.0 + 0.05 * luck.of("revision").wave(today, 6))
            * (0.07 * luck.of("date").normal().clamp(-2.0, 2.0)).exp();
        Self {
            usual,
            current,
            luck: luck.of("flights").nth(day_number(today).div_euclid(3)),
        }
    }

    /// This flight's price today.
    pub(crate) fn price(&self, leg: &Leg) -> f64 {
        // Seat classes sell out, so each flight's price changes every few days.
        let bucket = self
            .luck
            .of(&leg.airline.code)
            .nth(leg.minutes)
            .of("bucket");
        self.current
            * weight(leg)
            * bucket
                .nth(i64::from(leg.departs.hour()))
                .between(0.95, 1.16)
    }

    /// Low and high end of the historical band for a day with these flights.
    pub(crate) fn band(&self, legs: &[Leg]) -> Option<(f64, f64)> {
        let cheapest = legs.iter().map(weight).min_by(f64::total_cmp)? * self.usual;
        Some((cheapest * BAND.0, cheapest * BAND.1))
    }
}

/// A flight's price relative to the other flights of its route; constant.
fn weight(leg: &Leg) -> f64 {
    let comfort = match leg.stops.len() {
        0 => 1.10,
        1 => 0.92,
        _ => 0.86,
    };
    let hour = match leg.departs.hour() {
        22.. | 0..=4 => 0.87,
        5 => 0.91,
        7..=9 => 1.06,
        16..=19 => 1.05,
        _ => 1.0,
    };
    leg.airline.level * comfort * hour * leg.flight.of("weight").between(0.95, 1.12)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    const TODAY: Date = date(2026, 11, 20);

    fn cheapest(from: &str, to: &str, on: Date, today: Date) -> f64 {
        let pair = AirportPair::find(from, to).expect("known airports");
        let world = Draw::seeded(1);
        let day = FareDay::new(world, pair, on, today);
        pair.legs(world, on)
            .iter()
            .map(|leg| day.price(leg))
            .min_by(f64::total_cmp)
            .expect("flights")
    }

    fn month(year: i16, number: i8) -> impl Iterator<Item = Date> {
        date(year, number, 1)
            .series(jiff::Span::new().days(1))
            .take(28)
    }

    #[test]
    fn fares_are_realistic() {
        for (from, to, low, high) in [
            ("TLV", "LHR", 130.0, 450.0),
            ("LHR", "CDG", 40.0, 200.0),
            ("LHR", "JFK", 180.0, 600.0),
            ("SIN", "SYD", 200.0, 700.0),
        ] {
            for on in month(2027, 2) {
                let price = cheapest(from, to, on, TODAY);
                assert!((low..high).contains(&price), "{from}-{to} {on}: {price}");
            }
        }
    }

    #[test]
    fn a_month_has_a_cheapest_date_and_expensive_weekends() {
        let prices: Vec<(Date, f64)> = month(2027, 2)
            .map(|on| (on, cheapest("TLV", "LHR", on, TODAY)))
            .collect();
        let mean = |keep: &[i8]| {
            let kept: Vec<f64> = prices
                .iter()
                .filter(|(on, _)| keep.contains(&on.weekday().to_monday_one_offset()))
                .map(|(_, price)| *price)
                .collect();
            kept.iter().sum::<f64>() / f64::from(u32::try_from(kept.len()).expect("a month"))
        };
        assert!(mean(&[5, 7]) > mean(&[2, 3]) * 1.1);
        let lowest = prices
            .iter()
            .map(|(_, price)| *price)
            .min_by(f64::total_cmp)
            .expect("a month");
        assert!(lowest < mean(&[1, 2, 3, 4, 5, 6, 7]) * 0.87);
    }

    #[test]
    fn prices_change_a_little_from_day_to_day() {
        let on = date(2027, 4, 20);
        let seen: Vec<f64> = TODAY
            .series(jiff::Span::new().days(1))
            .take(90)
            .map(|today| cheapest("TLV", "LHR", on, today))
            .collect();
        let distinct: std::collections::HashSet<u64> =
            seen.iter().map(|price| price.round().to_bits()).collect();
        assert!(distinct.len() > 15, "{distinct:?}");
        assert!(
            seen.windows(2)
                .all(|pair| (pair[0] / pair[1] - 1.0).abs() < 0.25),
            "{seen:?}"
        );
    }

    #[test]
    fn the_band_holds_about_half_of_the_days() {
        let pair = AirportPair::find("TLV", "LHR").expect("known airports");
        let world = Draw::seeded(1);
        let mut verdicts = [0; 3];
        for on in TODAY.series(jiff::Span::new().days(1)).skip(14).take(300) {
            let day = FareDay::new(world, pair, on, TODAY);
            let (low, high) = day.band(&pair.legs(world, on)).expect("a band");
            let price = cheapest("TLV", "LHR", on, TODAY);
            verdicts[if price < low {
                0
            } else if price > high {
                2
            } else {
                1
            }] += 1;
        }
        assert!(verdicts.iter().all(|count| *count > 20), "{verdicts:?}");
        assert!(verdicts[1] > 100, "{verdicts:?}");
    }
}
