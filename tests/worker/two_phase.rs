//! Two-phase scans by a running worker, and their savings over many sandbox seeds.

use std::collections::BTreeSet;

use farescan::contract::scans::{ItemState, Scan, StrategyPhase, TwoPhaseProgress};
use farescan::contract::{Endpoint, scans::ScanStatus};
use farescan::ids::ItemId;
use farescan::planner::TwoPhase;
use farescan::sandbox::{SandboxOptions, serve};
use farescan::scans;
use farescan::scans::plan::{earliest_today, plan};
use farescan::search::{CallerKey, Finding, ItemSummary, Search};
use farescan::upstream::{Client, UpstreamConfig};
use jiff::Timestamp;
use jiff::civil::{Date, date};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::fixture::{WorkerFixture, fares};
use crate::support::reply::Reply;
use crate::support::steps::decide_all;
use crate::support::upstream::fare;

fn strategy() -> Value {
    json!({"strategy": {"coarse_step": 4, "refine": 1}})
}

fn two_phases(scan: &Scan) -> TwoPhaseProgress {
    *scan.strategy.as_ref().unwrap().two_phase().unwrap()
}

/// The day of the scan that a call searches, from 0.
fn day_of(call: &Value) -> i64 {
    let first = fares(1)["sweep"]["departure_date"]["from"]
        .as_str()
        .unwrap()
        .parse::<Date>()
        .unwrap();
    let day = call["departure_date"]
        .as_str()
        .unwrap()
        .parse::<Date>()
        .unwrap();
    first.until(day).unwrap().get_days().into()
}

