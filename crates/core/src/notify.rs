//! Quiet hours and daily messages: when alerts are sent to a webhook (monitors.md, rules 90 to 94) or
//! a channel. Pure.
//!
//! Both times are wall-clock times, which clock changes move as they move slots
//! ([`first_instant`]). Not here: sending the held alerts (`monitors`, `channels`).

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan as _};

use crate::contract::monitors::{NotifySettings, QuietHours};

/// The days around a time that are searched for a wall-clock time: its own, and its neighbours
/// where a clock change crosses midnight or skips a day.
const NEXT_DAYS: std::ops::RangeInclusive<i64> = 0..=2;
const NEAR_DAYS: std::ops::RangeInclusive<i64> = -1..=1;

/// The settings of a monitor or a channel in its time zone.
#[derive(Debug, Clone)]
pub struct NotifyPlan {
    settings: NotifySettings,
    zone: TimeZone,
}

impl NotifyPlan {
    /// `None` without settings, and if the zone is unknown: alerts are sent at once, not lost.
    pub fn new(settings: Option<&NotifySettings>, zone: &str) -> Option<Self> {
        Some(Self {
            settings: settings?.clone(),
            zone: TimeZone::get(zone).ok()?,
        })
    }

    /// Until when an alert of this time is held; `None`: it is sent at once. `last` is the time for
    /// which held alerts were sent last: a process whose clock is behind does not hold for it again.
    pub fn hold_until(&self, now: Timestamp, last: Option<Timestamp>) -> Option<Timestamp> {
        if self.settings.digest_at.is_some() {
            return self.next_digest(now, last);
        }
        self.quiet_until(now)
            .filter(|end| last.is_none_or(|last| *end > last))
    }

    /// The first digest after a time and after `last`.
    pub fn next_digest(&self, now: Timestamp, last: Option<Timestamp>) -> Option<Timestamp> {
        let digest_at = self.settings.digest_at.as_ref()?.time();
        let after = last.map_or(now, |last| last.max(now));
        self.days_near(after, NEXT_DAYS)
            .filter_map(|day| self.at(day, digest_at))
            .find(|digest| *digest > after)
    }

    /// The end of the quiet hours that a time is in.
    pub fn quiet_until(&self, now: Timestamp) -> Option<Timestamp> {
        let QuietHours { from, until } = self.settings.quiet_hours.as_ref()?;
        let (from, until) = (from.time(), until.time());
        self.days_near(now, NEAR_DAYS).find_map(|day| {
            let last_day = if from < until {
                day
            } else {
                plus_days(day, 1)?
            };
            let end = self.at(last_day, until)?;
            (self.at(day, from)? <= now && now < end).then_some(end)
        })
    }

    fn days_near(
        &self,
        time: Timestamp,
        days: std::ops::RangeInclusive<i64>,
    ) -> impl Iterator<Item = Date> {
        let day = time.to_zoned(self.zone.clone()).date();
        days.filter_map(move |more| plus_days(day, more))
    }

    fn at(&self, day: Date, time: Time) -> Option<Timestamp> {
        first_instant(&self.zone, day.to_datetime(time))
    }
}

/// The first instant of a wall-clock time; for a skipped time, the first instant after the gap.
pub fn first_instant(zone: &TimeZone, wall: DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(wall).ok(),
        // With the offset after the gap, the skipped time lies before the gap.
        AmbiguousOffset::Gap { after, .. } => {
            let before_gap = after.to_timestamp(wall).ok()?;
            zone.following(before_gap)
                .next()
                .map(|change| change.timestamp())
        }
    }
}

