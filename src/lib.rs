//! Farescan answers "what does this trip cost on which date, in which market, and is that a good price?" without wasting a paid
//! request.
//!
//! One program with two faces. The **gateway** is the seven synchronous `/v1` endpoints: it checks a request before it costs
//! anything, forwards it with the caller's own marketplace key and hands back the answer with its search status and quota. The
//! **scanner** is the job API: it turns one request into a date-range or market scan, paces it inside the caller's plan, stores every
//! answer with its search status, and asks again only what was degraded and only when told to; it repeats a scan on a schedule, keeps the
//! prices that were seen, and tells receivers.
//!
//! ```text
//!  synchronous caller ─► http ─► upstream ─► marketplace (or the sandbox)
//!                         │          ▲
//!  scan caller ─► http ─► scans ─► Postgres: scan + items, one transaction
//!                                    │ claim: due lanes, fair, paced, leased
//!                         apalis worker ─► upstream ─► attempt + answer + observation, one transaction
//!  monitors (slot due) ─► scans             │
//!  grid, history, usage ◄─ Postgres ◄───────┘ ─► webhooks
//! ```
//!
//! # One search, synchronously
//!
//! `POST /v1/flights/oneway` reaches `http::flights`. The body is read and its alias noted, the key is found in one of its eight
//! carriers, and [`contract::Request::check`] either names every fault of the body or makes a request that cannot be wrong.
//! [`search::Search`] is what is asked of the marketplace; [`upstream::Client::ask`] asks, at most twice and within 180 seconds, and
//! answers with a [`search::Outcome`]: the only place where a search status is decided. `http` turns the outcome into a status, headers
//! and a body. The database is not touched, so the gateway answers while it is down.
//!
//! # One scan
//!
//! `POST /v1/scans` is checked by the same types: [`scans::plan`] makes each combination of the swept fields a complete request, all of
//! them before any is stored. One transaction stores the scan, its items and the sealed key, and arms the caller's *lane*. A worker
//! claims items from due lanes ([`queue`]), writes the ledger's row before the first byte of a call (*begin*), asks through the same
//! [`upstream::Client::ask`], and hands the outcome to the batching writer, which stores attempt, answer, observation, item, counters
//! and lane in one transaction. What [`search::fate`] says is the fate of the item and its lane.
//!
//! If the process dies before *begin*, nothing was spent and the item is claimed again; if it dies after, the call may have been billed:
//! the item ends `degraded`, `worker_lost`, and is not asked again unless its caller allowed that.
//!
//! # One slot of a monitor
//!
//! Every process with a worker ticks ([`monitors::tick`]). Whoever comes first to a slot that is due decides it in one transaction: its row
//! in `monitor_slots`, its scan or the reason why there is none, the next slot. When the scan has ended its run is judged, once. What there
//! is to tell becomes a delivery in the same transaction; [`webhooks`] sends it, signed, until it is taken or given up.
//!
//! # What always holds
//!
//! 1. A request that cannot be valid costs nothing.
//! 2. A call is on record, with its place in the budget, before its first byte is sent.
//! 3. No item is attempted twice unless its caller allowed a second attempt.
//! 4. The caller's key is in no log, trace, error, page, queue row or backup in the clear.
//! 5. An outcome is decided in [`upstream`] alone; a search status is never guessed.
//! 6. One caller's 10,000 items do not delay another's five.
//! 7. The gateway answers while the database is down.
//! 8. Every list, body, fan-out, wait and retry has a named bound.
//! 9. Lanes, leases, slots, expiry and retention go by the database's clock alone; everything else takes the time as an argument. A
//!    process whose clock differs from the database's by more than 5 s does not work ([`db::clock`]).
//!
//! # Who may use whom
//!
//! The modules below stand in reading order, from what knows nothing of the others to what knows all of them; `tests/house.rs` holds
//! the directions.

pub mod ids;

pub mod contract;
pub mod search;
pub mod upstream;

pub mod config;
pub mod db;
pub mod files;
pub mod marketplace;
pub mod measure;
pub mod paging;
pub mod tenants;

pub mod account;
pub mod history;
pub mod scans;

pub mod webhooks;

pub mod monitors;

pub mod queue;
pub mod worker;

pub mod http;
pub mod sandbox;
pub mod service;
pub mod telemetry;

pub mod cli;
