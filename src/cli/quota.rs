//! `farescan quota`: what is left of each plan, and the pace of scans.

use std::io::Write as _;

use super::Failure;
use super::client::ClientArgs;
use super::format::{count, time, time_or, zone};
use super::render::{Column, ListTable, Text, Tone};
use crate::contract::quota::{LaneQuota, Quota};

/// Prints the quota.
pub async fn run(args: ClientArgs) -> Result<(), Failure> {
    let session = args.open()?;
    let answer = session.client.ask("/v1/quota").await?;
    let mut out = anstream::stdout();
    if session.json {
        writeln!(out, "{}", answer.text.trim_end())?;
        return Ok(());
    }
    let quota: Quota = answer.read()?;
    let mut table = ListTable::new([
        Column::text("API"),
        Column::number("Left"),
        Column::number("Of"),
        Column::text("Next period").rank(2),
        Column::number("Reserve").rank(4),
        Column::number("Searches/min"),
        Column::number("In flight").rank(3),
        Column::text("State"),
    ]);
    for (api, lane) in [("flights", &quota.flights), ("hotels", &quota.hotels)] {
        table.row(row(api, lane));
    }
    writeln!(out, "{}", table.render(session.screen))?;
    let seen = [&quota.flights, &quota.hotels].map(|lane| lane.plan_seen_at);
    let note = match seen.into_iter().flatten().max() {
        Some(seen) => format!(
            "As the marketplace reported last, at {} ({}).",
            time(seen),
            zone()
        ),
        None => {
            "The marketplace has not reported a quota for this key yet: its first search tells."
                .to_owned()
        }
    };
    anstream::eprintln!("{note}");
    Ok(())
}

fn row(api: &str, lane: &LaneQuota) -> [Text; 8] {
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
                Tone::Warning,
            )
        }
    };
    [
        api.into(),
        Text::new(left, if is_used_up { Tone::Bad } else { Tone::Plain }),
        number(lane.plan_requests_limit).into(),
        time_or(lane.plan_resets_at, "–").into(),
        count(lane.bounds.keep_in_reserve).into(),
        format!("{:.0}", lane.searches_per_minute).into(),
        format!("{} of {}", lane.in_flight, lane.max_in_flight).into(),
        state,
    ]
}
