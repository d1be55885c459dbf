//! How a lane learns its pace: the SQL rules, run on a simulated clock against a marketplace that
//! counts requests.

use farescan::ids::TenantId;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::fixture::QueueFixture;

/// The effect of a claim on a lane at a given time: the same rules, without items.
const TAKE: &str =
    "create function take(p_at timestamptz, p_wanted integer, p_in_flight integer) returns integer language plpgsql as $$
    declare lane lanes; got integer;
    begin
        select * into lane from lanes;
        if lane.paused_until > p_at then return 0; end if;
        lane := with_pace(lane, p_at);
        lane.paused_until := null;
        lane.pause_reason := null;
        lane.arrival := greatest(lane.arrival, p_at);
        got := greatest(0, least(p_wanted, calls_within_pace(lane, p_at), lane.max_in_flight - p_in_flight,
                                 calls_within_plan(lane, p_in_flight, p_at)));
        lane.arrival := lane.arrival + got * lane.emission;
        lane.full_up := p_in_flight + got >= lane.max_in_flight;
        perform store_lane(lane);
        return got;
    end $$";

/// A lane with a simulated clock, in seconds.
struct LaneModel {
    conn: sqlx::pool::PoolConnection<sqlx::Postgres>,
    at: f64,
    _yard: QueueFixture,
}

#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
struct LanePace {
    per_minute: f64,
    burst: i32,
    max_in_flight: i32,
    source: String,
}

impl LaneModel {
    async fn new(per_minute: f64, in_flight: i32) -> Self {
        let fixture = QueueFixture::with_lane(per_minute, in_flight).await;
        execute!(&fixture.pool, TAKE);
        Self {
            conn: fixture.pool.acquire().await.unwrap(),
            at: 0.0,
            _yard: fixture,
        }
    }

    /// Replaces the lane by a new one.
    async fn reset(&mut self, per_minute: f64, in_flight: i32) {
        self.run("delete from lanes").await;
        let tenant: uuid::Uuid = value!(&mut *self.conn, "select tenant_id from tenants");
        let made = sqlx::query("select create_lane($1, 'flights', $2, $3)")
            .bind(TenantId::from(tenant).uuid());
        made.bind(per_minute)
            .bind(in_flight)
            .execute(&mut *self.conn)
            .await
            .unwrap();
        self.at = 0.0;
    }

    /// Runs SQL in which `:t` is the time.
    async fn run(&mut self, sql: &str) {
        let sql = sql.replace(":t", &self.time());
        execute!(&mut *self.conn, AssertSqlSafe(sql));
    }

    fn time(&self) -> String {
        format!(
            "(timestamptz '2027-01-01 00:00Z' + make_interval(secs => {:.6}))",
            self.at
        )
    }

    async fn pace(&mut self) -> LanePace {
        let sql = format!(
            "select (60 / extract(epoch from p.emission))::float8 as per_minute, p.burst, p.max_in_flight, p.pace_source as source
             from lanes l, with_pace(l, {}) p",
            self.time()
        );
        row!(&mut *self.conn, AssertSqlSafe(sql))
    }

    async fn take(&mut self, wanted: u32, in_flight: usize) -> u32 {
        let take = AssertSqlSafe(format!(
            "select take({}, {wanted}, {in_flight})",
            self.time()
        ));
        let got: i32 = value!(&mut *self.conn, take);
        got.try_into().unwrap()
    }

    async fn update_lane(&mut self, changes: &Value) {
        let update = format!(
            "select store_lane(lane_updated(l, n, :t)) from lanes l, jsonb_populate_record(null::lane_update, '{changes}') n where changes_lane(l, n, :t)"
        );
        self.run(&update).await;
    }

    /// A 429 of the rate window.
    async fn rate_limited(&mut self, seconds: f64) {
        let until = format!(":t + make_interval(secs => {seconds})");
        self.run(&format!("select store_lane(with_pause(after_429(l, {until}, :t), 'rate_limited', {until})) from lanes l")).await;
    }

