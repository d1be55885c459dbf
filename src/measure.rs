//! Every metric of this program on one page: its name, its labels, its buckets, and one function for each thing that is measured.
//!
//! Labels have few values, all of them written in this program: no tenant, key, id, path or reason (security.md). Names follow
//! Prometheus: seconds, `_total` for what only grows, the moment of an event instead of its age. Until [`start`] nothing is kept, so a
//! command that shows no metrics pays nothing for them. Not here: where `/metrics` is served (`http::health`).

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use metrics::{
    Gauge, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

const BUILD: &str = "farescan_build_info";
const HTTP_SECONDS: &str = "farescan_http_request_duration_seconds";
const HTTP_OPEN: &str = "farescan_http_requests_in_flight";
const CONNECTIONS: &str = "farescan_http_connections";
const CONNECTIONS_EVICTED: &str = "farescan_http_connections_evicted_total";
const SEARCH_SECONDS: &str = "farescan_upstream_search_duration_seconds";
const BILLED: &str = "farescan_upstream_billed_requests_total";
const CALLS_OPEN: &str = "farescan_upstream_calls_in_flight";
const ITEMS: &str = "farescan_items_ended_total";
const BATCH_SECONDS: &str = "farescan_queue_batch_duration_seconds";
const BATCH_SIZE: &str = "farescan_queue_batch_size";
const WAITING: &str = "farescan_answers_waiting";
const TRIES: &str = "farescan_webhook_tries_total";
const LEASE: &str = "farescan_lease_renewed_timestamp_seconds";
const CLOCK: &str = "farescan_clock_ahead_seconds";
const POOL: &str = "farescan_database_connections";
const POOL_MOST: &str = "farescan_database_connections_max";

/// Requests: the companion routes answer in milliseconds, searches in up to three minutes.
const REQUEST_BUCKETS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 180.0,
];
/// Searches: medians are 1.6 s, 3.3 s and 8 to 10 s, with a tail to 60 s (contract 3).
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

