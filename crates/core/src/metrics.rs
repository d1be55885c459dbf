//! All metrics of this program: names, labels, buckets, and one function for each event that is
//! measured.
//!
//! Labels have few values, all of them constants of this program: no tenant, key, id, path or
//! reason (security.md, rule 12). Names follow Prometheus: seconds, `_total` for counters, the time
//! of an event instead of its age. Nothing is recorded before [`start`]. Not here: the route
//! `/metrics` (`api::admin`).

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use ::metrics::{
    Gauge, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

const BUILD: &str = "farescan_build_info";
const HTTP_SECONDS: &str = "farescan_http_request_duration_seconds";
const HTTP_IN_FLIGHT: &str = "farescan_http_requests_in_flight";
const CONNECTIONS: &str = "farescan_http_connections";
const CONNECTIONS_EVICTED: &str = "farescan_http_connections_evicted_total";
const SEARCH_SECONDS: &str = "farescan_upstream_search_duration_seconds";
const BILLED: &str = "farescan_upstream_billed_requests_total";
const CALLS_IN_FLIGHT: &str = "farescan_upstream_calls_in_flight";
const ITEMS: &str = "farescan_items_ended_total";
const BATCH_SECONDS: &str = "farescan_queue_batch_duration_seconds";
const BATCH_SIZE: &str = "farescan_queue_batch_size";
const ANSWERS_WAITING: &str = "farescan_answers_waiting";
const SEARCHES_REUSED: &str = "farescan_searches_reused_total";
const SEARCHES_RECORDED: &str = "farescan_searches_recorded_total";
const RECORDS_DROPPED: &str = "farescan_search_records_dropped_total";
const USAGE_LOST: &str = "farescan_usage_lost_total";
const WEBHOOK_ATTEMPTS: &str = "farescan_webhook_tries_total";
const LEASE_RENEWED: &str = "farescan_lease_renewed_timestamp_seconds";
const CLOCK: &str = "farescan_clock_ahead_seconds";
const POOL: &str = "farescan_database_connections";
const POOL_MAX: &str = "farescan_database_connections_max";

/// Requests: the companion routes answer in milliseconds, searches in up to three minutes.
const REQUEST_BUCKETS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 180.0,
];
/// Searches: medians are 1.6 s, 3.3 s and 8 to 10 s, with a tail to 60 s (gateway.md, rule 3).
const SEARCH_BUCKETS: &[f64] = &[
    0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0, 60.0, 120.0, 180.0,
];
const BATCH_BUCKETS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];
/// No batch holds more than 100.
const SIZE_BUCKETS: &[f64] = &[0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 75.0, 100.0];

/// The end of an item whose process died in its call.
pub const LOST: &str = "worker_lost";

/// `None` inside: the program that embeds this one has its own recorder.
static EXPORTER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Installs the recorder. Idempotent.
pub fn start() {
    EXPORTER.get_or_init(|| match install() {
        Ok(exporter) => {
            describe();
            Some(exporter)
        }
        Err(error) => {
            tracing::warn!(%error, "metrics recorder not installed; metrics are disabled");
            None
        }
    });
}

fn exporter() -> Option<&'static PrometheusHandle> {
    EXPORTER.get()?.as_ref()
}

fn install() -> Result<PrometheusHandle, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full(HTTP_SECONDS.to_owned()), REQUEST_BUCKETS)?
        .set_buckets_for_metric(Matcher::Full(SEARCH_SECONDS.to_owned()), SEARCH_BUCKETS)?
        .set_buckets_for_metric(Matcher::Full(BATCH_SECONDS.to_owned()), BATCH_BUCKETS)?
        .set_buckets_for_metric(Matcher::Full(BATCH_SIZE.to_owned()), SIZE_BUCKETS)?
        .install_recorder()
}