fn plus_days(day: Date, days: i64) -> Option<Date> {
    day.checked_add(days.days()).ok()
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use serde_json::{Value, json};

    use super::NotifyPlan;
    use crate::contract::FieldValue as _;
    use crate::contract::monitors::NotifySettings;

    fn plan(settings: &Value, zone: &str) -> NotifyPlan {
        let settings = NotifySettings::read(settings).unwrap();
        assert!(settings.cross_field_errors().is_empty());
        NotifyPlan::new(Some(&settings), zone).unwrap()
    }

    fn quiet(from: &str, until: &str, zone: &str) -> NotifyPlan {
        plan(
            &json!({"quiet_hours": {"from": from, "until": until}}),
            zone,
        )
    }

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    #[test]
    fn quiet_hours_include_their_begin_and_not_their_end() {
        let night = quiet("22:00", "07:00", "UTC");
        let end = Some(at("2026-12-02T07:00:00Z"));
        for (now, held) in [
            ("2026-12-01T21:59:59.999Z", None),
            ("2026-12-01T22:00:00Z", end),
            ("2026-12-02T00:00:00Z", end),
            ("2026-12-02T06:59:59.999Z", end),
            ("2026-12-02T07:00:00Z", None),
        ] {
            assert_eq!(night.hold_until(at(now), None), held, "{now}");
        }
        let noon = quiet("12:00", "13:30", "UTC");
        assert_eq!(
            noon.quiet_until(at("2026-12-01T12:10:00Z")),
            Some(at("2026-12-01T13:30:00Z"))
        );
        assert_eq!(noon.quiet_until(at("2026-12-01T13:30:00Z")), None);
    }

    /// London: 2027-03-28 has no 01:00 to 02:00, and 2027-10-31 has it twice.
    #[test]
    fn clock_changes_move_the_times_as_slots() {
        let london = "Europe/London";
        let skipped = quiet("22:00", "01:30", london);
        assert_eq!(
            skipped.quiet_until(at("2027-03-28T00:30:00Z")),
            Some(at("2027-03-28T01:00:00Z"))
        );
        let within = quiet("01:10", "01:50", london);
        assert_eq!(within.quiet_until(at("2027-03-28T01:00:00Z")), None);
        let doubled = quiet("22:00", "01:30", london);
        assert_eq!(
            doubled.quiet_until(at("2027-10-31T00:10:00Z")),
            Some(at("2027-10-31T00:30:00Z"))
        );
        assert_eq!(doubled.quiet_until(at("2027-10-31T01:10:00Z")), None);
        let digest = plan(&json!({"digest_at": "01:30"}), london);
        for (now, next) in [
            ("2027-03-28T00:59:00Z", "2027-03-28T01:00:00Z"),
            ("2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"),
            ("2027-10-31T00:29:00Z", "2027-10-31T00:30:00Z"),
            ("2027-10-31T01:29:00Z", "2027-11-01T01:30:00Z"),
        ] {
            assert_eq!(digest.next_digest(at(now), None), Some(at(next)), "{now}");
        }
        // Samoa had no 30 December 2011.
        let samoa = plan(&json!({"digest_at": "08:00"}), "Pacific/Apia");
        let first = samoa.next_digest(at("2011-12-30T09:59:00Z"), None);
        assert_eq!(first, Some(at("2011-12-30T10:00:00Z")));
    }

    #[test]
    fn each_day_has_one_digest() {
        let year = SignedDuration::from_hours(24 * 366);
        for zone in [
            "UTC",
            "Europe/London",
            "America/New_York",
            "Australia/Lord_Howe",
        ] {
            for time in ["00:00", "01:30", "02:15", "23:59"] {
                let digest = plan(&json!({"digest_at": time}), zone);
                let (first, mut count) = (at("2027-01-01T12:00:00Z"), 0);
                let mut last = first;
                while let Some(next) = digest.next_digest(first, Some(last)) {
                    if next > first + year {
                        break;
                    }
                    let hours = next.duration_since(last).as_hours();
                    assert!(count == 0 || (22..=25).contains(&hours), "{zone} {next}");
                    (last, count) = (next, count + 1);
                }
                assert_eq!(count, 366, "{zone} {time}");
            }
        }
    }

    #[test]
    fn what_was_sent_is_not_held_for_again() {
        let (day, night) = (
            plan(&json!({"digest_at": "08:00"}), "UTC"),
            quiet("22:00", "07:00", "UTC"),
        );
        let sent = Some(at("2026-12-02T08:00:00Z"));
        let behind = at("2026-12-02T07:59:59.9Z");
        assert_eq!(
            day.hold_until(behind, sent),
            Some(at("2026-12-03T08:00:00Z"))
        );
        let sent = Some(at("2026-12-02T07:00:00Z"));
        assert_eq!(night.hold_until(at("2026-12-02T06:59:59.9Z"), sent), None);
        assert!(night.hold_until(at("2026-12-02T22:00:00Z"), sent).is_some());
        assert!(NotifyPlan::new(None, "UTC").is_none());
    }
}
