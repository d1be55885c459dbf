//! Commands on a monitor: pause, resume, run, delete. Not here: `update`.
//!
//! ```text
//!  active ──pause──► paused, by_caller: key wiped, no slots
//!         ◄─resume── with the key of the request, from the next slot on
//!  run: a manual slot now, independent of the schedule, also while paused
//! ```

pub mod delete;
pub mod pause;
pub mod resume;
pub mod run;
