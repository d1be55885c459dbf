//! Random sequences of scans, calls, retries and deletes through the program's own functions:
//! history, latest prices, grid and usage must agree with a model in memory.

use std::collections::{BTreeMap, BTreeSet};

use farescan::contract::{Endpoint, Request, SearchStatus};
use farescan::history::{self, Observation, ObservedPrice, Subject};
use farescan::ids::ItemId;
use farescan::queue::abandon::abandon;
use farescan::queue::store::{self, CallRecord, ClaimRow, LaneClaims, StoredAnswer};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::queue::fixture;
use crate::support::{TestService, array, billed, day, text, total};

const DATES: usize = 4;

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallResult {
    Ok(u32),
    /// Answered, but no offer has a price.
    NoPrice,
    Empty,
    Partial(u32),
    Degraded,
    /// Connecting failed: not billed.
    Unreachable,
    /// The worker died.
    Lost,
}

impl CallResult {
    fn any(rng: &mut StdRng) -> Self {
        let price = rng.random_range(50..400);
        match rng.random_range(0..10) {
            0..5 => Self::Ok(price),
            5 => Self::NoPrice,
            6 => Self::Empty,
            7 => Self::Partial(price),
            8 => Self::Degraded,
            _ => Self::Unreachable,
        }
    }

    fn status(self) -> SearchStatus {
        match self {
            Self::Ok(_) | Self::NoPrice => SearchStatus::Ok,
            Self::Empty => SearchStatus::Empty,
            Self::Partial(_) => SearchStatus::Partial,
            Self::Degraded | Self::Unreachable | Self::Lost => SearchStatus::Degraded,
        }
    }

    fn price(self) -> Option<u32> {
        match self {
            Self::Ok(price) | Self::Partial(price) => Some(price),
            _ => None,
        }
    }

    fn billed(self) -> u16 {
        u16::from(self != Self::Unreachable)
    }

    fn call(self, claimed: &ClaimRow, at: Timestamp) -> CallRecord {
        let claim = claimed.claim;
        let call = match self {
            Self::Ok(price) => fixture::priced(claim, &price.to_string()),
            Self::NoPrice => fixture::ok(claim),
            Self::Empty => fixture::done(claim, SearchStatus::Empty),
            Self::Partial(price) => CallRecord {
                search_status: Some(SearchStatus::Partial),
                ..fixture::priced(claim, &price.to_string())
            },
            Self::Degraded | Self::Unreachable | Self::Lost => fixture::degraded(claim),
        };
        CallRecord {
            ended_at: at,
            billed: self.billed(),
            ..call
        }
    }
}

#[derive(Debug, Clone)]
struct Attempt {
    claimed: ClaimRow,
    date: String,
    /// `None` while in flight.
    result: Option<(CallResult, Timestamp)>,
}

#[derive(Debug, Clone)]
struct Item {
    scan: String,
    attempts: Vec<Attempt>,
    /// The current result; `None` while pending or in flight.
    shown: Option<CallResult>,
}

/// The model: everything that happened.
#[derive(Default)]
struct Ledger {
    items: BTreeMap<ItemId, Item>,
    /// Observations of deleted items that were not deleted with them.
    left: Vec<ExpectedObservation>,
    /// The cost of deleted scans.
    spent: (u64, u64),
    scans: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct ExpectedObservation {
    at: Timestamp,
    item: String,
    number: i32,
    date: String,
    result: CallResult,
}

impl ExpectedObservation {
    fn day(&self) -> Date {
        self.at.to_zoned(TimeZone::UTC).date()
    }

