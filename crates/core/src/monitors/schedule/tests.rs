use std::collections::BTreeSet;

use jiff::civil::{DateTime, date};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::Schedule;
use crate::contract::FieldValue as _;
use crate::contract::monitors::ScheduleRequest;

fn schedule(cron: &str, zone: &str) -> Schedule {
    Schedule::parse(cron, zone).unwrap_or_else(|| panic!("{cron} {zone}"))
}

/// The slots from one time up to another, as wall-clock times of the zone with their offsets.
fn local(cron: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
    let schedule = schedule(cron, zone);
    let (from, to): (Timestamp, Timestamp) = (from.parse().unwrap(), to.parse().unwrap());
    let shown = |slot: Timestamp| {
        slot.to_zoned(schedule.zone().clone())
            .strftime("%m-%d %H:%M %:z")
            .to_string()
    };
    schedule
        .slots_after(from)
        .take_while(|slot| *slot <= to)
        .map(shown)
        .collect()
}

#[test]
fn a_skipped_time_moves_to_the_first_instant_after_the_gap() {
    // London: 01:00 became 02:00 on 2027-03-28.
    let days = ["2027-03-26T12:00:00Z", "2027-03-29T12:00:00Z"];
    assert_eq!(
        local("30 1 * * *", "Europe/London", days[0], days[1]),
        [
            "03-27 01:30 +00:00",
            "03-28 02:00 +01:00",
            "03-29 01:30 +01:00"
        ]
    );
    // Only hourly schedules follow elapsed hours: of two slots a day, neither is lost.
    assert_eq!(
        local(
            "30 1,13 * * *",
            "Europe/London",
            "2027-03-28T00:00:00Z",
            "2027-03-28T23:00:00Z"
        )
        .len(),
        2
    );
    // Two times in one gap give one slot.
    assert_eq!(
        local(
            "0 0,1,2 28 3 *",
            "Europe/London",
            "2027-03-27T12:00:00Z",
            "2027-03-28T12:00:00Z"
        ),
        ["03-28 00:00 +00:00", "03-28 02:00 +01:00"]
    );
    // A gap at midnight: the day begins at 01:00.
    assert_eq!(
        local(
            "0 0 * * *",
            "Africa/Cairo",
            "2027-04-29T12:00:00Z",
            "2027-04-30T12:00:00Z"
        ),
        ["04-30 01:00 +03:00"]
    );
}

#[test]
fn a_repeated_time_counts_the_first_time() {
    // London: 02:00 became 01:00 on 2027-10-31.
    assert_eq!(
        local(
            "30 1 * * *",
            "Europe/London",
            "2027-10-30T12:00:00Z",
            "2027-11-01T12:00:00Z"
        ),
        ["10-31 01:30 +01:00", "11-01 01:30 +00:00"]
    );
    // From within the second pass, the slot of that day is over.
    assert_eq!(
        local(
            "30,45 1 * * *",
            "Europe/London",
            "2027-10-31T00:50:00Z",
            "2027-10-31T12:00:00Z"
        ),
        Vec::<String>::new()
    );
    assert_eq!(
        local(
            "50 1 * * *",
            "Europe/London",
            "2027-10-31T01:10:00Z",
            "2027-10-31T12:00:00Z"
        ),
        Vec::<String>::new()
    );
}

#[test]
fn an_hourly_schedule_follows_elapsed_hours() {
    for (day, hours) in [("2027-03-28", 23), ("2027-06-01", 24), ("2027-10-31", 25)] {
        let day: jiff::civil::Date = day.parse().unwrap();
        let begin = |day: jiff::civil::Date| day.in_tz("Europe/London").unwrap().timestamp();
        let (from, to) = (begin(day), begin(day.tomorrow().unwrap()));
        let slots: Vec<_> = schedule("5 * * * *", "Europe/London")
            .slots_after(from)
            .take_while(|slot| *slot < to)
            .collect();
        assert_eq!(slots.len(), hours, "{day}");
        assert!(
            slots
                .windows(2)
                .all(|pair| pair[1].duration_since(pair[0]) == SignedDuration::from_hours(1)),
            "{day}"
        );
    }
}

