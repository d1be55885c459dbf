//! What is left of a caller's plan of an API, the pace of its scans, and the caller's own limits.

use farescan_contract::Api;
use farescan_contract::quota::{LaneQuota, OwnBounds, PaceSource};
use farescan_contract::scans::PauseReason;
use jiff::Timestamp;

use crate::numbers::{count, counted, rate};
use crate::scan::pause;
use crate::sheet::{Figure, Notice, Sheet, Tone, Value};
use crate::trip::words;

/// The name of an API for people.
pub const fn api_name(api: Api) -> &'static str {
    match api {
        Api::Flights => "Flights",
        Api::Hotels => "Hotels",
    }
}

/// The plan of an API as a sheet.
pub fn sheet(api: Api, lane: &LaneQuota, now: Timestamp) -> Sheet {
    let state = if lane.paused.is_some() {
        "paused"
    } else {
        "ready"
    };
    let until = lane.paused.and_then(|paused| paused.until);
    let until = until.map(|until| Value::Time("until", until));
    let pace = format!("{} searches a minute", rate(lane.searches_per_minute));
    let burst = format!("{} at once after a rest", count(lane.burst));
    let mut in_flight = Figure::new("In flight", count(lane.in_flight));
    in_flight.unit = Some(format!("of at most {}", count(lane.max_in_flight)));
    let mut pace = Figure::new("Pace of scans", pace).note(pace_source(lane.pace_source));
    pace.notes.push(burst.into());
    Sheet {
        title: format!("{} plan", api_name(api)),
        facts: std::iter::once(state.into()).chain(until).collect(),
        figures: vec![left(lane, now), pace, in_flight, limits(lane.bounds)],
        notices: notice(lane).into_iter().collect(),
        ..Sheet::default()
    }
}

/// What is left, of how much, and until when.
fn left(lane: &LaneQuota, now: Timestamp) -> Figure {
    const LABEL: &str = "Left of the plan";
    let Some((limit, left)) = lane.plan_requests_limit.zip(lane.plan_requests_remaining) else {
        let unknown = "the marketplace reports it with the first search";
        return Figure::new(LABEL, Value::Absent("unknown")).note(unknown);
    };
    let mut figure = Figure::new(LABEL, Value::Strong(count(left)));
    figure.unit = Some(format!("of {}", counted(limit, "request")));
    if left <= lane.bounds.keep_in_reserve {
        figure.tone = Tone::Bad;
    }
    let resets = lane.plan_resets_at.map(|resets| {
        let is_old = resets <= now;
        let words = if is_old {
            "of the period before: a new one began"
        } else {
            "the next period begins"
        };
        Value::Time(words, resets)
    });
    let seen = lane.plan_seen_at.map(|seen| Value::Time("reported", seen));
    figure.notes.extend(resets.into_iter().chain(seen));
    figure
}

const fn pace_source(source: PaceSource) -> &'static str {
    match source {
        PaceSource::Start => "assumed until the marketplace reports a rate",
        PaceSource::Headers => "as the marketplace reports",
        PaceSource::After429 => "reduced after a 429; it grows again by itself",
        PaceSource::Caller => "your own limit or plan",
    }
}

/// `60 searches a minute, 4 in flight, plan pro`, and the reserve.
fn limits(bounds: OwnBounds) -> Figure {
    let most = |number: u32, what| format!("{} {what}", count(number));
    let limits = [
        bounds
            .requests_per_minute
            .map(|number| most(number, "searches a minute")),
        bounds.max_in_flight.map(|number| most(number, "in flight")),
        bounds.plan.map(|plan| format!("plan {plan}")),
    ];
    let limits: Vec<_> = limits.into_iter().flatten().collect();
    let reserve = match bounds.keep_in_reserve {
        0 => "no reserve: scans may use the whole plan".to_owned(),
        kept => format!("{} stay for your own calls", counted(kept, "request")),
    };
    let value = match limits[..] {
        [] => Value::Absent("none"),
        _ => limits.join(", ").into(),
    };
    Figure::new("Your limits", value).note(reserve)
}

fn notice(lane: &LaneQuota) -> Option<Notice> {
    let reason = lane.paused.as_ref()?.reason;
    let why = match reason {
        PauseReason::RateLimited => "rate window full".to_owned(),
        PauseReason::QuotaExhausted => "plan used up".to_owned(),
        reason => words(reason.as_str()),
    };
    // A scan must be resumed itself; a lane continues with any scan or monitor that is.
    let text = match reason {
        PauseReason::KeyRejected | PauseReason::NotSubscribed => {
            "It continues when you resume a scan or monitor with a good key, or change the key."
        }
        reason => pause(reason),
    };
    Some(Notice::warning(format!("Paused: {why}."), text))
}
