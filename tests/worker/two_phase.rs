//! A scan in two phases, searched by a running worker; and what it saves over many worlds of the sandbox.

use std::collections::BTreeSet;

use farescan::contract::scans::{ItemState, StrategyPhase};
use farescan::contract::{Endpoint, scans::ScanStatus};
use farescan::ids::ItemId;
use farescan::sandbox::{SandboxOptions, serve};
use farescan::scans::plan::{earliest_today, plan};
use farescan::scans::two_phase::TwoPhase;
use farescan::scans::{self, two_phase};
use farescan::search::{CallerKey, Finding, Search, Sight};
use farescan::upstream::{Client, UpstreamConfig};
use jiff::Timestamp;
use jiff::civil::{Date, date};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::stage::{Stage, fares};
use crate::support::reply::Reply;
use crate::support::upstream::fare;

fn strategy() -> Value {
    json!({"strategy": {"coarse_step": 4, "refine": 1}})
}

/// The day of the scan that a call asks for, from 0.
fn day_of(call: &Value) -> i64 {
    let first = fares(1)["sweep"]["departure_date"]["from"]
        .as_str()
        .unwrap()
        .parse::<Date>()
        .unwrap();
    let asked = call["departure_date"]
        .as_str()
        .unwrap()
        .parse::<Date>()
        .unwrap();
    first.until(asked).unwrap().get_days().into()
}

