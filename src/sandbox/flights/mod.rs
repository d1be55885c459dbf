//! The flights engine: a checked body in, an answer with its search headers out. Keys and quota are not its business.

mod itineraries;
mod rows;
#[cfg(test)]
mod tests;

use axum::http::StatusCode;
use axum::response::Response;
use jiff::civil::Date;
use serde::Serialize;
use serde_json::Value;

use super::answers::{self, SearchReport};
use super::draws::Draw;
use super::faults::Effect;
use super::wire::flights::{Oneway, Roundtrip, Terms};
use super::wire::shape::Detail;

/// A body that the engine takes.
#[derive(Clone, Debug)]
pub(super) enum FlightSearch {
    Oneway(Oneway),
    Roundtrip(Roundtrip),
}

/// Rows that were found, and how many route and date combinations were looked at.
struct Found<Row> {
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

    /// The answer as of `today`. `ask` names this ask of this search, for what varies between asks.
    pub(super) fn answer(&self, world: Draw, today: Date, effect: Effect, ask: Draw) -> Response {
        match self {
            Self::Oneway(search) => respond(&search.terms, effect, ask, || {
                itineraries::oneway(world, today, search)
            }),
            Self::Roundtrip(search) => respond(&search.terms, effect, ask, || {
                itineraries::roundtrip(world, today, search)
            }),
        }
    }
}

fn respond<Row: Serialize>(
    terms: &Terms,
    effect: Effect,
    ask: Draw,
    find: impl FnOnce() -> Found<Row>,
) -> Response {
    let found = match effect {
        Effect::Failed => return answers::failed(),
        Effect::Garbage => return answers::garbage(),
        Effect::Degraded => return degraded(terms, ask),
        Effect::Empty => Found {
            rows: Vec::new(),
            combinations: 1,
        },
        _ => find(),
    };
    let Found {
        mut rows,
        combinations,
    } = found;
    let partial = effect == Effect::Partial && !rows.is_empty();
    if partial {
        rows.truncate(rows.len().div_ceil(2));
    }
    // A page that was read at the second try leaves its reason on an answer that is complete (contract 3).
    let stumbled = partial || ask.of("stumbled").chance(0.03);
    let report = SearchReport {
        status: match rows.len() {
            0 => "empty",
            _ if partial => "partial",
            _ => "ok",
        },
        reason: if partial {
            Some("upstream_timeout")
        } else {
            stumbled.then_some("upstream_status")
        },
        results: rows.len(),
        // The secondary provider is asked where the live search found nothing, unless told not to be.
        attempts: 1 + usize::from(stumbled) + usize::from(rows.is_empty() && terms.use_fallback),
        combinations,
        retries: usize::from(stumbled),
        unreadable_pages: usize::from(partial),
    };
    answers::with_report(answers::json(StatusCode::OK, &rows), report)
}

/// A search that did not complete: an empty array that says nothing, or an error to a strict request.
fn degraded(terms: &Terms, ask: Draw) -> Response {
    let reason = "blocked_page";
    let retries = 2 + ask.of("retries").below(2);
    let report = SearchReport {
        status: "degraded",
        reason: Some(reason),
        results: 0,
        attempts: 1 + retries,
        combinations: 1,
        retries,
        unreadable_pages: 1 + ask.of("pages").below(3),
    };
    let response = if terms.strict {
        answers::search_incomplete(reason)
    } else {
        answers::json(StatusCode::OK, &Vec::<Value>::new())
    };
    answers::with_report(response, report)
}
