//! The one integration binary: the house seen from outside, a module for each part of it.

mod embedded;
mod faults;
mod gateway;
mod queue;
mod support;
mod worker;
