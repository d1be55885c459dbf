//! The flights engine: answers a valid body, with search headers.

mod itineraries;
mod itinerary;
mod rows;
mod scenario;
#[cfg(test)]
mod tests;

use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::json;

use super::draws::Draw;
use super::magic_values::Effect;
use super::responses;
use super::server::{EngineQuery, Moment};
use super::wire::flights::{FlightRow, FlightSearch};

/// The found rows, and how many route and date combinations were searched.
#[derive(Default)]
struct FoundRows {
    rows: Vec<FlightRow>,
    combinations: usize,
}

/// The engine's report on a search (gateway.md, rule 38).
struct SearchReport {
    status: &'static str,
    reason: Option<&'static str>,
    results: usize,
    attempts: usize,
    combinations: usize,
    retries: usize,
    unreadable_pages: usize,
}

impl EngineQuery for FlightSearch {
    /// A direct request is quicker than one through a proxy.
    fn median_seconds(&self) -> f64 {
        let through_proxy = if self.inbound.is_some() { 3.3 } else { 1.6 };
        match self.terms.use_ext_proxy {
            Some(false) => through_proxy * 0.7,
            _ => through_proxy,
        }
    }

    /// With the prices of a scenario if there is one. `call` seeds what varies between calls of the
    /// same search.
    fn answer(&self, moment: &Moment, effect: Effect, call: Draw) -> Response {
        let mut found = match (effect, moment.prices) {
            (Effect::Empty, _) => FoundRows::default(),
            (_, Some(prices)) => FoundRows {
                rows: Vec::from_iter(scenario::row(moment.world, prices, moment.at, self)),
                combinations: 1,
            },
            (_, None) => itineraries::find(moment.world, moment.at.date(), self),
        };
        let partial = effect == Effect::Partial && !found.rows.is_empty();
        if partial {
            found.rows.truncate(found.rows.len().div_ceil(2));
        }
        // A page that needed a second try leaves its reason on a complete answer (gateway.md, rule 3).
        let retried = partial || call.of("stumbled").chance(0.03);
        let (status, reason) = match found.rows.len() {
            _ if partial => ("partial", "upstream_timeout"),
            0 => ("empty", "upstream_status"),
            _ => ("ok", "upstream_status"),
        };
        // If the live search found nothing, the engine calls the secondary provider, unless the
        // request disables it.
        let called_second = found.rows.is_empty() && self.terms.use_fallback != Some(false);
        let report = SearchReport {
            status,
            reason: retried.then_some(reason),
            results: found.rows.len(),
            attempts: 1 + usize::from(retried) + usize::from(called_second),
            combinations: found.combinations.max(1),
            retries: usize::from(retried),
            unreadable_pages: usize::from(partial),
        };
        report.on(responses::json(StatusCode::OK, &found.rows))
    }

    /// An empty array, or an error for a strict request.
    fn degraded(&self, reason: &'static str, call: Draw) -> Response {
        let draw = |name: &str, count| usize::try_from(call.of(name).below(count)).unwrap_or(0);
        let retries = 2 + draw("retries", 2);
        let report = SearchReport {
            status: "degraded",
            reason: Some(reason),
            results: 0,
            attempts: 1 + retries,
            combinations: 1,
            retries,
            unreadable_pages: 1 + draw("pages", 3),
        };
        report.on(if self.terms.strict {
            responses::search_incomplete(reason)
        } else {
            responses::json(StatusCode::OK, &json!([]))
        })
    }
}

impl SearchReport {
    /// Adds the headers.
    fn on(self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert("x-search-status", HeaderValue::from_static(self.status));
        if let Some(reason) = self.reason {
            headers.insert("x-search-reason", HeaderValue::from_static(reason));
        }
        for (name, count) in [
            ("x-search-results", self.results),
            ("x-search-attempts", self.attempts),
            ("x-search-combinations", self.combinations),
            ("x-search-retries", self.retries),
            ("x-search-unreadable-pages", self.unreadable_pages),
        ] {
            headers.insert(name, HeaderValue::from(count));
        }
        response
    }
}
