//! A year of slots, in zones whose clocks change twice, by processes that die in the middle of them.

use std::collections::BTreeSet;
use std::time::Duration;

use farescan::config::WebhookConfig;
use farescan::monitors::create::create;
use farescan::scans::Desk;
use farescan::search::CallerKey;
use farescan::webhooks::Guard;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use jiff_sqlx::ToSqlx as _;
use serde_json::{Value, json};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use super::{at, tick, ticker, with};
use crate::control::house::Dice;
use crate::scans::office::{Comes, Office};
use crate::support::app::{KEY, ring};

/// A zone, a time that its clock skips once a year and one that it has twice, and when those days' slots come.
struct Place {
    zone: &'static str,
    cron: &'static str,
    /// The slot of the day that has no such time: the first moment after the gap.
    gap: &'static str,
    /// The slot of the day that has the time twice: the first.
    fold: &'static str,
}

const PLACES: [Place; 3] = [
    Place {
        zone: "Europe/London",
        cron: "30 1 * * *",
        gap: "2027-03-28T01:00:00Z",
        fold: "2027-10-31T00:30:00Z",
    },
    // 02:30 does not exist on the 14th of March; 01:30 would come twice in November, 02:30 does not.
    Place {
        zone: "America/New_York",
        cron: "30 2 * * *",
        gap: "2027-03-14T07:00:00Z",
        fold: "2027-11-07T07:30:00Z",
    },
    // The other half of the year, and half an hour.
    Place {
        zone: "Australia/Lord_Howe",
        cron: "45 1 * * *",
        gap: "2027-10-02T15:15:00Z",
        fold: "2027-04-03T14:45:00Z",
    },
];

const FIRST: &str = "2026-12-31T18:00:00Z";

impl Place {
    /// The 365 slots, worked out from the calendar and not from the schedule.
    fn expected(&self) -> BTreeSet<Timestamp> {
        let zone = TimeZone::get(self.zone).unwrap();
        let mut words = self.cron.split(' ');
        let (minute, hour): (i8, i8) = (
            words.next().unwrap().parse().unwrap(),
            words.next().unwrap().parse().unwrap(),
        );
        let first = at(FIRST);
        let days = (0..367).map(|day| {
            first
                .to_zoned(zone.clone())
                .date()
                .checked_add(day.days())
                .unwrap()
        });
        let slots = days.map(|day| {
            let slot = zone.to_ambiguous_timestamp(day.at(hour, minute, 0, 0));
            if let Ok(slot) = slot.unambiguous() {
                return slot;
            }
            [at(self.gap), at(self.fold)]
                .into_iter()
                .find(|slot| slot.to_zoned(zone.clone()).date() == day)
                .unwrap()
        });
        slots.filter(|slot| *slot > first).take(365).collect()
    }
}

