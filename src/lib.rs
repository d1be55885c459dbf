//! Farescan finds what a trip costs on which date, in which market, and whether that is a good
//! price, without wasting a paid request.
//!
//! One program with two APIs. The **gateway** is the seven synchronous `/v1` endpoints. It
//! validates a request before it costs anything, forwards it with the caller's own marketplace key,
//! and returns the response with its search status and quota. The **scanner** is the job API. It
//! expands one request into a scan over dates or markets, paces it within the caller's plan, and
//! stores every answer with its search status. It retries degraded searches only, and only if the
//! caller asked for it. It repeats a scan on a schedule, stores the observed prices, and notifies
//! webhooks. The dashboard ([`dashboard`]) shows all this to people.
//!
//! ```text
//!  synchronous caller ─► api  ─► upstream ─► marketplace (or the sandbox)
//!                         │          ▲
//!  scan caller ─► api  ─► scans ─► Postgres: scan + items, one transaction
//!                                    │ claim: due lanes, fair, paced, leased
//!                         apalis worker ─► upstream ─► attempt + answer + observation, one transaction
//!  monitors (slot due) ─► scans             │
//!  grid, history, usage ◄─ Postgres ◄───────┘ ─► webhooks
//! ```
//!
//! # A synchronous search
//!
//! `POST /v1/flights/oneway` reaches `api::flights`. It reads the body and notes its alias, finds
//! the key in one of eight carriers, and calls [`contract::Request::check`]. That names every
//! invalid field or returns a valid request. [`search::Search`] is the marketplace call.
//! [`upstream::Client::search`] makes it, at most twice and within 180 seconds, and returns a
//! [`search::Outcome`]. Only there is a search status decided. `api` maps the outcome to a status,
//! headers and a body. No step needs the database, so the gateway works while it is down. Only with
//! `Cache-Control: max-age` a stored answer is looked for, and [`search_recorder`] stores the new one;
//! it also stores those of callers who want that of all their searches.
//!
//! # A scan
//!
//! `POST /v1/scans` is validated by the same types: [`scans::plan`] expands the swept fields into
//! complete requests, all of them before any is stored. One transaction stores the scan, its items
//! and the encrypted key, and wakes the caller's *lane*. A worker claims items from due lanes
//! ([`queue`]) and records the attempt before the first byte of its call (*begin*). It calls
//! [`upstream::Client::search`] and passes the outcome to the batching writer. The writer stores
//! attempt, answer, observation, item and counters in one transaction, then updates the lane.
//! [`search::outcome_status`] decides how the item ends and how its lane continues.
//!
//! If the process dies before *begin*, nothing was spent and the item is claimed again. If it dies
//! after, the call may have been billed: the item ends `degraded`, `worker_lost`, and is not
//! retried unless its caller allowed that.
//!
//! # A slot of a monitor
//!
//! Every process with a worker runs the monitor tick ([`monitors::tick`]). The first process that
//! locks a due slot handles it in one transaction: its row in `monitor_slots`, its scan or the
//! reason for none, and the next slot. When the scan has ended, its alert rules are evaluated once.
//! Alerts become a delivery in the same transaction, or are held for the monitor's digest or the end
//! of its quiet hours; [`webhooks`] sends it, signed, until it is
//! delivered or has failed.
//!
//! # Invariants
//!
//! 1. An invalid request costs nothing.
//! 2. A call is recorded and counted against its budget before its first byte is sent.
//! 3. No item is attempted twice unless its caller allowed a second attempt.
//! 4. The caller's key is never in plain text in a log, trace, error, page, queue row or backup.
//! 5. Only [`upstream`] decides an outcome; a search status is never guessed.
//! 6. One caller's 10,000 items do not delay another's five.
//! 7. The gateway works while the database is down.
//! 8. Every list, body, fan-out, wait and retry has a named limit.
//! 9. Lanes, leases, slots, expiry and retention use the database's clock only; other code takes
//!    the time as an argument. A process whose clock differs from the database's by more than 5 s
//!    does no work ([`db::clock`]).
//!
//! # Crates
//!
//! `core` holds everything beneath the two HTTP interfaces, `api` and `dashboard` are siblings above
//! its module [`app`], and this crate starts them ([`service`]). The compiler holds these
//! directions; `tests/architecture.rs` lists which module of `core` may use which.

pub use farescan_core::{
    account, activity, app, channels, charges, commands, config, contract, db, history, ids,
    marketplace, metrics, monitors, notices, notify, open_files, paging, passes, planner, queue,
    scans, search, search_recorder, tenants, upkeep, upstream, visible_text, webhooks, worker,
};
pub use {farescan_api as api, farescan_dashboard as dashboard, farescan_sandbox as sandbox};

pub mod cli;
pub mod logging;
pub mod service;
