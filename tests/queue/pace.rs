//! How a lane learns its pace: the rules of the migration `pace`, driven through made-up time against a marketplace that counts.

use farescan::ids::TenantId;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::yard::Yard;

/// What a claim does to a lane, at a time that the test gives: the same rules, without items.
const TAKE: &str =
    "create function take(p_at timestamptz, p_wanted integer, p_in_flight integer) returns integer language plpgsql as $$
    declare lane lanes; got integer;
    begin
        select * into lane from lanes;
        if lane.paused_until > p_at then return 0; end if;
        lane := paced(lane, p_at);
        lane.paused_until := null;
        lane.pause_reason := null;
        lane.arrival := greatest(lane.arrival, p_at);
        got := greatest(0, least(p_wanted, lane_places(lane, p_at), lane.max_in_flight - p_in_flight,
                                 calls_left(lane, p_in_flight, p_at)));
        lane.arrival := lane.arrival + got * lane.emission;
        lane.full_up := p_in_flight + got >= lane.max_in_flight;
        perform keep_lane(lane);
        return got;
    end $$";

/// A lane and a clock of its own, in seconds.
struct Model {
    conn: sqlx::pool::PoolConnection<sqlx::Postgres>,
    at: f64,
    _yard: Yard,
}

#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
struct Pace {
    per_minute: f64,
    burst: i32,
    max_in_flight: i32,
    source: String,
}

impl Model {
    async fn new(per_minute: f64, in_flight: i32) -> Self {
        let yard = Yard::with_lane(per_minute, in_flight).await;
        sqlx::raw_sql(TAKE).execute(&yard.pool).await.unwrap();
        Self {
            conn: yard.pool.acquire().await.unwrap(),
            at: 0.0,
            _yard: yard,
        }
    }

    /// A lane as new.
    async fn renew(&mut self, per_minute: f64, in_flight: i32) {
        self.run("delete from lanes").await;
        let tenant: uuid::Uuid = sqlx::query_scalar("select tenant_id from tenants")
            .fetch_one(&mut *self.conn)
            .await
            .unwrap();
        let made = sqlx::query("select make_lane($1, 'flights', $2, $3)")
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
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut *self.conn)
            .await
            .unwrap();
    }

    fn time(&self) -> String {
        format!(
            "(timestamptz '2027-01-01 00:00Z' + make_interval(secs => {:.6}))",
            self.at
        )
    }

    async fn pace(&mut self) -> Pace {
        let sql = format!(
            "select (60 / extract(epoch from p.emission))::float8 as per_minute, p.burst, p.max_in_flight, p.pace_source as source
             from lanes l, paced(l, {}) p",
            self.time()
        );
        sqlx::query_as(AssertSqlSafe(sql))
            .fetch_one(&mut *self.conn)
            .await
            .unwrap()
    }

    async fn take(&mut self, wanted: u32, in_flight: usize) -> u32 {
        let take = AssertSqlSafe(format!(
            "select take({}, {wanted}, {in_flight})",
            self.time()
        ));
        let got: i32 = sqlx::query_scalar(take)
            .fetch_one(&mut *self.conn)
            .await
            .unwrap();
        got.try_into().unwrap()
    }

    async fn tell(&mut self, news: &Value) {
        let told = format!(
            "select keep_lane(told(l, n, :t)) from lanes l, jsonb_populate_record(null::lane_news, '{news}') n where is_news(l, n, :t)"
        );
        self.run(&told).await;
    }

    /// A 429 of the rate window.
    async fn too_fast(&mut self, seconds: f64) {
        let until = format!(":t + make_interval(secs => {seconds})");
        self.run(&format!("select keep_lane(stopped(slowed(l, {until}, :t), 'rate_limited', {until})) from lanes l")).await;
    }

    async fn bound(&mut self, per_minute: Option<u32>) {
        let bound = per_minute.map_or_else(|| "null".to_owned(), |rate| rate.to_string());
        self.run(&format!("update lanes set own_per_minute = {bound}"))
            .await;
        self.run("select keep_lane(paced(l, :t)) from lanes l")
            .await;
    }
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-3 * other.abs()
}

