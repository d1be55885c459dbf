//! Scans respect their caller's plan: its quota, reserve and rate.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::app::HttpResponse;
use crate::support::reply::Reply;
use crate::support::upstream::{Call, ScriptedServer, fare};
use crate::support::{TestService, assert_counts_add_up, departing_from, fares};

/// A quota as the marketplace counts it. It resets once, some time after it is nearly
/// exhausted.
struct ScriptedQuota {
    limit: u64,
    left: u64,
    /// The lowest remaining quota before the reset.
    lowest: u64,
    refused: u64,
    resets_at: Option<Instant>,
    /// How long it stays exhausted; the header rounds up to whole seconds.
    period: Duration,
}

impl ScriptedQuota {
    /// Makes the marketplace apply it; a search takes `latency`.
    fn of(
        upstream: &ScriptedServer,
        limit: u64,
        period: Duration,
        latency: Duration,
    ) -> Arc<Mutex<Self>> {
        let quota = Arc::new(Mutex::new(Self {
            limit,
            left: limit,
            lowest: limit,
            refused: 0,
            resets_at: None,
            period,
        }));
        let scripted = Arc::clone(&quota);
        upstream.answer(move |call| scripted.lock().unwrap().take(call).delay(latency));
        quota
    }

    fn take(&mut self, call: &Call) -> Reply {
        if self.resets_at.is_some_and(|at| Instant::now() >= at) {
            (self.limit, self.left, self.resets_at) = (100_000, 100_000, None);
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
        // Once nearly exhausted, the quota resets after `period`, as at the end of a month.
        if self.limit < 100_000 && self.left <= 12 {
            self.resets_at
                .get_or_insert_with(|| Instant::now() + self.period);
        }
        let reset = self.resets_at.map_or(86_400, |at| {
            at.saturating_duration_since(Instant::now()).as_secs() + 1
        });
        reply
            .header("x-ratelimit-requests-limit", &self.limit.to_string())
            .header("x-ratelimit-requests-remaining", &self.left.to_string())
            .header("x-ratelimit-requests-reset", &reset.to_string())
    }
}

impl TestService {
    pub async fn bound(&self, api: &str, bounds: &Value) -> HttpResponse {
        let put = self
            .app
            .request("PUT", &format!("/v1/quota/{api}"))
            .header("x-api-key", crate::support::app::KEY);
        self.app.send(put.json(bounds)).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_stops_at_the_quota_and_resumes_after_its_reset() {
    for limit in [3, 25] {
        let service = TestService::start().await;
        assert_eq!(
            service
                .bound("flights", &json!({"max_in_flight": 8}))
                .await
                .status,
            200
        );
        let plan = ScriptedQuota::of(
            &service.upstream,
            limit,
            Duration::from_millis(1_200),
            Duration::from_millis(30),
        );
        let worker = service.start_worker(16);
        let id = service.submit(&fares(80)).await;
        // No command is sent. The test below covers the pause, with a quota that does not reset.
        let ended = service.wait_until_ended(&id).await;
        worker.stop().await;
        assert_counts_add_up(&ended);
        let refused = plan.lock().unwrap().refused;
        println!(
            "a quota of {limit}: {refused} calls beyond it; {}",
            service.check_ledger().await
        );
        assert!(refused <= 8, "{refused} beyond a quota of {limit}");
        assert_eq!(ended["items"]["ok"], json!(80 - refused));
        assert_eq!(ended["items"]["degraded"], json!(refused));
        assert_eq!(service.call_count("TLV"), 80, "no search is sent twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scans_keep_the_reserve_and_resume_after_the_reset() {
    let service = TestService::start().await;
    assert_eq!(
        service
            .bound(
                "flights",
                &json!({"max_in_flight": 8, "keep_in_reserve": 10})
            )
            .await
            .status,
        200
    );
    let plan = ScriptedQuota::of(
        &service.upstream,
        30,
        Duration::from_secs(2),
        Duration::from_millis(20),
    );
    let worker = service.start_worker(16);
    let id = service.submit(&fares(60)).await;
    let ended = service.wait_until_ended(&id).await;
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

/// Submits 30 searches against a plan with 40 requests left, of which 25 are kept in reserve, and
/// waits for the pause. Returns the scan and its id.
async fn reach_reserve(service: &TestService) -> (String, Value) {
    let bounds = json!({"max_in_flight": 4, "keep_in_reserve": 25});
    service.bound("flights", &bounds).await;
    let (period, latency) = (Duration::from_secs(3_600), Duration::from_millis(5));
    ScriptedQuota::of(&service.upstream, 40, period, latency);
    let id = service.submit(&fares(30)).await;
    let paused = service
        .wait_for_scan(&id, "the reserve is reached", |scan| {
            scan["status_reason"] == "reserve_reached"
        })
        .await;
    (id, paused)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_smaller_reserve_resumes_scans_at_once() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    let (id, paused) = reach_reserve(&service).await;
    assert_eq!(paused["status"], json!("paused"));
    assert_eq!(service.call_count("TLV"), 15);
    let resumed = service.command(&id, "resume", &json!({})).await;
    assert_eq!(
        resumed["status_reason"],
        json!("reserve_reached"),
        "a resume does not spend the reserve"
    );
    let lane = service
        .bound("flights", &json!({"keep_in_reserve": 5}))
        .await
        .json();
    assert_eq!(
        (&lane["paused"], &lane["bounds"]["keep_in_reserve"]),
        (&json!(null), &json!(5))
    );
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["status"], service.call_count("TLV")),
        (&json!("completed"), 30)
    );
}

/// A process may die after it recorded calls and before it updated their lane, and a claim may come
/// between the two: what is left of the plan is stored with the calls themselves.
#[tokio::test(flavor = "multi_thread")]
async fn the_reserve_holds_when_no_lane_update_arrives() {
    let service = TestService::start().await;
    execute!(
        service.pool(),
        "create or replace function update_lanes(p_news jsonb) returns bigint language sql as 'select 0::bigint'"
    );
    let worker = service.start_worker(8);
    reach_reserve(&service).await;
    worker.stop().await;
    assert_eq!(service.call_count("TLV"), 15);
}

/// The pause protects the caller; a resume accepts the plan's overage price.
#[tokio::test(flavor = "multi_thread")]
async fn a_resume_allows_calls_beyond_an_exhausted_quota() {
    let service = TestService::start().await;
    service.bound("flights", &json!({"max_in_flight": 4})).await;
    // A plan without a hard limit reports 0 remaining and continues.
    let mut left = 10_u64;
    service.upstream.answer(move |call| {
        left = left.saturating_sub(1);
        Reply::json(json!([fare(9, &call.body)]))
            .header("x-ratelimit-requests-limit", "10")
            .header("x-ratelimit-requests-remaining", &left.to_string())
            .header("x-ratelimit-requests-reset", "86400")
    });
    let worker = service.start_worker(8);
    let id = service.submit(&fares(30)).await;
    service
        .wait_for_scan(&id, "the quota is used up", |scan| {
            scan["status_reason"] == "quota_exhausted"
        })
        .await;
    service.wait_until_idle(&id).await;
    assert!(
        (10..=13).contains(&service.call_count("TLV")),
        "{}",
        service.call_count("TLV")
    );
    service.command(&id, "resume", &json!({})).await;
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["status"], service.call_count("TLV")),
        (&json!("completed"), 30)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_429_pauses_the_lane_and_lowers_its_pace() {
    let service = TestService::start().await;
    service
        .bound(
            "flights",
            &json!({"requests_per_minute": 6_000, "max_in_flight": 6}),
        )
        .await;
    let before = service.get("/v1/quota").await["flights"].clone();
    assert_eq!(
        (&before["searches_per_minute"], &before["pace_source"]),
        (&json!(6_000.0), &json!("caller"))
    );
    let refused_at = Arc::new(Mutex::new(None));
    let (mut count, noted) = (0, Arc::clone(&refused_at));
    service.upstream.answer(move |call| {
        count += 1;
        if count == 20 {
            *noted.lock().unwrap() = Some(Instant::now());
            return Reply::status(429).header("retry-after", "5");
        }
        Reply::json(json!([fare(9, &call.body)])).delay(Duration::from_millis(10))
    });
    let worker = service.start_worker(16);
    let id = service.submit(&departing_from("TLV", fares(300))).await;
    let paused = service
        .wait_for_scan(&id, "it is limited", |scan| {
            scan["status_reason"] == "rate_limited"
        })
        .await;
    let lane = service.get("/v1/quota").await["flights"].clone();
    assert_eq!(
        (&paused["status"], &lane["pace_source"]),
        (&json!("paused"), &json!("after_429"))
    );
    let slower = lane["searches_per_minute"].as_f64().unwrap();
    assert!(
        (3_000.0..3_500.0).contains(&slower),
        "half of 6,000: {slower}"
    );
    let ended = service.wait_until_ended(&id).await;
    worker.stop().await;
    assert_eq!(
        (&ended["items"]["ok"], &ended["items"]["degraded"]),
        (&json!(299), &json!(1)),
        "a 429 is not retried"
    );

    let refused_at = refused_at.lock().unwrap().unwrap();
    let after: Vec<_> = service
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
    let ledger = service.check_ledger().await;
    println!(
        "the last call before the pause came {last_before:?} after the 429, the pause is 5 s; {ledger}"
    );
    let in_pause = after
        .iter()
        .filter(|time| (Duration::from_secs(1)..Duration::from_millis(4_900)).contains(*time))
        .count();
    // On a slow machine the pause begins later; only calls already in flight may come.
    assert!(in_pause <= 6, "{in_pause} calls in the pause");
    let back = after
        .iter()
        .filter(|time| **time >= Duration::from_millis(4_900))
        .count();
    assert!(back >= 200, "it came back: {back}");
}