fn describe() {
    describe_gauge!(BUILD, "Always 1; the label says which version runs");
    describe_histogram!(
        HTTP_SECONDS,
        "Time from a request's head to its response's head, by route, method and status class"
    );
    describe_gauge!(HTTP_IN_FLIGHT, "Requests in flight");
    describe_gauge!(CONNECTIONS, "Open connections of both listeners");
    describe_counter!(
        CONNECTIONS_EVICTED,
        "Idle connections that were closed to accept new ones"
    );
    describe_histogram!(
        SEARCH_SECONDS,
        "Searches sent to the marketplace, retries included, by outcome"
    );
    describe_counter!(
        BILLED,
        "Requests that the marketplace bills: all whose first byte may have been sent"
    );
    describe_gauge!(CALLS_IN_FLIGHT, "Calls that wait for the marketplace");
    describe_counter!(
        ITEMS,
        "Stored calls of scans, by how their item ended, and lost calls"
    );
    describe_histogram!(
        BATCH_SECONDS,
        "Duration of a batch of a queue step, retries included"
    );
    describe_histogram!(BATCH_SIZE, "Items in a batch of a queue step");
    describe_gauge!(ANSWERS_WAITING, "Paid answers that are not stored yet");
    describe_counter!(
        SEARCHES_REUSED,
        "Synchronous searches that were answered without a request, by how"
    );
    describe_counter!(
        SEARCHES_RECORDED,
        "Synchronous searches that were stored after their response"
    );
    describe_counter!(
        RECORDS_DROPPED,
        "Synchronous searches that should have been stored and were not"
    );
    describe_counter!(
        USAGE_LOST,
        "Billed requests of synchronous searches that are in no usage"
    );
    describe_counter!(
        WEBHOOK_ATTEMPTS,
        "Delivery attempts to webhooks, by outcome"
    );
    describe_gauge!(
        LEASE_RENEWED,
        "Time of the last renewal of this worker's lease; half a lease later no call begins"
    );
    describe_gauge!(
        CLOCK,
        "Seconds that this process's clock is ahead of the database's; negative if behind"
    );
    describe_gauge!(POOL, "Connections of this process's pools, by state");
    describe_gauge!(
        POOL_MAX,
        "Maximum connections of each of this process's pools"
    );
    gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    // An alert on these needs the series before the first event.
    counter!(ITEMS, "end" => LOST).increment(0);
    gauge!(ANSWERS_WAITING).set(0.0);
}

/// All metrics in the Prometheus text format.
pub fn render() -> String {
    exporter().map(PrometheusHandle::render).unwrap_or_default()
}

/// Folds observations into their buckets. Without it a process that is not scraped would store
/// every observation.
pub fn run_upkeep() {
    if let Some(exporter) = exporter() {
        exporter.run_upkeep();
    }
}

/// Counts an operation in a gauge until it is dropped.
#[derive(Debug)]
#[must_use = "dropping the guard ends the operation"]
pub struct InFlightGuard(Gauge);