    fn complete_price(&self) -> Option<u32> {
        match self.result {
            CallResult::Ok(price) => Some(price),
            _ => None,
        }
    }
}

/// The last complete price of a date on each day before `before`, the newest day first. `all` are
/// the newest first.
fn last_prices(all: &[ExpectedObservation], date: &str, before: Date) -> Vec<(Date, u32)> {
    let mut last = Vec::<(Date, u32)>::new();
    for observation in all.iter().filter(|one| one.date == date) {
        let day = observation.day();
        if let Some(price) = observation.complete_price()
            && day < before
            && last.last().is_none_or(|(newer, _)| *newer != day)
        {
            last.push((day, price));
        }
    }
    last
}

/// The ratio of a price of a day to the usual one (history.md, rule 44).
fn ratio(all: &[ExpectedObservation], date: &str, day: Date, price: u32) -> Option<f64> {
    let last = last_prices(all, date, day);
    let three = last.get(..3)?;
    if (day - three[2].0).get_days() > 30 {
        return None;
    }
    let mut prices: Vec<_> = three.iter().map(|(_, price)| *price).collect();
    prices.sort_unstable();
    Some(f64::from(1_000 * price) / f64::from(1_000 * prices[1]))
}

/// Rules 43 and 45 of history.md in plain code.
fn is_implausible(one: &ExpectedObservation, all: &[ExpectedObservation]) -> bool {
    let day = one.day();
    let own = one.result.price();
    let Some(own) = own.and_then(|price| ratio(all, &one.date, day, price)) else {
        return false;
    };
    if own < 2.25 && own * 2.25 > 1.0 {
        return false;
    }
    let dates: BTreeSet<_> = all.iter().map(|seen| &seen.date).collect();
    let others = dates.into_iter().filter(|date| **date != one.date);
    let others: Vec<_> = others
        .filter_map(|date| {
            let next = day.tomorrow().unwrap();
            let (last, price) = *last_prices(all, date, next).first()?;
            ratio(all, date, day, price).filter(|_| last == day)
        })
        .collect();
    let moved = |other: &&f64| {
        if own > 1.0 {
            **other * **other >= own
        } else {
            **other * **other <= own
        }
    };
    let moved = others.iter().filter(moved).count();
    moved < 3 || 10 * moved < others.len()
}

impl Ledger {
    /// One observation per ended attempt, newest first.
    fn observations(&self) -> Vec<ExpectedObservation> {
        let of_items = self.items.iter().flat_map(|(id, item)| {
            item.attempts.iter().filter_map(move |attempt| {
                let (result, at) = attempt.result?;
                Some(ExpectedObservation {
                    at,
                    item: id.to_string(),
                    number: attempt.claimed.claim.number,
                    date: attempt.date.clone(),
                    result,
                })
            })
        });
        let mut observations: Vec<_> = of_items.chain(self.left.iter().cloned()).collect();
        observations.sort_by_key(|observation| std::cmp::Reverse(observation.at));
        observations
    }

    fn of_scan(&self, scan: &str) -> impl Iterator<Item = (&ItemId, &Item)> {
        self.items.iter().filter(move |(_, item)| item.scan == scan)
    }
}

struct RandomRun {
    service: TestService,
    ledger: Ledger,
    rng: StdRng,
    now: Timestamp,
    times: BTreeSet<i64>,
}

impl RandomRun {
    async fn begin(seed: u64) -> Self {
        let (service, ledger) = (TestService::start().await, Ledger::default());
        let now = Timestamp::now();
        let mut run = Self {
            service,
            ledger,
            rng: StdRng::seed_from_u64(seed),
            now,
            times: BTreeSet::new(),
        };
        // The lane allows one scan at a time until the marketplace has accepted the key.
        run.submit_scan().await;
        while run.ledger.items.values().any(|item| item.shown.is_none()) {
            run.start_calls().await;
            run.finish_call().await;
        }
        run
    }

    /// A unique time within the last 20 days. A later result may have an earlier time.
    fn unique_time(&mut self) -> Timestamp {
        loop {
            let seconds = self.rng.random_range(3_600..20 * 86_400);
            if self.times.insert(seconds) {
                let at = self.now - SignedDuration::from_secs(seconds);
                return Timestamp::from_second(at.as_second()).unwrap();
            }
        }
    }

    async fn step(&mut self) {
        match self.rng.random_range(0..18) {
            0 | 1 => self.submit_scan().await,
            2..5 => self.start_calls().await,
            5..11 => self.finish_call().await,
            11 => self.record_again().await,
            12 => self.lose_worker().await,
            13 => self.record_late().await,
            14 => self.retry().await,
            15 | 16 => self.pack().await,
            _ => self.delete().await,
        }
    }

