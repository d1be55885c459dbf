//! A caller's word over a monitor: pause, resume, run, delete. (`update` is a room of its own.)
//!
//! ```text
//!  active ──pause──► paused by_caller: its key is wiped, no slot comes ──resume──► active, with the key of that request, from the next slot on
//!  run: a slot of its own kind, now; whatever the schedule says, also while it is paused
//! ```

pub mod delete;
pub mod pause;
pub mod resume;
pub mod run;
