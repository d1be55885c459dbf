//! A year of slots in zones with two clock changes, decided by processes that are killed.

use std::collections::BTreeSet;
use std::time::Duration;

use farescan::commands::RequestContext;
use farescan::config::WebhookConfig;
use farescan::monitors::create::create;
use farescan::search::CallerKey;
use farescan::webhooks::Guard;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use jiff_sqlx::ToSqlx as _;
use serde_json::{Value, json};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use super::{at, tick, ticker, with};
use crate::support::app::{KEY, ring};
use crate::support::{Rng, SearchOutcome, TestService};

/// A zone with a schedule whose time its clock skips once a year, and one whose time occurs twice.
struct ZoneCase {
    zone: &'static str,
    cron: &'static str,
    /// The slot of the day with the skipped time: the first instant after the gap.
    gap: &'static str,
    /// The slot of the day with the repeated time: the first occurrence.
    fold: &'static str,
}

const PLACES: [ZoneCase; 3] = [
    ZoneCase {
        zone: "Europe/London",
        cron: "30 1 * * *",
        gap: "2027-03-28T01:00:00Z",
        fold: "2027-10-31T00:30:00Z",
    },
    // 02:30 does not exist on 14 March; 01:30 occurs twice in November, 02:30 does not.
    ZoneCase {
        zone: "America/New_York",
        cron: "30 2 * * *",
        gap: "2027-03-14T07:00:00Z",
        fold: "2027-11-07T07:30:00Z",
    },
    // The southern hemisphere, with a change of half an hour.
    ZoneCase {
        zone: "Australia/Lord_Howe",
        cron: "45 1 * * *",
        gap: "2027-10-02T15:15:00Z",
        fold: "2027-04-03T14:45:00Z",
    },
];

const FIRST: &str = "2026-12-31T18:00:00Z";

impl ZoneCase {
    /// The 365 slots, computed from the calendar and not from the schedule.
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

/// The connections of a separate process.
fn connections(service: &TestService) -> PgPool {
    PgPoolOptions::new()
        .max_connections(4)
        .connect_lazy_with(service.db.connect_options())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_slot_of_a_year_runs_once_while_processes_die() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let key = CallerKey::new(KEY);
    let ring = ring();
    let context = RequestContext {
        pool: service.pool(),
        ring: &ring,
        key: &key,
        now: at(FIRST),
    };
    let mut ids = Vec::new();
    for place in &PLACES {
        let body = with(&json!({"schedule": {"cron": place.cron, "timezone": place.zone}}));
        ids.push(
            create(
                context,
                Guard::new(&WebhookConfig::default()),
                body.as_object().unwrap(),
                None,
            )
            .await
            .unwrap()
            .response
            .id
            .to_string(),
        );
    }
    let last = PLACES
        .iter()
        .filter_map(|place| place.expected().last().copied())
        .max()
        .unwrap();

    let (mut rng, mut kills, mut passes) = (Rng(2027), 0, 0);
    let mut now = at(FIRST);
    let mut processes = [connections(&service), connections(&service)];
    while now <= last {
        // A little late, like real ticks.
        let late = now + SignedDuration::from_millis(i64::try_from(rng.below(2_000)).unwrap());
        kills += run_processes(&service, &mut processes, late, &mut rng).await;
        // The next process decides the rest once the database has noticed the dead connections.
        now = loop {
            passes += 1;
            let next = service.tick(late).await.next.unwrap();
            if next > late {
                break next;
            }
        };
        passes += 2;
        service.complete_all(|_| SearchOutcome::Ok(150)).await;
    }

    for (place, id) in PLACES.iter().zip(&ids) {
        each_slot_once(&service, place, id).await;
    }
    // Each slot has its own scan, and each scan a slot.
    let scans = "select count(*) from scans where monitor_id is not null";
    let of_slots = "select count(distinct scan_id) from monitor_slots";
    let (scans, of_slots, slots) = (
        service.count(scans).await,
        service.count(of_slots).await,
        service.count("select count(*) from monitor_slots").await,
    );
    assert_eq!((scans, of_slots), (slots, slots));
    each_with_its_date(&service).await;
    assert!(kills > 20, "{kills} were killed in time");
    println!(
        "{slots} slots in {} zones, {passes} passes, {kills} of them killed",
        PLACES.len()
    );
}

/// Both processes tick at once, and sometimes one or both are killed. Returns the number of kills.
async fn run_processes(
    service: &TestService,
    processes: &mut [PgPool],
    late: Timestamp,
    rng: &mut Rng,
) -> usize {
    let (mut running, mut kills) = (Vec::new(), 0);
    for process in processes.iter() {
        let runner = ticker(process);
        let task = tokio::spawn(async move { tick(&runner, late).await });
        if rng.below(3) == 0 {
            let (abort, after) = (
                task.abort_handle(),
                Duration::from_micros(rng.below(12_000)),
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
                // The connections of a killed process close.
                std::mem::replace(process, connections(service))
                    .close()
                    .await;
            }
        }
    }
    kills
}

/// Asserts that the slots of a monitor are the expected ones, each with a scan.
async fn each_slot_once(service: &TestService, place: &ZoneCase, id: &str) {
    let rows: Vec<(jiff_sqlx::Timestamp, String, String, bool)> = rows!(
        service.pool(),
        "select slot, outcome, kind, scan_id is not null from monitor_slots where monitor_id = $1 and slot <= $2 order by slot",
        id.parse::<farescan::ids::MonitorId>().unwrap().uuid(),
        place.expected().last().unwrap().to_sqlx()
    );
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

/// Asserts that every run searched the date a week after its slot.
async fn each_with_its_date(service: &TestService) {
    let dates: Vec<(Value, jiff_sqlx::Timestamp, String)> = rows!(service.pool(), "select s.request, m.slot, n.timezone from scans s join monitor_slots m on m.scan_id = s.scan_id
         join monitors n on n.monitor_id = m.monitor_id");
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
            "a week after the date of the slot"
        );
    }
}
