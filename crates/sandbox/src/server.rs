//! The marketplace in front of the engines: routes, keys, counters, delays.
//!
//! A request passes these steps: key (401), subscription (403), magic values ([`MagicOutcome`]; 429
//! for the throttled word), quota and rate window (429), validation (422 or 400), the engine's
//! delay, the engine's answer. A request is counted from the rate window on, also if its body is
//! invalid.

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use super::draws::Draw;
use super::magic_values::{CallCounts, Effect, MagicOutcome, begins_on_13th};
use super::plans::{
    Engine, Refusal, RequestTime, SandboxAccount, SandboxPlan, Subscriptions, UsageMeter,
};
use super::responses::{self, with_quota, with_sandbox_date};
use super::scenarios::PriceProcess;
use super::wire::flights::FlightSearch;
use super::wire::hotels::{ByName, HotelSearch, Resolve, Rooms, Unreadable};
use super::wire::shape;
use super::{DayShift, SandboxClock, SandboxOptions};

/// Headers that may carry the key: the listing's own name and the neutral one (gateway.md, rule 44).
const KEY_HEADERS: [&str; 2] = ["x-rapidapi-key", "x-marketplace-key"];
const MAX_BODY_BYTES: usize = 64 * 1024;
/// Longest delay of an engine.
const SLOWEST_SECONDS: f64 = 60.0;
/// Spread of the delays: one in a hundred takes about five medians.
const DELAY_SPREAD: f64 = 0.7;
/// Delay of the refusal of an invalid body.
const REFUSAL_SECONDS: f64 = 0.05;

/// One running sandbox.
struct Sandbox {
    options: SandboxOptions,
    days: DayShift,
    world: Draw,
    scenario: Option<PriceProcess>,
    /// When it started, by the real clock and by the one that its speed refers to.
    started: (jiff::Timestamp, Instant),
    meter: UsageMeter,
    call_counts: CallCounts,
    /// Ends every delay, the endless one included, when the server stops.
    stopping: CancellationToken,
}

/// A valid body, which its engine answers.
pub(super) trait EngineQuery: Send + Sync {
    /// Median seconds until the answer (gateway.md, rule 3).
    fn median_seconds(&self) -> f64;

    /// The answer of a search that completed. `call` seeds what varies between calls.
    fn answer(&self, moment: &Moment, effect: Effect, call: Draw) -> Response;

    /// The answer of a search that did not complete.
    fn degraded(&self, reason: &'static str, _call: Draw) -> Response {
        responses::search_incomplete(reason)
    }
}

/// What an answer depends on beside its body: the seed, a scenario, the time (UTC).
pub(super) struct Moment<'a> {
    pub(super) world: Draw,
    pub(super) prices: Option<&'a PriceProcess>,
    pub(super) at: DateTime,
}

type BoxedQuery = Box<dyn EngineQuery>;

/// A native path.
#[derive(Clone, Copy)]
struct SandboxEndpoint {
    path: &'static str,
    engine: Engine,
    read: fn(&Value) -> Result<BoxedQuery, Unreadable>,
}

const ENDPOINTS: [SandboxEndpoint; 6] = [
    SandboxEndpoint {
        path: "/api/google_flights/oneway/v1",
        engine: Engine::Flights,
        read: |body| Ok(Box::new(FlightSearch::oneway(body)?)),
    },
    SandboxEndpoint {
        path: "/api/google_flights/roundtrip/v1",
        engine: Engine::Flights,
        read: |body| Ok(Box::new(FlightSearch::roundtrip(body)?)),
    },
    SandboxEndpoint {
        path: "/search",
        engine: Engine::Hotels,
        read: |body| Ok(Box::new(HotelSearch::read(body)?)),
    },
    SandboxEndpoint {
        path: "/hotel_by_name",
        engine: Engine::Hotels,
        read: |body| Ok(Box::new(ByName::read(body)?)),
    },
    SandboxEndpoint {
        path: "/hotel",
        engine: Engine::Hotels,
        read: |body| Ok(Box::new(Rooms::read(body)?)),
    },
    SandboxEndpoint {
        path: "/resolve",
        engine: Engine::Hotels,
        read: |body| Ok(Box::new(Resolve::read(body)?)),
    },
];

/// The sandbox as a service, at the native paths of both engines. Counters belong to this router and its clones.
///
/// Needs a Tokio runtime with time when it is called. Hanging answers hang until their connection is closed.
pub fn router(options: SandboxOptions) -> Router {
    build_router(options, DayShift::default(), CancellationToken::new())
}

