//! The queries of the history: each group of fields that they share is declared once.
//!
//! Here: the groups and the `history_query!` macro. Not here: the queries (`history`, `latest`, `series`,
//! `history_grid`).

use super::request_body::field_groups;
use super::validation::ValidationErrors;

/// A query of the history of any product.
pub trait HistoryQuery: Sized + Send + Sync {
    /// Reads the decoded pairs of a query string.
    ///
    /// # Errors
    /// All validation errors of the query.
    fn read<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ValidationErrors>;
}

/// A body with groups of `history_fields` that is a query with rules across fields
/// (`cross_field_errors`).
macro_rules! history_query {
    ($(#[doc = $doc:literal])+ pub struct $name:ident $( $rest:tt )*) => {
        $crate::request_body::grouped_body! {
            { $crate::history_query::history_fields }
            $(#[doc = $doc])+
            pub struct $name $( $rest )*
        }
        $crate::query_string::query_string!($name => cross_field_errors);
        impl $crate::history_query::HistoryQuery for $name {
            fn read<'a>(
                pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
            ) -> Result<Self, $crate::validation::ValidationErrors> {
                Self::from_query(pairs)
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
pub(crate) use history_fields;
