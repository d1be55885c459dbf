//! Hotel searches on the wire (specification 2.5 to 2.12).

mod answer;
mod request;

pub use answer::{
    HotelByNameResponse, HotelProperty, HotelRoom, HotelRoomsResponse, HotelSearchResponse,
    ResolveResponse,
};
pub use request::{HotelByNameRequest, HotelRoomsRequest, HotelSearchRequest, ResolveRequest};
