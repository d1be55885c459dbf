//! Hotel searches (gateway.md, rules 27 to 33).

mod request;
mod response;

pub use request::{HotelByNameRequest, HotelRoomsRequest, HotelSearchRequest, ResolveRequest};
pub use response::{
    HotelByNameResponse, HotelProperty, HotelRoom, HotelRoomsResponse, HotelSearchResponse,
    ResolveResponse,
};
