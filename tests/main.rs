//! The one integration binary: the house seen from outside, a module for each part of it.

mod control;
mod embedded;
mod faults;
mod gateway;
mod history;
mod house;
mod queue;
mod scans;
mod support;
mod tenants;
mod worker;
