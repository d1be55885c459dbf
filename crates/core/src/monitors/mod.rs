//! Monitors: a scan on a schedule (docs/reference/monitors.md).
//!
//! ```text
//!  create ─► check the schedule's slots and the plan of the next one ─► one transaction: grant,
//!            monitor
//!  tick   ─► a monitor whose slot is due ─► one transaction: decide the slot (unique), store its
//!            scan, set the next slot
//!            a run whose scan has ended  ─► one transaction: evaluate its alert rules, once; or
//!            search the prices of rules with `confirm` once more
//!            held alerts are due         ─► one transaction: one delivery of all of them
//!  update, control (pause, resume, run, delete) ─► one transaction over the monitor's row
//! ```
//!
//! Any number of processes may tick. A slot is decided once: one commit, under the monitor's lock,
//! writes its row in `monitor_slots` and its scan. Lock order: the tenant's key, the monitor, then
//! the locks of a scan submission (`scans`).
//!
//! Pure: slot times ([`schedule`]), dates that have passed (`past_dates`), the requests of a month
//! (`monthly_limit`, [`forecast`]), when alerts are sent (`notify`). Not here: what a relative date is
//! (`contract::monitors::relative_dates`), executing a scan (`queue`), HTTP (`api`).

pub mod alerts;
pub mod backtest;
mod confirm;
pub mod control;
pub mod create;
pub mod deliveries;
pub mod forecast;
pub mod markets;
mod monthly_limit;
pub mod parity;
mod past_dates;
pub mod preview;
pub mod read;
pub mod repeated;
pub mod run_prices;
pub mod schedule;
mod start_run;
mod store;
mod thread_time;
pub mod tick;
pub mod update;
mod validate;
