//! What was seen: an observation for each finished attempt, and the last price of every product and date.
//!
//! [`Subject`] says which product a search is about; [`mod@record`] keeps observations in the transaction that stores the answer; [`query`]
//! reads them back, [`buckets`] in steps of time, [`latest`] the last price of each date, [`grid`] beside each other; [`mod@forget`] takes out
//! what a scan saw; [`days`] packs what has passed, so that a year is read quickly. Not here: what an answer means (`search`, `upstream`),
//! the whole answers (`queue`).

pub mod buckets;
pub mod days;
mod filter;
pub mod forget;
pub mod grid;
pub mod latest;
mod look;
mod price;
pub mod query;
pub mod record;
mod series;
mod shown;
mod store;
mod sums;

pub use forget::{SeenBy, forget};
pub use record::{Observation, SeenPrice, record};
pub use series::{Series, SeriesKey, Subject};
pub use shown::{fare_products, rate_products};
