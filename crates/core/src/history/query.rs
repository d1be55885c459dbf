//! What a history query asks for: one type for flights and hotels and for all history routes.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::sample::DateFilter;
use crate::contract::primitives::Cursor;
use crate::contract::series::Bucket;
use crate::contract::{Api, Endpoint, FieldValue as _, HistoryQuery, ValidationErrors};

/// The fields of all history queries; each query has some of them. `None` selects all.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PriceQuery {
    /// Departure airport.
    #[serde(rename = "from_airport")]
    pub(super) origin: Option<String>,
    to_airport: Option<String>,
    hotel_name: Option<String>,
    destination: Option<String>,
    hotel_booking_id: Option<String>,
    pub(super) currency: Option<String>,
    #[serde(rename = "proxy_country")]
    pub(super) market: Option<String>,
    pub(super) adults: Option<i64>,
    pub(super) children: Option<i64>,
    /// Departure or check-in on one day …
    #[serde(alias = "departure_date", alias = "checkin_date")]
    first_date: Option<Date>,
    /// … or in a range of days, both ends inclusive.
    #[serde(alias = "departure_from", alias = "checkin_from")]
    first_from: Option<Date>,
    #[serde(alias = "departure_to", alias = "checkin_to")]
    first_to: Option<Date>,
    /// Return or check-out date.
    #[serde(alias = "return_date", alias = "checkout_date")]
    pub(super) last_date: Option<Date>,
    /// Length of the journey or stay.
    pub(super) nights: Option<i32>,
    /// Grids: the field of the rows …
    pub(super) rows: String,
    /// … and of the columns.
    pub(super) columns: Option<String>,
    /// Range of observation times: `since` inclusive, `until` exclusive.
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
    /// Series: the length of a bucket …
    pub(super) bucket: Option<Bucket>,
    /// … and the time zone whose midnights separate them.
    pub(super) timezone: String,
    /// Whether prices get a verdict.
    #[serde(rename = "history_verdict")]
    pub is_judged: bool,
    /// Lists: the size of a page …
    pub(super) limit: usize,
    /// … and where it begins.
    #[serde(deserialize_with = "cursor")]
    pub(super) cursor: Option<Cursor>,
    /// Read with the header `Accept` (`api::export`).
    #[serde(rename = "format")]
    _format: IgnoredAny,
}

fn cursor<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Cursor>, D::Error> {
    let value = Value::deserialize(value)?;
    Cursor::read(&value).map(Some).map_err(D::Error::custom)
}

