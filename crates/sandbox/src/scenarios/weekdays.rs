//! Weekdays: some days of the week are dearer, and some have no flight.

use jiff::civil::Date;
use serde::Deserialize;

use super::bounds::{Bounds, check_number};
use super::error::ScenarioError;
use crate::draws::Draw;

/// `[weekdays]`: the steps by which a weekday raises a departure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WeekdaySteps {
    /// Each route draws its own seven numbers from minus this to this …
    spread: f64,
    /// … unless these are given, from Monday on, for all routes.
    steps: Option<[f64; 7]>,
}

impl Default for WeekdaySteps {
    fn default() -> Self {
        Self {
            spread: 1.5,
            steps: None,
        }
    }
}

impl WeekdaySteps {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        check_number("weekdays.spread", self.spread, 0.0..=10.0)?;
        for steps in self.steps.into_iter().flatten() {
            check_number("weekdays.steps", steps, -20.0..=20.0)?;
        }
        Ok(())
    }

    pub(super) fn steps(&self, route: Draw, departure: Date) -> f64 {
        let weekday = departure.weekday().to_monday_zero_offset();
        match self.steps {
            Some(steps) => usize::try_from(weekday)
                .ok()
                .and_then(|weekday| steps.get(weekday).copied())
                .unwrap_or(0.0),
            None => route
                .of("weekday")
                .nth(weekday.into())
                .between(-self.spread, self.spread),
        }
    }
}

/// `[flown]`: each route flies on some weekdays only; departures on others never have an offer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FlownWeekdays {
    /// How many weekdays; each route draws its own.
    days_per_week: Bounds,
}

impl Default for FlownWeekdays {
    fn default() -> Self {
        Self {
            days_per_week: [2.0, 5.0].into(),
        }
    }
}

impl FlownWeekdays {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        self.days_per_week
            .check_whole("flown.days_per_week", 1.0..=7.0)
    }

    pub(super) fn is_flown(&self, route: Draw, departure: Date) -> bool {
        let drawn = route.of("flown");
        let own = |weekday: i8| drawn.nth(weekday.into()).unit();
        let of_departure = own(departure.weekday().to_monday_zero_offset());
        let before = (0..7)
            .filter(|weekday| own(*weekday) < of_departure)
            .count();
        let flown = self.days_per_week.draw_whole(drawn.of("days"));
        i64::try_from(before).is_ok_and(|before| before < flown)
    }
}