/// What a process of its own has.
fn connections(office: &Office) -> PgPool {
    PgPoolOptions::new()
        .max_connections(4)
        .connect_lazy_with(office.db.connect_options())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_year_of_slots_each_once_whatever_dies_between_them() {
    let office = Office::open().await;
    office.warm().await;
    let key = CallerKey::new(KEY);
    let ring = ring();
    let desk = Desk {
        pool: office.db.pool(),
        ring: &ring,
        key: &key,
        now: at(FIRST),
    };
    let mut ids = Vec::new();
    for place in &PLACES {
        let body = with(&json!({"schedule": {"cron": place.cron, "timezone": place.zone}}));
        ids.push(
            create(
                desk,
                Guard::new(&WebhookConfig::default()),
                body.as_object().unwrap(),
                None,
            )
            .await
            .unwrap()
            .answer
            .id
            .to_string(),
        );
    }
    let last = PLACES
        .iter()
        .filter_map(|place| place.expected().last().copied())
        .max()
        .unwrap();

    let (mut dice, mut kills, mut passes) = (Dice(2027), 0, 0);
    let mut now = at(FIRST);
    let mut processes = [connections(&office), connections(&office)];
    while now <= last {
        // A little late, as clocks are.
        let late = now + SignedDuration::from_millis(i64::try_from(dice.below(2_000)).unwrap());
        kills += come(&office, &mut processes, late, &mut dice).await;
        // Whoever comes next finds what they left, once the database has seen that they are gone.
        now = loop {
            passes += 1;
            let next = office.tick(late).await.next.unwrap();
            if next > late {
                break next;
            }
        };
        passes += 2;
        office.work(|_| Comes::Ok(150)).await;
    }

    for (place, id) in PLACES.iter().zip(&ids) {
        each_slot_once(&office, place, id).await;
    }
    // Each with a scan of its own, and no scan without its slot.
    let scans = "select count(*) from scans where monitor_id is not null";
    let of_slots = "select count(distinct scan_id) from monitor_slots";
    let (scans, of_slots, slots) = (
        office.count(scans).await,
        office.count(of_slots).await,
        office.count("select count(*) from monitor_slots").await,
    );
    assert_eq!((scans, of_slots), (slots, slots));
    each_with_its_date(&office).await;
    assert!(kills > 20, "{kills} were killed in time");
    println!(
        "{slots} slots in {} zones, {passes} passes, {kills} of them killed",
        PLACES.len()
    );
}

/// The processes come to a slot at once; now and then one or both are killed somewhere in it. Gives how many were.
async fn come(
    office: &Office,
    processes: &mut [PgPool],
    late: Timestamp,
    dice: &mut Dice,
) -> usize {
    let (mut running, mut kills) = (Vec::new(), 0);
    for process in processes.iter() {
        let runner = ticker(process);
        let task = tokio::spawn(async move { tick(&runner, late).await });
        if dice.below(3) == 0 {
            let (abort, after) = (
                task.abort_handle(),
                Duration::from_micros(dice.below(12_000)),
            );
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                abort.abort();
            });
        }
        running.push(task);
    }
    for (task, process) in running.into_iter().zip(processes) {
        match task.await {
            Ok(pass) => assert_eq!(pass.unwrap().failed, 0),
            Err(killed) => {
                assert!(killed.is_cancelled(), "{killed}");
                kills += 1;
                // Its connections go with a process.
                std::mem::replace(process, connections(office))
                    .close()
                    .await;
            }
        }
    }
    kills
}

/// The slots of a monitor are those of its place, each with a scan.
async fn each_slot_once(office: &Office, place: &Place, id: &str) {
    let rows: Vec<(jiff_sqlx::Timestamp, String, String, bool)> = sqlx::query_as(
        "select slot, outcome, kind, scan_id is not null from monitor_slots where monitor_id = $1 and slot <= $2 order by slot",
    )
    .bind(id.parse::<farescan::ids::MonitorId>().unwrap().uuid())
    .bind(place.expected().last().unwrap().to_sqlx())
    .fetch_all(office.db.pool())
    .await
    .unwrap();
    let slots: Vec<_> = rows.iter().map(|(slot, ..)| slot.to_jiff()).collect();
    assert_eq!(
        slots,
        place.expected().into_iter().collect::<Vec<_>>(),
        "{}: none missed, none twice",
        place.zone
    );
    assert!(
        slots.contains(&at(place.gap)) && slots.contains(&at(place.fold)),
        "{}",
        place.zone
    );
    assert_eq!(slots.len(), 365);
    assert!(
        rows.iter()
            .all(|(_, outcome, kind, scan)| outcome == "ran" && kind == "schedule" && *scan),
        "{}",
        place.zone
    );
}

/// Every run searched the day a week after its slot's own.
async fn each_with_its_date(office: &Office) {
    let dates: Vec<(Value, jiff_sqlx::Timestamp, String)> = sqlx::query_as(
        "select s.request, m.slot, n.timezone from scans s join monitor_slots m on m.scan_id = s.scan_id
         join monitors n on n.monitor_id = m.monitor_id",
    )
    .fetch_all(office.db.pool())
    .await
    .unwrap();
    for (request, slot, zone) in dates {
        let day = slot
            .to_jiff()
            .in_tz(&zone)
            .unwrap()
            .date()
            .checked_add(7.days())
            .unwrap();
        assert_eq!(
            request["departure_date"],
            day.to_string(),
            "a week after the slot's own day"
        );
    }
}
