//! The one integration binary: the house seen from outside.

mod embedded;
mod gateway;
mod support;
