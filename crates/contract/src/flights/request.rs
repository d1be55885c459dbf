//! The bodies of the two flight searches, in the order of gateway.md, rules 23 and 24.

use crate::primitives::{
    AirlineCode, Airport, Currency, Date, Hour, Limit, MaxPrice, PassengerKind, Passengers,
    SeatType, SortType, Stops,
};
use crate::request_body::request_body;

request_body! {
    /// Body of `POST /v1/flights/oneway`.
    pub struct OnewayRequest for "flights/oneway" {
        required {
            /// Origin IATA code.
            from_airport: Airport;
            /// Destination IATA code.
            to_airport: Airport;
            /// Day of departure.
            departure_date: Date;
        }
        optional {
            /// Maximum stops; 0 means non-stop only.
            max_stops: Stops;
            /// Only these airlines (IATA codes).
            airline_codes: Vec<AirlineCode>;
            /// Exclude these airlines.
            exclude_airline_codes: Vec<AirlineCode>;
            /// Earliest departure hour. May be above the latest: overnight.
            departure_time_min: Hour;
            /// Latest departure hour.
            departure_time_max: Hour;
            /// Earliest arrival hour. May be above the latest: overnight.
            departure_arrival_time_min: Hour;
            /// Latest arrival hour.
            departure_arrival_time_max: Hour;
            /// Order of the results.
            sort_type: SortType = SortType::Overall => sort_type_or_default;
            /// ISO currency code for prices.
            currency: Currency = Currency::usd() => currency_or_default;
            /// Only itineraries at or below this price.
            max_price: MaxPrice;
            /// 1 = Economy, 3 = Business.
            seat_type: SeatType;
            /// One integer per passenger: 1 adult, 2 child, 3 infant on lap, 4 infant in seat.
            passengers: Passengers = Passengers::one(PassengerKind::Adult) => passengers_or_default;
            /// Maximum number of results.
            limit: Limit = Limit::TEN => limit_or_default;
            /// Whether the service may escalate to a secondary flight-data provider when the live
            /// search returns no results; false switches that off for this request. Responses that
            /// use it can take longer.
            use_fallback: bool;
            /// When true and the search did not complete, respond 503 `search_incomplete` instead
            /// of an empty array.
            strict: bool = false => strict_or_default;
            /// When true, requests may be routed through an external residential proxy to reduce
            /// blocks; false forces a direct request (lower latency, more block risk).
            use_ext_proxy: bool = true => use_ext_proxy_or_default;
        }
        example {
            "from_airport": "TLV",
            "to_airport": "LHR",
            "departure_date": "2027-01-14",
            "max_stops": 0,
            "currency": "USD"
        }
    }
}

request_body! {
    /// Body of `POST /v1/flights/roundtrip`.
    pub struct RoundtripRequest for "flights/roundtrip" {
        required {
            /// Origin IATA code.
            from_airport: Airport;
            /// Destination IATA code.
            to_airport: Airport;
            /// Day of the outbound departure.
            departure_date: Date;
            /// Day of the return departure; not before `departure_date`.
            return_date: Date;
        }
        optional {
            /// Maximum stops on the outbound leg; 0 means non-stop only.
            max_departure_stops: Stops;
            /// Maximum stops on the return leg; 0 means non-stop only.
            max_return_stops: Stops;
            /// Only these airlines (IATA codes), outbound.
            departure_airline_codes: Vec<AirlineCode>;
            /// Only these airlines (IATA codes), return.
            return_airline_codes: Vec<AirlineCode>;
            /// Exclude these airlines, outbound.
            departure_exclude_airline_codes: Vec<AirlineCode>;
            /// Exclude these airlines, return.
            return_exclude_airline_codes: Vec<AirlineCode>;
            /// Outbound: earliest departure hour. May be above the latest: overnight.
            departure_departure_time_min: Hour;
            /// Outbound: latest departure hour.
            departure_departure_time_max: Hour;
            /// Outbound: earliest arrival hour. May be above the latest: overnight.
            departure_arrival_time_min: Hour;
            /// Outbound: latest arrival hour.
            departure_arrival_time_max: Hour;
            /// Return: earliest departure hour. May be above the latest: overnight.
            return_departure_time_min: Hour;
            /// Return: latest departure hour.
            return_departure_time_max: Hour;
            /// Return: earliest arrival hour. May be above the latest: overnight.
            return_arrival_time_min: Hour;
            /// Return: latest arrival hour.
            return_arrival_time_max: Hour;
            /// Order of the results.
            sort_type: SortType = SortType::Overall => sort_type_or_default;
            /// ISO currency code for prices.
            currency: Currency = Currency::usd() => currency_or_default;
            /// Only itineraries at or below this price.
            max_price: MaxPrice;
            /// 1 = Economy, 3 = Business.
            seat_type: SeatType;
            /// One integer per passenger: 1 adult, 2 child, 3 infant on lap, 4 infant in seat.
            passengers: Passengers = Passengers::one(PassengerKind::Adult) => passengers_or_default;
            /// Maximum number of results.
            limit: Limit = Limit::TEN => limit_or_default;
            /// Whether the service may escalate to a secondary flight-data provider when the live
            /// search returns no results; false switches that off for this request. Responses that
            /// use it can take longer.
            use_fallback: bool;
            /// When true and the search did not complete, respond 503 `search_incomplete` instead
            /// of an empty array.
            strict: bool = false => strict_or_default;
            /// When true, requests may be routed through an external residential proxy to reduce
            /// blocks; false forces a direct request (lower latency, more block risk).
            use_ext_proxy: bool = true => use_ext_proxy_or_default;
        }
        alias {
            /// Alias: sets each of `max_departure_stops` and `max_return_stops` that is not given.
            max_stops: Stops => [max_departure_stops, max_return_stops];
        }
        order { return_date not_before departure_date; }
        example {
            "from_airport": "TLV",
            "to_airport": "LHR",
            "departure_date": "2027-01-14",
            "return_date": "2027-01-21",
            "max_stops": 0,
            "currency": "USD"
        }
    }
}
