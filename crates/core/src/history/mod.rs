//! Price history: one observation per finished attempt, and the last price of each product and
//! date.
//!
//! [`Subject`] identifies the product of a search. [`mod@insert`] stores observations in the
//! transaction of the answer; [`mod@delete`] removes those of a scan. A [`PriceQuery`] asks for
//! observations ([`list`]), [`buckets`] (by day or week), [`mod@lead_times`] (by days before
//! departure), [`latest`] (last price of each date), [`judged_latest`] (with verdicts) or
//! [`judged_grid`]; [`mod@places`] says what there is a history of. To all of them a flight and a
//! stay are a product with dates; only `rows` makes different rows of them. [`daily_pack`] packs past
//! days, so that long ranges are quick to read. `marked_samples` marks implausible prices by
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
mod grid;
pub mod insert;
pub mod judged_grid;
pub mod judged_latest;
pub mod known_price;
pub mod latest;
pub mod lead_times;
pub mod list;
mod marked_samples;
mod observation;
pub mod past_prices;
pub mod places;
pub mod plausibility;
mod presenter;
mod price;
mod query;
pub mod replay;
mod rows;
mod sample;
mod series_key;
mod store;
mod verdict;

pub use delete::delete;
pub use insert::insert;
pub use observation::{Observation, ObservedItem, ObservedPrice};
pub use presenter::{Product, product_field_names};
pub use query::PriceQuery;
pub use series_key::{Series, SeriesKey, Subject};