#[test]
fn months_and_days_are_in_the_schedules_zone() {
    let kiritimati = schedule("0 0 * * *", "Pacific/Kiritimati");
    let now = "2027-01-31T10:00:00Z".parse().unwrap();
    assert_eq!(kiritimati.date(now), date(2027, 2, 1));
    let (begin, end) = kiritimati.month(now);
    assert_eq!(
        (begin.to_string(), end.to_string()),
        (
            "2027-01-31T10:00:00Z".to_owned(),
            "2027-02-28T10:00:00Z".to_owned()
        )
    );
}

fn refused(cron: &str, zone: &str) -> Option<String> {
    let request = ScheduleRequest::read(&json!({"cron": cron, "timezone": zone}))
        .map_err(|wrong| wrong.to_string());
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    match request {
        Err(wrong) => Some(wrong),
        Ok(request) => Schedule::from_request(&request)
            .unwrap()
            .check(&request, now)
            .err()
            .map(|wrong| wrong.to_string()),
    }
}

#[test]
fn slots_closer_than_fifteen_minutes_are_refused() {
    for (cron, zone) in [
        ("*/15 * * * *", "Europe/London"),
        ("5 * * * *", "Europe/London"),
        ("10,40 * * * *", "America/New_York"),
        ("0 6 * * *", "Australia/Lord_Howe"),
        ("30 7 * * mon-fri", "Asia/Tokyo"),
        ("0 0 29 2 *", "UTC"),
        ("0 12 1,15 JAN-jun *", "utc"),
    ] {
        assert_eq!(refused(cron, zone), None, "{cron} {zone}");
    }
    let close = "at least 15 minutes between two slots";
    for (cron, zone, says) in [
        ("* * * * *", "UTC", close),
        ("*/14 * * * *", "UTC", close),
        ("0,50 * * * *", "UTC", close),
        // On one day of the year: 01:05 moves to 02:00, five minutes before 02:05.
        (
            "5 1,2 * * *",
            "Europe/London",
            "2027-03-28 02:00 +01:00 and 2027-03-28 02:05 +01:00 are 5 minutes apart",
        ),
        ("0 0 31 2 *", "UTC", "a schedule with at least one slot"),
        ("@daily", "UTC", "five cron fields"),
        ("0 6 * *", "UTC", "five cron fields"),
        ("0 0 6 * * *", "UTC", "five cron fields"),
        ("61 6 * * *", "UTC", "five cron fields"),
        ("0 6 * * *\n", "UTC", "five cron fields"),
        ("0 6 * * *", "Mars/Olympus", "IANA time zone"),
        ("0 6 * * *", "+01:00", "IANA time zone"),
        ("0 6 * * *", "", "IANA time zone"),
    ] {
        let refused = refused(cron, zone).unwrap_or_else(|| panic!("{cron} {zone} is taken"));
        assert!(refused.contains(says), "{cron} {zone}: {refused}");
    }
    assert_eq!(
        schedule("0 6 * * *", "europe/LONDON").zone().iana_name(),
        Some("Europe/London")
    );
}

/// A cron field and the values that it matches, computed without croner.
#[derive(Debug, Clone)]
struct Field {
    text: String,
    takes: BTreeSet<i8>,
    is_any: bool,
}

fn field(first: i8, last: i8) -> impl Strategy<Value = Field> {
    let any = Just(Field {
        text: "*".to_owned(),
        takes: (first..=last).collect(),
        is_any: true,
    });
    let list = prop::collection::btree_set(first..=last, 1..4).prop_map(|takes| Field {
        text: takes
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(","),
        takes,
        is_any: false,
    });
    let range = (first..=last, first..=last, 1..7_i8).prop_map(move |(a, b, step)| {
        let (low, high) = (a.min(b), a.max(b));
        Field {
            text: format!("{low}-{high}/{step}"),
            takes: (low..=high)
                .step_by(usize::try_from(step).unwrap())
                .collect(),
            is_any: false,
        }
    });
    prop_oneof![2 => any, 3 => list, 1 => range]
}

