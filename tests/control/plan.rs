//! Scans keep to the plan of their caller: its quota, its reserve, its rate.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::house::{House, adds_up, fares, from};
use crate::support::app::Answer;
use crate::support::reply::Reply;
use crate::support::upstream::{Call, Upstream, fare};

/// A plan as the marketplace counts it: so many requests, and anew for good some time after they were used up.
struct Plan {
    limit: u64,
    left: u64,
    /// The least that was left before it began anew.
    lowest: u64,
    refused: u64,
    anew_at: Option<Instant>,
    /// How long it stays used up; the header rounds up to whole seconds.
    period: Duration,
}

impl Plan {
    /// Has the marketplace keep to it; what a search takes is `latency`.
    fn of(
        upstream: &Upstream,
        limit: u64,
        period: Duration,
        latency: Duration,
    ) -> Arc<Mutex<Self>> {
        let plan = Arc::new(Mutex::new(Self {
            limit,
            left: limit,
            lowest: limit,
            refused: 0,
            anew_at: None,
            period,
        }));
        let counted = Arc::clone(&plan);
        upstream
            .on_any()
            .answer(move |call| counted.lock().unwrap().take(call).delay(latency));
        plan
    }

    fn take(&mut self, call: &Call) -> Reply {
        if self.anew_at.is_some_and(|at| Instant::now() >= at) {
            (self.limit, self.left, self.anew_at) = (100_000, 100_000, None);
        }
        let reply = if self.left == 0 {
            self.refused += 1;
            Reply::status(429)
                .with_json(json!({"message": "You have exceeded the quota of your plan"}))
        } else {
            self.left -= 1;
            self.lowest = self.lowest.min(self.left);
            Reply::json(json!([fare(164, &call.body)])).header("x-search-status", "ok")
        };
        // The period ends some time after its end comes near: as a month does, seen from its last seconds.
        if self.limit < 100_000 && self.left <= 12 {
            self.anew_at
                .get_or_insert_with(|| Instant::now() + self.period);
        }
        let reset = self.anew_at.map_or(86_400, |at| {
            at.saturating_duration_since(Instant::now()).as_secs() + 1
        });
        reply
            .header("x-ratelimit-requests-limit", &self.limit.to_string())
            .header("x-ratelimit-requests-remaining", &self.left.to_string())
            .header("x-ratelimit-requests-reset", &reset.to_string())
    }
}

