//! A decision can be made again from what is stored with it, also after a process has died.

use std::collections::BTreeMap;
use std::time::Duration;

use farescan::planner::{
    BoundSearch, Candidate, Ends, Known, Misses, PlannerDecision, SearchPlanner as _, SearchView,
    SettingChoice, StoredPrice, Wanted, play,
};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde_json::json;
use sqlx::PgPool;

use super::{finding, ladder, make_older, run, sell, with_calendar};
use crate::faults::ledger::LedgerCheck;
use crate::faults::process::FarescanProcess;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::fixture::{WorkerFixture, fares};

const DATES: usize = 60;

/// A stored decision of the only scan with any.
pub(super) struct StoredDecision {
    now: Timestamp,
    searches: Vec<usize>,
    stored: Vec<(usize, Option<Decimal>, Timestamp)>,
    found: Vec<(usize, Option<Decimal>)>,
    unanswered: Vec<usize>,
    may_search: Option<usize>,
}

#[derive(sqlx::FromRow)]
struct DecisionRow {
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

fn indices(positions: Vec<i32>) -> Vec<usize> {
    positions
        .into_iter()
        .map(|position| usize::try_from(position).unwrap())
        .collect()
}

impl From<DecisionRow> for StoredDecision {
    fn from(row: DecisionRow) -> Self {
        let times = row.stored_at.into_iter().map(jiff_sqlx::Timestamp::to_jiff);
        let stored = indices(row.stored_positions)
            .into_iter()
            .zip(row.stored_prices)
            .zip(times);
        Self {
            now: row.decided_at.to_jiff(),
            searches: indices(row.searches),
            stored: stored
                .map(|((position, price), at)| (position, price, at))
                .collect(),
            found: indices(row.found_positions)
                .into_iter()
                .zip(row.found_prices)
                .collect(),
            unanswered: indices(row.unanswered),
            may_search: row.may_search.map(|most| usize::try_from(most).unwrap()),
        }
    }
}

pub(super) async fn stored_decisions(pool: &PgPool) -> Vec<StoredDecision> {
    let rows: Vec<DecisionRow> = rows!(pool, "select * from scan_decisions order by number");
    rows.into_iter().map(StoredDecision::from).collect()
}

/// The candidates of the first decision.
fn first_candidates(first: Date, decision: &StoredDecision, now: Timestamp) -> Vec<Candidate> {
    let dates = first.series(jiff::Span::new().days(1)).take(DATES);
    let mut candidates: Vec<_> = dates.map(Candidate::unknown).collect();
    let age = |at: Timestamp| now.duration_since(at).max(SignedDuration::ZERO);
    for (position, price, at) in &decision.stored {
        candidates[*position].stored = Some(StoredPrice {
            price: *price,
            age: age(*at),
        });
    }
    candidates
}

/// The search of a decision, by what the first one knew.
type SearchOf = fn(&[Candidate], &StoredDecision) -> BoundSearch;

fn choice(first: &[Candidate]) -> SettingChoice {
    let known = Known::of(&SearchView { candidates: first });
    Misses::of_flights([].into()).choose(known, 0.05)
}

fn finds(first: &[Candidate], _: &StoredDecision) -> BoundSearch {
    BoundSearch {
        wanted: Wanted::Cheapest,
        choice: choice(first),
        most: usize::MAX,
        batch: 2,
        ends: Ends::Answered,
    }
}

fn finds_below(first: &[Candidate], decision: &StoredDecision) -> BoundSearch {
    BoundSearch {
        wanted: Wanted::Below(Decimal::from(65)),
        ..finds(first, decision)
    }
}

/// A watch with 20 requests.
pub(super) fn watches(_: &[Candidate], decision: &StoredDecision) -> BoundSearch {
    BoundSearch::of_watch(Wanted::Cheapest, 20, decision.may_search.unwrap())
}

/// Makes each decision again from its row and those before it.
pub(super) fn assert_replayed(first: Date, stored: &[StoredDecision], search: SearchOf) {
    let first_known = first_candidates(first, &stored[0], stored[0].now);
    let mut candidates = first_known.clone();
    for (turn, decision) in stored.iter().enumerate() {
        let aged = first_candidates(first, &stored[0], decision.now);
        for (candidate, aged) in candidates.iter_mut().zip(aged) {
            candidate.stored = aged.stored;
        }
        for (position, price) in &decision.found {
            candidates[*position].searched = Some(*price);
            candidates[*position].turn = turn;
        }
        for position in &decision.unanswered {
            candidates[*position].unanswered = true;
        }
        let view = SearchView {
            candidates: &candidates,
        };
        let again = match search(&first_known, decision).decide(&view) {
            PlannerDecision::Search(searches) => searches,
            PlannerDecision::Stop(_) => Vec::new(),
        };
        assert_eq!(again, decision.searches);
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
    let mut candidates = first_candidates(first, &stored[0], stored[0].now);
    let search = finds(&candidates, &stored[0]);
    let played = play(&search, &mut candidates, |date| {
        prices[date].map(Decimal::from)
    });
    let searched: Vec<_> = stored
        .iter()
        .flat_map(|decision| decision.searches.clone())
        .collect();
    assert_eq!(searched, played.searched);
    let best = played.best.position.map(|position| json!(prices[position]));
    assert_eq!(Some(scan["strategy"]["best"]["price"].clone()), best);
    let risk = scan["strategy"]["risk_of_cheaper"].as_f64().unwrap();
    assert!(
        (risk - played.best.risk.unwrap()).abs() < 1e-3,
        "{risk}, {played:?}"
    );
    assert_replayed(first, &stored, finds);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_and_in_decisions_it_searches_nothing_twice() {
    killed(&json!({"strategy": {"find": "cheapest"}}), finds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_looks_for_one_below_it_searches_nothing_twice() {
    let below = json!({"strategy": {"find": "below", "below": 65}});
    killed(&below, finds_below).await;
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
        let date: Date = call.body["departure_date"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        let price = prices[usize::try_from((date - first).get_days()).unwrap()].unwrap();
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
    let mut calls = BTreeMap::new();
    for call in &fixture.upstream.calls()[DATES..] {
        *calls
            .entry(call.body["departure_date"].to_string())
            .or_insert(0) += 1;
    }
    assert!(calls.values().all(|calls| *calls == 1), "{calls:?}");
    let searched: usize = stored.iter().map(|decision| decision.searches.len()).sum();
    assert_eq!(seen.items.total, u32::try_from(searched).unwrap());
    println!("{}", LedgerCheck::run(&fixture).await);
    calls.values().sum()
}
