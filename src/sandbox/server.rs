//! The marketplace in front of the engines: routes, keys, counting, delays.
//!
//! The order of one request: key (401), subscription (403), what the body orders ([`Fault`]; 429 for the throttled
//! word), quota and window (429), shape (422 or 400), the engine's delay, the engine's answer. Only what comes after
//! quota and window is counted, refused shapes included.

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use super::SandboxOptions;
use super::answers::{self, with_quota};
use super::draws::Draw;
use super::faults::{Effect, Fault, Memory, begins_on_13th};
use super::flights::FlightSearch;
use super::front_page::front_page;
use super::hotels::HotelQuery;
use super::plans::{Api, Meter, Moment, Plan, Refusal, Subscriptions};
use super::wire::hotels::Unreadable;
use super::wire::shape::{self, Detail};

/// Headers that may carry the key: the listing's own name and the neutral one (contract, Upstream).
const KEY_HEADERS: [&str; 2] = ["x-rapidapi-key", "x-marketplace-key"];
const MAX_BODY_BYTES: usize = 64 * 1024;
/// Longest delay of an engine.
const SLOWEST_SECONDS: f64 = 60.0;
/// Spread of the delays: one in a hundred takes about five medians.
const DELAY_SPREAD: f64 = 0.7;
/// How long a shape takes to be refused.
const REFUSAL_SECONDS: f64 = 0.05;

/// One running sandbox.
struct Sandbox {
    options: SandboxOptions,
    world: Draw,
    meter: Meter,
    memory: Memory,
    /// Ends every delay, the endless one included, when the server stops.
    stopping: CancellationToken,
}

/// A native path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Oneway,
    Roundtrip,
    Search,
    ByName,
    Rooms,
    Resolve,
}

/// What an engine understood.
enum Question {
    Flights(Box<FlightSearch>),
    Hotels(HotelQuery),
}

/// The sandbox as a service, at the native paths of both engines. Counters belong to this router and its clones.
///
/// Needs a Tokio runtime with time when it is called. Hanging answers hang until their connection is closed.
pub fn router(options: SandboxOptions) -> Router {
    routed(options, CancellationToken::new())
}

/// Serves [`router`] on `listener` until `shutdown` ends; then every delayed or hanging answer is given up at once.
///
/// # Errors
/// What the listener reports.
pub async fn serve(
    listener: TcpListener,
    options: SandboxOptions,
    shutdown: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let stopping = CancellationToken::new();
    let stopped = stopping.clone().cancelled_owned();
    let server =
        axum::serve(listener, routed(options, stopping.clone())).with_graceful_shutdown(stopped);
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

fn routed(options: SandboxOptions, stopping: CancellationToken) -> Router {
    let sandbox = Arc::new(Sandbox {
        world: Draw::seeded(options.seed),
        options,
        meter: Meter::default(),
        memory: Memory::default(),
        stopping,
    });
    let mut routes = Router::new().route(
        "/",
        get(async || front_page(&Endpoint::ALL.map(Endpoint::path))).fallback(no_such_path),
    );
    for endpoint in Endpoint::ALL {
        let handler =
            async move |State(sandbox): State<Arc<Sandbox>>, headers: HeaderMap, body: Bytes| {
                sandbox.handle(endpoint, &headers, &body).await
            };
        routes = routes.route(endpoint.path(), post(handler).fallback(no_such_path));
    }
    routes
        .fallback(no_such_path)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(sandbox)
}

async fn no_such_path() -> Response {
    answers::marketplace(StatusCode::NOT_FOUND, "This endpoint does not exist.")
}

impl Endpoint {
    const ALL: [Self; 6] = [
        Self::Oneway,
        Self::Roundtrip,
        Self::Search,
        Self::ByName,
        Self::Rooms,
        Self::Resolve,
    ];

    fn path(self) -> &'static str {
        match self {
            Self::Oneway => "/api/google_flights/oneway/v1",
            Self::Roundtrip => "/api/google_flights/roundtrip/v1",
            Self::Search => "/search",
            Self::ByName => "/hotel_by_name",
            Self::Rooms => "/hotel",
            Self::Resolve => "/resolve",
        }
    }

    fn api(self) -> Api {
        match self {
            Self::Oneway | Self::Roundtrip => Api::Flights,
            Self::Search | Self::ByName | Self::Rooms | Self::Resolve => Api::Hotels,
        }
    }

    fn read(self, body: &Value) -> Result<Question, Unreadable> {
        let flights = |read: fn(&Value) -> Result<FlightSearch, Vec<Detail>>| {
            read(body)
                .map(Box::new)
                .map(Question::Flights)
                .map_err(Unreadable::Shape)
        };
        let hotels =
            |read: fn(&Value) -> Result<HotelQuery, Unreadable>| read(body).map(Question::Hotels);
        match self {
            Self::Oneway => flights(FlightSearch::oneway),
            Self::Roundtrip => flights(FlightSearch::roundtrip),
            Self::Search => hotels(HotelQuery::search),
            Self::ByName => hotels(HotelQuery::by_name),
            Self::Rooms => hotels(HotelQuery::rooms),
            Self::Resolve => hotels(HotelQuery::resolve),
        }
    }
}

impl Question {
    fn median_seconds(&self) -> f64 {
        match self {
            Self::Flights(search) => search.median_seconds(),
            Self::Hotels(query) => query.median_seconds(),
        }
    }

    fn answer(&self, world: Draw, today: Date, effect: Effect, ask: Draw) -> Response {
        match self {
            Self::Flights(search) => search.answer(world, today, effect, ask),
            Self::Hotels(query) => query.answer(world, today, effect),
        }
    }
}