fn days(stage: &Stage) -> Vec<i64> {
    stage
        .upstream
        .calls()
        .iter()
        .map(|call| day_of(&call.body))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fourth_date_first_then_beside_the_cheapest_and_the_rest_is_left_out() {
    let stage = Stage::new().await;
    let price = |day: i64| {
        if day == 17 {
            90
        } else {
            100 + day.abs_diff(16)
        }
    };
    stage
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(move |call| Reply::json(json!([fare(price(day_of(&call.body)), &call.body)])));
    let worker = stage.worker();
    let scan = stage.submit(31, &strategy()).await;
    let ordered = stage.scan(scan).await.strategy.unwrap();
    assert_eq!(
        (ordered.phase, ordered.not_searched),
        (StrategyPhase::Coarse, 0)
    );
    let seen = stage.ended(scan).await;
    worker.stop().await;

    let asked = days(&stage);
    let (first, then) = asked.split_at(9);
    assert_eq!(
        BTreeSet::from_iter(first),
        BTreeSet::from_iter(&[0, 4, 8, 12, 16, 20, 24, 28, 30])
    );
    assert_eq!(
        BTreeSet::from_iter(then),
        BTreeSet::from_iter(&[13, 14, 15, 17, 18, 19])
    );
    assert_eq!(asked.len(), 15, "each date once");
    assert_eq!(
        (
            seen.status,
            seen.items.total,
            seen.items.ok,
            seen.requests.spent
        ),
        (ScanStatus::Completed, 15, 15, 15)
    );
    let told = seen.strategy.unwrap();
    assert_eq!(
        (
            told.phase,
            told.searched,
            told.not_searched,
            told.requests_saved
        ),
        (StrategyPhase::Refine, 15, 16, 16)
    );
    assert_eq!(
        seen.best.unwrap().price,
        Decimal::from(90),
        "which the first phase had not seen"
    );
    let items = stage.items(scan).await;
    let skipped = items.iter().filter(|item| item.state == ItemState::Skipped);
    assert_eq!((items.len(), skipped.count()), (31, 16));
    assert_eq!(
        stage
            .count("select count(*) from key_grants where wiped_at is null")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_price_it_ends_with_its_first_phase() {
    let stage = Stage::new().await;
    stage.upstream.on_any().reply(Reply::json(json!([])));
    let worker = stage.worker();
    let scan = stage.submit(31, &strategy()).await;
    let seen = stage.ended(scan).await;
    worker.stop().await;
    assert_eq!(
        (
            seen.status,
            seen.items.empty,
            seen.items.total,
            stage.upstream.count()
        ),
        (ScanStatus::Completed, 9, 9, 9)
    );
    assert_eq!(seen.strategy.unwrap().requests_saved, 22);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_of_which_nothing_is_left_out_has_one_phase() {
    let stage = Stage::new().await;
    let worker = stage.worker();
    let scan = stage.submit(2, &strategy()).await;
    let seen = stage.ended(scan).await;
    worker.stop().await;
    assert_eq!(
        (seen.items.ok, seen.strategy.unwrap().requests_saved),
        (2, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_phase_begins_once_however_many_begin_it() {
    let stage = Stage::new().await;
    let scan = stage.submit(31, &strategy()).await;
    assert_eq!(
        two_phase::begin_due(stage.pool(), Timestamp::now())
            .await
            .unwrap(),
        0,
        "nothing has been searched"
    );
    // As if the process had died right after it recorded the last call of the first phase.
    let ended = "with ended as (
        update scan_items set state = 'done', search_status = 'ok', best_price = position + 1, currency = 'USD' where state = 'pending' returning 1
    ) update scans set status = 'running', ok = (select count(*) from ended), best_price = 1, best_currency = 'USD'";
    sqlx::query(ended).execute(stage.pool()).await.unwrap();
    let begun = futures::future::join_all(
        (0..8).map(|_| two_phase::begin_due(stage.pool(), Timestamp::now())),
    )
    .await;
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
        assert_eq!(stage.count(sql).await, count, "{sql}");
    }
    assert_eq!(stage.scan(scan).await.items.pending, 3);
    assert_eq!(
        two_phase::begin_due(stage.pool(), Timestamp::now())
            .await
            .unwrap(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_cancelled_in_its_first_phase_has_no_second() {
    let stage = Stage::new().await;
    let scan = stage.submit(31, &strategy()).await;
    stage.cancel(scan).await;
    let seen = stage.scan(scan).await;
    assert_eq!(
        (
            seen.status,
            seen.items.cancelled,
            seen.finished_at.is_some()
        ),
        (ScanStatus::Cancelled, 31, true)
    );
    assert_eq!(
        two_phase::begin_due(stage.pool(), Timestamp::now())
            .await
            .unwrap(),
        1,
        "it is taken off the list"
    );
    assert_eq!(
        two_phase::begin_due(stage.pool(), Timestamp::now())
            .await
            .unwrap(),
        0
    );
    assert_eq!(stage.scan(scan).await, seen, "nothing else of it changes");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ceiling_holds_over_both_phases() {
    let stage = Stage::new().await;
    // Every third call is a server error: its second try takes a place too.
    let mut asked = 0;
    stage
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(move |call| {
            asked += 1;
            if asked % 3 == 0 {
                Reply::status(502)
            } else {
                Reply::json(json!([fare(100, &call.body)]))
            }
        });
    let worker = stage.worker();
    let mut order = strategy();
    order["max_requests"] = json!(15);
    let scan = stage.submit(31, &order).await;
    let seen = stage
        .scan_when(scan, "it has ended or its budget is spent", |scan| {
            scan.finished_at.is_some()
                || scan.status == ScanStatus::Paused && scan.items.running == 0
        })
        .await;
    worker.stop().await;
    assert!(
        seen.requests.spent <= 15 && stage.upstream.count() <= 15,
        "{} of 15",
        stage.upstream.count()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strategy_needs_one_range_and_room_for_both_phases() {
    let today = earliest_today(Timestamp::now());
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut order = fares(31);
        order["strategy"] = strategy()["strategy"].clone();
        change(&mut order);
        plan(order.as_object().unwrap(), today)
            .map(|plan| plan.searches())
            .map_err(|faults| faults.to_string())
    };
    assert_eq!(refused(&|_| {}), Ok(9..=15));
    assert_eq!(
        refused(&|order| order["max_requests"] = json!(15)),
        Ok(9..=15)
    );
    for (change, fault) in [
        (
            json!({"max_requests": 14}),
            "`max_requests` holds 14; allowed: at least the items that both phases may search, 15",
        ),
        (
            json!({"strategy": {"coarse_step": 1, "refine": 1}}),
            "`strategy.coarse_step` holds 1; allowed: an integer from 2 to 90",
        ),
        (
            json!({"strategy": {"coarse_step": 4}}),
            "`strategy.refine` is missing",
        ),
        (json!({"strategy": 4}), "`strategy` holds 4"),
        (
            json!({"sweep": {"departure_date": ["2031-01-01"]}}),
            "`strategy` holds {\"coarse_step\":4,\"refine\":1}; allowed: a sweep with exactly one date range",
        ),
    ] {
        let told = refused(&|order| {
            order
                .as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone())
        })
        .unwrap_err();
        assert!(told.starts_with(fault), "{told}");
    }
}

/// What one world of the sandbox gives.
struct Trial {
    seed: u64,
    searched: usize,
    /// The cheapest price of all dates, and the one that two phases found.
    full: Decimal,
    found: Decimal,
    same_date: bool,
}

/// The figures, for people.
fn told(trials: &[Trial], phases: &TwoPhase) -> String {
    let (
        count,
        TwoPhase {
            coarse_step,
            refine,
            dates,
            ..
        },
    ) = (trials.len(), phases);
    let searched: usize = trials.iter().map(|trial| trial.searched).sum();
    let same = trials.iter().filter(|trial| trial.same_date).count();
    let mut above: Vec<_> = trials
        .iter()
        .map(|trial| (trial.found - trial.full) * Decimal::ONE_HUNDRED / trial.full)
        .collect();
    above.sort_unstable();
    let missed: Vec<_> = trials
        .iter()
        .filter(|trial| !trial.same_date)
        .map(|trial| trial.seed)
        .collect();
    let saved = Decimal::from((count * dates - searched) * 100) / Decimal::from(count * dates);
    format!(
        "{count} worlds of {dates} dates, coarse_step {coarse_step}, refine {refine}\n\
         requests: {searched} instead of {}: {saved:.1} % saved\n\
         the same cheapest price in {same} of {count}; above it {:.1} % at the median, {:.1} % in nine of ten, {:.1} % at most\n\
         missed in the worlds {missed:?}",
        count * dates,
        above[count / 2],
        above[count * 9 / 10],
        above[count - 1],
    )
}

const DATES: usize = 90;
const WORLDS: u64 = 50;
/// The day that the worlds are seen from, the same whenever this runs.
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
    };
    tokio::spawn(serve(listener, options, stop.clone().cancelled_owned()));
    UpstreamConfig::at(url.clone(), url)
}

/// A world's prices by position, each date asked once.
struct World {
    seed: u64,
    prices: Vec<(usize, Decimal)>,
}

/// The dates of all worlds, in the phases of coarse step 4 and refine 2.
async fn worlds(count: u64) -> (TwoPhase, Vec<World>) {
    let stop = CancellationToken::new();
    let day = |days| {
        TODAY
            .saturating_add(jiff::Span::new().days(days))
            .to_string()
    };
    let mut order = fares(1);
    order["sweep"]["departure_date"] =
        json!({"from": day(30), "to": day(29 + i64::try_from(DATES).unwrap())});
    order["strategy"] = json!({"coarse_step": 4, "refine": 2});
    let plan = plan(order.as_object().unwrap(), TODAY).unwrap();
    let mut worlds = Vec::new();
    for seed in 1..=count {
        let client = Client::new(&sandbox(seed, Some(TODAY), &stop).await).unwrap();
        let asks = plan
            .items
            .iter()
            .enumerate()
            .map(async |(position, request)| {
                let search = Search::of_item(request.clone(), 50, false);
                let key = CallerKey::new("sandbox-unlimited");
                let outcome = client
                    .ask(&search, &key, &ItemId::new().to_string(), || async { true })
                    .await;
                let Finding::Answer(answer) = &outcome.finding else {
                    panic!("seed {seed}: {outcome:?}")
                };
                Sight::of(&search, answer)
                    .best
                    .map(|(offer, _)| (position, offer.price))
            });
        let prices = futures::future::join_all(asks)
            .await
            .into_iter()
            .flatten()
            .collect();
        worlds.push(World { seed, prices });
    }
    stop.cancel();
    (plan.two_phase.unwrap(), worlds)
}

/// What the plan's own decisions come to in a world: a full scan beside one in two phases.
fn trial(World { seed, prices }: &World, phases: &TwoPhase) -> Trial {
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
    Trial {
        seed: *seed,
        searched: first.len() + then.len(),
        full,
        found,
        same_date: found == full,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_phases_save_requests_and_stay_near_the_cheapest() {
    let (phases, worlds) = worlds(6).await;
    let trials: Vec<_> = worlds.iter().map(|world| trial(world, &phases)).collect();
    let figures = told(&trials, &phases);
    println!("{figures}");
    assert!(
        trials.iter().all(|trial| trial.searched <= 36),
        "24 first, at most 12 more: {figures}"
    );
    assert!(trials.iter().any(|trial| trial.same_date), "{figures}");
    let all = TwoPhase {
        refine: DATES,
        ..phases
    };
    assert!(
        worlds.iter().all(|world| trial(world, &all).same_date),
        "next to every date is everywhere"
    );
}

/// The figures that docs/decisions/0004 quotes.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "4,500 searches take a minute: run by hand, with --run-ignored only --no-capture"]
async fn two_phases_over_fifty_worlds() {
    let (phases, worlds) = worlds(WORLDS).await;
    for (coarse_step, refine) in [(4, 2), (4, 4), (4, 6), (3, 3), (2, 3)] {
        let phases = TwoPhase {
            coarse_step,
            refine,
            ..phases
        };
        let trials: Vec<_> = worlds.iter().map(|world| trial(world, &phases)).collect();
        println!("{}\n", told(&trials, &phases));
    }
}

/// The same through the whole service: orders, queue, worker, sweeper, and Postgres. Run by hand: it takes a minute or two.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "4,500 searches and 50 two-phase scans: run by hand, with --run-ignored only --no-capture"]
async fn two_phases_over_fifty_worlds_through_the_whole_service() {
    let stop = CancellationToken::new();
    let mut trials = Vec::new();
    for seed in 1..=WORLDS {
        let stage = Stage::with_key("sandbox-unlimited").await;
        let worker = stage.worker_of(&sandbox(seed, None, &stop).await);
        let full = stage
            .submit(i64::try_from(DATES).unwrap(), &json!({}))
            .await;
        let full = stage.ended(full).await;
        let two = stage
            .submit(
                i64::try_from(DATES).unwrap(),
                &json!({"strategy": {"coarse_step": 4, "refine": 2}}),
            )
            .await;
        let seen = stage.ended(two).await;
        worker.stop().await;
        assert_eq!(
            (full.items.ok, seen.items.ok),
            (90, seen.items.total),
            "every date has flights"
        );
        let saved = seen.strategy.unwrap().requests_saved;
        assert_eq!((full.requests.spent, seen.requests.spent + saved), (90, 90));
        let (best, found) = (full.best.unwrap(), seen.best.unwrap());
        let items = stage.items(two).await;
        let compared =
            scans::compare::compare(stage.pool(), stage.tenant().await, full.id, seen.id)
                .await
                .unwrap();
        assert_eq!(
            (compared.counts.unchanged, compared.counts.unknown),
            (seen.items.ok, saved),
            "the same world twice"
        );
        assert_eq!(
            items
                .iter()
                .filter(|item| item.state == ItemState::Skipped)
                .count(),
            usize::try_from(saved).unwrap()
        );
        trials.push(Trial {
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
    println!("{}", told(&trials, &phases));
}
