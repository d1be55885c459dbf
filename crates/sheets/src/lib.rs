//! What a resource says of itself, as data and words: the dashboard and the command line render the
//! same sheets (`sheet`), cells, months, titles and sentences, so that a price, a mark and a route look
//! alike in both.
//! And the reverse ([`draft`]): what a person enters there, as a body of the API.
//!
//! Everything here is a pure function of the API's types. Colours, HTML and the width of a terminal
//! are for the renderers.

pub mod activity;
pub mod alert;
pub mod backtest;
pub mod calendar;
pub mod cell;
pub mod channel;
pub mod compare;
pub mod delivery;
pub mod draft;
pub mod fare;
pub mod fifths;
pub mod item;
pub mod monitor;
pub mod numbers;
pub mod parity;
pub mod phone;
pub mod plan;
pub mod preview;
pub mod price_table;
pub mod prices;
pub mod rule;
pub mod scan;
pub mod schedule;
pub mod sheet;
pub mod strategy;
pub mod trip;
pub mod usage;

#[cfg(test)]
mod tests;