impl House {
    pub async fn bound(&self, api: &str, bounds: &Value) -> Answer {
        let put = self
            .app
            .request("PUT", &format!("/v1/quota/{api}"))
            .header("x-api-key", crate::support::app::KEY);
        self.app.send(put.json(bounds)).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_quota_go_at_most_the_calls_in_flight_and_the_scan_goes_on_after_the_reset() {
    for limit in [3, 25] {
        let house = House::open().await;
        assert_eq!(
            house
                .bound("flights", &json!({"max_in_flight": 8}))
                .await
                .status,
            200
        );
        let plan = Plan::of(
            &house.app.upstream,
            limit,
            Duration::from_millis(1_200),
            Duration::from_millis(30),
        );
        let worker = house.worker(16);
        let id = house.order(&fares(80)).await;
        // Nobody says a word: that it stops, and says so, is shown below with a plan that does not begin anew.
        let ended = house.ended(&id).await;
        worker.stop().await;
        adds_up(&ended);
        let refused = plan.lock().unwrap().refused;
        println!(
            "a quota of {limit}: {refused} calls beyond it; {}",
            house.books().await
        );
        assert!(refused <= 8, "{refused} beyond a quota of {limit}");
        assert_eq!(ended["items"]["ok"], json!(80 - refused));
        assert_eq!(ended["items"]["degraded"], json!(refused));
        assert_eq!(house.calls("TLV"), 80, "nothing is asked twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scans_leave_the_reserve_to_the_caller_and_go_on_after_the_reset() {
    let house = House::open().await;
    assert_eq!(
        house
            .bound(
                "flights",
                &json!({"max_in_flight": 8, "keep_in_reserve": 10})
            )
            .await
            .status,
        200
    );
    let plan = Plan::of(
        &house.app.upstream,
        30,
        Duration::from_secs(2),
        Duration::from_millis(20),
    );
    let worker = house.worker(16);
    let id = house.order(&fares(60)).await;
    let ended = house.ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["status"], &ended["items"]["ok"]),
        (&json!("completed"), &json!(60))
    );
    let plan = plan.lock().unwrap();
    assert_eq!(
        (plan.limit, plan.refused),
        (100_000, 0),
        "it went on by itself"
    );
    assert!(plan.lowest >= 10, "{} were left of 30", plan.lowest);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_smaller_reserve_lets_scans_go_on_at_once() {
    let house = House::open().await;
    house
        .bound(
            "flights",
            &json!({"max_in_flight": 4, "keep_in_reserve": 25}),
        )
        .await;
    Plan::of(
        &house.app.upstream,
        40,
        Duration::from_secs(3_600),
        Duration::from_millis(5),
    );
    let worker = house.worker(8);
    let id = house.order(&fares(30)).await;
    let paused = house
        .scan_when(&id, "the reserve is reached", |scan| {
            scan["status_reason"] == "reserve_reached"
        })
        .await;
    assert_eq!(paused["status"], json!("paused"));
    assert_eq!(house.calls("TLV"), 15);
    let resumed = house.say(&id, "resume", &json!({})).await;
    assert_eq!(
        resumed["status_reason"],
        json!("reserve_reached"),
        "a resume does not spend the reserve"
    );
    let lane = house
        .bound("flights", &json!({"keep_in_reserve": 5}))
        .await
        .json();
    assert_eq!(
        (&lane["paused"], &lane["bounds"]["keep_in_reserve"]),
        (&json!(null), &json!(5))
    );
    let ended = house.ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["status"], house.calls("TLV")),
        (&json!("completed"), 30)
    );
}

/// The pause is the caller's protection, so beyond it means: at the plan's price, by the caller's word.
#[tokio::test(flavor = "multi_thread")]
async fn a_resume_goes_beyond_a_quota_that_is_used_up() {
    let house = House::open().await;
    house.bound("flights", &json!({"max_in_flight": 4})).await;
    // A plan that does not stop hard says 0 and goes on.
    let mut left = 10_u64;
    house.app.upstream.on_any().answer(move |call| {
        left = left.saturating_sub(1);
        Reply::json(json!([fare(9, &call.body)]))
            .header("x-ratelimit-requests-limit", "10")
            .header("x-ratelimit-requests-remaining", &left.to_string())
            .header("x-ratelimit-requests-reset", "86400")
    });
    let worker = house.worker(8);
    let id = house.order(&fares(30)).await;
    house
        .scan_when(&id, "the quota is used up", |scan| {
            scan["status_reason"] == "quota_exhausted"
        })
        .await;
    house.still(&id).await;
    assert!(
        (10..=13).contains(&house.calls("TLV")),
        "{}",
        house.calls("TLV")
    );
    house.say(&id, "resume", &json!({})).await;
    let ended = house.ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["status"], house.calls("TLV")),
        (&json!("completed"), 30)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_429_the_lane_pauses_and_comes_back_slower() {
    let house = House::open().await;
    house
        .bound(
            "flights",
            &json!({"requests_per_minute": 6_000, "max_in_flight": 6}),
        )
        .await;
    let before = house.get("/v1/quota").await["flights"].clone();
    assert_eq!(
        (&before["searches_per_minute"], &before["pace_source"]),
        (&json!(6_000.0), &json!("caller"))
    );
    let refused_at = Arc::new(Mutex::new(None));
    let (mut count, noted) = (0, Arc::clone(&refused_at));
    house.app.upstream.on_any().answer(move |call| {
        count += 1;
        if count == 20 {
            *noted.lock().unwrap() = Some(Instant::now());
            return Reply::status(429).header("retry-after", "5");
        }
        Reply::json(json!([fare(9, &call.body)])).delay(Duration::from_millis(10))
    });
    let worker = house.worker(16);
    let id = house.order(&from("TLV", fares(300))).await;
    let paused = house
        .scan_when(&id, "it is limited", |scan| {
            scan["status_reason"] == "rate_limited"
        })
        .await;
    let lane = house.get("/v1/quota").await["flights"].clone();
    assert_eq!(
        (&paused["status"], &lane["pace_source"]),
        (&json!("paused"), &json!("after_429"))
    );
    let slower = lane["searches_per_minute"].as_f64().unwrap();
    assert!(
        (3_000.0..3_500.0).contains(&slower),
        "half of 6,000: {slower}"
    );
    let ended = house.ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["items"]["ok"], &ended["items"]["degraded"]),
        (&json!(299), &json!(1)),
        "a 429 is not asked again"
    );

    let refused_at = refused_at.lock().unwrap().unwrap();
    let after: Vec<_> = house
        .app
        .upstream
        .calls()
        .iter()
        .filter_map(|call| call.at.checked_duration_since(refused_at))
        .collect();
    let last_before = after
        .iter()
        .filter(|time| **time < Duration::from_millis(4_900))
        .max()
        .copied()
        .unwrap_or_default();
    let books = house.books().await;
    println!(
        "the last call before the pause came {last_before:?} after the 429, the pause is 5 s; {books}"
    );
    let in_pause = after
        .iter()
        .filter(|time| (Duration::from_secs(1)..Duration::from_millis(4_900)).contains(*time))
        .count();
    // On a machine that stands still for a second the pause begins later; what was under way then is all that may come.
    assert!(in_pause <= 6, "{in_pause} calls in the pause");
    let back = after
        .iter()
        .filter(|time| **time >= Duration::from_millis(4_900))
        .count();
    assert!(back >= 200, "it came back: {back}");
}