#[tokio::test]
async fn a_lane_starts_slowly_and_takes_95_percent_of_what_the_headers_allow() {
    let mut lane = Model::new(60.0, 8).await;
    assert_eq!(
        lane.pace().await,
        Pace {
            per_minute: 60.0,
            burst: 2,
            max_in_flight: 8,
            source: "start".to_owned()
        }
    );
    lane.tell(&json!({"window_limit": 500, "window_remaining": 499, "window_reset_seconds": 60}))
        .await;
    let learned = lane.pace().await;
    assert!(near(learned.per_minute, 475.0), "{learned:?}");
    assert_eq!((learned.burst, learned.source.as_str()), (15, "headers"));
    lane.tell(&json!({"window_limit": 0})).await;
    assert!(
        near(lane.pace().await.per_minute, 60.0),
        "an allowance of nothing is none"
    );
    lane.tell(&json!({"window_limit": i64::MAX})).await;
    assert!(
        near(lane.pace().await.per_minute, 60_000.0),
        "no plan is that fast"
    );
}

#[tokio::test]
async fn a_429_halves_the_pace_once_and_it_grows_again_by_5_percent_a_minute() {
    let mut lane = Model::new(60.0, 8).await;
    lane.tell(&json!({"window_limit": 200, "window_remaining": 199}))
        .await;
    lane.take(1, 0).await;
    // Three that were in flight together, the last after the pause.
    for at in [1.0, 1.5, 4.0] {
        lane.at = at;
        lane.too_fast(2.0).await;
        assert!(
            near(lane.pace().await.per_minute, 95.0),
            "at {at}: {:?}",
            lane.pace().await
        );
    }
    assert_eq!(lane.pace().await.source, "after_429");
    for (minutes, expected) in [
        (1.0, 99.75),
        (2.0, 104.7375),
        (14.0, 188.0935),
        (15.0, 190.0),
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
    // A call after the pause that is refused again halves it again.
    lane.at = 100.0;
    lane.take(1, 0).await;
    lane.too_fast(2.0).await;
    assert!(
        near(lane.pace().await.per_minute, 102.8 / 2.0),
        "{:?}",
        lane.pace().await
    );
}

#[tokio::test]
async fn however_often_it_is_refused_it_never_stands_still() {
    let mut lane = Model::new(60.0, 8).await;
    for hour in 0..40_u32 {
        lane.at = f64::from(hour) * 70.0;
        lane.take(1, 0).await;
        lane.too_fast(1.0).await;
        assert!(
            lane.pace().await.per_minute >= 0.999,
            "{:?}",
            lane.pace().await
        );
    }
    lane.at += 7_200.0;
    assert!(
        near(lane.pace().await.per_minute, 60.0),
        "after two hours it is back"
    );
}

#[tokio::test]
async fn places_in_flight_grow_while_answers_come_and_the_pace_is_not_used_up() {
    let mut lane = Model::new(60.0, 8).await;
    // A search takes 10 s: by Little's law 475 a minute need 79 places.
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
            lane.tell(&headers).await;
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
    lane.too_fast(1.0).await;
    assert!(
        lane.pace().await.max_in_flight <= most / 2,
        "{:?}",
        lane.pace().await
    );
}

#[tokio::test]
async fn while_the_plan_is_not_known_the_places_stay() {
    let mut lane = Model::new(60.0, 8).await;
    for second in 0..60_u32 {
        lane.at = f64::from(second);
        lane.take(8, 0).await;
        lane.tell(&json!({"answered": 1})).await;
    }
    assert_eq!(lane.pace().await.max_in_flight, 8);
}

#[tokio::test]
async fn what_is_known_is_not_written_again() {
    let yard = Yard::with_lane(60.0, 8).await;
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
    yard.tell(plan(40_000, 140)).await;
    let known = yard.lane(version).await;
    yard.tell(plan(39_999, 139)).await;
    yard.tell(farescan::search::PlanQuota::default()).await;
    assert_eq!(
        yard.lane(version).await,
        known,
        "far from its end, what is left is written once a second"
    );
    yard.tell(plan(39_998, 3)).await;
    assert_ne!(
        yard.lane(version).await,
        known,
        "the window is nearly used up"
    );
}

/// What may happen to a lane.
#[derive(Debug, Clone)]
enum Step {
    Pass(u32),
    Claim(u8),
    Answer(prop::sample::Index),
    Bound(Option<u32>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (50..4_000_u32).prop_map(Step::Pass),
        4 => (1..40_u8).prop_map(Step::Claim),
        4 => any::<prop::sample::Index>().prop_map(Step::Answer),
        1 => prop::option::of(1..300_u32).prop_map(Step::Bound),
    ];
    prop::collection::vec(step, 20..80)
}

/// A marketplace that counts requests as they come in, and says with each answer how it stood then.
struct Marketplace {
    window: u32,
    window_began: f64,
    in_window: u32,
    plan: u32,
    spent: u32,
    /// Requests refused for their rate after it had told the caller what the rate is.
    refused: u32,
    told: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    QuotaUsedUp,
    TooFast { seconds: u32 },
}

/// A request under way: what its answer will say, and whether it was refused.
#[derive(Debug, Clone)]
struct Sent {
    headers: Value,
    refused: Option<Refusal>,
}

/// Seconds until the plan begins anew, from the start: longer than any run.
const PLAN_SECONDS: f64 = 86_400.0;

impl Marketplace {
    fn take(&mut self, at: f64) -> Sent {
        if at >= self.window_began + 60.0 {
            (self.window_began, self.in_window) = (at, 0);
        }
        let ends = (self.window_began + 60.0 - at).ceil();
        let refused = if self.spent >= self.plan {
            Some(Refusal::QuotaUsedUp)
        } else if self.in_window >= self.window {
            self.refused += u32::from(self.told);
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
        Sent { headers, refused }
    }
}

/// In every run: never above a bound of the caller's nor above burst and rate in any window; never refused by a marketplace whose rate is
/// known but for what was under way when it was learned; beyond the plan never more than was under way; and it always recovers.
#[test]
fn a_lane_keeps_to_every_plan_and_bound_and_always_recovers() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let lane = std::cell::RefCell::new(runtime.block_on(Model::new(60.0, 8)));
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
            runtime.block_on(keeps_to(&mut lane.borrow_mut(), window, plan, steps))
        })
        .unwrap();
    // Its database goes inside the runtime.
    runtime.block_on(async { drop(lane) });
}

