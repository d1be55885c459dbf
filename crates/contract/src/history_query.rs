//! The queries of the history: each group of fields that they share is declared once.
//!
//! Here: the `history_query!` macro. Not here: the queries (`history`, `latest`, `series`,
//! `history_grid`).

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

/// A `request_body!` that is a query with rules across fields (`cross_field_errors`). `..route;`
/// includes the fields of the group `route`, and their `order`; the types of the fields must be in
/// scope.
macro_rules! history_query {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident for $what:literal {
            required $required:tt
            optional $optional:tt
            $( $rest:tt )*
        }
    ) => {
        history_query! {
            @include [{ $(#[doc = $doc])+ pub struct $name for $what } { $( $rest )* }]
            {} $required $optional
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

    (@fields route $then:tt) => { history_query! { @put $then {
        /// Origin IATA code.
        from_airport: Airport;
        /// Destination IATA code.
        to_airport: Airport;
    } } };
    (@fields departures $then:tt) => { history_query! { @put $then {
        /// Only journeys that depart on this day. Not together with `departure_from` or
        /// `departure_to`.
        departure_date: Date;
        /// Only journeys that depart on or after this day.
        departure_from: Date;
        /// Only journeys that depart on or before this day.
        departure_to: Date;
    } order { departure_to not_before departure_from; } } };
    (@fields departure_range $then:tt) => { history_query! { @put $then {
        /// The first day of departure.
        departure_from: Date;
        /// The last day of departure: at most 400 days, both ends included.
        departure_to: Date;
    } order { departure_to not_before departure_from; } } };
    (@fields fares $then:tt) => { history_query! { @put $then {
        /// Only round trips that return on this day.
        return_date: Date;
        /// Only prices in this currency.
        currency: Currency;
    } } };
    (@fields hotel $then:tt) => { history_query! { @put $then {
        /// The hotel's name, as in the by-name scans.
        hotel_name: FreeText;
        /// The place, as in the search scans.
        destination: FreeText;
        /// The hotel's id, as in the rooms scans.
        hotel_booking_id: HotelBookingId;
    } } };
    (@fields checkins $then:tt) => { history_query! { @put $then {
        /// Only stays that begin on this day. Not together with `checkin_from` or `checkin_to`.
        checkin_date: Date;
        /// Only stays that begin on or after this day.
        checkin_from: Date;
        /// Only stays that begin on or before this day.
        checkin_to: Date;
    } order { checkin_to not_before checkin_from; } } };
    (@fields checkin_range $then:tt) => { history_query! { @put $then {
        /// The first day of check-in.
        checkin_from: Date;
        /// The last day of check-in: at most 400 days, both ends included.
        checkin_to: Date;
    } order { checkin_to not_before checkin_from; } } };
    (@fields checkout $then:tt) => { history_query! { @put $then {
        /// Only stays that end on this day.
        checkout_date: Date;
    } } };
    (@fields rates $then:tt) => { history_query! { @put $then {
        /// Only prices for this many adults.
        adults: Adults;
        /// Only prices for this many children.
        children: Children;
        /// Only prices in this currency.
        currency: Currency;
        /// Only prices of this market.
        proxy_country: CountryCode;
    } } };
    (@fields page $then:tt) => { history_query! { @put $then {
        /// Only observations at or after this time.
        since: Timestamp;
        /// Only observations before this time.
        until: Timestamp;
        /// The maximum observations of a page.
        limit: PageLimit = PageLimit::FIFTY => limit_or_default;
        /// Where the page begins: the `next_cursor` of the previous page.
        cursor: Cursor;
    } } };
    (@fields buckets $then:tt) => { history_query! { @put $then {
        /// How long a bucket is.
        bucket: Bucket = Bucket::Day => bucket_or_default;
        /// The time zone whose midnights separate the buckets.
        timezone: TimeZoneName = TimeZoneName::utc() => timezone_or_default;
        /// Only prices found at or after this time: 365 days before `until` unless given, at
        /// most 400.
        since: Timestamp;
        /// Only prices found before this time: now unless given.
        until: Timestamp;
    } } };
    (@fields verdict $then:tt) => { history_query! { @put $then {
        /// Whether each price comes with `history_verdict`: how it compares with your own past
        /// prices of the same product, seen as many days ahead. Only in JSON; at most 12 products.
        history_verdict: bool = false => history_verdict_or_default;
    } } };
    (@fields format $then:tt) => { history_query! { @put $then {
        /// The format: a page of JSON, or all rows as a file. It overrides the header `Accept`;
        /// without both it is JSON.
        format: ListFormat;
    } } };

    // Lists of fields: the complete ones, then the first incomplete one as what is done of it and
    // what is left, then the others.
    (@include $query:tt { $( $done:tt )* } { ..$group:ident; $( $left:tt )* } $( $other:tt )*) => {
        history_query! { @fields $group [$query { $( $done )* } { $( $left )* } $( $other )*] }
    };
    (@put [$query:tt { $( $done:tt )* } $( $left:tt )*] { $( $field:tt )* }) => {
        history_query! { @include $query { $( $done )* $( $field )* } $( $left )* }
    };
    (@put [[$head:tt { $( $rest:tt )* } $( $lists:tt )*] $( $left:tt )*] $fields:tt $( $order:tt )+) => {
        history_query! {
            @put [[$head { $( $order )+ $( $rest )* } $( $lists )*] $( $left )*] $fields
        }
    };
    (@include $query:tt { $( $done:tt )* } { $token:tt $( $left:tt )* } $( $other:tt )*) => {
        history_query! { @include $query { $( $done )* $token } { $( $left )* } $( $other )* }
    };
    (@include [$( $query:tt )*] $done:tt {} $other:tt) => {
        history_query! { @include [$( $query )* $done] {} $other }
    };
    (@include [{ $( $head:tt )* } { $( $rest:tt )* } $required:tt] $optional:tt {}) => {
        $crate::request_body::request_body! {
            $( $head )* { required $required optional $optional $( $rest )* }
        }
    };
}
pub(crate) use history_query;
