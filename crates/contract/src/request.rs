//! One valid request, for any endpoint.
//!
//! Here: [`Request`], which the gateway, a scan's items and the command line all get from
//! [`Request::check`]. Code that receives one does not check it again. Not here: the bodies
//! (`flights`, `hotels`).

use super::alias::FieldAlias;
use super::endpoint::Endpoint;
use super::flights::{OnewayRequest, RoundtripRequest};
use super::hotels::{HotelByNameRequest, HotelRoomsRequest, HotelSearchRequest, ResolveRequest};
use super::validation::ValidationErrors;
use jiff::civil::Date;
use serde_json::{Map, Value};

/// A valid body of one endpoint.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// `flights/oneway`
    Oneway(OnewayRequest),
    /// `flights/roundtrip`
    Roundtrip(RoundtripRequest),
    /// `hotels/search`
    HotelSearch(HotelSearchRequest),
    /// `hotels/by-name`
    HotelByName(HotelByNameRequest),
    /// `hotels/rooms`
    HotelRooms(HotelRoomsRequest),
    /// `hotels/resolve`
    Resolve(ResolveRequest),
}

/// A valid request and the alias that was applied to it.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedRequest {
    /// The request, alias applied.
    pub request: Request,
    /// The applied rewrite, for `X-Field-Aliased`.
    pub alias: Option<FieldAlias>,
}

impl Request {
    /// Checks a body against its endpoint's field table (gateway.md, rules 6 to 9).
    ///
    /// # Errors
    /// All validation errors of the body.
    pub fn check(
        endpoint: Endpoint,
        body: &Map<String, Value>,
    ) -> Result<CheckedRequest, ValidationErrors> {
        let request = match endpoint {
            Endpoint::FlightsOneway => Self::Oneway(OnewayRequest::from_body(body)?),
            Endpoint::FlightsRoundtrip => Self::Roundtrip(RoundtripRequest::from_body(body)?),
            Endpoint::HotelsSearch => Self::HotelSearch(HotelSearchRequest::from_body(body)?),
            Endpoint::HotelsByName => Self::HotelByName(HotelByNameRequest::from_body(body)?),
            Endpoint::HotelsRooms => Self::HotelRooms(HotelRoomsRequest::from_body(body)?),
            Endpoint::HotelsResolve => Self::Resolve(ResolveRequest::from_body(body)?),
        };
        let alias = FieldAlias::detect(endpoint, body);
        Ok(CheckedRequest { request, alias })
    }

    /// The endpoint that it is for.
    pub const fn endpoint(&self) -> Endpoint {
        match self {
            Self::Oneway(_) => Endpoint::FlightsOneway,
            Self::Roundtrip(_) => Endpoint::FlightsRoundtrip,
            Self::HotelSearch(_) => Endpoint::HotelsSearch,
            Self::HotelByName(_) => Endpoint::HotelsByName,
            Self::HotelRooms(_) => Endpoint::HotelsRooms,
            Self::Resolve(_) => Endpoint::HotelsResolve,
        }
    }

    /// The upstream body: only the given fields, after the alias, in the order of the field table,
    /// airports in upper case (gateway.md, rules 2, 5 and 8).
    pub fn to_body(&self) -> Map<String, Value> {
        match self {
            Self::Oneway(request) => request.to_body(),
            Self::Roundtrip(request) => request.to_body(),
            Self::HotelSearch(request) => request.to_body(),
            Self::HotelByName(request) => request.to_body(),
            Self::HotelRooms(request) => request.to_body(),
            Self::Resolve(request) => request.to_body(),
        }
    }

    /// Whether an incomplete search becomes 503 `search_incomplete` (gateway.md, rule 16). Hotel
    /// endpoints have no `strict`.
    pub fn strict(&self) -> bool {
        match self {
            Self::Oneway(request) => request.strict_or_default(),
            Self::Roundtrip(request) => request.strict_or_default(),
            _ => false,
        }
    }

    /// The maximum rows of a flight response, given or the default 10; `None` for hotels, which
    /// have no limit.
    pub fn limit(&self) -> Option<u32> {
        match self {
            Self::Oneway(request) => Some(request.limit_or_default().get()),
            Self::Roundtrip(request) => Some(request.limit_or_default().get()),
            _ => None,
        }
    }

    /// The departure or check-in day; `None` for resolve.
    pub fn first_date(&self) -> Option<Date> {
        match self {
            Self::Oneway(request) => Some(request.departure_date),
            Self::Roundtrip(request) => Some(request.departure_date),
            Self::HotelSearch(request) => Some(request.checkin_date),
            Self::HotelByName(request) => Some(request.checkin_date),
            Self::HotelRooms(request) => Some(request.checkin_date),
            Self::Resolve(_) => None,
        }
    }

    /// The return or check-out day; `None` for one way and resolve, which have none.
    pub fn last_date(&self) -> Option<Date> {
        match self {
            Self::Oneway(_) | Self::Resolve(_) => None,
            Self::Roundtrip(request) => Some(request.return_date),
            Self::HotelSearch(request) => Some(request.checkout_date),
            Self::HotelByName(request) => Some(request.checkout_date),
            Self::HotelRooms(request) => Some(request.checkout_date),
        }
    }
}
