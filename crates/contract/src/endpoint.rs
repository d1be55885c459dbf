//! The search and resolve endpoints and their fields.
//!
//! Here: [`Api`] (one marketplace subscription) and [`Endpoint`]. Not here: HTTP paths of this
//! service (`api`) or of the marketplace (`upstream`).

use super::field::FieldSpec;
use super::flights::{OnewayRequest, RoundtripRequest};
use super::hotels::{HotelByNameRequest, HotelRoomsRequest, HotelSearchRequest, ResolveRequest};
use super::read_body::unknown_field::unknown_field;
use super::string_enum::string_enum;
use super::validation::ValidationError;
use serde_json::Value;

string_enum! {
    /// One of the two marketplace APIs; each needs its own subscription.
    pub enum Api {
        /// Flight fares.
        Flights = "flights",
        /// Hotel rates.
        Hotels = "hotels",
    }
}

string_enum! {
    /// A POST endpoint below `/v1/`.
    pub enum Endpoint {
        /// One-way fares.
        FlightsOneway = "flights/oneway",
        /// Round-trip fares.
        FlightsRoundtrip = "flights/roundtrip",
        /// Hotels of a place.
        HotelsSearch = "hotels/search",
        /// One hotel, by its name.
        HotelsByName = "hotels/by-name",
        /// The rooms of one hotel.
        HotelsRooms = "hotels/rooms",
        /// The booking id of a hotel name.
        HotelsResolve = "hotels/resolve",
    }
}

impl Endpoint {
    /// The endpoints that return prices, which a scan can sweep: all but resolve.
    pub const SEARCHES: &'static [Self] = &[
        Self::FlightsOneway,
        Self::FlightsRoundtrip,
        Self::HotelsSearch,
        Self::HotelsByName,
        Self::HotelsRooms,
    ];

    /// The subscription that a call to it is billed to.
    pub const fn api(self) -> Api {
        match self {
            Self::FlightsOneway | Self::FlightsRoundtrip => Api::Flights,
            Self::HotelsSearch | Self::HotelsByName | Self::HotelsRooms | Self::HotelsResolve => {
                Api::Hotels
            }
        }
    }

    /// The fields of its body, in the order of gateway.md.
    pub const fn fields(self) -> &'static [FieldSpec] {
        match self {
            Self::FlightsOneway => OnewayRequest::FIELDS,
            Self::FlightsRoundtrip => RoundtripRequest::FIELDS,
            Self::HotelsSearch => HotelSearchRequest::FIELDS,
            Self::HotelsByName => HotelByNameRequest::FIELDS,
            Self::HotelsRooms => HotelRoomsRequest::FIELDS,
            Self::HotelsResolve => ResolveRequest::FIELDS,
        }
    }

    /// The fields of all searches, each once, in the form of the first endpoint that has it.
    pub fn search_fields() -> Vec<&'static FieldSpec> {
        let mut fields = Vec::<&FieldSpec>::new();
        for field in Self::SEARCHES.iter().flat_map(|endpoint| endpoint.fields()) {
            if fields.iter().all(|known| known.name != field.name) {
                fields.push(field);
            }
        }
        fields
    }

    /// The error of an unknown field outside its body: in a sweep.
    pub fn unknown_field(self, name: &str, value: &Value) -> ValidationError {
        unknown_field(self.as_str(), self.fields(), name, value)
    }

    /// The row of one field of its body.
    pub fn field(self, name: &str) -> Option<&'static FieldSpec> {
        self.fields().iter().find(|field| field.name == name)
    }
}
