//! The endpoints that take a search or a name: which they are and which fields they have.
//!
//! Here: [`Api`] (what a caller subscribes to) and [`Endpoint`]. Not here: HTTP paths of this service (`http`) or of
//! the marketplace (`upstream`).

use super::field::FieldSpec;
use super::flights::{OnewayRequest, RoundtripRequest};
use super::hotels::{HotelByNameRequest, HotelRoomsRequest, HotelSearchRequest, ResolveRequest};
use super::words::words;

words! {
    /// One of the two engines; each is a subscription of its own.
    pub enum Api {
        /// Flight fares.
        Flights = "flights",
        /// Hotel rates.
        Hotels = "hotels",
    }
}

words! {
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
        /// A hotel's name to its booking id.
        HotelsResolve = "hotels/resolve",
    }
}

impl Endpoint {
    /// The endpoints that ask for prices, which a scan can sweep: all but resolve.
    pub const SEARCHES: &'static [Self] = &[
        Self::FlightsOneway,
        Self::FlightsRoundtrip,
        Self::HotelsSearch,
        Self::HotelsByName,
        Self::HotelsRooms,
    ];

    /// The subscription that a call to it is billed to.
    #[must_use]
    pub const fn api(self) -> Api {
        match self {
            Self::FlightsOneway | Self::FlightsRoundtrip => Api::Flights,
            Self::HotelsSearch | Self::HotelsByName | Self::HotelsRooms | Self::HotelsResolve => {
                Api::Hotels
            }
        }
    }

    /// The fields of its body, in the order of the specification.
    #[must_use]
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

    /// The fields that any search can have, each once, as the first endpoint that has it describes it.
    #[must_use]
    pub fn search_fields() -> Vec<&'static FieldSpec> {
        let mut fields = Vec::<&FieldSpec>::new();
        for field in Self::SEARCHES.iter().flat_map(|endpoint| endpoint.fields()) {
            if fields.iter().all(|known| known.name != field.name) {
                fields.push(field);
            }
        }
        fields
    }

    /// The row of one field of its body.
    #[must_use]
    pub fn field(self, name: &str) -> Option<&'static FieldSpec> {
        self.fields().iter().find(|field| field.name == name)
    }
}
