use jiff::civil::date;

use super::*;

fn at(day: Date, hour: i8) -> Timestamp {
    let noon = day.at(hour, 0, 0, 0).to_zoned(TimeZone::UTC);
    noon.unwrap().timestamp()
}

fn used(source: UseSource, day: Date, billed: u64) -> DailyUse {
    DailyUse {
        day,
        source,
        billed,
    }
}

fn monitor(number: u128) -> UseSource {
    let id = uuid::Uuid::from_u128(number);
    UseSource::Monitor(id.into(), format!("monitor {number}"))
}

/// `billed` on each day before `today`, from `first` on.
fn daily(source: &UseSource, first: Date, today: Date, billed: u64) -> Vec<DailyUse> {
    let days = first.series(1.day()).take_while(|day| *day < today);
    days.map(|day| used(source.clone(), day, billed)).collect()
}

const TODAY: Date = date(2026, 11, 12);

fn left(requests: u64) -> PlanLeft {
    PlanLeft {
        api: Api::Flights,
        limit: Some(2_500),
        requests,
        resets_at: Some(at(date(2026, 12, 1), 0)),
    }
}

#[test]
fn a_steady_use_ends_where_it_is_used_up() {
    let uses = daily(&monitor(1), date(2026, 11, 1), TODAY, 10);
    let ends = |requests| {
        let forecast = forecast(&uses, left(requests), at(TODAY, 0)).unwrap();
        (forecast.ends_on, forecast.requests_per_day)
    };
    assert_eq!(ends(10), (Some(TODAY), 10.0));
    assert_eq!(ends(11), (Some(date(2026, 11, 13)), 10.0));
    assert_eq!(ends(190), (Some(date(2026, 11, 30)), 10.0));
    assert_eq!(ends(191), (None, 10.0), "it lasts until the reset");
}

#[test]
fn the_use_until_the_reset_is_the_sum_of_its_days() {
    // Ten a day by a monitor, and twenty each Friday by single searches: 13, 20 and 27 November.
    let mut uses = daily(&monitor(1), date(2026, 10, 15), TODAY, 10);
    let fridays = [16, 23, 30].map(|day| used(UseSource::Single, date(2026, 10, day), 20));
    uses.extend(fridays);
    uses.push(used(UseSource::Single, date(2026, 11, 6), 20));
    let forecast = forecast(&uses, left(2_188), at(TODAY, 0)).unwrap();
    assert_eq!(forecast.requests_expected, Some(19 * 10 + 3 * 20));
    assert_eq!(forecast.requests_limit, Some(2_500));
}

#[test]
fn a_renewal_that_moves_over_midnight_does_not_move_the_sum() {
    let uses = daily(&monitor(1), date(2026, 11, 1), TODAY, 24);
    let expected = |resets: Timestamp| {
        let left = PlanLeft {
            resets_at: Some(resets),
            ..left(2_000)
        };
        forecast(&uses, left, at(TODAY, 0))
            .unwrap()
            .requests_expected
    };
    let midnight = at(date(2026, 12, 1), 0);
    let minute = jiff::SignedDuration::from_mins(1);
    assert_eq!(expected(midnight), Some(19 * 24));
    for beside in [midnight - minute, midnight + minute] {
        assert_eq!(expected(beside), Some(19 * 24));
    }
    assert_eq!(expected(at(date(2026, 12, 1), 12)), Some(19 * 24 + 12));
}

#[test]
fn searches_of_a_first_day_are_not_expected_each_day() {
    let first = |source| {
        let uses = [used(source, TODAY, 30)];
        forecast(&uses, left(2_470), at(TODAY, 12)).and_then(|forecast| forecast.requests_expected)
    };
    assert_eq!(first(UseSource::Single), None);
    assert_eq!(first(UseSource::Scans), None);
    assert_eq!(first(monitor(1)), Some(18 * 30));
}

#[test]
fn a_plan_may_end_on_the_day_of_its_renewal() {
    let uses = daily(&monitor(1), date(2026, 11, 1), TODAY, 24);
    let renewal = date(2026, 11, 14);
    let ends = |requests| {
        let left = PlanLeft {
            resets_at: Some(at(renewal, 12)),
            ..left(requests)
        };
        forecast(&uses, left, at(TODAY, 0)).unwrap().ends_on
    };
    assert_eq!(ends(2 * 24), Some(date(2026, 11, 13)));
    assert_eq!(ends(2 * 24 + 12), Some(renewal));
    assert_eq!(ends(2 * 24 + 13), None);
}

#[test]
fn what_was_used_today_is_not_expected_again() {
    let mut uses = daily(&monitor(1), date(2026, 11, 1), TODAY, 10);
    uses.push(used(monitor(1), TODAY, 10));
    let forecast = forecast(&uses, left(10), at(TODAY, 18)).unwrap();
    assert_eq!(forecast.ends_on, Some(date(2026, 11, 13)));
}

#[test]
fn a_source_counts_from_when_it_began_until_it_is_over() {
    let began_late = daily(&monitor(1), date(2026, 11, 10), TODAY, 50);
    let over = daily(&monitor(2), date(2026, 10, 20), date(2026, 11, 3), 500);
    let uses = [began_late, over].concat();
    let forecast = forecast(&uses, left(200), at(TODAY, 0)).unwrap();
    assert_eq!(
        (forecast.ends_on, forecast.requests_per_day),
        (Some(date(2026, 11, 15)), 50.0)
    );
}

#[test]
fn a_weekday_is_expected_to_be_as_its_last_ones() {
    // Only on Mondays.
    let mondays = [19, 26].map(|day| used(monitor(1), date(2026, 10, day), 70));
    let later = [2, 9].map(|day| used(monitor(1), date(2026, 11, day), 70));
    let uses = [mondays, later].concat();
    let forecast = forecast(&uses, left(100), at(TODAY, 0)).unwrap();
    assert_eq!(forecast.ends_on, Some(date(2026, 11, 23)));
}

