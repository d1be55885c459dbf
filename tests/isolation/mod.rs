//! What keeps callers apart (security.md, rule 14).
//!
//! * [`matrix`]: every route with an id, called with one's own, another's, a random and a malformed one.
//! * [`unscoped_sql`]: every statement over a tenant's table has a tenant condition, or a reason why it has none.
//! * [`canary`]: a key is sent through every carrier to every route and every error, and then searched for everywhere.
//!
//! Timing is out of scope: a query that finds another caller's row would cost what one costs that finds nothing, because it cannot find it.

mod canary;
mod matrix;
pub mod statements;
mod tenant_conditions;
mod unscoped_sql;
