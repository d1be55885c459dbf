//! Whatever comes in whatever order, history, latest prices, grid and usage tell what the ledger says: random lives of scans, recorded
//! by the program's own functions, against a plain list in memory.

use std::collections::{BTreeMap, BTreeSet};

use farescan::contract::{Endpoint, Request, SearchStatus};
use farescan::history::{self, Observation, SeenPrice, Subject};
use farescan::ids::ItemId;
use farescan::queue::give_up::give_up;
use farescan::queue::store::{self, Claimed, FinishedCall, LaneClaims, StoredAnswer};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::queue::yard;
use crate::scans::office::{Office, day};

const DATES: usize = 4;

/// What a search comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comes {
    Ok(u32),
    /// Answered, and no offer showed a price.
    NoPrice,
    Empty,
    Partial(u32),
    Degraded,
    /// No connection: nothing was billed.
    Unreachable,
    /// Its worker died.
    Lost,
}

impl Comes {
    fn any(dice: &mut StdRng) -> Self {
        let price = dice.random_range(50..400);
        match dice.random_range(0..10) {
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

    fn call(self, claimed: &Claimed, at: Timestamp) -> FinishedCall {
        let claim = claimed.claim;
        let call = match self {
            Self::Ok(price) => yard::priced(claim, &price.to_string()),
            Self::NoPrice => yard::ok(claim),
            Self::Empty => yard::done(claim, SearchStatus::Empty),
            Self::Partial(price) => FinishedCall {
                search_status: Some(SearchStatus::Partial),
                ..yard::priced(claim, &price.to_string())
            },
            Self::Degraded | Self::Unreachable | Self::Lost => yard::degraded(claim),
        };
        FinishedCall {
            ended_at: at,
            billed: self.billed(),
            ..call
        }
    }
}

/// One attempt of the list.
#[derive(Debug, Clone)]
struct Attempt {
    claimed: Claimed,
    date: String,
    /// `None`: in flight.
    came: Option<(Comes, Timestamp)>,
}

/// One item of the list.
#[derive(Debug, Clone)]
struct Item {
    scan: String,
    attempts: Vec<Attempt>,
    /// What it shows; `None`: it is waiting or in flight.
    shown: Option<Comes>,
}

/// All that was done, and what follows from it by the plainest rules.
#[derive(Default)]
struct Ledger {
    items: BTreeMap<ItemId, Item>,
    /// Observations of items that were deleted without them: they stay.
    left: Vec<Seen>,
    /// What deleted scans had cost.
    spent: (u64, u64),
    scans: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Seen {
    at: Timestamp,
    item: String,
    number: i32,
    date: String,
    comes: Comes,
}

impl Ledger {
    /// Every ended attempt has left one observation; newest first.
    fn seen(&self) -> Vec<Seen> {
        let of_items = self.items.iter().flat_map(|(id, item)| {
            item.attempts.iter().filter_map(move |attempt| {
                let (comes, at) = attempt.came?;
                Some(Seen {
                    at,
                    item: id.to_string(),
                    number: attempt.claimed.claim.number,
                    date: attempt.date.clone(),
                    comes,
                })
            })
        });
        let mut seen: Vec<_> = of_items.chain(self.left.iter().cloned()).collect();
        seen.sort_by_key(|seen| std::cmp::Reverse(seen.at));
        seen
    }

    fn of_scan(&self, scan: &str) -> impl Iterator<Item = (&ItemId, &Item)> {
        self.items.iter().filter(move |(_, item)| item.scan == scan)
    }
}

struct Life {
    office: Office,
    ledger: Ledger,
    dice: StdRng,
    now: Timestamp,
    times: BTreeSet<i64>,
}

impl Life {
    async fn begin(seed: u64) -> Self {
        let (office, ledger) = (Office::open().await, Ledger::default());
        let now = Timestamp::now();
        let mut life = Self {
            office,
            ledger,
            dice: StdRng::seed_from_u64(seed),
            now,
            times: BTreeSet::new(),
        };
        // One scan at a time until the marketplace has taken the key.
        life.order().await;
        while life.ledger.items.values().any(|item| item.shown.is_none()) {
            life.begin_some().await;
            life.finish_one().await;
        }
        life
    }

    /// A time of the last 20 days, each once: what ends later may have ended earlier by its own clock.
    fn some_time(&mut self) -> Timestamp {
        loop {
            let seconds = self.dice.random_range(3_600..20 * 86_400);
            if self.times.insert(seconds) {
                let at = self.now - SignedDuration::from_secs(seconds);
                return Timestamp::from_second(at.as_second()).unwrap();
            }
        }
    }

    async fn step(&mut self) {
        match self.dice.random_range(0..18) {
            0 | 1 => self.order().await,
            2..5 => self.begin_some().await,
            5..11 => self.finish_one().await,
            11 => self.repeat_one().await,
            12 => self.lose_some().await,
            13 => self.late_one().await,
            14 => self.retry().await,
            15 | 16 => self.pack().await,
            _ => self.delete().await,
        }
    }

    async fn order(&mut self) {
        let last = self.dice.random_range(1..=DATES);
        let body = json!({
            "endpoint": "flights/oneway",
            "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": {"from": day(1), "to": day(last)}}
        });
        let scan = self.office.order(&body).await;
        let page = self
            .office
            .get(&format!("/v1/scans/{scan}/items?limit=500"))
            .await;
        for item in page["data"].as_array().unwrap() {
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

    async fn begin_some(&mut self) {
        for claimed in self.office.claim().await {
            self.office.begin(&claimed).await;
            let date = claimed.body["departure_date"].as_str().unwrap().to_owned();
            let item = self.ledger.items.get_mut(&claimed.claim.item).unwrap();
            item.attempts.push(Attempt {
                claimed,
                date,
                came: None,
            });
        }
    }

    /// An attempt that is so, by chance.
    fn pick(&mut self, so: impl Fn(&Attempt) -> bool) -> Option<(ItemId, usize)> {
        let all: Vec<_> = self
            .ledger
            .items
            .iter()
            .flat_map(|(id, item)| {
                let fit = item
                    .attempts
                    .iter()
                    .enumerate()
                    .filter(|(_, attempt)| so(attempt));
                fit.map(|(at, _)| (*id, at)).collect::<Vec<_>>()
            })
            .collect();
        (!all.is_empty()).then(|| all[self.dice.random_range(0..all.len())])
    }

    /// As the writer does it: call, answer and observation in one transaction. Gives whether it was new.
    async fn record(&self, claimed: &Claimed, comes: Comes, at: Timestamp) -> bool {
        let call = comes.call(claimed, at);
        let request = Request::check(Endpoint::FlightsOneway, &claimed.body)
            .unwrap()
            .request;
        let mut tx = farescan::db::begin(self.office.db.pool()).await.unwrap();
        let fresh = store::record_calls(&mut tx, &[&call], Timestamp::now())
            .await
            .unwrap();
        if !fresh.is_empty() {
            let claim = claimed.claim;
            if matches!(comes.status(), SearchStatus::Ok | SearchStatus::Partial) {
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
            let best = comes.price().map(|price| SeenPrice {
                price: price.into(),
                seller: None,
                band_low: None,
                band_high: None,
                verdict: None,
            });
            let seen = Observation {
                tenant: claim.tenant,
                item: claim.item,
                number: claim.number,
                subject: Subject::of(&request).unwrap(),
                observed_at: at,
                best,
                results: call.results,
                status: comes.status(),
                reason: call.reason.clone(),
            };
            history::record(&mut tx, &[seen]).await.unwrap();
        }
        tx.commit().await.unwrap();
        !fresh.is_empty()
    }

    async fn finish_one(&mut self) {
        let Some((id, at)) = self.pick(|attempt| attempt.came.is_none()) else {
            return;
        };
        let (comes, time) = (Comes::any(&mut self.dice), self.some_time());
        let claimed = self.ledger.items[&id].attempts[at].claimed.clone();
        assert!(self.record(&claimed, comes, time).await);
        let item = self.ledger.items.get_mut(&id).unwrap();
        item.attempts[at].came = Some((comes, time));
        item.shown = Some(comes);
    }

    /// What is on record is left as it is.
    async fn repeat_one(&mut self) {
        let Some((id, at)) =
            self.pick(|attempt| attempt.came.is_some_and(|(comes, _)| comes != Comes::Lost))
        else {
            return;
        };
        let (comes, time) = (Comes::any(&mut self.dice), self.some_time());
        let claimed = self.ledger.items[&id].attempts[at].claimed.clone();
        assert!(!self.record(&claimed, comes, time).await);
    }

    async fn lose_some(&mut self) {
        let Some((id, at)) = self.pick(|attempt| attempt.came.is_none()) else {
            return;
        };
        let claim = self.ledger.items[&id].attempts[at].claimed.claim;
        let lane = LaneClaims {
            tenant: claim.tenant,
            api: "flights".to_owned(),
            items: vec![id.uuid()],
            numbers: vec![claim.number],
        };
        let pool = self.office.db.pool();
        assert_eq!(give_up(pool, &lane).await.unwrap(), 1);
        let ended =
            sqlx::query_scalar("select ended_at from attempts where item_id = $1 and number = $2");
        let ended: jiff_sqlx::Timestamp = ended
            .bind(id.uuid())
            .bind(claim.number)
            .fetch_one(pool)
            .await
            .unwrap();
        let item = self.ledger.items.get_mut(&id).unwrap();
        item.attempts[at].came = Some((Comes::Lost, ended.to_jiff()));
        item.shown = Some(Comes::Lost);
    }

    /// A lost call's answer comes after all: it takes the place of the gap, and the item's too unless a newer attempt has begun.
    async fn late_one(&mut self) {
        let Some((id, at)) =
            self.pick(|attempt| attempt.came.is_some_and(|(comes, _)| comes == Comes::Lost))
        else {
            return;
        };
        let (comes, time) = (Comes::any(&mut self.dice), self.some_time());
        let claimed = self.ledger.items[&id].attempts[at].claimed.clone();
        assert!(self.record(&claimed, comes, time).await);
        let item = self.ledger.items.get_mut(&id).unwrap();
        item.attempts[at].came = Some((comes, time));
        if at + 1 == item.attempts.len()
            && (item.shown.is_some() || comes.status() != SearchStatus::Degraded)
        {
            item.shown = Some(comes);
        }
    }

    async fn retry(&mut self) {
        for scan in self.ledger.scans.clone() {
            let degraded = |item: &Item| {
                item.shown
                    .is_some_and(|comes| comes.status() == SearchStatus::Degraded)
            };
            if self.ledger.of_scan(&scan).any(|(_, item)| degraded(item)) {
                let order = json!({"search_status": ["degraded"]});
                let answer = self
                    .office
                    .app
                    .post(&format!("/v1/scans/{scan}/retry"), &order)
                    .await;
                assert_eq!(answer.status, 202, "{}", answer.text());
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

    /// But the first: without any attempt the key counts as never taken, and scans are again taken one at a time.
    async fn delete(&mut self) {
        let ended = |scan: &String| {
            self.ledger.of_scan(scan).all(|(_, item)| {
                item.shown.is_some() && item.attempts.iter().all(|attempt| attempt.came.is_some())
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
        let with_history = self.dice.random_bool(0.5);
        let path = format!("/v1/scans/{scan}?history={with_history}");
        let answer = self
            .office
            .app
            .send(
                self.office
                    .app
                    .request("DELETE", &path)
                    .header("x-api-key", crate::support::app::KEY),
            )
            .await;
        assert_eq!(answer.status, 204, "{}", answer.text());
        let of_scan: BTreeSet<_> = self
            .ledger
            .of_scan(&scan)
            .map(|(id, _)| id.to_string())
            .collect();
        let left: Vec<_> = self
            .ledger
            .seen()
            .into_iter()
            .filter(|seen| of_scan.contains(&seen.item))
            .collect();
        let attempts = self
            .ledger
            .of_scan(&scan)
            .flat_map(|(_, item)| &item.attempts);
        let billed: Vec<_> = attempts
            .map(|attempt| u64::from(attempt.came.map_or(1, |(comes, _)| comes.billed())))
            .collect();
        self.ledger.spent.0 += billed.len() as u64;
        self.ledger.spent.1 += billed.iter().sum::<u64>();
        if !with_history {
            self.ledger.left.extend(
                left.into_iter()
                    .filter(|seen| !self.ledger.left.contains(seen))
                    .collect::<Vec<_>>(),
            );
        }
        self.ledger.items.retain(|_, item| item.scan != scan);
        self.ledger.scans.remove(&scan);
    }

    /// Days that are over, or today's too: a clock may be wrong.
    async fn pack(&mut self) {
        let now = self.now + SignedDuration::from_hours(24 * self.dice.random_range(-15..=1));
        history::days::pack_passed(self.office.db.pool(), now)
            .await
            .unwrap();
    }

    async fn agrees(&self) {
        let seen = self.ledger.seen();
        self.history_agrees(&seen).await;
        self.latest_agrees(&seen).await;
        self.series_agrees(&seen).await;
        self.grids_agree().await;
        self.usage_agrees().await;
    }

    async fn history_agrees(&self, seen: &[Seen]) {
        let path = "/v1/history/flights?from_airport=TLV&to_airport=LHR&limit=7";
        let (mut next, mut rows) = (path.to_owned(), Vec::new());
        loop {
            let page = self.office.get(&next).await;
            rows.extend(page["data"].as_array().unwrap().clone());
            let Some(cursor) = page["next_cursor"].as_str() else {
                break;
            };
            next = format!("{path}&cursor={cursor}");
        }
        let told = |row: &Value| {
            [
                "observed_at",
                "item_id",
                "departure_date",
                "search_status",
                "price",
            ]
            .map(|field| row[field].clone())
        };
        let told: Vec<_> = rows
            .iter()
            .map(|row| Value::from(told(row).to_vec()))
            .collect();
        let expected: Vec<_> = seen
            .iter()
            .map(|seen| {
                json!([
                    seen.at.to_string(),
                    seen.item,
                    seen.date,
                    seen.comes.status(),
                    seen.comes.price()
                ])
            })
            .collect();
        assert_eq!(told, expected);
    }

    async fn latest_agrees(&self, seen: &[Seen]) {
        let mut expected = BTreeMap::new();
        let mut looks = BTreeMap::new();
        for seen in seen {
            looks
                .entry(seen.date.clone())
                .or_insert((seen.at, seen.comes.status().as_str().to_owned()));
            if let Some(price) = seen.comes.price() {
                expected.entry(seen.date.clone()).or_insert(json!([
                    seen.date,
                    price,
                    seen.at.to_string(),
                    seen.item
                ]));
            }
        }
        let path = format!(
            "/v1/history/flights/latest?from_airport=TLV&to_airport=LHR&departure_from={}&departure_to={}",
            day(1),
            day(DATES)
        );
        let calendar = self.office.get(&path).await;
        let told = |row: &Value| {
            ["departure_date", "price", "observed_at", "item_id"].map(|field| row[field].clone())
        };
        let told: Vec<_> = calendar["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| Value::from(told(row).to_vec()))
            .collect();
        assert_eq!(told, expected.into_values().collect::<Vec<_>>());
        let rows = sqlx::query_as(
            "select first_date::text, looked_at, look_status from latest_prices order by 1",
        );
        let kept: Vec<(String, jiff_sqlx::Timestamp, String)> =
            rows.fetch_all(self.office.db.pool()).await.unwrap();
        let kept: BTreeMap<_, _> = kept
            .into_iter()
            .map(|(date, at, status)| (date, (at.to_jiff(), status)))
            .collect();
        assert_eq!(kept, looks, "the last look at each date");
    }

    async fn series_agrees(&self, seen: &[Seen]) {
        let mut days = BTreeMap::<String, Vec<Comes>>::new();
        for seen in seen {
            days.entry(seen.at.to_zoned(TimeZone::UTC).date().to_string())
                .or_default()
                .push(seen.comes);
        }
        let expected: Vec<_> = days
            .into_iter()
            .map(|(day, all)| {
                let mut prices: Vec<_> = all.iter().filter_map(|comes| comes.price()).collect();
                prices.sort_unstable();
                let count = |status: SearchStatus| {
                    all.iter().filter(|comes| comes.status() == status).count()
                };
                let middle = prices.len() / 2;
                let median = match prices.len() {
                    0 => None,
                    len if len % 2 == 1 => Some(f64::from(prices[middle])),
                    _ => Some(f64::from(prices[middle - 1] + prices[middle]) / 2.0),
                };
                let (low, high) = (prices.first().copied(), prices.last().copied());
                let counts = [
                    all.len(),
                    prices.len(),
                    count(SearchStatus::Empty),
                    count(SearchStatus::Degraded),
                ];
                (day, counts, low.map(f64::from), median, high.map(f64::from))
            })
            .collect();
        // What was lost has been given up just now.
        let until = Timestamp::now() + SignedDuration::from_mins(1);
        let series = self
            .office
            .get(&format!(
                "/v1/history/flights/series?from_airport=TLV&to_airport=LHR&until={until}"
            ))
            .await;
        let told: Vec<_> = series["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                let count = |field: &str| usize::try_from(row[field].as_u64().unwrap()).unwrap();
                let counts = ["observations", "prices", "empty", "degraded"].map(count);
                let price = |field: &str| row[field].as_f64();
                (
                    row["bucket"].as_str().unwrap().to_owned(),
                    counts,
                    price("minimum"),
                    price("median"),
                    price("maximum"),
                )
            })
            .collect();
        assert_eq!(told, expected);
    }

    async fn grids_agree(&self) {
        for scan in &self.ledger.scans {
            let grid = self
                .office
                .get(&format!("/v1/scans/{scan}/grid?rows=departure_date"))
                .await;
            let mut told: Vec<_> = grid["cells"]
                .as_array()
                .unwrap()
                .iter()
                .map(|cell| json!([cell["item_id"], cell["search_status"], cell["price"]]))
                .collect();
            let shown = |(id, item): (&ItemId, &Item)| {
                json!([
                    id.to_string(),
                    item.shown.map(Comes::status),
                    item.shown.and_then(Comes::price)
                ])
            };
            let mut expected: Vec<_> = self.ledger.of_scan(scan).map(shown).collect();
            told.sort_by_key(Value::to_string);
            expected.sort_by_key(Value::to_string);
            assert_eq!(told, expected, "{scan}");
        }
    }

    async fn usage_agrees(&self) {
        let attempts = self.ledger.items.values().flat_map(|item| &item.attempts);
        let (mut count, mut requests) = self.ledger.spent;
        for attempt in attempts {
            count += 1;
            requests += u64::from(attempt.came.map_or(1, |(comes, _)| comes.billed()));
        }
        for group in ["day", "endpoint", "scan"] {
            let usage = self.office.get(&format!("/v1/usage?group={group}")).await;
            assert_eq!(
                (
                    usage["totals"]["attempts"].as_u64(),
                    usage["totals"]["requests"].as_u64()
                ),
                (Some(count), Some(requests)),
                "{group}"
            );
        }
    }
}

/// `FARESCAN_SEED` repeats a life, `FARESCAN_SOAK=1` lives more of them.
#[tokio::test(flavor = "multi_thread")]
async fn history_latest_prices_grid_and_usage_agree_with_the_ledger() {
    let seed = crate::faults::seed();
    let (lives, steps) = if crate::faults::is_soak() {
        (40, 200)
    } else {
        (4, 80)
    };
    let mut total = [0; 3];
    for number in 0..lives {
        let mut life = Life::begin(seed.wrapping_add(number)).await;
        for step in 0..steps {
            life.step().await;
            if step % 8 == 7 {
                life.agrees().await;
            }
        }
        life.agrees().await;
        let seen = life.ledger.seen();
        total[0] += seen.len();
        total[1] += seen
            .iter()
            .filter(|seen| seen.comes.price().is_some())
            .count();
        total[2] += life.ledger.scans.len();
    }
    println!(
        "{lives} lives of {steps} steps: {} observations, {} of them prices, {} scans left at the end; they agree",
        total[0], total[1], total[2]
    );
    assert!(total[1] > 0, "prices were seen");
}