    async fn set_own_limit(&mut self, per_minute: Option<u32>) {
        let bound = per_minute.map_or_else(|| "null".to_owned(), |rate| rate.to_string());
        self.run(&format!("update lanes set own_per_minute = {bound}"))
            .await;
        self.run("select store_lane(with_pace(l, :t)) from lanes l")
            .await;
    }
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-3 * other.abs()
}

#[tokio::test]
async fn a_lane_starts_slowly_then_uses_95_percent_of_the_limit() {
    let mut lane = LaneModel::new(60.0, 8).await;
    assert_eq!(
        lane.pace().await,
        LanePace {
            per_minute: 60.0,
            burst: 2,
            max_in_flight: 8,
            source: "start".to_owned()
        }
    );
    lane.update_lane(
        &json!({"window_limit": 500, "window_remaining": 499, "window_reset_seconds": 60}),
    )
    .await;
    let learned = lane.pace().await;
    assert!(near(learned.per_minute, 475.0), "{learned:?}");
    assert_eq!((learned.burst, learned.source.as_str()), (15, "headers"));
    lane.update_lane(&json!({"window_limit": 0})).await;
    assert!(
        near(lane.pace().await.per_minute, 60.0),
        "a limit of 0 is ignored"
    );
    lane.update_lane(&json!({"window_limit": i64::MAX})).await;
    assert!(
        near(lane.pace().await.per_minute, 60_000.0),
        "the pace has an upper bound"
    );
}

#[tokio::test]
async fn a_429_halves_the_pace_once_then_it_grows_again() {
    let mut lane = LaneModel::new(60.0, 8).await;
    lane.update_lane(&json!({"window_limit": 200, "window_remaining": 199}))
        .await;
    lane.take(1, 0).await;
    // Three calls in flight together; the last is refused after the pause.
    for at in [1.0, 1.5, 4.0] {
        lane.at = at;
        lane.rate_limited(2.0).await;
        assert!(
            (94.9..95.5).contains(&lane.pace().await.per_minute),
            "at {at}: {:?}",
            lane.pace().await
        );
    }
    assert_eq!(lane.pace().await.source, "after_429");
    // A fifth of what is missing each minute: the plan is known.
    for (minutes, expected) in [
        (1.0, 114.0),
        (2.0, 133.0),
        (4.9, 188.1),
        (5.0, 190.0),
        (10_000_000.0, 190.0),
    ] {
        lane.at = 3.0 + minutes * 60.0;
        assert!(
            near(lane.pace().await.per_minute, expected),
            "after {minutes} min: {:?}",
            lane.pace().await
        );
    }
    assert_eq!(lane.pace().await.source, "headers");
    // A call after the pause that is refused halves the pace again.
    lane.at = 100.0;
    lane.take(1, 0).await;
    lane.rate_limited(2.0).await;
    assert!(
        near(lane.pace().await.per_minute, 125.717 / 2.0),
        "{:?}",
        lane.pace().await
    );
}

/// However far refusals have slowed it.
#[tokio::test]
async fn a_lane_of_a_known_plan_is_back_at_its_pace_within_five_minutes() {
    for plan in [
        json!({"window_limit": 6_000, "window_remaining": 5_999}),
        json!({}),
    ] {
        let mut lane = LaneModel::new(60.0, 8).await;
        lane.update_lane(&plan).await;
        if plan == json!({}) {
            lane.run("update lanes set own_plan_per_minute = 6000")
                .await;
        }
        for second in [0.0, 5.0, 10.0, 15.0, 20.0, 25.0] {
            lane.at = second;
            lane.take(1, 0).await;
            lane.rate_limited(2.0).await;
        }
        let slowed = lane.pace().await.per_minute;
        assert!(slowed < 200.0, "{slowed}");
        lane.at = 27.0 + 150.0;
        let half = lane.pace().await.per_minute;
        lane.at = 27.0 + 301.0;
        let pace = lane.pace().await;
        println!("from {slowed} over {half} to {pace:?}");
        assert!(near(pace.per_minute, 5_700.0), "{pace:?}");
        assert_ne!(pace.source, "after_429");
    }
}