impl PriceQuery {
    /// Reads and checks the decoded pairs of a query string.
    ///
    /// # Errors
    /// All validation errors of the query.
    pub fn read<'a, Q: HistoryQuery>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ValidationErrors> {
        let fields = Q::read(pairs)?;
        Ok(serde_json::from_value(fields.into())
            .expect("each field of a query is one of `PriceQuery`"))
    }

    /// Flights or hotels. Every query of flights names a route.
    pub fn api(&self) -> Api {
        match self.origin {
            Some(_) => Api::Flights,
            None => Api::Hotels,
        }
    }

    /// Whose observations are selected.
    pub(super) fn endpoints(&self) -> Vec<String> {
        // One-way flights have no return and no nights.
        let is_round_trip = self.last_date.is_some()
            || self.nights.is_some()
            || self.rows == "nights"
            || self.columns.as_deref() == Some("nights");
        let endpoints: &[Endpoint] = match (self.api(), &self.hotel_name, &self.destination) {
            (Api::Flights, ..) if is_round_trip => &[Endpoint::FlightsRoundtrip],
            (Api::Flights, ..) => &[Endpoint::FlightsOneway, Endpoint::FlightsRoundtrip],
            (Api::Hotels, Some(_), _) => &[Endpoint::HotelsByName],
            (Api::Hotels, None, Some(_)) => &[Endpoint::HotelsSearch],
            (Api::Hotels, None, None) => &[Endpoint::HotelsRooms],
        };
        endpoints.iter().map(Endpoint::to_string).collect()
    }

    /// Destination airport, or name or id of a hotel or place. Names are normalized as by the SQL
    /// function `place_key`.
    pub(super) fn place(&self) -> String {
        let name = self.hotel_name.as_ref().or(self.destination.as_ref());
        let code = self.to_airport.as_ref().or(self.hotel_booking_id.as_ref());
        name.map(|name| name.trim_matches(' ').to_ascii_lowercase())
            .or_else(|| code.cloned())
            .unwrap_or_default()
    }

    /// First departure or check-in date.
    pub(super) fn first_from(&self) -> Option<Date> {
        self.first_date.or(self.first_from)
    }

    /// Last departure or check-in date.
    pub(super) fn first_to(&self) -> Option<Date> {
        self.first_date.or(self.first_to)
    }

    /// The filter on travel or stay dates.
    pub(super) fn dates(&self) -> DateFilter {
        DateFilter::of(self.first_from(), self.first_to(), self.last_date)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::history::{FlightHistoryQuery, HotelHistoryQuery};
    use crate::contract::history_grid::{FlightGridQuery, HotelGridQuery};
    use crate::contract::latest::{FlightLatestQuery, HotelLatestQuery};
    use crate::contract::series::{FlightSeriesQuery, HotelSeriesQuery};

    const ROUTE: [(&str, &str); 2] = [("from_airport", "tlv"), ("to_airport", "LHR")];
    const DEPARTURES: [(&str, &str); 2] = [
        ("departure_from", "2027-01-01"),
        ("departure_to", "2027-01-31"),
    ];
    const STAY: [(&str, &str); 5] = [
        ("hotel_name", " Grand Hotel "),
        ("adults", "2"),
        ("children", "1"),
        ("currency", "usd"),
        ("proxy_country", "de"),
    ];
    const CHECKINS: [(&str, &str); 2] =
        [("checkin_from", "2027-01-01"), ("checkin_to", "2027-01-31")];
    const PAGE: [(&str, &str); 4] = [
        ("since", "2026-12-01T00:00:00Z"),
        ("until", "2026-12-02T00:00:00Z"),
        ("cursor", "abc"),
        ("format", "json"),
    ];
    const BUCKETS: [(&str, &str); 5] = [
        ("since", "2026-12-01T00:00:00Z"),
        ("until", "2026-12-02T00:00:00Z"),
        ("bucket", "week"),
        ("timezone", "Europe/London"),
        ("history_verdict", "true"),
    ];

    fn read<Q: HistoryQuery>(groups: &[&[(&'static str, &'static str)]]) -> PriceQuery {
        PriceQuery::read::<Q>(groups.concat()).unwrap()
    }

    /// Reading a query panics otherwise.
    #[test]
    fn every_field_of_every_query_is_known() {
        let tables = [
            FlightHistoryQuery::FIELDS,
            HotelHistoryQuery::FIELDS,
            FlightLatestQuery::FIELDS,
            HotelLatestQuery::FIELDS,
            FlightSeriesQuery::FIELDS,
            HotelSeriesQuery::FIELDS,
            FlightGridQuery::FIELDS,
            HotelGridQuery::FIELDS,
        ];
        for field in tables.into_iter().flatten() {
            let read = serde_json::from_value::<PriceQuery>(json!({field.name: null}));
            let error = read.map_or_else(|error| error.to_string(), |_| String::new());
            assert!(!error.contains("unknown field"), "{error}");
        }
    }

    #[test]
    fn each_field_selects_what_it_names() {
        let fares = [("return_date", "2027-02-02"), ("currency", "usd")];
        let day = [("departure_date", "2027-01-14")];
        let list = read::<FlightHistoryQuery>(&[&ROUTE, &day, &fares, &PAGE, &[("limit", "7")]]);
        assert_eq!(
            (list.origin.as_deref(), list.place(), list.limit),
            (Some("TLV"), "LHR".to_owned(), 7)
        );
        assert_eq!(list.cursor.as_ref().map(Cursor::as_str), Some("abc"));
        assert_eq!(list.endpoints(), ["flights/roundtrip"]);
        let latest = read::<FlightLatestQuery>(&[&ROUTE, &DEPARTURES, &fares]);
        let series = read::<FlightSeriesQuery>(&[&ROUTE, &DEPARTURES, &fares, &BUCKETS]);
        let sides = [("rows", "departure_date"), ("columns", "nights")];
        let grid = read::<FlightGridQuery>(&[&ROUTE, &DEPARTURES, &sides]);
        assert_eq!(grid.endpoints(), ["flights/roundtrip"]);
        let one_way = read::<FlightGridQuery>(&[&ROUTE, &DEPARTURES, &sides[..1]]);
        assert_eq!(one_way.endpoints(), ["flights/oneway", "flights/roundtrip"]);

        let day = [
            ("checkin_date", "2027-01-14"),
            ("checkout_date", "2027-02-02"),
        ];
        let rates = read::<HotelHistoryQuery>(&[&STAY, &day, &PAGE]);
        assert_eq!((rates.api(), rates.limit), (Api::Hotels, 50));
        let out = &day[1..];
        let judged = [("history_verdict", "true")];
        let latest_rates = read::<HotelLatestQuery>(&[&STAY, &CHECKINS, out, &judged]);
        let rate_series = read::<HotelSeriesQuery>(&[&STAY, &CHECKINS, out, &BUCKETS]);
        let sides = [
            ("rows", "checkin_date"),
            ("columns", "proxy_country"),
            ("nights", "3"),
        ];
        let rate_grid = read::<HotelGridQuery>(&[&STAY, &CHECKINS, &sides]);
        assert_eq!(
            (rate_grid.nights, rate_grid.columns.as_deref()),
            (Some(3), Some("proxy_country"))
        );

        let date = |text: &str| Some(text.parse::<Date>().unwrap());
        for query in [&list, &rates] {
            let dates = (query.first_from(), query.first_to(), query.last_date);
            let day = date("2027-01-14");
            assert_eq!(dates, (day, day, date("2027-02-02")));
            assert!(query.since < query.until, "both are read");
        }
        for query in [
            &latest,
            &series,
            &grid,
            &latest_rates,
            &rate_series,
            &rate_grid,
        ] {
            let dates = (query.first_from(), query.first_to());
            assert_eq!(dates, (date("2027-01-01"), date("2027-01-31")));
        }
        for query in [&latest, &series, &latest_rates, &rate_series] {
            assert_eq!(query.last_date, date("2027-02-02"));
        }
        for query in [&series, &rate_series] {
            assert!(query.is_judged && query.since < query.until);
            assert_eq!(
                (query.bucket, query.timezone.as_str()),
                (Some(Bucket::Week), "Europe/London")
            );
        }
        assert!(latest_rates.is_judged && !latest.is_judged);
        for query in [&rates, &latest_rates, &rate_series, &rate_grid] {
            assert_eq!((query.adults, query.children), (Some(2), Some(1)));
            let codes = (query.currency.as_deref(), query.market.as_deref());
            assert_eq!(codes, (Some("usd"), Some("de")));
            assert_eq!(query.place(), "grand hotel");
            assert_eq!(query.endpoints(), ["hotels/by-name"]);
        }
    }

    #[test]
    fn each_kind_of_hotel_query_has_its_endpoint() {
        for (field, text, endpoint, place) in [
            ("destination", "Rome", "hotels/search", "rome"),
            ("hotel_booking_id", "it/Grand", "hotels/rooms", "it/Grand"),
        ] {
            let query = PriceQuery::read::<HotelHistoryQuery>([(field, text)]).unwrap();
            assert_eq!(
                (query.endpoints(), query.place()),
                (vec![endpoint.to_owned()], place.to_owned())
            );
        }
    }
}