impl Sandbox {
    async fn handle(&self, endpoint: Endpoint, headers: &HeaderMap, bytes: &Bytes) -> Response {
        let (key, subscriptions, plan) = match admit(endpoint.api(), headers) {
            Ok(admitted) => admitted,
            Err(stranger) => return stranger.turned_away(),
        };
        let body = serde_json::from_slice::<Value>(bytes);
        let ordered = body.as_ref().ok().and_then(Fault::ordered_by);
        let at = self.moment();
        if ordered.is_some_and(|fault| fault.effect(0) == Effect::Throttled) {
            let quota = self.meter.standing(key, endpoint.api(), plan, at);
            return with_quota(answers::too_many("Too many requests", Some(1)), quota);
        }
        let (quota, charged) = self.meter.charge(key, endpoint.api(), plan, at);
        let response = match (charged, body) {
            (Err(refusal), _) => refused(refusal, plan),
            (Ok(()), Err(error)) => {
                self.delay(REFUSAL_SECONDS).await;
                answers::unprocessable(&[shape::not_json(&error)])
            }
            (Ok(()), Ok(body)) => self.ask(endpoint, key, subscriptions, ordered, &body).await,
        };
        with_quota(response, quota)
    }

    /// Hands a counted body to its engine.
    async fn ask(
        &self,
        endpoint: Endpoint,
        key: &str,
        subscriptions: Subscriptions,
        ordered: Option<Fault>,
        body: &Value,
    ) -> Response {
        let question = match endpoint.read(body) {
            Ok(question) => question,
            Err(unreadable) => {
                self.delay(REFUSAL_SECONDS).await;
                return match unreadable {
                    Unreadable::Shape(details) => answers::unprocessable(&details),
                    Unreadable::Meaning(text) => answers::message(StatusCode::BAD_REQUEST, &text),
                };
            }
        };
        let asked_before = self.memory.asked_before(key, endpoint.path(), body);
        let tripped =
            (subscriptions.trips_on_13th && begins_on_13th(body)).then_some(Fault::DegradedOnce);
        let effect = ordered
            .or(tripped)
            .map_or(Effect::None, |fault| fault.effect(asked_before));
        let ask = self
            .world
            .of("ask")
            .of(endpoint.path())
            .of(&body.to_string())
            .nth(i64::try_from(asked_before).unwrap_or(i64::MAX));
        if effect == Effect::Hangs {
            self.stopping.cancelled().await;
            return answers::failed();
        }
        self.delay(delay_seconds(question.median_seconds(), ask))
            .await;
        question.answer(self.world, self.now().date(), effect, ask)
    }

    /// Waits as long as the engine would, scaled, or until the server stops.
    async fn delay(&self, seconds: f64) {
        let scaled = seconds * self.options.latency_factor;
        // Also refuses what is no duration: negative, infinite or not a number.
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

    fn moment(&self) -> Moment {
        Moment::new(self.now(), Instant::now())
    }

    /// The only look at the calendar: UTC now, or midnight of the pinned day.
    fn now(&self) -> DateTime {
        match self.options.today {
            Some(today) => today.at(0, 0, 0, 0),
            None => jiff::Timestamp::now().to_zoned(TimeZone::UTC).datetime(),
        }
    }
}

/// How long an engine takes for this ask: lognormal around its median, with a tail to a minute (contract 3).
fn delay_seconds(median: f64, ask: Draw) -> f64 {
    (median * (DELAY_SPREAD * ask.of("delay").normal()).exp()).min(SLOWEST_SECONDS)
}

/// Someone whom the marketplace does not let through to an engine.
#[derive(Clone, Copy, Debug)]
enum Stranger {
    NoKey,
    UnknownKey,
    NotSubscribed,
}

impl Stranger {
    fn turned_away(self) -> Response {
        let (status, text) = match self {
            Self::NoKey => (StatusCode::UNAUTHORIZED, "Invalid API key: none was sent."),
            Self::UnknownKey => (
                StatusCode::UNAUTHORIZED,
                "Invalid API key: GET / lists those that the sandbox knows.",
            ),
            Self::NotSubscribed => (StatusCode::FORBIDDEN, "You are not subscribed to this API."),
        };
        answers::marketplace(status, text)
    }
}

/// The key of a request with what it opens.
fn admit(api: Api, headers: &HeaderMap) -> Result<(&str, Subscriptions, Plan), Stranger> {
    let key = KEY_HEADERS
        .into_iter()
        .filter_map(|name| headers.get(name))
        .filter_map(|value| value.to_str().ok())
        .find(|value| !value.is_empty())
        .ok_or(Stranger::NoKey)?;
    let subscriptions = Subscriptions::of_key(key).ok_or(Stranger::UnknownKey)?;
    let plan = subscriptions.plan(api).ok_or(Stranger::NotSubscribed)?;
    Ok((key, subscriptions, plan))
}

fn refused(refusal: Refusal, plan: Plan) -> Response {
    match refusal {
        Refusal::QuotaUsedUp => {
            let text = format!(
                "You have exceeded the MONTHLY quota for Requests on your current plan, {}.",
                plan.name()
            );
            answers::too_many(&text, None)
        }
        Refusal::TooFast {
            retry_after_seconds,
        } => {
            let text = format!(
                "You have exceeded the rate limit per minute for your plan, {}, by the API provider",
                plan.name()
            );
            answers::too_many(&text, Some(retry_after_seconds))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_have_the_medians_and_the_tail_of_the_engines() {
        for (median, slowest) in [(1.6, 8.0), (3.3, 16.0), (9.0, 59.0)] {
            let mut delays: Vec<f64> = (0..10_000)
                .map(|ask| delay_seconds(median, Draw::seeded(1).nth(ask)))
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