/// Nothing says what an unknown plan allows.
#[tokio::test]
async fn a_lane_of_an_unknown_plan_grows_by_five_percent_a_minute() {
    let mut lane = LaneModel::new(60.0, 8).await;
    lane.take(1, 0).await;
    lane.rate_limited(2.0).await;
    for (minutes, expected) in [(1.0, 31.5), (5.0, 38.288), (15.0, 60.0)] {
        lane.at = 2.0 + minutes * 60.0;
        let pace = lane.pace().await;
        assert!(near(pace.per_minute, expected), "{minutes}: {pace:?}");
    }
}

#[tokio::test]
async fn repeated_429s_never_stop_a_lane() {
    let mut lane = LaneModel::new(60.0, 8).await;
    for hour in 0..40_u32 {
        lane.at = f64::from(hour) * 70.0;
        lane.take(1, 0).await;
        lane.rate_limited(1.0).await;
        assert!(
            lane.pace().await.per_minute >= 0.999,
            "{:?}",
            lane.pace().await
        );
    }
    lane.at += 7_200.0;
    assert!(
        near(lane.pace().await.per_minute, 60.0),
        "after two hours the pace has recovered"
    );
}

#[tokio::test]
async fn max_in_flight_grows_until_the_pace_is_used_up() {
    let mut lane = LaneModel::new(60.0, 8).await;
    // A search takes 10 s: by Little's law 475 calls a minute need 79 in flight.
    let mut in_flight = std::collections::VecDeque::<f64>::new();
    let mut began = Vec::new();
    for tenth in 0..1_200_u32 {
        lane.at = f64::from(tenth) / 10.0;
        let answered = in_flight
            .iter()
            .take_while(|begin| lane.at >= *begin + 10.0)
            .count();
        if answered > 0 {
            in_flight.drain(..answered);
            let headers = json!({"window_limit": 500, "window_remaining": 400, "window_reset_seconds": 60, "answered": answered});
            lane.update_lane(&headers).await;
        }
        let got = lane.take(100, in_flight.len()).await;
        in_flight.extend((0..got).map(|_| lane.at));
        began.extend((0..got).map(|_| lane.at));
    }
    let in_minute = |from: f64| {
        began
            .iter()
            .filter(|at| (from..from + 60.0).contains(*at))
            .count()
    };
    assert!(
        in_minute(60.0) >= 450,
        "{} in the second minute, {:?}",
        in_minute(60.0),
        lane.pace().await
    );
    let most = lane.pace().await.max_in_flight;
    assert!((79..=240).contains(&most), "{most}");
    lane.rate_limited(1.0).await;
    assert!(
        lane.pace().await.max_in_flight <= most / 2,
        "{:?}",
        lane.pace().await
    );
}

#[tokio::test]
async fn max_in_flight_stays_while_the_plan_is_unknown() {
    let mut lane = LaneModel::new(60.0, 8).await;
    for second in 0..60_u32 {
        lane.at = f64::from(second);
        lane.take(8, 0).await;
        lane.update_lane(&json!({"answered": 1})).await;
    }
    assert_eq!(lane.pace().await.max_in_flight, 8);
}

#[tokio::test]
async fn an_update_without_news_does_not_write_the_lane() {
    let fixture = QueueFixture::with_lane(60.0, 8).await;
    let version = "select concat(ctid, ' ', xmin) from lanes where tenant_id = $1";
    let plan = |remaining, window| farescan::search::PlanQuota {
        limit: Some(50_000),
        remaining: Some(remaining),
        reset_seconds: Some(86_400),
        window: Some(farescan::search::RateWindow {
            limit: 150,
            remaining: Some(window),
            reset_seconds: Some(60),
        }),
    };
    fixture.update_lane(plan(40_000, 140)).await;
    let known = fixture.lane_value(version).await;
    fixture.update_lane(plan(39_999, 139)).await;
    fixture
        .update_lane(farescan::search::PlanQuota::default())
        .await;
    assert_eq!(
        fixture.lane_value(version).await,
        known,
        "far from the limit, the remainder is written at most once a second"
    );
    fixture.update_lane(plan(39_998, 3)).await;
    assert_ne!(
        fixture.lane_value(version).await,
        known,
        "the window is nearly used up"
    );
}