#[test]
fn the_causes_are_the_fewest_that_use_most() {
    let of = |source, billed| daily(&source, date(2026, 11, 1), TODAY, billed);
    let uses = [
        of(monitor(1), 50),
        of(monitor(2), 35),
        of(UseSource::Single, 10),
        of(UseSource::Scans, 5),
    ]
    .concat();
    let causes = forecast(&uses, left(900), at(TODAY, 0)).unwrap().causes;
    let named: Vec<_> = causes
        .iter()
        .map(|cause| (cause.name.as_deref(), cause.percent))
        .collect();
    assert_eq!(named, [(Some("monitor 1"), 50), (Some("monitor 2"), 35)]);
}

#[test]
fn an_unknown_use_or_period_has_no_forecast() {
    let uses = daily(&monitor(1), date(2026, 11, 1), TODAY, 10);
    assert_eq!(forecast(&[], left(10), at(TODAY, 0)), None);
    let old = PlanLeft {
        resets_at: Some(at(TODAY, 0)),
        ..left(10)
    };
    assert_eq!(forecast(&uses, old, at(TODAY, 0)), None);
    let unreported = PlanLeft {
        resets_at: None,
        ..left(100)
    };
    let forecast = forecast(&uses, unreported, at(TODAY, 0)).unwrap();
    assert_eq!(forecast.ends_on, Some(date(2026, 11, 21)));
    let used_up = PlanLeft {
        requests: 0,
        ..unreported
    };
    let forecast = super::forecast(&uses, used_up, at(TODAY, 0)).unwrap();
    assert_eq!(forecast.ends_on, Some(TODAY));
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "few requests; a negative number is none"
)]
fn whole(number: f64) -> u32 {
    number.max(0.0) as u32
}

/// The use of one day in a scripted month.
struct Script {
    rng: u64,
    /// Monitors: when they begin, their requests a day, and the weekdays on which they run.
    monitors: Vec<(Date, f64, [bool; 7])>,
    /// Single searches on a working day, and their part on others.
    single: (f64, f64),
    noise: f64,
}

impl Script {
    fn random(&mut self) -> f64 {
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.rng ^ (self.rng >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        to_f64((mixed ^ (mixed >> 31)) >> 11) / to_f64(1 << 53)
    }

    /// About normal, from twelve uniform ones.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.random()).sum::<f64>() - 6.0
    }

    /// Two to six monitors, half of which begin within the four weeks before the forecast, and single
    /// searches with a weekly rhythm. Each day of each source differs by `noise` (5 to 25 %).
    fn new(seed: u64, begin: Date, today: Date) -> Self {
        let mut script = Self {
            rng: seed,
            monitors: Vec::new(),
            single: (0.0, 0.0),
            noise: 0.0,
        };
        script.noise = 0.05 + 0.2 * script.random();
        script.single = (20.0 + 80.0 * script.random(), script.random());
        for _ in 0..2 + whole(5.0 * script.random()) {
            let first = if script.random() < 0.5 {
                begin
            } else {
                today - (2 + i64::from(whole(26.0 * script.random()))).days()
            };
            let weekdays = if script.random() < 0.7 {
                [true; 7]
            } else {
                [true, true, true, true, true, false, false]
            };
            let requests = 10.0 + 90.0 * script.random();
            script.monitors.push((first, requests, weekdays));
        }
        script
    }

    fn day(&mut self, day: Date) -> Vec<DailyUse> {
        let weekday = usize::try_from(day.weekday().to_monday_zero_offset()).unwrap();
        let (working, other) = self.single;
        let single = if weekday < 5 {
            working
        } else {
            working * other
        };
        let mut expected = vec![(UseSource::Single, single)];
        for (number, (first, requests, weekdays)) in (1..).zip(&self.monitors) {
            if day >= *first && weekdays[weekday] {
                expected.push((monitor(number), *requests));
            }
        }
        let noisy = |(source, requests): (UseSource, f64)| {
            let billed = requests * (1.0 + self.noise * self.normal());
            used(source, day, whole(billed.round()).into())
        };
        expected.into_iter().map(noisy).collect()
    }
}

/// Seven days before a plan ends, the forecast names that day or one beside it in nine of ten months.
#[test]
fn seven_days_ahead_the_end_is_right_within_a_day() {
    let (mut right, mut exact, months) = (0, 0, 1_000);
    for seed in 0..months {
        let today = date(2026, 1, 20) + i32::try_from(seed % 300).unwrap().days();
        let begin = today - 40.days();
        let mut script = Script::new(seed, begin, today);
        let uses: Vec<_> = begin
            .series(1.day())
            .take_while(|day| *day < today)
            .flat_map(|day| script.day(day))
            .collect();
        let end = today + 7.days();
        let days = today.series(1.day()).take_while(|day| *day <= end);
        let by_day: Vec<u64> = days
            .map(|day| script.day(day).iter().map(|used| used.billed).sum())
            .collect();
        // The plan ends in the middle of the last day.
        let requests = by_day[..7].iter().sum::<u64>() + by_day[7] / 2;
        let left = PlanLeft {
            resets_at: Some(at(today + 20.days(), 0)),
            ..left(requests)
        };
        let forecast = forecast(&uses, left, at(today, 0)).unwrap();
        let error = forecast.ends_on.map(|day| (day - end).get_days().abs());
        right += u64::from(error.is_some_and(|error| error <= 1));
        exact += u64::from(error == Some(0));
    }
    println!("{right} of {months} within a day, {exact} on the day");
    assert!(right * 10 >= months * 9, "{right} of {months}");
}
