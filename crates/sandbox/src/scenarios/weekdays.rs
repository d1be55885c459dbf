//! Weekdays: some days of the week are dearer, and some have no flight.

use jiff::civil::Date;

use super::bounds::{WholeBounds, table};
use crate::draws::Draw;

table! {
    /// `[weekdays]`: the steps by which a weekday raises a departure.
    WeekdaySteps "weekdays" {
        /// Each route draws its own seven numbers from minus this to this …
        spread: f64 = 1.5, in 0.0..=10.0;
        /// … unless these are given, from Monday on, for all routes.
        steps: Option<[f64; 7]> = None, in -20.0..=20.0;
    }
}

impl WeekdaySteps {
    pub(super) fn steps(&self, route: Draw, departure: Date) -> f64 {
        let weekday = departure.weekday().to_monday_zero_offset();
        match self.steps {
            Some(steps) => usize::try_from(weekday).map_or(0.0, |weekday| steps[weekday]),
            None => route
                .of("weekday")
                .nth(weekday.into())
                .between(-self.spread, self.spread),
        }
    }
}

table! {
    /// `[flown]`: each route flies on some weekdays only; departures on others never have an offer.
    FlownWeekdays "flown" {
        /// How many weekdays; each route draws its own.
        days_per_week: WholeBounds = WholeBounds::of(2.0, 5.0), in 1.0..=7.0;
    }
}

impl FlownWeekdays {
    pub(super) fn is_flown(&self, route: Draw, departure: Date) -> bool {
        let drawn = route.of("flown");
        let own = |weekday: i8| drawn.nth(weekday.into()).unit();
        let of_departure = own(departure.weekday().to_monday_zero_offset());
        let before = (0..7)
            .filter(|weekday| own(*weekday) < of_departure)
            .count();
        let flown = self.days_per_week.draw(drawn.of("days"));
        i64::try_from(before).is_ok_and(|before| before < flown)
    }
}
