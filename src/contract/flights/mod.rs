//! Flight searches on the wire (specification 2.1 to 2.4).

mod answer;
mod request;

pub use answer::{OnewayFlight, RoundtripItinerary, StopCount, StopInfo};
pub use request::{OnewayRequest, RoundtripRequest};
