//! The price of a departure at an instant.

use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::ToSpan as _;
use jiff::civil::{Date, DateTime, Time};

use super::file::{Family, Scenario};
use super::{FareRoute, ladder::LadderEffects};
use crate::draws::{Draw, day_number, days_between, real, whole};

/// The prices of a scenario under a seed: a pure function of route, departure and instant.
///
/// A ladder's fare is walked from the first day of its sale, at most 366 draws; nothing is cached.
#[derive(Clone, Debug)]
pub struct PriceProcess {
    scenario: Arc<Scenario>,
    root: Draw,
}

/// One adult's price in economy, in whole units of the scenario's currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScenarioFare {
    /// What a search shows, which may be an outlier.
    pub shown: i64,
    /// What the departure costs.
    pub genuine: i64,
}

impl ScenarioFare {
    /// The price that a search finds: an answer with the price 0 has no offer that anybody could
    /// buy, and the service stores none.
    pub fn found(self) -> Option<i64> {
        (self.shown > 0).then_some(self.shown)
    }
}

impl PriceProcess {
    /// The prices of `scenario` under `seed`.
    pub fn new(scenario: Arc<Scenario>, seed: u64) -> Self {
        Self {
            scenario,
            root: Draw::seeded(seed).of("scenario"),
        }
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The cheapest one-way fare at an instant (UTC); `None`: there is no offer.
    pub fn oneway(&self, route: &FareRoute, departure: Date, at: DateTime) -> Option<ScenarioFare> {
        self.oneway_by_day(route, departure, at.date()..=at.date(), at.time())
            .pop()
            .flatten()
    }

    /// [`Self::oneway`] at the same time of every day, in one walk.
    pub fn oneway_by_day(
        &self,
        route: &FareRoute,
        departure: Date,
        days: RangeInclusive<Date>,
        time: Time,
    ) -> Vec<Option<ScenarioFare>> {
        if !self.is_flown(route, departure) {
            return series(&days).map(|_| None).collect();
        }
        let prices = self.family_prices(route, departure, &days);
        let own = self.route(route).of("departure").day(departure);
        prices
            .into_iter()
            .zip(series(&days))
            .map(|(price, day)| self.disturb(own, price?, departure, day.to_datetime(time)))
            .collect()
    }

    /// The cheapest round trip: both directions must have an offer.
    pub fn roundtrip(
        &self,
        route: &FareRoute,
        departure: Date,
        back: Date,
        at: DateTime,
    ) -> Option<ScenarioFare> {
        let out = self.oneway(route, departure, at)?;
        let back = self.oneway(&route.back(), back, at)?;
        Some(ScenarioFare {
            shown: out.shown + back.shown,
            genuine: out.genuine + back.genuine,
        })
    }

    /// Whether the route flies on the weekday of the departure.
    pub fn is_flown(&self, route: &FareRoute, departure: Date) -> bool {
        let flown = self.scenario.file.flown.as_ref();
        flown.is_none_or(|flown| flown.is_flown(self.route(route), departure))
    }

    /// The seed of a route's draws.
    pub(super) fn route(&self, route: &FareRoute) -> Draw {
        let from = self.root.of("route").of(&route.origin);
        from.of("to").of(&route.destination)
    }

    /// The prices of consecutive days, without the effects that fit every family.
    fn family_prices(
        &self,
        route: &FareRoute,
        departure: Date,
        days: &RangeInclusive<Date>,
    ) -> Vec<Option<f64>> {
        let scenario = &self.scenario;
        let drawn = self.route(route);
        let on_sale = |day: Date| {
            (0..=i64::from(scenario.horizon_days)).contains(&days_between(day, departure))
        };
        match &scenario.family {
            Family::Ladder(ladder) => {
                let effects = LadderEffects {
                    weekdays: scenario.file.weekdays.as_ref(),
                    events: scenario.file.events.as_ref(),
                    sales: scenario.file.sales.as_ref(),
                };
                let opening = day_number(departure) - i64::from(scenario.horizon_days);
                let before = usize::try_from(day_number(*days.start()) - opening);
                let mut path = ladder
                    .path(effects, drawn, departure, opening)
                    .skip(before.unwrap_or(0));
                series(days)
                    .map(|day| {
                        let step = on_sale(day).then(|| path.next())??;
                        Some(ladder.fare(drawn, step))
                    })
                    .collect()
            }
            Family::Structureless(prices) => {
                let own = drawn.of("departure").day(departure);
                series(days)
                    .map(|day| on_sale(day).then(|| prices.price(own, day_number(day))))
                    .collect()
            }
            Family::Recorded(prices) => series(days)
                .map(|day| {
                    let price = prices.price(route, departure, day)?;
                    (day <= departure).then_some(real(price))
                })
                .collect(),
        }
    }

    /// Applies sell-out, changes within the day and outliers.
    fn disturb(
        &self,
        own: Draw,
        price: f64,
        departure: Date,
        at: DateTime,
    ) -> Option<ScenarioFare> {
        let file = &self.scenario.file;
        let days = days_between(at.date(), departure);
        let sell_out = file.sell_out.as_ref();
        if sell_out.is_some_and(|sell_out| sell_out.is_sold_out(own, days)) {
            return None;
        }
        let within_day = file.within_day.as_ref();
        let price = price * within_day.map_or(1.0, |changes| changes.factor(own, at));
        let outliers = file.outliers.as_ref();
        let wrong = outliers.and_then(|outliers| outliers.factor(own, at));
        let genuine = whole(price);
        Some(ScenarioFare {
            shown: wrong.map_or(genuine, |factor| whole(price * factor)),
            genuine,
        })
    }
}

fn series(days: &RangeInclusive<Date>) -> impl Iterator<Item = Date> {
    let end = *days.end();
    let series = days.start().series(1.day());
    series.take_while(move |day| *day <= end)
}
