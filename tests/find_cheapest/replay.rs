//! A decision can be made again from what is stored with it, also after a process has died.

use std::collections::BTreeSet;
use std::time::Duration;

use farescan::planner::{
    BoundSearch, Candidate, Ends, Known, Misses, Played, SearchPlanner as _, StoredPrice, Wanted,
    play,
};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde_json::json;
use sqlx::PgPool;

use super::{finding, ladder, make_older, risk, run, sell, with_calendar};
use crate::faults::ledger::LedgerCheck;
use crate::faults::process::FarescanProcess;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::fixture::{WorkerFixture, fares};

const DATES: usize = 60;

/// A stored decision of the only scan with any.
#[derive(sqlx::FromRow)]
struct StoredDecision {
    decided_at: jiff_sqlx::Timestamp,
    searches: Vec<i32>,
    stored_positions: Vec<i32>,
    stored_prices: Vec<Option<Decimal>>,
    stored_at: Vec<jiff_sqlx::Timestamp>,
    found_positions: Vec<i32>,
    found_prices: Vec<Option<Decimal>>,
    unanswered: Vec<i32>,
    may_search: Option<i32>,
}

async fn stored_decisions(pool: &PgPool) -> Vec<StoredDecision> {
    rows!(pool, "select * from scan_decisions order by number")
}

fn index(position: i32) -> usize {
    usize::try_from(position).unwrap()
}

/// Consecutive dates of which nothing is known.
pub(super) fn unknown_dates(first: Date, dates: usize) -> Vec<Candidate> {
    let dates = first.series(jiff::Span::new().days(1)).take(dates);
    dates.map(Candidate::unknown).collect()
}

/// Sets what the first decision knew, as old as it is at `now`.
fn set_stored(candidates: &mut [Candidate], decision: &StoredDecision, now: Timestamp) {
    let answers = decision.stored_prices.iter().zip(&decision.stored_at);
    for (position, (price, at)) in decision.stored_positions.iter().zip(answers) {
        let age = now.duration_since(at.to_jiff()).max(SignedDuration::ZERO);
        candidates[index(*position)].stored = Some(StoredPrice { price: *price, age });
    }
}

/// The search of a decision, by what the first one knew.
type SearchOf = fn(&[Candidate], &StoredDecision) -> BoundSearch;

fn finds(first: &[Candidate], _: &StoredDecision) -> BoundSearch {
    let misses = Misses {
        has_prior: true,
        ..Misses::default()
    };
    BoundSearch {
        wanted: Wanted::Cheapest,
        ends: Ends::Answered(misses.choose(Known::of(first), 0.05)),
        most: usize::MAX,
    }
}

/// A watch with 20 requests.
fn watches(_: &[Candidate], decision: &StoredDecision) -> BoundSearch {
    BoundSearch {
        wanted: Wanted::Cheapest,
        ends: Ends::Spent { budget: 20 },
        most: index(decision.may_search.unwrap()),
    }
}