fn days(fixture: &WorkerFixture) -> Vec<i64> {
    fixture
        .upstream
        .calls()
        .iter()
        .map(|call| day_of(&call.body))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn coarse_dates_first_then_the_dates_near_the_cheapest() {
    let fixture = WorkerFixture::new().await;
    let price = |day: i64| {
        if day == 17 {
            90
        } else {
            100 + day.abs_diff(16)
        }
    };
    fixture
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(move |call| Reply::json(json!([fare(price(day_of(&call.body)), &call.body)])));
    let worker = fixture.start_worker();
    let scan = fixture.submit(31, &strategy()).await;
    let ordered = two_phases(&fixture.scan(scan).await);
    assert_eq!(
        (ordered.phase, ordered.not_searched),
        (StrategyPhase::Coarse, 0)
    );
    let seen = fixture.wait_until_ended(scan).await;
    worker.stop().await;

    let searched = days(&fixture);
    let (first, then) = searched.split_at(9);
    assert_eq!(
        BTreeSet::from_iter(first),
        BTreeSet::from_iter(&[0, 4, 8, 12, 16, 20, 24, 28, 30])
    );
    assert_eq!(
        BTreeSet::from_iter(then),
        BTreeSet::from_iter(&[13, 14, 15, 17, 18, 19])
    );
    assert_eq!(searched.len(), 15, "each date once");
    assert_eq!(
        (
            seen.status,
            seen.items.total,
            seen.items.ok,
            seen.requests.spent
        ),
        (ScanStatus::Completed, 15, 15, 15)
    );
    let strategy = two_phases(&seen);
    assert_eq!(
        (
            strategy.phase,
            strategy.searched,
            strategy.not_searched,
            strategy.requests_saved
        ),
        (StrategyPhase::Refine, 15, 16, 16)
    );
    assert_eq!(
        seen.best.unwrap().price,
        Decimal::from(90),
        "which the first phase had not seen"
    );
    let items = fixture.items(scan).await;
    let skipped = items.iter().filter(|item| item.state == ItemState::Skipped);
    assert_eq!((items.len(), skipped.count()), (31, 16));
    assert_eq!(
        fixture
            .count("select count(*) from key_grants where wiped_at is null")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_phase_without_prices_ends_the_scan() {
    let fixture = WorkerFixture::new().await;
    fixture.upstream.reply(Reply::json(json!([])));
    let worker = fixture.start_worker();
    let scan = fixture.submit(31, &strategy()).await;
    let seen = fixture.wait_until_ended(scan).await;
    worker.stop().await;
    assert_eq!(
        (
            seen.status,
            seen.items.empty,
            seen.items.total,
            fixture.upstream.count()
        ),
        (ScanStatus::Completed, 9, 9, 9)
    );
    assert_eq!(two_phases(&seen).requests_saved, 22);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_covered_by_the_first_phase_has_no_second() {
    let fixture = WorkerFixture::new().await;
    let worker = fixture.start_worker();
    let scan = fixture.submit(2, &strategy()).await;
    let seen = fixture.wait_until_ended(scan).await;
    worker.stop().await;
    assert_eq!((seen.items.ok, two_phases(&seen).requests_saved), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_starts_begin_the_second_phase_once() {
    let fixture = WorkerFixture::new().await;
    let scan = fixture.submit(31, &strategy()).await;
    assert_eq!(
        decide_all(fixture.pool()).await.unwrap(),
        0,
        "nothing has been searched"
    );
    // The state of a process that died right after it recorded the last call of the first phase.
    let ended = "with ended as (
        update scan_items set state = 'done', search_status = 'ok', best_price = position + 1, currency = 'USD' where state = 'pending' returning 1
    ) update scans set status = 'running', ok = (select count(*) from ended), best_price = 1, best_currency = 'USD'";
    execute!(fixture.pool(), ended);
    let begun = futures::future::join_all((0..8).map(|_| decide_all(fixture.pool()))).await;
    assert!(begun.iter().all(Result::is_ok));
    for (sql, count) in [
        ("select count(*) from scan_items where state = 'pending'", 3),
        (
            "select count(*) from scan_items where state = 'skipped'",
            19,
        ),
        (
            "select count(*) from scan_items where state = 'deferred'",
            0,
        ),
        ("select total::bigint from scans", 12),
        ("select skipped::bigint from scan_strategies", 19),
    ] {
        assert_eq!(fixture.count(sql).await, count, "{sql}");
    }
    assert_eq!(fixture.scan(scan).await.items.pending, 3);
    assert_eq!(decide_all(fixture.pool()).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_cancelled_in_its_first_phase_has_no_second() {
    let fixture = WorkerFixture::new().await;
    let scan = fixture.submit(31, &strategy()).await;
    fixture.cancel(scan).await;
    let seen = fixture.scan(scan).await;
    assert_eq!(
        (
            seen.status,
            seen.items.cancelled,
            seen.finished_at.is_some()
        ),
        (ScanStatus::Cancelled, 31, true)
    );
    assert_eq!(
        decide_all(fixture.pool()).await.unwrap(),
        1,
        "it is removed from the due scans"
    );
    assert_eq!(decide_all(fixture.pool()).await.unwrap(), 0);
    assert_eq!(fixture.scan(scan).await, seen, "nothing else of it changes");
}

#[tokio::test(flavor = "multi_thread")]
async fn max_requests_covers_both_phases() {
    let fixture = WorkerFixture::new().await;
    // Every third call is a server error: its second try counts as a request too.
    let mut calls = 0;
    fixture
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(move |call| {
            calls += 1;
            if calls % 3 == 0 {
                Reply::status(502)
            } else {
                Reply::json(json!([fare(100, &call.body)]))
            }
        });
    let worker = fixture.start_worker();
    let mut body = strategy();
    body["max_requests"] = json!(15);
    let scan = fixture.submit(31, &body).await;
    let seen = fixture
        .wait_for_scan(scan, "it has ended or its budget is spent", |scan| {
            scan.finished_at.is_some()
                || scan.status == ScanStatus::Paused && scan.items.running == 0
        })
        .await;
    worker.stop().await;
    assert!(
        seen.requests.spent <= 15 && fixture.upstream.count() <= 15,
        "{} of 15",
        fixture.upstream.count()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strategy_needs_one_range_and_budget_for_both_phases() {
    let today = earliest_today(Timestamp::now());
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut body = fares(31);
        body["strategy"] = strategy()["strategy"].clone();
        change(&mut body);
        plan(body.as_object().unwrap(), today)
            .map(|plan| plan.searches())
            .map_err(|faults| faults.to_string())
    };
    assert_eq!(refused(&|_| {}), Ok(9..=15));
    assert_eq!(
        refused(&|body| body["max_requests"] = json!(15)),
        Ok(9..=15)
    );
    for (change, fault) in [
        (
            json!({"max_requests": 14}),
            "`max_requests`: found 14; expected at least the items that both phases may search, 15",
        ),
        (
            json!({"strategy": {"coarse_step": 1, "refine": 1}}),
            "`strategy.coarse_step`: found 1; expected an integer from 2 to 90",
        ),
        (
            json!({"strategy": {"coarse_step": 4}}),
            "`strategy.refine` is missing",
        ),
        (json!({"strategy": 4}), "`strategy`: found 4"),
        (
            json!({"sweep": {"departure_date": ["2031-01-01"]}}),
            "`strategy`: found {\"coarse_step\":4,\"refine\":1}; expected a sweep with exactly one date range",
        ),
    ] {
        let error = refused(&|body| {
            body.as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
        })
        .unwrap_err();
        assert!(error.starts_with(fault), "{error}");
    }
}

/// A full scan and a two-phase scan at one sandbox seed.
struct PhaseComparison {
    seed: u64,
    searched: usize,
    /// The cheapest price of all dates, and the cheapest that two phases found.
    full: Decimal,
    found: Decimal,
    same_date: bool,
}

/// The figures as text.
fn format_figures(comparisons: &[PhaseComparison], phases: &TwoPhase) -> String {
    let (
        count,
        TwoPhase {
            coarse_step,
            refine,
            dates,
            ..
        },
    ) = (comparisons.len(), phases);
    let searched: usize = comparisons
        .iter()
        .map(|comparison| comparison.searched)
        .sum();
    let same = comparisons
        .iter()
        .filter(|comparison| comparison.same_date)
        .count();
    let mut above: Vec<_> = comparisons
        .iter()
        .map(|comparison| {
            (comparison.found - comparison.full) * Decimal::ONE_HUNDRED / comparison.full
        })
        .collect();
    above.sort_unstable();
    let missed: Vec<_> = comparisons
        .iter()
        .filter(|comparison| !comparison.same_date)
        .map(|comparison| comparison.seed)
        .collect();
    let saved = Decimal::from((count * dates - searched) * 100) / Decimal::from(count * dates);
    format!(
        "{count} seeds of {dates} dates, coarse_step {coarse_step}, refine {refine}\n\
         requests: {searched} instead of {}: {saved:.1} % saved\n\
         the same cheapest price in {same} of {count}; above it {:.1} % at the median, {:.1} % in nine of ten, {:.1} % at most\n\
         missed at the seeds {missed:?}",
        count * dates,
        above[count / 2],
        above[count * 9 / 10],
        above[count - 1],
    )
}

const DATES: usize = 90;
const SEEDS: u64 = 50;
/// The sandbox's current date, the same in every run.
const TODAY: Date = date(2026, 11, 20);

async fn sandbox(seed: u64, today: Option<Date>, stop: &CancellationToken) -> UpstreamConfig {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let url: reqwest::Url = format!("http://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let options = SandboxOptions {
        seed,
        latency_factor: 0.0,
        today,
        ..SandboxOptions::default()
    };
    tokio::spawn(serve(listener, options, stop.clone().cancelled_owned()));
    UpstreamConfig::at(url.clone(), url)
}

/// The prices of a sandbox seed by position, each date searched once.
struct SandboxPrices {
    seed: u64,
    prices: Vec<(usize, Decimal)>,
}

/// The prices of `count` seeds, and the phases of coarse step 4 and refine 2.
async fn sandbox_prices(count: u64) -> (TwoPhase, Vec<SandboxPrices>) {
    let stop = CancellationToken::new();
    let day = |days| {
        TODAY
            .saturating_add(jiff::Span::new().days(days))
            .to_string()
    };
    let mut body = fares(1);
    body["sweep"]["departure_date"] =
        json!({"from": day(30), "to": day(29 + i64::try_from(DATES).unwrap())});
    body["strategy"] = json!({"coarse_step": 4, "refine": 2});
    let plan = plan(body.as_object().unwrap(), TODAY).unwrap();
    let mut sandbox_prices = Vec::new();
    for seed in 1..=count {
        let client = Client::new(&sandbox(seed, Some(TODAY), &stop).await).unwrap();
        let asks = plan
            .items
            .iter()
            .enumerate()
            .map(async |(position, request)| {
                let search = Search::for_item(request.clone(), 50, false);
                let key = CallerKey::new("sandbox-unlimited");
                let outcome = client
                    .search(&search, &key, &ItemId::new().to_string(), || async { true })
                    .await;
                let Finding::Answer(answer) = &outcome.finding else {
                    panic!("seed {seed}: {outcome:?}")
                };
                ItemSummary::of(&search, answer)
                    .best
                    .map(|(offer, _)| (position, offer.price))
            });
        let prices = futures::future::join_all(asks)
            .await
            .into_iter()
            .flatten()
            .collect();
        sandbox_prices.push(SandboxPrices { seed, prices });
    }
    stop.cancel();
    (*plan.strategy.unwrap().phases(), sandbox_prices)
}

/// Compares a full scan with a two-phase scan of the same prices.
fn compare_phases(
    SandboxPrices { seed, prices }: &SandboxPrices,
    phases: &TwoPhase,
) -> PhaseComparison {
    let (first, deferred): (Vec<_>, Vec<_>) =
        (0..DATES).partition(|position| phases.is_coarse(*position));
    let seen = |position: &usize| first.contains(position);
    let coarse: Vec<_> = prices
        .iter()
        .copied()
        .filter(|(position, _)| seen(position))
        .collect();
    let then = phases.second_phase(&coarse, &deferred);
    let searched = prices
        .iter()
        .filter(|(position, _)| seen(position) || then.contains(position));
    let full = prices.iter().map(|(_, price)| *price).min().unwrap();
    let found = searched.map(|(_, price)| *price).min().unwrap();
    PhaseComparison {
        seed: *seed,
        searched: first.len() + then.len(),
        full,
        found,
        same_date: found == full,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_phases_save_requests_and_find_near_the_cheapest() {
    let (phases, sandbox_prices) = sandbox_prices(6).await;
    let comparisons: Vec<_> = sandbox_prices
        .iter()
        .map(|world| compare_phases(world, &phases))
        .collect();
    let figures = format_figures(&comparisons, &phases);
    println!("{figures}");
    assert!(
        comparisons
            .iter()
            .all(|comparison| comparison.searched <= 36),
        "24 first, at most 12 more: {figures}"
    );
    assert!(
        comparisons.iter().any(|comparison| comparison.same_date),
        "{figures}"
    );
    let all = TwoPhase {
        refine: DATES,
        ..phases
    };
    assert!(
        sandbox_prices
            .iter()
            .all(|world| compare_phases(world, &all).same_date),
        "with refine = all dates, every date is searched"
    );
}

/// The figures that docs/decisions/0004 quotes.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "4,500 searches take a minute: run by hand, with --run-ignored only --no-capture"]
async fn two_phases_over_fifty_sandbox_seeds() {
    let (phases, sandbox_prices) = sandbox_prices(SEEDS).await;
    for (coarse_step, refine) in [(4, 2), (4, 4), (4, 6), (3, 3), (2, 3)] {
        let phases = TwoPhase {
            coarse_step,
            refine,
            ..phases
        };
        let comparisons: Vec<_> = sandbox_prices
            .iter()
            .map(|world| compare_phases(world, &phases))
            .collect();
        println!("{}\n", format_figures(&comparisons, &phases));
    }
}

/// The same through the whole service: submit, queue, worker, sweeper and Postgres. Run by hand: it
/// takes a minute or two.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "4,500 searches and 50 two-phase scans: run by hand, with --run-ignored only --no-capture"]
async fn two_phases_over_fifty_seeds_through_the_service() {
    let stop = CancellationToken::new();
    let mut comparisons = Vec::new();
    for seed in 1..=SEEDS {
        let fixture = WorkerFixture::with_key("sandbox-unlimited").await;
        let worker = fixture.start_worker_against(&sandbox(seed, None, &stop).await);
        let full = fixture
            .submit(i64::try_from(DATES).unwrap(), &json!({}))
            .await;
        let full = fixture.wait_until_ended(full).await;
        let two = fixture
            .submit(
                i64::try_from(DATES).unwrap(),
                &json!({"strategy": {"coarse_step": 4, "refine": 2}}),
            )
            .await;
        let seen = fixture.wait_until_ended(two).await;
        worker.stop().await;
        assert_eq!(
            (full.items.ok, seen.items.ok),
            (90, seen.items.total),
            "every date has flights"
        );
        let saved = two_phases(&seen).requests_saved;
        assert_eq!((full.requests.spent, seen.requests.spent + saved), (90, 90));
        let (best, found) = (full.best.unwrap(), seen.best.unwrap());
        let items = fixture.items(two).await;
        let compared =
            scans::compare::compare(fixture.pool(), fixture.tenant().await, full.id, seen.id)
                .await
                .unwrap();
        assert_eq!(
            (compared.counts.unchanged, compared.counts.unknown),
            (seen.items.ok, saved),
            "the same prices twice"
        );
        assert_eq!(
            items
                .iter()
                .filter(|item| item.state == ItemState::Skipped)
                .count(),
            usize::try_from(saved).unwrap()
        );
        comparisons.push(PhaseComparison {
            seed,
            searched: usize::try_from(seen.requests.spent).unwrap(),
            full: best.price,
            found: found.price,
            same_date: best.price == found.price,
        });
    }
    stop.cancel();
    let phases = TwoPhase {
        coarse_step: 4,
        refine: 2,
        dates: DATES,
        inner_items: 1,
        combinations: DATES,
    };
    println!("{}", format_figures(&comparisons, &phases));
}