/// Serves [`router`] on `listener` until `shutdown` ends, then ends every delayed answer.
///
/// # Errors
/// The listener's errors.
pub async fn serve(
    listener: TcpListener,
    options: SandboxOptions,
    shutdown: impl Future<Output = ()>,
) -> std::io::Result<()> {
    serve_with_days(listener, options, DayShift::default(), shutdown).await
}

/// [`serve`] with a current date that the caller moves.
///
/// # Errors
/// The listener's errors.
pub async fn serve_with_days(
    listener: TcpListener,
    options: SandboxOptions,
    days: DayShift,
    shutdown: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let stopping = CancellationToken::new();
    let stopped = stopping.clone().cancelled_owned();
    let server = axum::serve(listener, build_router(options, days, stopping.clone()))
        .with_graceful_shutdown(stopped);
    let server = std::future::IntoFuture::into_future(server);
    tokio::pin!(server, shutdown);
    tokio::select! {
        ended = &mut server => ended,
        () = &mut shutdown => {
            stopping.cancel();
            server.await
        }
    }
}

fn build_router(options: SandboxOptions, days: DayShift, stopping: CancellationToken) -> Router {
    let sandbox = Arc::new(Sandbox {
        world: Draw::seeded(options.seed),
        scenario: options
            .scenario
            .clone()
            .map(|scenario| PriceProcess::new(scenario, options.seed)),
        started: (jiff::Timestamp::now(), Instant::now()),
        options,
        days,
        meter: UsageMeter::default(),
        call_counts: CallCounts::default(),
        stopping,
    });
    let front_page = get(responses::front_page).fallback(no_such_path);
    let mut routes = Router::new().route("/", front_page);
    for endpoint in ENDPOINTS {
        let handler =
            async move |State(sandbox): State<Arc<Sandbox>>, headers: HeaderMap, body: Bytes| {
                let response = sandbox.respond(endpoint, &headers, &body).await;
                sandbox.dated(response, sandbox.now())
            };
        routes = routes.route(endpoint.path, post(handler).fallback(no_such_path));
    }
    routes
        .fallback(no_such_path)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(sandbox)
}

async fn no_such_path() -> Response {
    responses::marketplace(StatusCode::NOT_FOUND, "This endpoint does not exist.")
}

impl Sandbox {
    /// Adds the sandbox's date where it may differ from the real one by more than `today` says.
    fn dated(&self, response: Response, now: DateTime) -> Response {
        if self.options.clock.is_some() || self.scenario.is_some() {
            with_sandbox_date(response, now)
        } else {
            response
        }
    }

    async fn respond(
        &self,
        endpoint: SandboxEndpoint,
        headers: &HeaderMap,
        bytes: &Bytes,
    ) -> Response {
        let (account, degrades_13ths) = match admit(endpoint.engine, headers) {
            Ok(admitted) => admitted,
            Err((status, text)) => return responses::marketplace(status, text),
        };
        let body = serde_json::from_slice::<Value>(bytes);
        let requested = body.as_ref().ok().and_then(MagicOutcome::requested_by);
        let at = RequestTime::new(self.now(), Instant::now());
        if requested == Some(MagicOutcome::Throttled) {
            let quota = self.meter.remaining_quota(account, at);
            return with_quota(responses::too_many("Too many requests", Some(1)), quota);
        }
        let (quota, charged) = self.meter.charge(account, at);
        let response = match (charged, body) {
            (Err(refusal), _) => quota_refusal(refusal, account.plan),
            (Ok(()), Err(error)) => {
                self.refuse(Unreadable::Shape(vec![shape::not_json(&error)]))
                    .await
            }
            (Ok(()), Ok(body)) => {
                let on_13th =
                    (degrades_13ths && begins_on_13th(&body)).then_some(MagicOutcome::DegradedOnce);
                let outcome = requested.or(on_13th);
                self.call_engine(endpoint, account.key, outcome, &body)
                    .await
            }
        };
        with_quota(response, quota)
    }

    /// The engine's refusal of a body.
    async fn refuse(&self, unreadable: Unreadable) -> Response {
        self.delay(REFUSAL_SECONDS).await;
        match unreadable {
            Unreadable::Shape(details) => responses::unprocessable(&details),
            Unreadable::Meaning(text) => responses::message(StatusCode::BAD_REQUEST, &text),
        }
    }

