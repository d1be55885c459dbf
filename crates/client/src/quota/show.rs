//! What is left of each plan, the pace of scans, and the caller's own limits.

use std::io::Write as _;

use farescan_sheets::numbers::count;
use rust_decimal::prelude::ToPrimitive as _;

use crate::Failure;
use crate::client::ClientArgs;
use crate::format::{time, time_or, zone};
use crate::render::{CellTone, Column, ListTable, Text};
use crate::wrap::note;
use farescan_contract::quota::{LaneQuota, OwnBounds, Quota};

/// Prints the quota.
pub(super) async fn run(args: ClientArgs) -> Result<(), Failure> {
    let session = args.open()?;
    let answer = session.client.ask("/v1/quota").await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
        return Ok(());
    }
    let quota: Quota = answer.read()?;
    let lanes = [("flights", &quota.flights), ("hotels", &quota.hotels)];
    writeln!(out, "{}", table(&lanes).render(session.screen))?;
    let seen = [&quota.flights, &quota.hotels].map(|lane| lane.plan_seen_at);
    let last = match seen.into_iter().flatten().max() {
        Some(seen) => format!(
            "As the marketplace reported last, at {} ({}).",
            time(seen),
            zone()
        ),
        None if !quota.known_key => {
            "The service does not know this key yet: `farescan verify` checks it.".to_owned()
        }
        None => {
            "The marketplace has not reported a quota for this key yet: its first search tells."
                .to_owned()
        }
    };
    note!("{last}\n`farescan quota set --help`: a reserve and other limits of your own.");
    Ok(())
}

/// A row for each API. Own limits are left out where there are none.
pub(super) fn table(lanes: &[(&str, &LaneQuota)]) -> ListTable {
    let mut table = ListTable::new([
        Column::text("API"),
        Column::number("Left"),
        Column::number("Of"),
        Column::text("Next period").rank(2),
        Column::number("Reserve").rank(4),
        Column::number("Searches/min"),
        Column::number("In flight").rank(3),
        Column::text("State"),
        Column::text("Own limits").rank(1),
    ]);
    for (api, lane) in lanes {
        table.row(row(api, lane));
    }
    table
}

/// `60/min, 4 in flight, plan pro`.
fn own_limits(bounds: OwnBounds) -> String {
    let limits = [
        bounds.requests_per_minute.map(|most| format!("{most}/min")),
        bounds.max_in_flight.map(|most| format!("{most} in flight")),
        bounds.plan.map(|plan| format!("plan {plan}")),
    ];
    limits.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn row(api: &str, lane: &LaneQuota) -> [Text; 9] {
    let number = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), count);
    let left = number(lane.plan_requests_remaining);
    let is_used_up = lane
        .plan_requests_remaining
        .is_some_and(|left| left <= lane.bounds.keep_in_reserve);
    let state = match &lane.paused {
        None => Text::from("ready"),
        Some(paused) => {
            let until = paused.until.map(|until| format!(" until {}", time(until)));
            Text::new(
                format!("paused: {}{}", paused.reason, until.unwrap_or_default()),
                CellTone::Warning,
            )
        }
    };
    [
        api.into(),
        Text::new(
            left,
            if is_used_up {
                CellTone::Bad
            } else {
                CellTone::Plain
            },
        ),
        number(lane.plan_requests_limit).into(),
        time_or(lane.plan_resets_at, "–").into(),
        count(lane.bounds.keep_in_reserve).into(),
        number(lane.searches_per_minute.round().to_u64()).into(),
        format!("{} of {}", lane.in_flight, lane.max_in_flight).into(),
        state,
        own_limits(lane.bounds).into(),
    ]
}