    async fn submit_scan(&mut self) {
        let last = self.rng.random_range(1..=DATES);
        let body = json!({
            "endpoint": "flights/oneway",
            "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": {"from": day(1), "to": day(last)}}
        });
        let scan = self.service.submit(&body).await;
        let page = self
            .service
            .get(&format!("/v1/scans/{scan}/items?limit=500"))
            .await;
        for item in array(&page["data"]) {
            let id: ItemId = item["id"].as_str().unwrap().parse().unwrap();
            self.ledger.items.insert(
                id,
                Item {
                    scan: scan.clone(),
                    attempts: Vec::new(),
                    shown: None,
                },
            );
        }
        self.ledger.scans.insert(scan);
    }

    async fn start_calls(&mut self) {
        for claimed in self.service.claim().await {
            self.service.begin(&claimed).await;
            let date = text(&claimed.body["departure_date"]);
            let item = self.ledger.items.get_mut(&claimed.claim.item).unwrap();
            item.attempts.push(Attempt {
                claimed,
                date,
                result: None,
            });
        }
    }

    /// A random matching attempt.
    fn pick(&mut self, matches: impl Fn(&Attempt) -> bool) -> Option<(ItemId, usize)> {
        let all: Vec<_> = self
            .ledger
            .items
            .iter()
            .flat_map(|(id, item)| {
                let fit = item
                    .attempts
                    .iter()
                    .enumerate()
                    .filter(|(_, attempt)| matches(attempt));
                fit.map(|(at, _)| (*id, at)).collect::<Vec<_>>()
            })
            .collect();
        (!all.is_empty()).then(|| all[self.rng.random_range(0..all.len())])
    }

