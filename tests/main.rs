//! The one integration binary: the house seen from outside.

mod embedded;
mod queue;
mod support;
