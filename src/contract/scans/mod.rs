//! Scans on the wire (jobs-api, "Scans").
//!
//! Here: what a caller sends and gets back, and the words for states. Not here: what a scan plans and does (`scans`),
//! which stands on these types.

mod compare;
mod event;
mod fields;
mod grid;
mod item;
mod list;
mod preview;
mod request;
mod resource;
mod state;
mod strategy;
mod sweep;

pub use compare::{Change, ChangeCounts, ComparedCell, Comparison, SeenPrice};
pub use event::{EventId, EventKind, EventsQuery, EventsReset};
pub(crate) use fields::search_fields;
pub use fields::{CellValues, SearchFields};
pub use grid::{Grid, GridAxis, GridCell, GridQuery, Parity, ParityVerdict, SweptField};
pub use item::{Attempt, AttemptPage, Item, ItemPage};
pub use list::{DeleteQuery, ItemQuery, ItemsQuery, ScanQuery, ScansQuery, WaitSeconds};
pub use preview::{PlanCost, PlanFit, RequestRange, ScanPreview, UsdRange, Warning, WarningKind};
pub use request::{
    DelaySeconds, Label, MaxAttempts, MaxRequests, ReasonWord, ResumeRequest, RetryPolicy,
    RetryRequest, RetryStatus, ScanEndpoint, ScanRequest, Tag, UpstreamLimit,
};
pub use resource::{
    BestPrice, ItemCounts, KeyCustody, RequestCounts, RetryAccepted, Scan, ScanPage,
};
pub use state::{Expand, ItemSort, ItemState, PauseReason, Priority, ScanStatus};
pub use strategy::{CoarseStep, Refine, Strategy, StrategyPhase, StrategyProgress};
pub use sweep::{DateRange, Nights, Samples, StepDays, Sweep, SweepValue, Weekday};
pub(crate) use sweep::{SWEEP_VALUES, sweep_schema, sweep_value_schema, sweep_values};
