//! Dates as months of weeks from Monday.

use std::collections::BTreeSet;

use jiff::ToSpan as _;
use jiff::civil::Date;

/// The weekdays, short and long.
pub const WEEKDAYS: [(&str, &str); 7] = [
    ("Mon", "Monday"),
    ("Tue", "Tuesday"),
    ("Wed", "Wednesday"),
    ("Thu", "Thursday"),
    ("Fri", "Friday"),
    ("Sat", "Saturday"),
    ("Sun", "Sunday"),
];

/// A month as a calendar shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Month {
    /// `February 2027`.
    pub title: String,
    /// `None` before the first and after the last day.
    pub weeks: Vec<[Option<Date>; 7]>,
}

impl Month {
    /// The months that have one of the dates, in order.
    pub fn of_dates(dates: impl Iterator<Item = Date>) -> Vec<Self> {
        let firsts: BTreeSet<Date> = dates.map(Date::first_of_month).collect();
        firsts.into_iter().map(Self::beginning).collect()
    }

    /// The month of its first day.
    fn beginning(first: Date) -> Self {
        let blanks = usize::try_from(first.weekday().to_monday_zero_offset()).unwrap_or_default();
        let days = first
            .series(1.day())
            .take_while(|date| date.month() == first.month());
        let dates: Vec<Option<Date>> = std::iter::repeat_n(None, blanks)
            .chain(days.map(Some))
            .collect();
        let weeks = dates.chunks(WEEKDAYS.len());
        let week = |dates: &[Option<Date>]| {
            std::array::from_fn(|weekday| dates.get(weekday).copied().flatten())
        };
        Self {
            title: first.strftime("%B %Y").to_string(),
            weeks: weeks.map(week).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_month_has_weeks_from_monday() {
        let dates = [date(2027, 1, 1), date(2026, 12, 31), date(2027, 1, 31)];
        let months = Month::of_dates(dates.into_iter());
        let titles: Vec<_> = months.iter().map(|month| month.title.as_str()).collect();
        assert_eq!(titles, ["December 2026", "January 2027"]);
        // 1 January 2027 is a Friday.
        let january = &months[1].weeks;
        assert_eq!(
            january[0][..5],
            [None, None, None, None, Some(date(2027, 1, 1))]
        );
        assert_eq!(january[4][6], Some(date(2027, 1, 31)));
        assert_eq!(january.len(), 5);
    }
}