/// `None` inside: a program around this one keeps its own metrics.
static EXPORTER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Begins to keep metrics. Again is fine.
pub fn start() {
    EXPORTER.get_or_init(|| match install() {
        Ok(exporter) => {
            describe();
            Some(exporter)
        }
        Err(error) => {
            tracing::warn!(%error, "no metrics are kept");
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
        "From a request's head to its answer's head, by route, method and class of status"
    );
    describe_gauge!(HTTP_OPEN, "Requests that are being answered");
    describe_gauge!(
        CONNECTIONS,
        "Connections that are open, over both listeners"
    );
    describe_counter!(
        CONNECTIONS_EVICTED,
        "Connections that waited for their client and were closed in favour of new ones"
    );
    describe_histogram!(
        SEARCH_SECONDS,
        "Searches asked of the marketplace, second tries included, by what became of them"
    );
    describe_counter!(
        BILLED,
        "Requests that the marketplace bills: every one whose first byte may have been sent"
    );
    describe_gauge!(CALLS_OPEN, "Calls that wait for the marketplace");
    describe_counter!(
        ITEMS,
        "Calls of scans that were stored, by how their item ended, and calls that were lost"
    );
    describe_histogram!(
        BATCH_SECONDS,
        "One batch of the queue's steps, tries again included"
    );
    describe_histogram!(BATCH_SIZE, "Items in one batch of the queue's steps");
    describe_gauge!(WAITING, "Paid answers that are not stored yet");
    describe_counter!(TRIES, "Tries to deliver to webhooks, by what came of them");
    describe_gauge!(
        LEASE,
        "When this worker's lease was last renewed; half a lease later no call begins"
    );
    describe_gauge!(
        CLOCK,
        "How far this process's clock is ahead of the database's; behind: negative"
    );
    describe_gauge!(POOL, "Connections of this process's pools, by state");
    describe_gauge!(
        POOL_MOST,
        "Connections that each of this process's pools may hold"
    );
    gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    // An alert on what must not happen needs the series before it happens.
    counter!(ITEMS, "end" => LOST).increment(0);
    gauge!(WAITING).set(0.0);
}

/// All metrics, as Prometheus reads them.
#[must_use]
pub fn text() -> String {
    exporter().map(PrometheusHandle::render).unwrap_or_default()
}

/// Folds what was observed into its buckets. Without it a process that nobody scrapes would keep every observation.
pub fn fold() {
    if let Some(exporter) = exporter() {
        exporter.run_upkeep();
    }
}

/// Something that is going on, counted in a gauge until it is dropped.
#[derive(Debug)]
#[must_use = "what is dropped has ended"]
pub struct Open(Gauge);

impl Open {
    fn new(gauge: Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// A request on its way to its answer. Dropped without one, its caller has gone.
#[must_use = "what is dropped has ended"]
pub struct Passage {
    route: String,
    method: &'static str,
    class: &'static str,
    begun: Instant,
    _open: Open,
}

/// A request came in for a route's template (`/v1/scans/{id}`), or for none.
pub fn request(route: Option<&str>, method: &str) -> Passage {
    const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    let method = METHODS
        .into_iter()
        .find(|known| *known == method)
        .unwrap_or("other");
    let route = route.unwrap_or("none").to_owned();
    Passage {
        route,
        method,
        class: "gone",
        begun: Instant::now(),
        _open: Open::new(gauge!(HTTP_OPEN)),
    }
}

impl Passage {
    /// It was answered.
    pub fn answered(&mut self, status: u16) {
        self.class = match status / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let route = std::mem::take(&mut self.route);
        histogram!(HTTP_SECONDS, "route" => route, "method" => self.method, "status" => self.class)
            .record(self.begun.elapsed());
    }
}

/// A connection was accepted.
pub fn connection() -> Open {
    Open::new(gauge!(CONNECTIONS))
}

/// A connection that waited for its client was closed in favour of a new one.
pub fn connection_evicted() {
    counter!(CONNECTIONS_EVICTED).increment(1);
}

/// A call to an API of the marketplace begins.
pub fn call(api: &'static str) -> Open {
    Open::new(gauge!(CALLS_OPEN, "api" => api))
}

/// A search was asked: what became of it in one word, how long it took and how many requests it cost.
pub fn search(endpoint: &'static str, outcome: &'static str, latency: Duration, billed: u16) {
    histogram!(SEARCH_SECONDS, "endpoint" => endpoint, "outcome" => outcome).record(latency);
    billed_requests(endpoint, billed);
}

/// Requests were sent that the marketplace bills.
pub fn billed_requests(endpoint: &'static str, billed: u16) {
    counter!(BILLED, "endpoint" => endpoint).increment(billed.into());
}

/// So many items ended alike.
pub fn items_ended(end: &'static str, count: u64) {
    counter!(ITEMS, "end" => end).increment(count);
}

/// One batch of a step of the queue (`claim`, `begin`, `record`) is done.
pub fn batch(step: &'static str, size: usize, took: Duration) {
    histogram!(BATCH_SECONDS, "step" => step).record(took);
    histogram!(BATCH_SIZE, "step" => step).record(u32::try_from(size).unwrap_or(u32::MAX));
}

/// A paid answer waits until it is stored.
pub fn answer_waiting() -> Open {
    Open::new(gauge!(WAITING))
}

/// A delivery was tried: `delivered`, or why not.
pub fn webhook_try(outcome: &'static str) {
    counter!(TRIES, "outcome" => outcome).increment(1);
}

/// This worker's lease was renewed.
pub fn lease_renewed() {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    gauge!(LEASE).set(now.as_secs_f64());
}

/// This process's clock was compared with the database's.
pub fn clock_ahead(seconds: f64) {
    gauge!(CLOCK).set(seconds);
}

/// What a pool holds now; looked at when somebody asks.
pub fn pool(name: &'static str, connections: u32, idle: usize, most: u32) {
    let idle = u32::try_from(idle).unwrap_or(u32::MAX).min(connections);
    gauge!(POOL, "pool" => name, "state" => "idle").set(idle);
    gauge!(POOL, "pool" => name, "state" => "used").set(connections - idle);
    gauge!(POOL_MOST, "pool" => name).set(most);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of one metric.
    fn lines(name: &str) -> Vec<String> {
        text()
            .lines()
            .filter(|line| line.starts_with(name))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn labels_have_few_values_whatever_comes() {
        start();
        start();
        request(Some("/v1/t/{id}"), "BREW").answered(599);
        drop(request(None, "GET"));
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
    fn what_is_open_counts_until_it_is_dropped() {
        start();
        let open = (call("test-api"), call("test-api"));
        let counted = format!("{CALLS_OPEN}{{api=\"test-api\"}}");
        assert_eq!(lines(&counted), [format!("{counted} 2")]);
        drop(open);
        assert_eq!(lines(&counted), [format!("{counted} 0")]);
    }

    #[test]
    fn durations_have_buckets_and_every_metric_its_words() {
        start();
        search("flights/oneway", "ok", Duration::from_millis(1_500), 2);
        batch("claim", 0, Duration::from_micros(700));
        batch("claim", 100, Duration::from_micros(700));
        pool("reads", 5, 3, 20);
        let bucket = format!(
            r#"{SEARCH_SECONDS}_bucket{{endpoint="flights/oneway",outcome="ok",le="2"}} 1"#
        );
        assert!(text().contains(&bucket), "{}", text());
        let used = format!("{POOL}{{pool=\"reads\",state=\"used\"}}");
        assert_eq!(lines(&used), [format!("{used} 2")]);
        for name in [
            BUILD,
            HTTP_OPEN,
            SEARCH_SECONDS,
            BILLED,
            CALLS_OPEN,
            ITEMS,
            BATCH_SECONDS,
            BATCH_SIZE,
            WAITING,
            POOL,
        ] {
            if text().contains(&format!("# TYPE {name} ")) {
                assert!(text().contains(&format!("# HELP {name} ")), "{name}");
            }
        }
        assert!(
            !text().contains("quantile="),
            "a histogram without buckets is a summary"
        );
    }
}
