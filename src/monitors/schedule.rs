//! When slots come: pure.
//!
//! A schedule speaks of wall-clock times (docs/decisions/0014). One that a change of the clock skips comes at the first moment after the
//! gap; one that comes twice counts the first time. A schedule for every hour goes on through both by the hours that there really are:
//! nothing of it is skipped, and nothing comes twice. Here: walking slots, and which schedules may be. Not here: reading cron fields
//! (`contract`, croner), what a cron text does not seem to mean ([`warn`]).

pub mod warn;

use croner::Cron;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan as _};

use crate::contract::monitors::ScheduleRequest;
use crate::contract::{Fault, Faults, FieldValue as _};

/// The shortest time between two slots.
pub const SHORTEST: SignedDuration = SignedDuration::from_mins(15);
/// So far ahead the time between slots is looked at: a year, and so both changes of the clock in any zone, and a bit.
const LOOKED_AT_DAYS: i64 = 400;

/// The slots of a monitor.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
    every_hour: bool,
}

impl Schedule {
    /// Reads a schedule; `None` for a cron text or a zone that this program does not know.
    #[must_use]
    pub fn read(cron: &str, zone: &str) -> Option<Self> {
        let body = serde_json::json!({"cron": cron, "timezone": zone});
        Self::of(&ScheduleRequest::read(&body).ok()?)
    }

    /// The slots of a schedule that was read.
    #[must_use]
    pub fn of(request: &ScheduleRequest) -> Option<Self> {
        let cron = request.cron.parsed()?;
        let zone = TimeZone::get(request.timezone.as_str()).ok()?;
        let every_hour = (0..24).all(|hour| cron.pattern.hour_match(hour).unwrap_or(false));
        Some(Self {
            cron,
            zone,
            every_hour,
        })
    }

    /// In whose wall-clock time it is.
    #[must_use]
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The first slot after a time; `None`: there is none.
    #[must_use]
    pub fn after(&self, time: Timestamp) -> Option<Timestamp> {
        // Slots are whole minutes; without its fraction of a second the walk stays on whole seconds.
        let time = Timestamp::from_second(time.as_second()).unwrap_or(time);
        let start = time.to_zoned(self.zone.clone());
        if self.every_hour {
            return self
                .cron
                .find_next_occurrence(&start, false)
                .ok()
                .map(|slot| slot.timestamp());
        }
        let mut wall = start.datetime();
        loop {
            wall = self.cron.find_next_occurrence(&wall, false).ok()?;
            let slot = first_moment(&self.zone, wall)?;
            // In the second pass of a repeated hour its times have been.
            if slot > time {
                return Some(slot);
            }
        }
    }

    /// The first slot after a time that is not on record; `last` is the newest that is: whoever decided it may have a clock that is ahead.
    #[must_use]
    pub fn after_decided(&self, time: Timestamp, last: Option<Timestamp>) -> Option<Timestamp> {
        self.after(last.map_or(time, |last| last.max(time)))
    }

    /// The slots after a time, in their order.
    pub fn slots(&self, time: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.after(time), |slot| self.after(*slot))
    }

    /// The slots that are due at a time, from one that is its own on.
    pub fn due(&self, first: Timestamp, now: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::once(first)
            .chain(self.slots(first))
            .take_while(move |slot| *slot <= now)
    }

    /// Where the calendar month of a time begins, and where the next one does.
    #[must_use]
    pub fn month(&self, time: Timestamp) -> (Timestamp, Timestamp) {
        let first = time.to_zoned(self.zone.clone()).date().first_of_month();
        let begin = |date: jiff::civil::Date| {
            first_moment(&self.zone, date.to_datetime(jiff::civil::Time::midnight()))
        };
        let next = first.checked_add(1.month()).unwrap_or(first);
        (
            begin(first).unwrap_or(Timestamp::MIN),
            begin(next).unwrap_or(Timestamp::MAX),
        )
    }

    /// The day of a slot, by which relative dates count.
    #[must_use]
    pub fn date(&self, slot: Timestamp) -> jiff::civil::Date {
        slot.to_zoned(self.zone.clone()).date()
    }

    /// A schedule may be if it has a slot, and none within 15 minutes of another.
    ///
    /// # Errors
    /// A fault of `cron`.
    pub fn check(&self, request: &ScheduleRequest, now: Timestamp) -> Result<(), Faults> {
        let cron = request.cron.to_value();
        let refused = |allowed: String| Faults::from(Fault::new("schedule.cron", &cron, allowed));
        let Some(mut last) = self.after(now) else {
            return Err(refused(
                "a schedule that has a slot: this one has none".to_owned(),
            ));
        };
        let end = now
            .checked_add(SignedDuration::from_hours(LOOKED_AT_DAYS * 24))
            .unwrap_or(Timestamp::MAX);
        for slot in self.slots(last).take_while(|slot| *slot <= end) {
            let between = slot.duration_since(last);
            if between < SHORTEST {
                let zone = |time: Timestamp| {
                    time.to_zoned(self.zone.clone())
                        .strftime("%Y-%m-%d %H:%M %:z")
                        .to_string()
                };
                let minutes = between.as_mins();
                let (first, second) = (zone(last), zone(slot));
                return Err(refused(format!(
                    "at least {} minutes between two slots; {first} and {second} are {minutes} minutes apart",
                    SHORTEST.as_mins()
                )));
            }
            last = slot;
        }
        Ok(())
    }
}

/// When a wall-clock time first comes; one that is skipped, the first moment after the gap.
fn first_moment(zone: &TimeZone, wall: DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(wall).ok(),
        // By the clock as it is after the gap, the skipped time lies before it.
        AmbiguousOffset::Gap { after, .. } => {
            let before_gap = after.to_timestamp(wall).ok()?;
            zone.following(before_gap)
                .next()
                .map(|change| change.timestamp())
        }
    }
}

#[cfg(test)]
mod tests;