/// Makes each decision again from its row and those before it.
fn assert_replayed(first: Date, stored: &[StoredDecision], search: SearchOf) {
    let mut candidates = unknown_dates(first, DATES);
    set_stored(&mut candidates, &stored[0], stored[0].decided_at.to_jiff());
    let first_known = candidates.clone();
    for (turn, decision) in stored.iter().enumerate() {
        set_stored(&mut candidates, &stored[0], decision.decided_at.to_jiff());
        for (position, price) in decision.found_positions.iter().zip(&decision.found_prices) {
            candidates[index(*position)].searched = Some(*price);
            candidates[index(*position)].turn = turn;
        }
        for position in &decision.unanswered {
            candidates[index(*position)].unanswered = true;
        }
        let again = search(&first_known, decision).decide(&candidates).search;
        let searches: Vec<_> = decision.searches.iter().copied().map(index).collect();
        assert_eq!(again, searches);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_decision_is_that_of_the_direct_play() {
    let mut prices = ladder(DATES);
    let service = with_calendar(&prices, 10).await;
    prices[30] = Some(90);
    prices[27] = None;
    prices[40] = Some(59);
    sell(&service, prices.clone());
    let scan = run(&service, &finding(DATES)).await;

    let stored = stored_decisions(service.pool()).await;
    assert!(stored.len() > 3, "{scan:#}");
    let first = jiff::civil::date(2030, 1, 1);
    let mut candidates = unknown_dates(first, DATES);
    set_stored(&mut candidates, &stored[0], stored[0].decided_at.to_jiff());
    let search = finds(&candidates, &stored[0]);
    let price = |date: usize| prices[date].map(Decimal::from);
    let Played { searched, end } = play(&search, &mut candidates, price);
    let decided = stored.iter().flat_map(|decision| &decision.searches);
    assert_eq!(decided.copied().map(index).collect::<Vec<_>>(), searched);
    let (best, _) = end.best.unwrap();
    assert_eq!(scan["strategy"]["best"]["price"], json!(prices[best]));
    assert!((risk(&scan) - end.risk.unwrap()).abs() < 1e-3, "{end:?}");
    assert_replayed(first, &stored, finds);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_and_in_decisions_it_searches_nothing_twice() {
    killed(&json!({"strategy": {"find": "cheapest"}}), finds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_watch_makes_the_same_choices_within_its_budget() {
    let watch = json!({"strategy": {"watch": "cheapest"}, "max_requests": 20});
    let spent = killed(&watch, watches).await;
    assert!(spent <= 20, "{spent}");
}

/// Kills a scan of all dates three times; returns its calls.
async fn killed(body: &serde_json::Value, search: SearchOf) -> usize {
    let fixture = WorkerFixture::new().await;
    let dates = i64::try_from(DATES).unwrap();
    let first: Date = fares(1)["sweep"]["departure_date"]["from"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let prices = ladder(DATES);
    // Many have risen, so that many decisions follow.
    fixture.upstream.answer(move |call| {
        let date = call.body["departure_date"].as_str().unwrap();
        let days = (date.parse::<Date>().unwrap() - first).get_days();
        let price = prices[index(days)].unwrap();
        Reply::json(json!([fare(u64::from(price), &call.body)]))
    });
    fixture.complete_scan(dates).await;
    make_older(fixture.pool(), 14).await;
    fixture.upstream.answer(move |call| {
        Reply::json(json!([fare(150, &call.body)])).delay(Duration::from_millis(100))
    });
    let scan = fixture.submit(dates, body).await;
    let decided = "select count(*) from scan_decisions";
    for kill in 1..=3 {
        let before = fixture.count(decided).await;
        let service = FarescanProcess::start(&fixture, 8);
        crate::support::wait_until("another decision", async || {
            fixture.count(decided).await > before
        })
        .await;
        if kill == 2 {
            // Its calls are in flight: they may have been billed, and are not repeated.
            crate::support::wait_until("calls in flight", async || {
                let calling = "select count(*) from scan_items where state = 'calling'";
                fixture.count(calling).await > 0
            })
            .await;
        }
        service.kill();
    }
    let service = FarescanProcess::start(&fixture, 8);
    let seen = fixture
        .wait_until_ended_within(scan, Duration::from_secs(180))
        .await;
    service.kill();
    let stored = stored_decisions(fixture.pool()).await;
    assert!(stored.len() > 4, "{seen:#?}");
    assert_replayed(first, &stored, search);
    let calls = &fixture.upstream.calls()[DATES..];
    let dates = calls
        .iter()
        .map(|call| call.body["departure_date"].to_string());
    let once: BTreeSet<_> = dates.collect();
    assert_eq!(once.len(), calls.len(), "{calls:?}");
    let searched: usize = stored.iter().map(|decision| decision.searches.len()).sum();
    assert_eq!(seen.items.total, u32::try_from(searched).unwrap());
    println!("{}", LedgerCheck::run(&fixture).await);
    calls.len()
}
