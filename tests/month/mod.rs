//! A month of work through the whole service, asked in two ways: without any option that saves, and
//! with those of the guide "Spending less". The sandbox counts what each way costs
//! (docs/laboratory.md, "A month of work").
//!
//! The short form is a test. `script/study month` plays the whole month.

mod marketplace;
mod play;
mod workload;

use std::path::{Path, PathBuf};

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use rust_decimal::Decimal;

use self::play::{Answer, Kind, Month, Way, play};
use self::workload::{WorkSize, Workload};

/// How the two ways compare, for one kind of question or for all.
#[derive(Debug)]
struct Compared {
    name: &'static str,
    plain: u64,
    thrifty: u64,
    answers: usize,
    equal: usize,
    within_a_percent: usize,
}

impl Compared {
    fn of(name: &'static str, requests: [u64; 2], pairs: &[(&Answer, &Answer)]) -> Self {
        let count = |is: fn(Option<Decimal>, Option<Decimal>) -> bool| {
            pairs
                .iter()
                .filter(|(plain, thrifty)| is(plain.1, thrifty.1))
                .count()
        };
        Self {
            name,
            plain: requests[0],
            thrifty: requests[1],
            answers: pairs.len(),
            equal: count(|plain, thrifty| plain == thrifty),
            within_a_percent: count(is_within_a_percent),
        }
    }

    fn print(&self) {
        let answers = self.answers as u64;
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            self.name,
            self.answers,
            self.plain,
            self.thrifty,
            percent(self.thrifty, self.plain),
            percent(self.equal as u64, answers),
            percent(self.within_a_percent as u64, answers)
        );
    }
}

fn percent(part: u64, whole: u64) -> String {
    let tenths = part * 1_000 / whole.max(1);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

fn is_within_a_percent(plain: Option<Decimal>, thrifty: Option<Decimal>) -> bool {
    match (plain, thrifty) {
        (Some(plain), Some(thrifty)) => (thrifty - plain).abs() * Decimal::ONE_HUNDRED <= plain,
        (plain, thrifty) => plain == thrifty,
    }
}

/// All kinds, and all together at last.
fn compare(plain: &Month, thrifty: &Month) -> Vec<Compared> {
    let kinds = |month: &Month| {
        month
            .answers
            .iter()
            .map(|answer| answer.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(plain), kinds(thrifty), "both ask the same");
    let pairs: Vec<_> = plain.answers.iter().zip(&thrifty.answers).collect();
    let mut rows: Vec<_> = Kind::ALL
        .into_iter()
        .enumerate()
        .map(|(place, kind)| {
            let of_kind: Vec<_> = pairs
                .iter()
                .filter(|(plain, _)| plain.0 == kind)
                .copied()
                .collect();
            let requests = [plain.by_kind[place], thrifty.by_kind[place]];
            Compared::of(kind.name(), requests, &of_kind)
        })
        .collect();
    rows.push(Compared::of(
        "all",
        [plain.requests, thrifty.requests],
        &pairs,
    ));
    rows
}

/// Plays a workload in both ways, from midnight of a day by the sandbox's clock.
async fn play_both(
    size: WorkSize,
    scenario: &Path,
    seed: u64,
    (start, first_departure): (Date, Date),
) -> Vec<Compared> {
    let workload = Workload::draw(size, first_departure, seed);
    let start = start.to_zoned(TimeZone::UTC).unwrap().timestamp();
    let plain = play(Way::Plain, &workload, scenario, seed, start).await;
    let thrifty = play(Way::Thrifty, &workload, scenario, seed, start).await;
    for month in [&plain, &thrifty] {
        let stated: u64 = month.by_kind.iter().sum();
        assert_eq!(
            month.requests, stated,
            "the sandbox counts what the service states"
        );
    }
    compare(&plain, &thrifty)
}

fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("benches/study/scenarios")
        .join(name)
}

/// The short form: what it finds is the same in each run.
#[tokio::test(flavor = "multi_thread")]
async fn three_days_of_work_cost_less_and_find_the_same() {
    let size = WorkSize {
        days: 3,
        monitors: 2,
        dates: 14,
        scans: 4,
        searches: 30,
    };
    let dates = (date(2029, 12, 1), date(2030, 1, 10));
    let rows = play_both(size, &scenario("ladder.toml"), 7, dates).await;
    for row in &rows {
        row.print();
    }
    let all = rows.last().unwrap();
    // Each run and scan searches all of its dates, and each search is one.
    assert_eq!(all.plain, 3 * 2 * 14 + 4 * 14 + 30);
    assert_eq!(all.answers, 3 * 2 + 4 + 30);
    // Nothing is stored on the first day, and of 14 dates nearly all are searched then.
    assert!(all.thrifty * 100 <= all.plain * 65, "{rows:#?}");
    assert!(all.within_a_percent * 10 >= all.answers * 9, "{rows:#?}");
}

/// `script/study month`: the goal is half of the requests, with 95 % of the answers within 1 %.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes; script/study month runs it"]
async fn a_month_of_work() {
    let setting = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let file = setting("FARESCAN_STUDY_SCENARIO")
        .map_or_else(|| scenario("everything.toml"), PathBuf::from);
    let seed = setting("FARESCAN_STUDY_SEED").map_or(1, |seed| seed.parse().unwrap());
    let size = WorkSize {
        days: 30,
        monitors: 5,
        dates: 30,
        scans: 40,
        searches: 300,
    };
    // The service's day is the real one: it is the middle of the month.
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let dates = (today - 15.days(), today + 25.days());
    let rows = play_both(size, &file, seed, dates).await;
    println!("{}, seed {seed}\n", file.display());
    println!("| question | asked | requests | thrifty | of these | equal | within 1 % |");
    println!("|---|---|---|---|---|---|---|");
    for row in &rows {
        row.print();
    }
}
