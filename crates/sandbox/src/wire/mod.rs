//! The engines' wire format: request bodies with their validation, response rows.

pub(super) mod flights;
pub(super) mod hotels;
pub(super) mod shape;
