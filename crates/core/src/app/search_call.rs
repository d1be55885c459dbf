//! The call of a synchronous search, by its request or by a task of its own.

use axum::http::request::Parts;
use tokio::task::JoinHandle;

use super::AppState;
use super::admission::SearchPermit;
use super::auth::ApiKey;
use super::error::ApiError;
use super::key_guessing::KeyVerdict;
use super::request_id::request_id;
use super::stored_answer;
use crate::charges::CallUsage;
use crate::contract::scans::MaxAgeSeconds;
use crate::contract::{Endpoint, SearchStatus};
use crate::queue::recorded_search::WantedBy;
use crate::scans::recorded_search::AgedOutcome;
use crate::search::disposition::{self, ItemDisposition};
use crate::search::{CallerKey, Outcome, Search};
use crate::tenants::acceptance::{means_accepted, means_refused};

/// Sends an admitted search.
pub async fn send(
    app: &AppState,
    search: &Search,
    key: &CallerKey,
    request_id: &str,
    permit: SearchPermit,
) -> Outcome {
    let began_at = app.now().ok();
    let outcome = app
        .upstream
        .search(search, key, request_id, || async { true })
        .await;
    permit.record_verdict(key_verdict(outcome.http_status));
    app.charge(key, CallUsage::from_search(search, &outcome, began_at));
    outcome
}

/// Sends a search whose request says nothing about storing it. A complete answer is stored if its
/// caller has all of them stored (gateway.md, rule 59).
pub async fn send_and_store_if_set(
    app: &AppState,
    search: &Search,
    key: &CallerKey,
    request_id: &str,
    permit: SearchPermit,
) -> Outcome {
    let recorder = app.custody.as_ref().map(|custody| &custody.recorder);
    let stored = recorder.filter(|recorder| {
        Endpoint::SEARCHES.contains(&search.endpoint()) && recorder.stores_all_of(key)
    });
    let Some(recorder) = stored else {
        return send(app, search, key, request_id, permit).await;
    };
    // While this process's clock is wrong nothing is stored.
    let started_at = app.now();
    let outcome = send(app, search, key, request_id, permit).await;
    if is_complete(search, &outcome)
        && let (Ok(started_at), Ok(ended_at)) = (started_at, app.now())
    {
        let times = (started_at, ended_at);
        recorder.record(key, search, &outcome, WantedBy::Setting, times);
    }
    outcome
}

/// A search that can be sent by another task than that of its request.
#[derive(Debug)]
pub struct SearchCall {
    app: AppState,
    key: CallerKey,
    search: Search,
    request_id: String,
}

impl SearchCall {
    pub fn new(app: &AppState, parts: &Parts, caller: &ApiKey, search: &Search) -> Self {
        Self {
            app: app.clone(),
            key: caller.key.clone(),
            search: search.clone(),
            request_id: request_id(&parts.extensions).to_owned(),
        }
    }

    pub const fn key(&self) -> &CallerKey {
        &self.key
    }

    pub const fn search(&self) -> &Search {
        &self.search
    }

    /// # Errors
    /// Those of [`AppState::admit_search`].
    pub async fn admit(self) -> Result<AdmittedCall, ApiError> {
        let permit = self.app.admit_search(&self.key).await?;
        Ok(AdmittedCall { call: self, permit })
    }
}

/// A search with the permission to send it.
#[derive(Debug)]
pub struct AdmittedCall {
    call: SearchCall,
    permit: SearchPermit,
}

impl AdmittedCall {
    pub const fn search(&self) -> &Search {
        &self.call.search
    }

    /// The stored answer that the search may take. Where the look-up fails it takes none.
    pub async fn find_stored(&self, oldest: MaxAgeSeconds) -> Option<AgedOutcome> {
        let SearchCall {
            app, key, search, ..
        } = &self.call;
        stored_answer::find(app, key, search, oldest)
            .await
            .ok()
            .flatten()
    }

    /// Sends the search. With `stores`, its record is a task that this does not wait for; it ends when
    /// the search is stored or dropped.
    pub async fn run(self, stores: bool) -> (Outcome, Option<JoinHandle<()>>) {
        let Self {
            call:
                SearchCall {
                    app,
                    key,
                    search,
                    request_id,
                },
            permit,
        } = self;
        // While this process's clock is wrong nothing is stored.
        let started_at = app.now();
        let outcome = send(&app, &search, &key, &request_id, permit).await;
        let record = || {
            let recorder = &app.custody.as_ref()?.recorder;
            let times = (started_at.ok()?, app.now().ok()?);
            recorder.record(&key, &search, &outcome, WantedBy::Request, times)
        };
        let recorded = stores.then(record).flatten();
        (outcome, recorded)
    }
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
        disposition::of(search, outcome).item,
        ItemDisposition::Done {
            status: SearchStatus::Ok | SearchStatus::Empty,
            ..
        }
    )
}
