//! Price history: one observation per finished attempt, and the last price of each product and
//! date.
//!
//! [`Subject`] identifies the product of a search. [`mod@insert`] stores observations in the
//! transaction of the answer; [`mod@delete`] removes those of a scan. Queries: [`query`] (single
//! observations), [`buckets`] (by day or week), [`mod@lead_times`] (by days before departure),
//! [`latest`] (last price of each date), [`judged_latest`] (with verdicts), [`grid`], [`mod@places`] (what there is a history of). They
//! are written once for any [`Product`]: [`Flights`] or [`Hotels`]. [`daily_pack`] packs past days,
//! so that long ranges are quick to read. `marked_samples` marks implausible prices by
//! [`mod@plausibility`], for whatever shows a lowest one. `verdict` judges a price by the past ones;
//! [`mod@past_prices`] does so for prices of many products, [`mod@replay`] for searches that a monitor
//! would have made.
//!
//! Not here: the meaning of an answer (`search`, `upstream`), the stored answers (`queue`).

mod aggregate;
pub mod buckets;
mod compute;
pub mod daily_pack;
pub mod delete;
mod filter;
pub mod grid;
pub mod insert;
pub mod judged_grid;
pub mod judged_latest;
pub mod known_price;
pub mod latest;
pub mod lead_times;
mod marked_samples;
mod observation;
pub mod past_prices;
pub mod places;
pub mod plausibility;
mod presenter;
mod price;
mod product;
pub mod query;
pub mod replay;
mod sample;
mod series;
mod store;
mod verdict;

pub use delete::delete;
pub use insert::insert;
pub use observation::{Observation, ObservedItem, ObservedPrice};
pub use presenter::product_field_names;
pub use product::{Flights, Hotels, Product};
pub use series::{Series, SeriesKey, Subject};
