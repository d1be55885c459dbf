//! The bodies of the four hotel endpoints, in the order of gateway.md, rules 27, 30, 32 and 33.

use crate::primitives::{
    Adults, BudgetPerNight, Children, CountryCode, Currency, Date, FreeText, HotelBookingId,
    HotelFilter,
};
use crate::request_body::request_body;

request_body! {
    /// Body of `POST /v1/hotels/search`.
    pub struct HotelSearchRequest for "hotels/search" {
        required {
            /// Free text city or area. The key `location` is rejected.
            destination: FreeText;
            /// First night.
            checkin_date: Date;
            /// Day of departure, after `checkin_date`.
            checkout_date: Date;
        }
        optional {
            /// Adults in the room.
            adults: Adults = Adults::TWO => adults_or_default;
            /// Children in the room.
            children: Children = Children::NONE => children_or_default;
            /// ISO currency code for prices.
            currency: Currency = Currency::usd() => currency_or_default;
            /// Two-letter country whose market is searched, through a residential proxy there;
            /// without it a worldwide rotating pool is used.
            proxy_country: CountryCode;
            /// Maximum price PER NIGHT in the request currency.
            budget_per_night: BudgetPerNight;
            /// Only properties that satisfy all of these.
            filters: Vec<HotelFilter> = Vec::new() => filters_or_default;
        }
        order { checkout_date after checkin_date; }
        example {
            "destination": "Lisbon",
            "checkin_date": "2027-01-14",
            "checkout_date": "2027-01-17",
            "proxy_country": "de",
            "filters": ["free_cancellation", "review_score_8"]
        }
    }
}

request_body! {
    /// Body of `POST /v1/hotels/by-name`.
    pub struct HotelByNameRequest for "hotels/by-name" {
        required {
            /// The hotel's name, free text.
            hotel_name: FreeText;
            /// First night.
            checkin_date: Date;
            /// Day of departure, after `checkin_date`.
            checkout_date: Date;
        }
        optional {
            /// Where the hotel is: the query becomes `<hotel_name>, <area>`, the name match uses
            /// `hotel_name` alone.
            area: FreeText;
            /// Adults in the room.
            adults: Adults = Adults::TWO => adults_or_default;
            /// Children in the room.
            children: Children = Children::NONE => children_or_default;
            /// ISO currency code for prices.
            currency: Currency = Currency::usd() => currency_or_default;
            /// Two-letter country whose market is searched, through a residential proxy there;
            /// without it a worldwide rotating pool is used.
            proxy_country: CountryCode;
            /// Only rates that can be cancelled without cost.
            free_cancellation: bool = false => free_cancellation_or_default;
        }
        order { checkout_date after checkin_date; }
        example {
            "hotel_name": "Grand Hotel",
            "area": "Lisbon",
            "checkin_date": "2027-01-14",
            "checkout_date": "2027-01-17",
            "proxy_country": "de"
        }
    }
}

request_body! {
    /// Body of `POST /v1/hotels/rooms`.
    pub struct HotelRoomsRequest for "hotels/rooms" {
        required {
            /// Path-style hotel id, from resolve.
            hotel_booking_id: HotelBookingId;
            /// First night.
            checkin_date: Date;
            /// Day of departure, after `checkin_date`.
            checkout_date: Date;
        }
        optional {
            /// Adults in the room.
            adults: Adults = Adults::TWO => adults_or_default;
            /// Children in the room.
            children: Children = Children::NONE => children_or_default;
            /// ISO currency code for prices.
            currency: Currency = Currency::usd() => currency_or_default;
            /// Two-letter country whose market is searched, through a residential proxy there;
            /// without it a worldwide rotating pool is used.
            proxy_country: CountryCode;
            /// Only rates that can be cancelled without cost.
            free_cancellation: bool = false => free_cancellation_or_default;
        }
        order { checkout_date after checkin_date; }
        example {
            "hotel_booking_id": "pt/grand-hotel",
            "checkin_date": "2027-01-14",
            "checkout_date": "2027-01-17"
        }
    }
}

request_body! {
    /// Body of `POST /v1/hotels/resolve`.
    pub struct ResolveRequest for "hotels/resolve" {
        required {
            /// The hotel's name, free text.
            hotel_name: FreeText;
        }
        optional {
            /// Two-letter country whose market is searched, through a residential proxy there;
            /// without it a worldwide rotating pool is used.
            proxy_country: CountryCode;
        }
        example { "hotel_name": "Grand Hotel Lisbon" }
    }
}
