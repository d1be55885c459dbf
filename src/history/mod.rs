//! What was seen: an observation for each finished attempt, and the last price of every product and date.
//!
//! [`Subject`] says which product a search is about; [`mod@record`] keeps observations in the transaction that stores the answer; [`query`]
//! reads them back, [`buckets`] in steps of time, [`latest`] the last price of each date, [`grid`] beside each other; [`mod@forget`] takes out what a scan saw. Not here: what an answer means
//! (`search`, `upstream`), the whole answers (`queue`).

pub mod buckets;
mod filter;
pub mod forget;
pub mod grid;
pub mod latest;
pub mod query;
pub mod record;
mod series;
mod store;

pub use forget::{SeenBy, forget};
pub use record::{Observation, SeenPrice, record};
pub use series::{Series, SeriesKey, Subject};
