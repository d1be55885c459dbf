//! One caller, another caller (security.md): everything that keeps them apart, and the proof that each part of it is needed.
//!
//! * [`matrix`]: every route with an id, asked with one's own, another's, a random and a malformed one.
//! * [`removals`]: every tenant condition of the SQL is taken out in turn, while a whole life of scans goes on beside a twin: a second
//!   tenant whose rows have the same ids. Each removal must be noticed.
//! * [`forgotten`]: every statement over a tenant's table has a tenant condition, or a reason here why it has none.
//! * [`canary`]: a key is sent through every carrier to every route and every error, and then looked for everywhere.
//!
//! Timing is out of scope: a look-up that finds another's row costs what one costs that finds nothing, because it cannot find it.

mod acts;
mod canary;
mod conditions;
mod forgotten;
mod hand;
mod matrix;
mod normal;
mod record;
mod removals;
pub mod statements;
mod twin;
mod world;