    /// Passes a counted body to its engine.
    async fn call_engine(
        &self,
        endpoint: SandboxEndpoint,
        key: &str,
        outcome: Option<MagicOutcome>,
        body: &Value,
    ) -> Response {
        let query = match (endpoint.read)(body) {
            Ok(query) => query,
            Err(unreadable) => return self.refuse(unreadable).await,
        };
        let earlier_calls = self.call_counts.count_call(key, endpoint.path, body);
        let effect = outcome.map_or(Effect::None, |outcome| outcome.effect(earlier_calls));
        let call = self
            .world
            .of("ask")
            .of(endpoint.path)
            .of(&body.to_string())
            .nth(i64::try_from(earlier_calls).unwrap_or(i64::MAX));
        if effect == Effect::Hangs {
            self.stopping.cancelled().await;
            return responses::failed();
        }
        let seconds = delay_seconds(query.median_seconds(), call);
        self.delay(seconds).await;
        let moment = Moment {
            world: self.world,
            prices: self.scenario.as_ref(),
            at: self.now(),
        };
        let response = match effect {
            Effect::Failed => responses::failed(),
            Effect::Garbage => responses::garbage(),
            Effect::Degraded => query.degraded("blocked_page", call),
            _ => query.answer(&moment, effect, call),
        };
        self.dated(response, moment.at)
    }

    /// Waits as long as the engine would, scaled, or until the server stops.
    async fn delay(&self, seconds: f64) {
        let scaled = seconds * self.options.latency_factor;
        // Fails for a negative, infinite or NaN factor.
        let Ok(delay) = Duration::try_from_secs_f64(scaled) else {
            return;
        };
        if !delay.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.stopping.cancelled() => {}
            }
        }
    }

    /// UTC now, midnight of the pinned day, or the time of its own clock; moved by the day shift.
    fn now(&self) -> DateTime {
        let now = match (self.options.clock, self.options.today) {
            (Some(clock), _) => self.by_clock(clock),
            (None, Some(today)) => today.at(0, 0, 0, 0),
            (None, None) => utc(jiff::Timestamp::now()),
        };
        now.saturating_add(Span::new().days(self.days.days()))
    }

    fn by_clock(&self, clock: SandboxClock) -> DateTime {
        let (real, instant) = self.started;
        let passed = instant.elapsed().saturating_mul(clock.speed);
        let start = utc(clock.start.unwrap_or(real));
        SignedDuration::try_from(passed)
            .map_or(DateTime::MAX, |passed| start.saturating_add(passed))
    }
}

fn utc(instant: jiff::Timestamp) -> DateTime {
    instant.to_zoned(TimeZone::UTC).datetime()
}

/// An engine's delay for this call: lognormal around its median, at most a minute (gateway.md,
/// rule 3).
fn delay_seconds(median: f64, call: Draw) -> f64 {
    (median * (DELAY_SPREAD * call.of("delay").normal()).exp()).min(SLOWEST_SECONDS)
}

/// The account of a request, and whether its key degrades searches on a 13th.
fn admit(
    engine: Engine,
    headers: &HeaderMap,
) -> Result<(SandboxAccount<'_>, bool), (StatusCode, &'static str)> {
    let key = KEY_HEADERS
        .into_iter()
        .filter_map(|name| headers.get(name))
        .filter_map(|value| value.to_str().ok())
        .find(|value| !value.is_empty())
        .ok_or((StatusCode::UNAUTHORIZED, "Invalid API key: none was sent."))?;
    let subscriptions = Subscriptions::of_key(key).ok_or((
        StatusCode::UNAUTHORIZED,
        "Invalid API key: GET / lists those that the sandbox knows.",
    ))?;
    let plan = subscriptions
        .plan(engine)
        .ok_or((StatusCode::FORBIDDEN, "You are not subscribed to this API."))?;
    let account = SandboxAccount { key, engine, plan };
    Ok((account, subscriptions.degrades_13ths))
}

fn quota_refusal(refusal: Refusal, plan: SandboxPlan) -> Response {
    let name = plan.name();
    let (text, retry_after_seconds) = match refusal {
        Refusal::QuotaUsedUp => (
            format!(
                "You have exceeded the MONTHLY quota for Requests on your current plan, {name}."
            ),
            None,
        ),
        Refusal::TooFast {
            retry_after_seconds,
        } => (
            format!(
                "You have exceeded the rate limit per minute for your plan, {name}, by the API provider"
            ),
            Some(retry_after_seconds),
        ),
    };
    responses::too_many(&text, retry_after_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_have_the_medians_and_the_tail_of_the_engines() {
        for (median, slowest) in [(1.6, 8.0), (3.3, 16.0), (9.0, 59.0)] {
            let mut delays: Vec<f64> = (0..10_000)
                .map(|call| delay_seconds(median, Draw::seeded(1).nth(call)))
                .collect();
            delays.sort_by(f64::total_cmp);
            assert!(
                (delays[5_000] / median - 1.0).abs() < 0.05,
                "{}",
                delays[5_000]
            );
            assert!(
                delays[9_999] > slowest && delays[9_999] <= 60.0,
                "{}",
                delays[9_999]
            );
            assert!(delays[0] > 0.05);
        }
    }
}
