//! Bodies as they go over the wire: request shapes with their checks, response rows. No prices are made here.

pub(super) mod flights;
pub(super) mod hotels;
pub(super) mod shape;