/// One random event of a lane.
#[derive(Debug, Clone)]
enum LaneStep {
    Wait(u32),
    Claim(u8),
    Answer(prop::sample::Index),
    SetLimit(Option<u32>),
}

fn steps() -> impl Strategy<Value = Vec<LaneStep>> {
    let step = prop_oneof![
        4 => (50..4_000_u32).prop_map(LaneStep::Wait),
        4 => (1..40_u8).prop_map(LaneStep::Claim),
        4 => any::<prop::sample::Index>().prop_map(LaneStep::Answer),
        1 => prop::option::of(1..300_u32).prop_map(LaneStep::SetLimit),
    ];
    prop::collection::vec(step, 20..80)
}

/// A marketplace that counts requests on arrival and reports its counters with each answer.
struct CountingMarketplace {
    window: u32,
    window_began: f64,
    in_window: u32,
    plan: u32,
    spent: u32,
    /// Requests refused for their rate although an answer had already reported the limits.
    refused: u32,
    limits_known: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    QuotaUsedUp,
    TooFast { seconds: u32 },
}

/// A request in flight: the headers of its answer, and whether it was refused.
#[derive(Debug, Clone)]
struct PendingCall {
    headers: Value,
    refused: Option<Refusal>,
}

/// Seconds from the start until the plan resets: longer than any run.
const PLAN_SECONDS: f64 = 86_400.0;

impl CountingMarketplace {
    fn receive(&mut self, at: f64) -> PendingCall {
        if at >= self.window_began + 60.0 {
            (self.window_began, self.in_window) = (at, 0);
        }
        let ends = (self.window_began + 60.0 - at).ceil();
        let refused = if self.spent >= self.plan {
            Some(Refusal::QuotaUsedUp)
        } else if self.in_window >= self.window {
            self.refused += u32::from(self.limits_known);
            // Whole seconds, rounded up.
            Some(Refusal::TooFast {
                seconds: (0..=60)
                    .find(|seconds| f64::from(*seconds) >= ends)
                    .unwrap_or(60),
            })
        } else {
            self.in_window += 1;
            self.spent += 1;
            None
        };
        let headers = json!({
            "answered": 1, "plan_limit": self.plan, "plan_remaining": self.plan - self.spent,
            "plan_reset_seconds": (PLAN_SECONDS - at).ceil(), "window_limit": self.window,
            "window_remaining": self.window - self.in_window, "window_reset_seconds": ends
        });
        PendingCall { headers, refused }
    }
}

/// In every run the lane stays within the caller's limit and within burst and rate in any window.
/// Once the rate is known, only calls that were already in flight are refused. Calls beyond the
/// plan never exceed those in flight. The lane always recovers.
#[test]
fn a_lane_respects_every_plan_and_limit_and_recovers() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let lane = std::cell::RefCell::new(runtime.block_on(LaneModel::new(60.0, 8)));
    let cases = if std::env::var_os("FARESCAN_SOAK").is_some() {
        500
    } else {
        16
    };
    let mut runner = TestRunner::new(Config {
        cases,
        max_shrink_iters: 100,
        failure_persistence: None,
        ..Config::default()
    });
    let plans = (5..400_u32, 10..2_000_u32, steps());
    runner
        .run(&plans, |(window, plan, steps)| {
            runtime.block_on(check_run(&mut lane.borrow_mut(), window, plan, steps))
        })
        .unwrap();
    // The database is dropped inside the runtime.
    runtime.block_on(async { drop(lane) });
}

