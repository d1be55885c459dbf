//! Hotel searches on the wire (specification 2.5 to 2.12).

mod request;

pub use request::{HotelByNameRequest, HotelRoomsRequest, HotelSearchRequest, ResolveRequest};
