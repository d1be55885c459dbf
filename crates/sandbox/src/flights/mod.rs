//! The flights engine: answers a valid body, with search headers.

mod itineraries;
mod rank;
mod rows;
mod scenario;
#[cfg(test)]
mod tests;

use axum::http::StatusCode;
use axum::response::Response;
use jiff::civil::DateTime;
use serde::Serialize;
use serde_json::Value;

use super::draws::Draw;
use super::magic_values::Effect;
use super::responses::{self, SearchReport};
use super::scenarios::PriceProcess;
use super::wire::flights::{Oneway, Roundtrip, Terms};
use super::wire::shape::Detail;

/// A valid body.
#[derive(Clone, Debug)]
pub(super) enum FlightSearch {
    Oneway(Oneway),
    Roundtrip(Roundtrip),
}

/// The found rows, and how many route and date combinations were searched.
struct FoundRows<Row> {
    rows: Vec<Row>,
    combinations: usize,
}

impl FlightSearch {
    pub(super) fn oneway(body: &Value) -> Result<Self, Vec<Detail>> {
        Oneway::read(body).map(Self::Oneway)
    }

    pub(super) fn roundtrip(body: &Value) -> Result<Self, Vec<Detail>> {
        Roundtrip::read(body).map(Self::Roundtrip)
    }

    fn terms(&self) -> &Terms {
        match self {
            Self::Oneway(search) => &search.terms,
            Self::Roundtrip(search) => &search.terms,
        }
    }

    /// Median seconds until the answer; a direct request is quicker than one through a proxy.
    pub(super) fn median_seconds(&self) -> f64 {
        let through_proxy = match self {
            Self::Oneway(_) => 1.6,
            Self::Roundtrip(_) => 3.3,
        };
        if self.terms().use_ext_proxy {
            through_proxy
        } else {
            through_proxy * 0.7
        }
    }

    /// The answer at an instant (UTC), with the prices of a scenario if there is one. `call` seeds
    /// what varies between calls of the same search.
    pub(super) fn answer(
        &self,
        world: Draw,
        scenario: Option<&PriceProcess>,
        at: DateTime,
        effect: Effect,
        call: Draw,
    ) -> Response {
        match self {
            Self::Oneway(search) => respond(&search.terms, effect, call, || match scenario {
                Some(prices) => scenario::oneway(world, prices, at, search),
                None => itineraries::oneway(world, at.date(), search),
            }),
            Self::Roundtrip(search) => respond(&search.terms, effect, call, || match scenario {
                Some(prices) => scenario::roundtrip(world, prices, at, search),
                None => itineraries::roundtrip(world, at.date(), search),
            }),
        }
    }
}

fn respond<Row: Serialize>(
    terms: &Terms,
    effect: Effect,
    call: Draw,
    find: impl FnOnce() -> FoundRows<Row>,
) -> Response {
    let found = match effect {
        Effect::Failed => return responses::failed(),
        Effect::Garbage => return responses::garbage(),
        Effect::Degraded => return degraded(terms, call),
        Effect::Empty => FoundRows {
            rows: Vec::new(),
            combinations: 1,
        },
        _ => find(),
    };
    let FoundRows {
        mut rows,
        combinations,
    } = found;
    let partial = effect == Effect::Partial && !rows.is_empty();
    if partial {
        rows.truncate(rows.len().div_ceil(2));
    }
    // A page that needed a second try leaves its reason on a complete answer (gateway.md, rule 3).
    let retried = partial || call.of("stumbled").chance(0.03);
    let report = SearchReport {
        status: match rows.len() {
            0 => "empty",
            _ if partial => "partial",
            _ => "ok",
        },
        reason: if partial {
            Some("upstream_timeout")
        } else {
            retried.then_some("upstream_status")
        },
        results: rows.len(),
        // If the live search found nothing, the engine calls the secondary provider, unless the
        // request disables it.
        attempts: 1 + usize::from(retried) + usize::from(rows.is_empty() && terms.use_fallback),
        combinations,
        retries: usize::from(retried),
        unreadable_pages: usize::from(partial),
    };
    responses::with_report(responses::json(StatusCode::OK, &rows), report)
}

/// A search that did not complete: an empty array, or an error for a strict request.
fn degraded(terms: &Terms, call: Draw) -> Response {
    let reason = "blocked_page";
    let retries = 2 + call.of("retries").below(2);
    let report = SearchReport {
        status: "degraded",
        reason: Some(reason),
        results: 0,
        attempts: 1 + retries,
        combinations: 1,
        retries,
        unreadable_pages: 1 + call.of("pages").below(3),
    };
    let response = if terms.strict {
        responses::search_incomplete(reason)
    } else {
        responses::json(StatusCode::OK, &Vec::<Value>::new())
    };
    responses::with_report(response, report)
}
