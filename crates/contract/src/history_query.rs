//! The queries of the history: each group of fields that they share is declared once, with its rules
//! across fields.
//!
//! Here: the groups and the `history_query!` macro. Not here: the queries (`history`, `latest`, `series`,
//! `history_grid`).

use super::field::{FieldSpec, FieldValue};
use super::primitives::Date;
use super::request_body::field_groups;
use super::string_enum::quoted_list;
use super::time_range::time_range_errors;
use super::validation::{ValidationError, ValidationErrors};
use serde_json::{Map, Value};

/// The longest range of a calendar or grid, in days: a year and what is left of its last month.
const MAX_DAYS: i32 = 400;

/// A query of the history of any product.
pub trait HistoryQuery {
    /// Reads the decoded pairs of a query string: the fields, with the defaults of those that are
    /// absent.
    ///
    /// # Errors
    /// All validation errors of the query.
    fn read<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Map<String, Value>, ValidationErrors>;
}

/// A query that was read without errors in single fields.
pub(crate) struct ReadQuery<'a> {
    pub(crate) table: &'static [FieldSpec],
    pub(crate) fields: &'a Map<String, Value>,
}

impl ReadQuery<'_> {
    /// The errors of the rules across the fields of each group that the query has.
    pub(crate) fn cross_field_errors(&self) -> ValidationErrors {
        let mut errors = ValidationErrors::default();
        self.check_subject(&mut errors);
        self.check_dates("departure", &mut errors);
        self.check_dates("checkin", &mut errors);
        errors.merge(time_range_errors(self.get("since"), self.get("until")));
        self.check_axes(&mut errors);
        errors
    }

    fn get<T: FieldValue>(&self, name: &str) -> Option<T> {
        T::read(self.fields.get(name)?).ok()
    }

    fn has(&self, name: &str) -> bool {
        self.table.iter().any(|field| field.name == name)
    }

    /// Hotel prices have exactly one subject.
    fn check_subject(&self, errors: &mut ValidationErrors) {
        const SUBJECTS: [&str; 3] = ["hotel_name", "destination", "hotel_booking_id"];
        let expected = format!("exactly one of {}", quoted_list(SUBJECTS));
        let subjects = SUBJECTS.iter();
        let given = subjects.filter_map(|name| Some((*name, self.fields.get(*name)?)));
        if self.has(SUBJECTS[0]) && given.clone().next().is_none() {
            errors.push(ValidationError::missing(SUBJECTS[0], &expected));
        }
        for (name, value) in given.skip(1) {
            errors.push(ValidationError::new(name, value, &expected));
        }
    }

    /// One day or a range of days, not both. A calendar, which must have both ends, is not too long.
    fn check_dates(&self, what: &str, errors: &mut ValidationErrors) {
        let [day, from, to] = ["date", "from", "to"].map(|end| format!("{what}_{end}"));
        let range = (self.get::<Date>(&from), self.fields.get(&to));
        if let (Some(day_value), (Some(_), _) | (_, Some(_))) = (self.fields.get(&day), range) {
            let expected = format!("a day without `{from}` and `{to}`, or the range alone");
            errors.push(ValidationError::new(day, day_value, expected));
        }
        let is_calendar = self
            .table
            .iter()
            .any(|field| field.required && field.name == to);
        if let (true, (Some(first), Some(to_value))) = (is_calendar, range) {
            let last = first.saturating_add(jiff::Span::new().days(MAX_DAYS - 1));
            if self.get::<Date>(&to) > Some(last) {
                let expected =
                    format!("a date up to {last}: a calendar has at most {MAX_DAYS} days");
                errors.push(ValidationError::new(to, to_value, expected));
            }
        }
    }

    /// The axes of a grid differ. Stays of different lengths cannot be compared, so `nights` is an axis
    /// or given; flights may leave it out.
    fn check_axes(&self, errors: &mut ValidationErrors) {
        let Some(rows) = self.fields.get("rows") else {
            return;
        };
        let columns = self.fields.get("columns");
        if let Some(columns) = columns.filter(|columns| *columns == rows) {
            errors.push(ValidationError::new(
                "columns",
                columns,
                "a field other than `rows`",
            ));
        }
        let is_axis = [Some(rows), columns].contains(&Some(&"nights".into()));
        match self.fields.get("nights") {
            Some(nights) if is_axis => {
                let expected = "no value if `nights` is `rows` or `columns`";
                errors.push(ValidationError::new("nights", nights, expected));
            }
            None if !is_axis && self.has("checkin_from") => {
                let expected = "an integer from 1 to 366, or `nights` as `rows` or `columns`: stays of different lengths cannot be compared";
                errors.push(ValidationError::missing("nights", expected));
            }
            _ => {}
        }
    }
}

