//! The one integration binary: the house seen from outside, a module for each part of it.

mod embedded;
mod queue;
mod gateway;
mod support;
