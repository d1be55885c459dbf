//! Flight searches (gateway.md, rules 23 to 26).

mod request;
mod response;

pub use request::{OnewayRequest, RoundtripRequest};
pub use response::{OnewayFlight, RoundtripItinerary, StopCount, StopInfo};