/// A `request_body!` that is a query. `..route;` includes the fields of the group `route`, and their
/// `order`; the types of the fields must be in scope.
macro_rules! history_query {
    ($(#[doc = $doc:literal])+ pub struct $name:ident $( $rest:tt )*) => {
        $crate::request_body::grouped_body! {
            { $crate::history_query::history_fields }
            $(#[doc = $doc])+
            pub struct $name $( $rest )*
        }
        $crate::query_string::query_string!($name => cross_field_errors);
        impl $name {
            fn cross_field_errors(&self) -> $crate::validation::ValidationErrors {
                let fields = &self.to_body();
                $crate::history_query::ReadQuery { table: Self::FIELDS, fields }.cross_field_errors()
            }
        }
        impl $crate::history_query::HistoryQuery for $name {
            fn read<'a>(
                pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
            ) -> Result<serde_json::Map<String, serde_json::Value>, $crate::validation::ValidationErrors> {
                let mut fields = Self::from_query(pairs)?.to_body();
                for field in Self::FIELDS {
                    if let Some(default) = field.default_value() {
                        fields.entry(field.name).or_insert(default);
                    }
                }
                Ok(fields)
            }
        }
    };
}
pub(crate) use history_query;

// The groups of fields of the history's queries.
field_groups! { $ history_fields {
    ..route {
        /// Origin IATA code.
        from_airport: Airport;
        /// Destination IATA code.
        to_airport: Airport;
    }
    ..departures {
        /// Only journeys that depart on this day. Not together with `departure_from` or
        /// `departure_to`.
        departure_date: Date;
        /// Only journeys that depart on or after this day.
        departure_from: Date;
        /// Only journeys that depart on or before this day.
        departure_to: Date;
    } order { departure_to not_before departure_from; }
    ..departure_range {
        /// The first day of departure.
        departure_from: Date;
        /// The last day of departure: at most 400 days, both ends included.
        departure_to: Date;
    } order { departure_to not_before departure_from; }
    ..fares {
        /// Only round trips that return on this day.
        return_date: Date;
        /// Only prices in this currency.
        currency: Currency;
    }
    ..hotel {
        /// The hotel's name, as in the by-name scans.
        hotel_name: FreeText;
        /// The place, as in the search scans.
        destination: FreeText;
        /// The hotel's id, as in the rooms scans.
        hotel_booking_id: HotelBookingId;
    }
    ..checkins {
        /// Only stays that begin on this day. Not together with `checkin_from` or `checkin_to`.
        checkin_date: Date;
        /// Only stays that begin on or after this day.
        checkin_from: Date;
        /// Only stays that begin on or before this day.
        checkin_to: Date;
    } order { checkin_to not_before checkin_from; }
    ..checkin_range {
        /// The first day of check-in.
        checkin_from: Date;
        /// The last day of check-in: at most 400 days, both ends included.
        checkin_to: Date;
    } order { checkin_to not_before checkin_from; }
    ..checkout {
        /// Only stays that end on this day.
        checkout_date: Date;
    }
    ..rates {
        /// Only prices for this many adults.
        adults: Adults;
        /// Only prices for this many children.
        children: Children;
        /// Only prices in this currency.
        currency: Currency;
        /// Only prices of this market.
        proxy_country: CountryCode;
    }
    ..page {
        /// Only observations at or after this time.
        since: Timestamp;
        /// Only observations before this time.
        until: Timestamp;
        /// The maximum observations of a page.
        limit: PageLimit = PageLimit::FIFTY => limit_or_default;
        /// Where the page begins: the `next_cursor` of the previous page.
        cursor: Cursor;
    }
    ..buckets {
        /// How long a bucket is.
        bucket: Bucket = Bucket::Day => bucket_or_default;
        /// The time zone whose midnights separate the buckets.
        timezone: TimeZoneName = TimeZoneName::utc() => timezone_or_default;
        /// Only prices found at or after this time: 365 days before `until` unless given, at
        /// most 400.
        since: Timestamp;
        /// Only prices found before this time: now unless given.
        until: Timestamp;
    }
    ..verdict {
        /// Whether each price comes with `history_verdict`: how it compares with your own past
        /// prices of the same product, seen as many days ahead. Only in JSON; at most 12 products.
        history_verdict: bool = false => history_verdict_or_default;
    }
    ..format {
        /// The format: a page of JSON, or all rows as a file. It overrides the header `Accept`;
        /// without both it is JSON.
        format: ListFormat;
    }
} }
#[expect(
    clippy::single_component_path_imports,
    reason = "it gives the macro a path"
)]
pub(crate) use history_fields;
