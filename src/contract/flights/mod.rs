//! Flight searches on the wire (specification 2.1 to 2.4).

mod request;

pub use request::{OnewayRequest, RoundtripRequest};
