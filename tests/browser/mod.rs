//! The dashboard in a real headless Chromium, as a person uses it, against the service with a
//! scripted marketplace: what the person saw is compared with the marketplace's ledger.
//!
//! Each test has a browser of its own. `Chromium::end` then looks at what the browser did: no
//! request to another host, no missing file, no message of a script or of the content security
//! policy.

mod axe;
mod chromium;
mod every_page;
mod filled;
mod film;
mod first_day;
mod keyboard;
mod layout;
mod live_cost;
mod log;
mod mail_pages;
mod monitors;
mod names;
mod person;
mod reference_page;
mod scans;
mod screenshots;
mod sessions;
mod spending;
mod terminal_pictures;

use serde_json::json;

use crate::support::TestService;
use crate::support::reply::Reply;
use crate::support::upstream::{Call, fare};

/// A fare that differs by its date: the 5th does not complete, nothing is on offer on the 6th.
fn reply_by_date(call: &Call) -> Reply {
    let date = call.body["departure_date"].as_str().unwrap_or_default();
    match date.rsplit('-').next() {
        Some("05") => Reply::search_incomplete("blocked_page"),
        Some("06") => Reply::json(json!([])).header("x-search-status", "empty"),
        day => {
            let day: u64 = day.and_then(|day| day.parse().ok()).unwrap_or_default();
            Reply::json(json!([fare(200 + day * 7 % 90, &call.body)]))
                .header("x-search-status", "ok")
        }
    }
}

/// The dates of the calls so far from an airport, in order, with repetitions.
fn called_dates(service: &TestService, airport: &str) -> Vec<String> {
    let calls = service.calls_by_date(airport).into_iter();
    calls
        .flat_map(|(date, count)| std::iter::repeat_n(date, count))
        .collect()
}