impl InFlightGuard {
    fn new(gauge: Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// Times a request. Dropped before [`answered`](Self::answered), the client has disconnected.
#[must_use = "dropping the timer ends the request"]
pub struct RequestTimer {
    route: String,
    method: &'static str,
    status_class: &'static str,
    started_at: Instant,
    _in_flight: InFlightGuard,
}

/// A request for a route template (`/v1/scans/{id}`), or for an unknown path, has started.
pub fn request_started(route: Option<&str>, method: &str) -> RequestTimer {
    const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    let method = METHODS
        .into_iter()
        .find(|known| *known == method)
        .unwrap_or("other");
    let route = route.unwrap_or("none").to_owned();
    RequestTimer {
        route,
        method,
        status_class: "gone",
        started_at: Instant::now(),
        _in_flight: InFlightGuard::new(gauge!(HTTP_IN_FLIGHT)),
    }
}

impl RequestTimer {
    /// The request was answered.
    pub fn answered(&mut self, status: u16) {
        self.status_class = match status / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
    }
}

impl Drop for RequestTimer {
    fn drop(&mut self) {
        let route = std::mem::take(&mut self.route);
        histogram!(HTTP_SECONDS, "route" => route, "method" => self.method, "status" => self.status_class)
            .record(self.started_at.elapsed());
    }
}

/// A connection was accepted.
pub fn connection_opened() -> InFlightGuard {
    InFlightGuard::new(gauge!(CONNECTIONS))
}

/// A connection that waited for its client was closed in favour of a new one.
pub fn connection_evicted() {
    counter!(CONNECTIONS_EVICTED).increment(1);
}

/// A call to an API of the marketplace has started.
pub fn call_started(api: &'static str) -> InFlightGuard {
    InFlightGuard::new(gauge!(CALLS_IN_FLIGHT, "api" => api))
}

/// A search has finished: its outcome, its latency and its billed requests.
pub fn search_finished(
    endpoint: &'static str,
    outcome: &'static str,
    latency: Duration,
    billed: u16,
) {
    histogram!(SEARCH_SECONDS, "endpoint" => endpoint, "outcome" => outcome).record(latency);
    billed_requests(endpoint, billed);
}

/// A synchronous search took an answer: one that is `stored`, or of a search that it `joined`.
pub fn search_reused(how: &'static str) {
    counter!(SEARCHES_REUSED, "how" => how).increment(1);
}

/// A synchronous search was stored after its response.
pub fn search_recorded() {
    counter!(SEARCHES_RECORDED).increment(1);
}

/// A synchronous search should have been stored and was not.
pub fn search_record_dropped() {
    counter!(RECORDS_DROPPED).increment(1);
}

/// Billed requests of single searches that are in no caller's usage.
pub fn usage_lost(requests: u64) {
    counter!(USAGE_LOST).increment(requests);
}

/// The marketplace bills requests.
pub fn billed_requests(endpoint: &'static str, billed: u16) {
    counter!(BILLED, "endpoint" => endpoint).increment(billed.into());
}

/// Items have ended.
pub fn items_ended(end: &'static str, count: u64) {
    counter!(ITEMS, "end" => end).increment(count);
}

/// A batch of a queue step (`claim`, `begin`, `record`) has finished.
pub fn batch_finished(step: &'static str, size: usize, duration: Duration) {
    histogram!(BATCH_SECONDS, "step" => step).record(duration);
    histogram!(BATCH_SIZE, "step" => step).record(u32::try_from(size).unwrap_or(u32::MAX));
}

/// A paid answer waits until it is stored.
pub fn answer_waiting() -> InFlightGuard {
    InFlightGuard::new(gauge!(ANSWERS_WAITING))
}

/// A delivery was attempted: `delivered`, or why not.
pub fn webhook_attempted(outcome: &'static str) {
    counter!(WEBHOOK_ATTEMPTS, "outcome" => outcome).increment(1);
}

/// This worker's lease was renewed.
pub fn lease_renewed() {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    gauge!(LEASE_RENEWED).set(now.as_secs_f64());
}

/// This process's clock was compared with the database's.
pub fn clock_ahead(seconds: f64) {
    gauge!(CLOCK).set(seconds);
}

/// The connections of a pool, read at each scrape.
pub fn pool(name: &'static str, connections: u32, idle: usize, max: u32) {
    let idle = u32::try_from(idle).unwrap_or(u32::MAX).min(connections);
    gauge!(POOL, "pool" => name, "state" => "idle").set(idle);
    gauge!(POOL, "pool" => name, "state" => "used").set(connections - idle);
    gauge!(POOL_MAX, "pool" => name).set(max);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of one metric.
    fn lines(name: &str) -> Vec<String> {
        render()
            .lines()
            .filter(|line| line.starts_with(name))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn labels_have_few_values_for_any_request() {
        start();
        start();
        request_started(Some("/v1/t/{id}"), "BREW").answered(599);
        drop(request_started(None, "GET"));
        let shown = lines(&format!("{HTTP_SECONDS}_count"));
        for labels in [
            r#"{route="/v1/t/{id}",method="other",status="5xx"}"#,
            r#"{route="none",method="GET",status="gone"}"#,
        ] {
            assert!(
                shown.iter().any(|line| line.contains(labels)),
                "{labels}: {shown:#?}"
            );
        }
    }

    #[test]
    fn a_guard_counts_until_it_is_dropped() {
        start();
        let open = (call_started("test-api"), call_started("test-api"));
        let counted = format!("{CALLS_IN_FLIGHT}{{api=\"test-api\"}}");
        assert_eq!(lines(&counted), [format!("{counted} 2")]);
        drop(open);
        assert_eq!(lines(&counted), [format!("{counted} 0")]);
    }

    #[test]
    fn durations_have_buckets_and_every_metric_a_description() {
        start();
        search_finished("flights/oneway", "ok", Duration::from_millis(1_500), 2);
        batch_finished("claim", 0, Duration::from_micros(700));
        batch_finished("claim", 100, Duration::from_micros(700));
        pool("reads", 5, 3, 20);
        let bucket = format!(
            r#"{SEARCH_SECONDS}_bucket{{endpoint="flights/oneway",outcome="ok",le="2"}} 1"#
        );
        assert!(render().contains(&bucket), "{}", render());
        let used = format!("{POOL}{{pool=\"reads\",state=\"used\"}}");
        assert_eq!(lines(&used), [format!("{used} 2")]);
        for name in [
            BUILD,
            HTTP_IN_FLIGHT,
            SEARCH_SECONDS,
            BILLED,
            CALLS_IN_FLIGHT,
            ITEMS,
            BATCH_SECONDS,
            BATCH_SIZE,
            ANSWERS_WAITING,
            POOL,
        ] {
            if render().contains(&format!("# TYPE {name} ")) {
                assert!(render().contains(&format!("# HELP {name} ")), "{name}");
            }
        }
        assert!(
            !render().contains("quantile="),
            "a histogram without buckets is a summary"
        );
    }
}
