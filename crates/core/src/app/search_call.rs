//! The call of an admitted synchronous search, by its request or by a task of its own.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::task::JoinHandle;

use super::AppState;
use super::admission::SearchPermit;
use super::key_guessing::KeyVerdict;
use crate::charges::CallUsage;
use crate::contract::{Endpoint, SearchStatus};
use crate::queue::recorded_search::WantedBy;
use crate::search::outcome_status::{self, ItemDisposition};
use crate::search::{CallerKey, Outcome, Search};
use crate::tenants::acceptance::{means_accepted, means_refused};

/// A search with the permission to send it.
#[derive(Debug)]
pub struct SearchCall {
    pub permit: SearchPermit,
    pub app: AppState,
    pub key: CallerKey,
    pub search: Arc<Search>,
    pub request_id: String,
}

impl SearchCall {
    /// Whether its caller has all complete answers stored (gateway.md, rule 59).
    pub fn is_stored_by_setting(&self) -> bool {
        let custody = self.app.custody.as_ref();
        Endpoint::SEARCHES.contains(&self.search.endpoint())
            && custody.is_some_and(|custody| custody.recorder.stores_all_of(&self.key))
    }

    /// Sends the search. Its record, if anyone wants it, is a task that this does not wait for; it
    /// ends when the search is stored or dropped.
    pub async fn send(self, stores: Option<WantedBy>) -> (Outcome, Option<JoinHandle<()>>) {
        let Self {
            permit,
            app,
            key,
            search,
            request_id,
        } = self;
        let began_at = app.now().ok();
        let outcome = app
            .upstream
            .search(&search, &key, &request_id, || async { true })
            .await;
        permit.record_verdict(key_verdict(outcome.http_status));
        app.charge(&key, CallUsage::from_search(&search, &outcome, began_at));
        let recorded =
            stores.and_then(|wanted_by| record(&app, &key, &search, &outcome, wanted_by, began_at));
        (outcome, recorded)
    }
}

/// Records a search. While this process's clock is wrong nothing is stored, and by the setting only
/// what is complete.
fn record(
    app: &AppState,
    key: &CallerKey,
    search: &Search,
    outcome: &Outcome,
    wanted_by: WantedBy,
    began_at: Option<Timestamp>,
) -> Option<JoinHandle<()>> {
    if wanted_by == WantedBy::Setting && !is_complete(search, outcome) {
        return None;
    }
    let times = (began_at?, app.now().ok()?);
    let recorder = &app.custody.as_ref()?.recorder;
    recorder.record(key, search, outcome, wanted_by, times)
}

/// What a marketplace status says of the key.
fn key_verdict(http_status: Option<u16>) -> KeyVerdict {
    match http_status {
        Some(status) if means_accepted(status) => KeyVerdict::Accepted,
        Some(status) if means_refused(status) => KeyVerdict::Refused,
        _ => KeyVerdict::Unknown,
    }
}

/// Whether the answer may be given to another request: it is complete.
pub fn is_complete(search: &Search, outcome: &Outcome) -> bool {
    matches!(
        outcome_status::of(search, outcome).item,
        ItemDisposition::Done {
            status: SearchStatus::Ok | SearchStatus::Empty,
            ..
        }
    )
}