async fn check_run(
    lane: &mut LaneModel,
    window: u32,
    plan: u32,
    steps: Vec<LaneStep>,
) -> Result<(), TestCaseError> {
    lane.reset(60.0, 8).await;
    let mut market = CountingMarketplace {
        window,
        window_began: -60.0,
        in_window: 0,
        plan,
        spent: 0,
        refused: 0,
        limits_known: false,
    };
    let (mut in_flight, mut own, mut over_quota, mut sent_unaware) =
        (Vec::<PendingCall>::new(), None, 0, 0);
    let mut claims = Vec::<(f64, u32, LanePace)>::new();
    for step in steps {
        match step {
            LaneStep::Wait(ms) => lane.at += f64::from(ms) / 1_000.0,
            LaneStep::SetLimit(bound) => {
                own = bound;
                lane.set_own_limit(bound).await;
            }
            LaneStep::Claim(wanted) => {
                let got = lane.take(wanted.into(), in_flight.len()).await;
                let pace = lane.pace().await;
                prop_assert!(
                    pace.per_minute > 0.9 && pace.burst >= 1 && pace.max_in_flight >= 1,
                    "{pace:?}"
                );
                prop_assert!(
                    own.is_none_or(|own| pace.per_minute <= f64::from(own) * 1.0001),
                    "{own:?} {pace:?}"
                );
                claims.push((lane.at, got, pace));
                for _ in 0..got {
                    let sent = market.receive(lane.at);
                    over_quota += u32::from(sent.refused == Some(Refusal::QuotaUsedUp));
                    in_flight.push(sent);
                }
            }
            LaneStep::Answer(index) if !in_flight.is_empty() => {
                let answer = in_flight.remove(index.index(in_flight.len()));
                if !market.limits_known {
                    (market.limits_known, sent_unaware) = (true, in_flight.len());
                }
                if let Some(Refusal::TooFast { seconds }) = answer.refused {
                    lane.rate_limited(seconds.into()).await;
                }
                lane.update_lane(&answer.headers).await;
            }
            LaneStep::Answer(_) => {}
        }
    }
    prop_assert_eq!(market.refused, 0, "refused although the rate was known");
    prop_assert!(
        over_quota <= u32::try_from(sent_unaware).unwrap().max(8),
        "{} beyond the plan, {} were in flight",
        over_quota,
        sent_unaware
    );
    check_windows(&claims)?;

    // Two days later, with every call answered, the plan has reset: one call restores the pace.
    for answer in in_flight.drain(..) {
        market.limits_known = true;
        lane.update_lane(&answer.headers).await;
    }
    lane.at += 2.0 * PLAN_SECONDS;
    prop_assert!(
        lane.take(1, 0).await == 1,
        "the lane recovers: {:?}",
        lane.pace().await
    );
    let allowed = if market.limits_known {
        0.95 * f64::from(window)
    } else {
        60.0
    };
    let expected = own.map_or(allowed, |own| allowed.min(own.into()));
    prop_assert!(
        near(lane.pace().await.per_minute, expected),
        "{expected} {:?}",
        lane.pace().await
    );
    Ok(())
}

/// Burst and rate bound each window. The burst is a whole number, so each time that the pace becomes lower within the
/// window may leave one call more: of 168 a minute the burst is 5, as it is of 153.
fn check_windows(claims: &[(f64, u32, LanePace)]) -> Result<(), TestCaseError> {
    for (first, (from, _, first_pace)) in claims.iter().enumerate() {
        let (mut seen, mut rate, mut burst) = (0, 0.0_f64, 0);
        let (mut lowered, mut before) = (0, first_pace.per_minute);
        for (to, got, pace) in &claims[first..] {
            (seen, rate, burst) = (seen + got, rate.max(pace.per_minute), burst.max(pace.burst));
            lowered += i32::from(pace.per_minute < before);
            before = pace.per_minute;
            let allowed = f64::from(burst + lowered) + (to - from) * rate / 60.0 + 1e-3;
            prop_assert!(
                f64::from(seen) <= allowed,
                "{seen} in {} s, {allowed} are allowed",
                to - from
            );
        }
    }
    Ok(())
}