/// The slots between two times, by brute force over every minute.
fn walked(
    fields: &[Field; 5],
    zone: &TimeZone,
    from: Timestamp,
    to: Timestamp,
) -> BTreeSet<Timestamp> {
    let [minute, hour, day, month, weekday] = fields;
    let is_wanted = |wall: DateTime| {
        let of_month = day.takes.contains(&wall.day());
        let of_week = weekday
            .takes
            .contains(&wall.weekday().to_sunday_zero_offset());
        // If both day fields are set, either may match, as in every cron.
        let is_day = match (day.is_any, weekday.is_any) {
            (true, _) => of_week,
            (_, true) => of_month,
            _ => of_month || of_week,
        };
        minute.takes.contains(&wall.minute())
            && hour.takes.contains(&wall.hour())
            && month.takes.contains(&wall.month())
            && is_day
    };
    let every_hour = hour.takes.len() == 24;
    let mut slots = BTreeSet::new();
    if every_hour {
        // Every elapsed minute.
        let mut now = Timestamp::from_second(from.as_second().div_euclid(60) * 60).unwrap();
        while now <= to {
            if is_wanted(now.to_zoned(zone.clone()).datetime()) {
                slots.insert(now);
            }
            now += SignedDuration::from_mins(1);
        }
    } else {
        // Every wall-clock minute, with a margin of a day on each side.
        let mut wall = date_of(from, zone)
            .checked_sub(1.day())
            .unwrap()
            .at(0, 0, 0, 0);
        let end = date_of(to, zone)
            .checked_add(2.days())
            .unwrap()
            .at(0, 0, 0, 0);
        while wall < end {
            if is_wanted(wall) {
                slots.insert(first(zone, wall));
            }
            wall = wall.checked_add(1.minute()).unwrap();
        }
    }
    slots
        .into_iter()
        .filter(|slot| *slot > from && *slot <= to)
        .collect()
}

fn date_of(time: Timestamp, zone: &TimeZone) -> jiff::civil::Date {
    time.to_zoned(zone.clone()).date()
}

/// The first instant of a wall-clock minute; for a skipped one, of the next minute that exists.
fn first(zone: &TimeZone, mut wall: DateTime) -> Timestamp {
    loop {
        match zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Gap { .. } => wall = wall.checked_add(1.minute()).unwrap(),
            AmbiguousOffset::Unambiguous { offset }
            | AmbiguousOffset::Fold { before: offset, .. } => {
                return offset.to_timestamp(wall).unwrap();
            }
        }
    }
}

/// Zones with various clock changes: an hour at night, at midnight, half an hour, two hours, in the
/// southern hemisphere.
const ZONES: [&str; 9] = [
    "Europe/London",
    "America/New_York",
    "Africa/Cairo",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "America/Santiago",
    "Pacific/Chatham",
    "Asia/Kathmandu",
    "UTC",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn slots_equal_a_brute_force_walk_over_every_minute(
        fields in (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)),
        zone in select(&ZONES[..]),
        change in 0..6_usize,
        hours_before in 1..60_i64,
    ) {
        let fields = [fields.0, fields.1, fields.2, fields.3, fields.4];
        let cron = fields.iter().map(|field| field.text.as_str()).collect::<Vec<_>>().join(" ");
        let schedule = schedule(&cron, zone);
        let begin: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        // Around a clock change, if the zone has one.
        let near = schedule.zone().following(begin).nth(change).map_or(begin, |change| change.timestamp());
        let (from, to) = (near - SignedDuration::from_hours(hours_before), near + SignedDuration::from_hours(40));
        let slots: Vec<_> = schedule.slots_after(from).take_while(|slot| *slot <= to).collect();
        prop_assert!(slots.windows(2).all(|pair| pair[0] < pair[1]), "{cron} {zone}: {slots:?}");
        let walked: Vec<_> = walked(&fields, schedule.zone(), from, to).into_iter().collect();
        prop_assert_eq!(slots, walked, "{} {} from {}", cron, zone, from);
    }
}