    /// Stores call, answer and observation in one transaction, as the writer does. Returns whether
    /// it was new.
    async fn record_call(&self, claimed: &ClaimRow, result: CallResult, at: Timestamp) -> bool {
        let call = result.call(claimed, at);
        let request = Request::check(Endpoint::FlightsOneway, &claimed.body)
            .unwrap()
            .request;
        let mut tx = farescan::db::begin(self.service.pool()).await.unwrap();
        let open = store::open_calls(&mut tx, &[&call]).await.unwrap();
        let is_new = !open.numbers.is_empty();
        if is_new {
            let claim = claimed.claim;
            if matches!(result.status(), SearchStatus::Ok | SearchStatus::Partial) {
                let body = &zstd::encode_all(&b"[]"[..], 3).unwrap();
                let answer = StoredAnswer {
                    tenant: claim.tenant,
                    item: claim.item,
                    number: claim.number,
                    observed_at: at,
                    body,
                };
                store::insert_answers(&mut tx, &[answer]).await.unwrap();
            }
            let best = result.price().map(|price| ObservedPrice {
                price: price.into(),
                seller: None,
                band_low: None,
                band_high: None,
                verdict: None,
            });
            let observation = Observation {
                tenant: claim.tenant,
                item: claim.item,
                number: claim.number,
                subject: Subject::of(&request).unwrap(),
                observed_at: at,
                best,
                results: call.results,
                status: result.status(),
                reason: call.reason.clone(),
            };
            history::insert(&mut tx, &[observation]).await.unwrap();
        }
        store::record_calls(&mut tx, &[(&call, None)], &open, Timestamp::now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        is_new
    }

    async fn finish_call(&mut self) {
        let Some((id, at)) = self.pick(|attempt| attempt.result.is_none()) else {
            return;
        };
        let (result, time) = (CallResult::any(&mut self.rng), self.unique_time());
        let claimed = self.ledger.items[&id].attempts[at].claimed.clone();
        assert!(self.record_call(&claimed, result, time).await);
        let item = self.ledger.items.get_mut(&id).unwrap();
        item.attempts[at].result = Some((result, time));
        item.shown = Some(result);
    }

    /// Recording a result again changes nothing.
    async fn record_again(&mut self) {
        let Some((id, at)) = self.pick(|attempt| {
            attempt
                .result
                .is_some_and(|(result, _)| result != CallResult::Lost)
        }) else {
            return;
        };
        let (result, time) = (CallResult::any(&mut self.rng), self.unique_time());
        let claimed = self.ledger.items[&id].attempts[at].claimed.clone();
        assert!(!self.record_call(&claimed, result, time).await);
    }

    async fn lose_worker(&mut self) {
        let Some((id, at)) = self.pick(|attempt| attempt.result.is_none()) else {
            return;
        };
        let claim = self.ledger.items[&id].attempts[at].claimed.claim;
        let lane = LaneClaims {
            tenant: claim.tenant,
            api: "flights".to_owned(),
            items: vec![id.uuid()],
            numbers: vec![claim.number],
        };
        let pool = self.service.pool();
        assert_eq!(abandon(pool, &lane).await.unwrap(), 1);
        let ended =
            sqlx::query_scalar("select ended_at from attempts where item_id = $1 and number = $2");
        let ended: jiff_sqlx::Timestamp = ended
            .bind(id.uuid())
            .bind(claim.number)
            .fetch_one(pool)
            .await
            .unwrap();
        let item = self.ledger.items.get_mut(&id).unwrap();
        item.attempts[at].result = Some((CallResult::Lost, ended.to_jiff()));
        item.shown = Some(CallResult::Lost);
    }

    /// A lost call's answer arrives: it replaces the gap, and the item's result unless a newer
    /// attempt exists.
    async fn record_late(&mut self) {
        let Some((id, at)) = self.pick(|attempt| {
            attempt
                .result
                .is_some_and(|(result, _)| result == CallResult::Lost)
        }) else {
            return;
        };
        let (result, time) = (CallResult::any(&mut self.rng), self.unique_time());
        let claimed = self.ledger.items[&id].attempts[at].claimed.clone();
        assert!(self.record_call(&claimed, result, time).await);
        let item = self.ledger.items.get_mut(&id).unwrap();
        item.attempts[at].result = Some((result, time));
        if at + 1 == item.attempts.len()
            && (item.shown.is_some() || result.status() != SearchStatus::Degraded)
        {
            item.shown = Some(result);
        }
    }

    async fn retry(&mut self) {
        for scan in self.ledger.scans.clone() {
            let degraded = |item: &Item| {
                item.shown
                    .is_some_and(|result| result.status() == SearchStatus::Degraded)
            };
            if self.ledger.of_scan(&scan).any(|(_, item)| degraded(item)) {
                let filter = json!({"search_status": ["degraded"]});
                self.service
                    .post(&format!("/v1/scans/{scan}/retry"), &filter)
                    .await
                    .expect(202);
                for item in self
                    .ledger
                    .items
                    .values_mut()
                    .filter(|item| item.scan == scan && degraded(item))
                {
                    item.shown = None;
                }
                return;
            }
        }
    }

    /// Deletes a scan, but never the first: without attempts, the key would count as never
    /// accepted.
    async fn delete(&mut self) {
        let ended = |scan: &String| {
            self.ledger.of_scan(scan).all(|(_, item)| {
                item.shown.is_some() && item.attempts.iter().all(|attempt| attempt.result.is_some())
            })
        };
        let Some(scan) = self
            .ledger
            .scans
            .iter()
            .skip(1)
            .find(|scan| ended(scan))
            .cloned()
        else {
            return;
        };
        let with_history = self.rng.random_bool(0.5);
        let path = format!("/v1/scans/{scan}?history={with_history}");
        self.service
            .send(
                self.service
                    .request("DELETE", &path)
                    .header("x-api-key", crate::support::app::KEY),
            )
            .await
            .expect(204);
        let of_scan: BTreeSet<_> = self
            .ledger
            .of_scan(&scan)
            .map(|(id, _)| id.to_string())
            .collect();
        let left: Vec<_> = self
            .ledger
            .observations()
            .into_iter()
            .filter(|observation| of_scan.contains(&observation.item))
            .collect();
        let attempts = self
            .ledger
            .of_scan(&scan)
            .flat_map(|(_, item)| &item.attempts);
        let billed: Vec<_> = attempts
            .map(|attempt| u64::from(attempt.result.map_or(1, |(result, _)| result.billed())))
            .collect();
        self.ledger.spent.0 += billed.len() as u64;
        self.ledger.spent.1 += billed.iter().sum::<u64>();
        if !with_history {
            self.ledger.left.extend(
                left.into_iter()
                    .filter(|observation| !self.ledger.left.contains(observation))
                    .collect::<Vec<_>>(),
            );
        }
        self.ledger.items.retain(|_, item| item.scan != scan);
        self.ledger.scans.remove(&scan);
    }

    /// Packs past days, or today too: a clock may be wrong.
    async fn pack(&mut self) {
        let now = self.now + SignedDuration::from_hours(24 * self.rng.random_range(-15..=1));
        history::daily_pack::pack_past_days(self.service.pool(), now)
            .await
            .unwrap();
    }

    async fn agrees(&self) {
        let observations = self.ledger.observations();
        self.history_agrees(&observations).await;
        self.latest_agrees(&observations).await;
        self.series_agrees(&observations).await;
        self.grids_agree().await;
        self.usage_agrees().await;
    }

    async fn history_agrees(&self, observations: &[ExpectedObservation]) {
        let path = "/v1/history/flights?from_airport=TLV&to_airport=LHR&limit=7";
        let (mut next, mut rows) = (path.to_owned(), Vec::new());
        loop {
            let page = self.service.get(&next).await;
            rows.extend(array(&page["data"]).clone());
            let Some(cursor) = page["next_cursor"].as_str() else {
                break;
            };
            next = format!("{path}&cursor={cursor}");
        }
        let actual = |row: &Value| {
            [
                "observed_at",
                "item_id",
                "departure_date",
                "search_status",
                "price",
            ]
            .map(|field| row[field].clone())
        };
        let actual: Vec<_> = rows
            .iter()
            .map(|row| Value::from(actual(row).to_vec()))
            .collect();
        let expected: Vec<_> = observations
            .iter()
            .map(|observation| {
                json!([
                    observation.at.to_string(),
                    observation.item,
                    observation.date,
                    observation.result.status(),
                    observation.result.price()
                ])
            })
            .collect();
        assert_eq!(actual, expected);
    }

    async fn latest_agrees(&self, observations: &[ExpectedObservation]) {
        let mut expected = BTreeMap::new();
        let mut searches = BTreeMap::new();
        for observation in observations {
            searches.entry(observation.date.clone()).or_insert((
                observation.at,
                observation.result.status().as_str().to_owned(),
            ));
            if let Some(price) = observation.result.price() {
                expected.entry(observation.date.clone()).or_insert(json!([
                    observation.date,
                    price,
                    observation.at.to_string(),
                    observation.item
                ]));
            }
        }
        let path = format!(
            "/v1/history/flights/latest?from_airport=TLV&to_airport=LHR&departure_from={}&departure_to={}",
            day(1),
            day(DATES)
        );
        let calendar = self.service.get(&path).await;
        let actual = |row: &Value| {
            ["departure_date", "price", "observed_at", "item_id"].map(|field| row[field].clone())
        };
        let actual: Vec<_> = array(&calendar["data"])
            .iter()
            .map(|row| Value::from(actual(row).to_vec()))
            .collect();
        assert_eq!(actual, expected.into_values().collect::<Vec<_>>());
        let rows = sqlx::query_as(
            "select first_date::text, sampled_at, sample_status from latest_prices order by 1",
        );
        let stored: Vec<(String, jiff_sqlx::Timestamp, String)> =
            rows.fetch_all(self.service.pool()).await.unwrap();
        let stored: BTreeMap<_, _> = stored
            .into_iter()
            .map(|(date, at, status)| (date, (at.to_jiff(), status)))
            .collect();
        assert_eq!(stored, searches, "the last look at each date");
    }

    async fn series_agrees(&self, observations: &[ExpectedObservation]) {
        let mut days = BTreeMap::<String, Vec<&ExpectedObservation>>::new();
        for observation in observations {
            days.entry(observation.day().to_string())
                .or_default()
                .push(observation);
        }
        let expected: Vec<_> = days
            .into_iter()
            .map(|(day, all)| {
                let (implausible, plausible): (Vec<_>, Vec<_>) = all
                    .iter()
                    .filter(|one| one.result.price().is_some())
                    .partition(|one| is_implausible(one, observations));
                let ascending = |some: Vec<&&ExpectedObservation>| {
                    let mut prices: Vec<_> =
                        some.iter().filter_map(|one| one.result.price()).collect();
                    prices.sort_unstable();
                    prices
                };
                let (prices, implausible) = (ascending(plausible), ascending(implausible));
                let count = |status: SearchStatus| {
                    all.iter()
                        .filter(|one| one.result.status() == status)
                        .count()
                };
                let middle = prices.len() / 2;
                let median = match prices.len() {
                    0 => None,
                    len if len % 2 == 1 => Some(f64::from(prices[middle])),
                    _ => Some(f64::from(prices[middle - 1] + prices[middle]) / 2.0),
                };
                let counts = [
                    all.len(),
                    prices.len(),
                    implausible.len(),
                    count(SearchStatus::Empty),
                    count(SearchStatus::Degraded),
                ];
                let price = |price: Option<&u32>| price.copied().map(f64::from);
                let prices = [
                    price(prices.first()),
                    median,
                    price(prices.last()),
                    price(implausible.first()),
                ];
                (day, counts, prices)
            })
            .collect();
        // Lost calls were abandoned just now.
        let until = Timestamp::now() + SignedDuration::from_mins(1);
        let series = self
            .service
            .get(&format!(
                "/v1/history/flights/series?from_airport=TLV&to_airport=LHR&until={until}"
            ))
            .await;
        let actual: Vec<_> = array(&series["data"])
            .iter()
            .map(|row| {
                let count = |field: &str| usize::try_from(row[field].as_u64().unwrap()).unwrap();
                let counts = ["observations", "prices", "implausible", "empty", "degraded"];
                let prices = ["minimum", "median", "maximum", "lowest_implausible"];
                (
                    text(&row["bucket"]),
                    counts.map(count),
                    prices.map(|field| row[field].as_f64()),
                )
            })
            .collect();
        assert_eq!(actual, expected);
    }

    async fn grids_agree(&self) {
        for scan in &self.ledger.scans {
            let grid = self
                .service
                .get(&format!("/v1/scans/{scan}/grid?rows=departure_date"))
                .await;
            let mut actual: Vec<_> = array(&grid["cells"])
                .iter()
                .map(|cell| json!([cell["item_id"], cell["search_status"], cell["price"]]))
                .collect();
            let shown = |(id, item): (&ItemId, &Item)| {
                json!([
                    id.to_string(),
                    item.shown.map(CallResult::status),
                    item.shown.and_then(CallResult::price)
                ])
            };
            let mut expected: Vec<_> = self.ledger.of_scan(scan).map(shown).collect();
            actual.sort_by_key(Value::to_string);
            expected.sort_by_key(Value::to_string);
            assert_eq!(actual, expected, "{scan}");
        }
    }

    async fn usage_agrees(&self) {
        let attempts = self.ledger.items.values().flat_map(|item| &item.attempts);
        let (mut count, mut requests) = self.ledger.spent;
        for attempt in attempts {
            count += 1;
            requests += u64::from(attempt.result.map_or(1, |(result, _)| result.billed()));
        }
        for group in ["day", "endpoint", "scan"] {
            let usage = self.service.get(&format!("/v1/usage?group={group}")).await;
            assert_eq!(
                (total(&usage, "attempts"), billed(&usage)),
                (count, requests),
                "{group}"
            );
        }
    }
}

/// `FARESCAN_SEED` repeats a run; `FARESCAN_SOAK=1` runs more of them.
#[tokio::test(flavor = "multi_thread")]
async fn history_grid_and_usage_agree_with_the_ledger() {
    let seed = crate::faults::seed();
    let (lives, steps) = if crate::faults::is_soak() {
        (40, 200)
    } else {
        (4, 80)
    };
    let mut total = [0; 4];
    for number in 0..lives {
        let mut run = RandomRun::begin(seed.wrapping_add(number)).await;
        for step in 0..steps {
            run.step().await;
            if step % 8 == 7 {
                run.agrees().await;
            }
        }
        run.agrees().await;
        let observations = run.ledger.observations();
        total[0] += observations.len();
        total[1] += observations
            .iter()
            .filter(|observation| observation.result.price().is_some())
            .count();
        total[2] += run.ledger.scans.len();
        let implausible = observations.iter();
        total[3] += implausible
            .filter(|one| is_implausible(one, &observations))
            .count();
    }
    println!(
        "{lives} lives of {steps} steps: {} observations, {} of them prices, {} implausible, {} scans left at the end; they agree",
        total[0], total[1], total[3], total[2]
    );
    assert!(total[1] > 0, "prices were seen");
}
