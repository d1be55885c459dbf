//! Scans (docs/reference/scans.md).
//!
//! Here: requests, responses and states. Not here: planning and running a scan (`scans`), which
//! uses these types.

mod compare;
mod event;
mod grid;
mod item;
mod markets;
mod preview;
mod queries;
mod request;
mod resource;
mod search_fields;
mod state;
mod strategy;
mod sweep;

pub use compare::{Change, ChangeCounts, ComparedCell, Comparison, SeenPrice};
pub use event::{EventId, EventKind, EventsQuery, EventsReset};
pub use grid::{Grid, GridAxis, GridCell, GridQuery, Parity, ParityVerdict, SweptField};
pub use item::{Attempt, AttemptPage, ConfirmedPrice, Item, ItemPage};
pub use markets::{DifferenceRange, MarketParity, MarketReport};
pub use preview::{PlanCost, PlanFit, RequestRange, ScanPreview, UsdRange, Warning, WarningKind};
pub use queries::{
    DecisionsQuery, DeleteQuery, ItemQuery, ItemsQuery, ScanQuery, ScansQuery, WaitSeconds,
};
pub use request::{
    DelaySeconds, Label, MaxAgeSeconds, MaxAttempts, MaxRequests, ReasonWord, ResumeRequest,
    RetryPolicy, RetryRequest, RetryStatus, ScanEndpoint, ScanRequest, SoughtText, Tag,
    UpstreamLimit,
};
pub use resource::{
    AvoidedRequests, BestPrice, ImplausiblePrice, ItemCounts, KeyCustody, RequestCounts,
    RetryAccepted, Scan, ScanPage,
};
pub(crate) use search_fields::search_fields;
pub use search_fields::{CellValues, SearchFields};
pub use state::{Expand, ItemSort, ItemState, PauseReason, Priority, ScanStatus};
pub use strategy::{
    DecisionBest, DecisionPage, DecisionReason, FindGoal, FindProgress, FindStrategy, FoundBest,
    MaxRisk, MissedQuestions, PriceLimit, Strategy, StrategyDecision, StrategyProgress, WatchGoal,
    WatchProgress, WatchStrategy,
};
pub use sweep::{DateRange, Nights, Samples, StepDays, Sweep, SweepValue, Weekday};
pub(crate) use sweep::{SWEEP_VALUES, sweep_schema, sweep_value_schema, sweep_values};
