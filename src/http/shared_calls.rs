//! Equal searches of one caller that are in flight in this process: one of them is sent, the others
//! take its answer (gateway.md, rule 56).
//!
//! The call is a task of its own, so that it ends although its client has gone: it is paid for, and
//! others may wait for it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::error::ApiError;
use super::search_call::{AdmittedCall, SearchCall, is_complete};
use crate::contract::scans::MaxAgeSeconds;
use crate::search::{CallerKey, Outcome, Search};

/// Identifies equal searches of one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CallKey([u8; 32]);

impl CallKey {
    /// A digest of key, endpoint and body: fields in another order make another search.
    pub(super) fn new(key: &CallerKey, search: &Search) -> Self {
        let mut digest = Sha256::new();
        for part in [key.expose(), search.endpoint().as_str()] {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        let body = serde_json::Value::Object(search.body().clone());
        digest.update(body.to_string());
        Self(digest.finalize().into())
    }
}

/// What a call came to, or the stored answer that it took instead.
#[derive(Debug, Clone)]
struct Ended {
    outcome: Arc<Outcome>,
    /// How old the answer was at the end; `None` if it was searched.
    age: Option<Duration>,
    at: Instant,
}

/// `None` while the call is in flight.
type Ending = Option<Ended>;

impl Ended {
    /// How old the answer is now.
    fn age(&self) -> Duration {
        self.age.unwrap_or_default() + self.at.elapsed()
    }
}

/// An outcome, of this request's own call or of an earlier one.
pub(super) enum Joined {
    Own(Outcome),
    /// With the age of its answer.
    Other(Outcome, Duration),
}

/// The calls in flight that others may join. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedCalls {
    calls: Arc<Mutex<HashMap<CallKey, watch::Receiver<Ending>>>>,
    tasks: TaskTracker,
}

impl SharedCalls {
    /// The complete answer of an equal call in flight, or of one that has just ended, if it is at
    /// most `oldest` old; else the outcome of `call`. If the other call does not complete, this one
    /// is sent, and joins no other: so nobody waits for more than two.
    ///
    /// # Errors
    /// When the call is not admitted, or its task failed.
    pub(super) async fn join_or_start(
        &self,
        key: CallKey,
        call: SearchCall,
        oldest: MaxAgeSeconds,
    ) -> Result<Joined, ApiError> {
        let may_take = |ended: &Ended| {
            ended.age().as_secs() <= oldest.get().into()
                && is_complete(call.search(), &ended.outcome)
        };
        let mut may_join = true;
        loop {
            // Admitted first: there is no waiting between the look and the start.
            let admitted = call.clone().admit().await?;
            let (is_own, ending) = self.join_or_spawn(key, admitted, may_join, oldest);
            match wait_for(ending).await {
                Some(ended) if is_own && ended.age.is_none() => {
                    return Ok(Joined::Own(Outcome::clone(&ended.outcome)));
                }
                Some(ended) if may_take(&ended) => {
                    return Ok(Joined::Other(Outcome::clone(&ended.outcome), ended.age()));
                }
                None if is_own => return Err(ApiError::internal("the task of a search failed")),
                _ => may_join = false,
            }
        }
    }

    /// The call in flight that this one may join, else this one, which is started; and whether it
    /// is this one. Others may join it until its answer is stored: then they find it there.
    fn join_or_spawn(
        &self,
        key: CallKey,
        call: AdmittedCall,
        may_join: bool,
        oldest: MaxAgeSeconds,
    ) -> (bool, watch::Receiver<Ending>) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, receiver) = watch::channel(None);
        let listed = match calls.entry(key) {
            Entry::Occupied(other) if may_join => return (false, other.get().clone()),
            // Another one is listed; nobody joins this one.
            Entry::Occupied(_) => None,
            Entry::Vacant(free) => {
                free.insert(receiver.clone());
                Some(Unlist(self.clone(), key))
            }
        };
        drop(calls);
        self.tasks.spawn(async move {
            // An equal search may have been stored and taken off the list since this one was looked
            // for.
            let stored = if may_join {
                call.find_stored(oldest).await
            } else {
                None
            };
            let (outcome, age, recorded) = match stored {
                Some(stored) => (stored.outcome, Some(stored.age.unsigned_abs()), None),
                None => {
                    let (outcome, recorded) = call.run(true).await;
                    (outcome, None, recorded)
                }
            };
            sender.send_replace(Some(Ended {
                outcome: Arc::new(outcome),
                age,
                at: Instant::now(),
            }));
            if let Some(recorded) = recorded {
                drop(recorded.await);
            }
            drop(listed);
        });
        (true, receiver)
    }

    /// Waits until all calls have ended. None may start any more.
    pub(super) async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Takes the call off the list when it is dropped, also if its task fails.
struct Unlist(SharedCalls, CallKey);

impl Drop for Unlist {
    fn drop(&mut self) {
        let mut calls = self.0.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.remove(&self.1);
    }
}

/// What a call came to; `None` if its task failed.
async fn wait_for(mut call: watch::Receiver<Ending>) -> Ending {
    call.wait_for(Option::is_some).await.ok()?.clone()
}
