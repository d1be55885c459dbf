//! The slots of a schedule. Pure.
//!
//! A schedule holds wall-clock times (docs/decisions/0014). A time that a clock change skips moves
//! to the first instant after the gap; a time that occurs twice counts the first time. An hourly
//! schedule follows elapsed hours instead: it skips and repeats none.
//!
//! Here: the iteration over slots and the validation of schedules. Not here: parsing cron fields
//! (`contract`, croner), warnings about misleading cron expressions ([`warnings`]).

pub mod warnings;

use croner::Cron;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};

use crate::contract::monitors::ScheduleRequest;
use crate::contract::{FieldValue as _, ValidationError, ValidationErrors};
use crate::notify::first_instant;

/// The shortest time between two slots.
pub const MIN_INTERVAL: SignedDuration = SignedDuration::from_mins(15);
/// How far ahead intervals are checked: more than a year, to cover both clock changes of any zone.
const CHECKED_DAYS: i64 = 400;

/// A cron schedule in a time zone.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
    every_hour: bool,
}

impl Schedule {
    /// Parses a schedule; `None` for an invalid cron expression or an unknown zone.
    pub fn parse(cron: &str, zone: &str) -> Option<Self> {
        let body = serde_json::json!({"cron": cron, "timezone": zone});
        Self::from_request(&ScheduleRequest::read(&body).ok()?)
    }

    /// The schedule of a validated request.
    pub fn from_request(request: &ScheduleRequest) -> Option<Self> {
        let cron = request.cron.parsed()?;
        let zone = TimeZone::get(request.timezone.as_str()).ok()?;
        let every_hour = (0..24).all(|hour| cron.pattern.hour_match(hour).unwrap_or(false));
        Some(Self {
            cron,
            zone,
            every_hour,
        })
    }

    /// Its time zone.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The first slot after a time, if any.
    pub fn after(&self, time: Timestamp) -> Option<Timestamp> {
        // Slots are whole minutes; without the fraction of a second the iteration stays on seconds.
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
            let slot = first_instant(&self.zone, wall)?;
            // In the second pass of a repeated hour, the slot of the first pass is before `time`.
            if slot > time {
                return Some(slot);
            }
        }
    }

    /// The first slot after a time and after `last`, the newest decided slot. A process whose clock
    /// is ahead may have decided `last`.
    pub fn next_undecided(&self, time: Timestamp, last: Option<Timestamp>) -> Option<Timestamp> {
        self.after(last.map_or(time, |last| last.max(time)))
    }

    /// The slots after a time, in order.
    pub fn slots_after(&self, time: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.after(time), |slot| self.after(*slot))
    }

    /// The slots due at `now`, from the slot `first` on.
    pub fn due_slots(&self, first: Timestamp, now: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::once(first)
            .chain(self.slots_after(first))
            .take_while(move |slot| *slot <= now)
    }

    /// The begin and end of the calendar month of a time.
    pub fn month(&self, time: Timestamp) -> (Timestamp, Timestamp) {
        let first = time.to_zoned(self.zone.clone()).date().first_of_month();
        let begin = |date: jiff::civil::Date| {
            first_instant(&self.zone, date.to_datetime(jiff::civil::Time::midnight()))
        };
        let next = first.checked_add(1.month()).unwrap_or(first);
        (
            begin(first).unwrap_or(Timestamp::MIN),
            begin(next).unwrap_or(Timestamp::MAX),
        )
    }

    /// The date of a slot, from which relative dates count.
    pub fn date(&self, slot: Timestamp) -> jiff::civil::Date {
        slot.to_zoned(self.zone.clone()).date()
    }

    /// Requires at least one slot, and at least 15 minutes between two slots.
    ///
    /// # Errors
    /// An error of `cron`.
    pub fn check(&self, request: &ScheduleRequest, now: Timestamp) -> Result<(), ValidationErrors> {
        let cron = request.cron.to_value();
        let refused = |expected: String| {
            ValidationErrors::from(ValidationError::new("schedule.cron", &cron, expected))
        };
        let Some(mut last) = self.after(now) else {
            return Err(refused(
                "a schedule with at least one slot; this one has none".to_owned(),
            ));
        };
        let end = now
            .checked_add(SignedDuration::from_hours(CHECKED_DAYS * 24))
            .unwrap_or(Timestamp::MAX);
        for slot in self.slots_after(last).take_while(|slot| *slot <= end) {
            let between = slot.duration_since(last);
            if between < MIN_INTERVAL {
                let zone = |time: Timestamp| {
                    time.to_zoned(self.zone.clone())
                        .strftime("%Y-%m-%d %H:%M %:z")
                        .to_string()
                };
                let minutes = between.as_mins();
                let (first, second) = (zone(last), zone(slot));
                return Err(refused(format!(
                    "at least {} minutes between two slots; {first} and {second} are {minutes} minutes apart",
                    MIN_INTERVAL.as_mins()
                )));
            }
            last = slot;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