async fn keeps_to(
    lane: &mut Model,
    window: u32,
    plan: u32,
    steps: Vec<Step>,
) -> Result<(), TestCaseError> {
    lane.renew(60.0, 8).await;
    let mut market = Marketplace {
        window,
        window_began: -60.0,
        in_window: 0,
        plan,
        spent: 0,
        refused: 0,
        told: false,
    };
    let (mut under_way, mut own, mut beyond, mut unknowing) = (Vec::<Sent>::new(), None, 0, 0);
    let mut claims = Vec::<(f64, u32, Pace)>::new();
    for step in steps {
        match step {
            Step::Pass(ms) => lane.at += f64::from(ms) / 1_000.0,
            Step::Bound(bound) => {
                own = bound;
                lane.bound(bound).await;
            }
            Step::Claim(wanted) => {
                let got = lane.take(wanted.into(), under_way.len()).await;
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
                    let sent = market.take(lane.at);
                    beyond += u32::from(sent.refused == Some(Refusal::QuotaUsedUp));
                    under_way.push(sent);
                }
            }
            Step::Answer(index) if !under_way.is_empty() => {
                let answer = under_way.remove(index.index(under_way.len()));
                if !market.told {
                    (market.told, unknowing) = (true, under_way.len());
                }
                if let Some(Refusal::TooFast { seconds }) = answer.refused {
                    lane.too_fast(seconds.into()).await;
                }
                lane.tell(&answer.headers).await;
            }
            Step::Answer(_) => {}
        }
    }
    prop_assert_eq!(market.refused, 0, "refused although the rate was known");
    prop_assert!(
        beyond <= u32::try_from(unknowing).unwrap().max(8),
        "{} beyond the plan, {} were under way",
        beyond,
        unknowing
    );
    within_burst_and_rate(&claims)?;

    // Two days later, everything answered: the plan has begun anew, one call asks, and the pace is back.
    for answer in under_way.drain(..) {
        market.told = true;
        lane.tell(&answer.headers).await;
    }
    lane.at += 2.0 * PLAN_SECONDS;
    prop_assert!(
        lane.take(1, 0).await == 1,
        "it goes on by itself: {:?}",
        lane.pace().await
    );
    let allowed = if market.told {
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

fn within_burst_and_rate(claims: &[(f64, u32, Pace)]) -> Result<(), TestCaseError> {
    for (first, (from, _, _)) in claims.iter().enumerate() {
        let (mut seen, mut rate, mut burst) = (0, 0.0_f64, 0);
        for (to, got, pace) in &claims[first..] {
            (seen, rate, burst) = (seen + got, rate.max(pace.per_minute), burst.max(pace.burst));
            let allowed = f64::from(burst) + (to - from) * rate / 60.0 + 1e-3;
            prop_assert!(
                f64::from(seen) <= allowed,
                "{seen} in {} s, {allowed} are allowed",
                to - from
            );
        }
    }
    Ok(())
}
