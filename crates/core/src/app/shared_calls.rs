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
use super::search_call::{SearchCall, is_complete};
use super::stored_answer;
use crate::contract::scans::MaxAgeSeconds;
use crate::queue::recorded_search::WantedBy;
use crate::search::{CallerKey, Outcome, Search};

/// Identifies equal searches of one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct CallKey([u8; 32]);

impl CallKey {
    /// A digest of key, endpoint and body.
    fn new(key: &CallerKey, search: &Search) -> Self {
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
    /// How old the stored answer was; `None` if it was searched.
    stored_age: Option<Duration>,
    at: Instant,
}

/// `None` while the call is in flight.
type Ending = watch::Receiver<Option<Ended>>;

impl Ended {
    /// How old the answer is now.
    fn age(&self) -> Duration {
        self.stored_age.unwrap_or_default() + self.at.elapsed()
    }

    fn is_within(&self, oldest: MaxAgeSeconds) -> bool {
        self.age().as_secs() <= oldest.get().into()
    }
}

/// An outcome, with the age of its answer if it is not that of this request's own call.
pub type Joined = (Outcome, Option<Duration>);

/// What became of a request for a call.
enum CallEntry {
    Started(Ending),
    /// An equal call is in flight, or its answer is young enough. The request keeps its permit: who
    /// waits counts as a search in flight.
    Joined(Ending, Box<SearchCall>),
}

/// The calls in flight that others may join. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct SharedCalls {
    calls: Arc<Mutex<HashMap<CallKey, Ending>>>,
    tasks: TaskTracker,
}

impl SharedCalls {
    /// The outcome of an equal call in flight, whatever it is, or the complete answer of one that
    /// has just ended and is at most `oldest` old; else, and without `oldest`, the outcome of
    /// `call`. So nobody waits for more than one search.
    ///
    /// # Errors
    /// When the task of the call failed.
    pub async fn join_or_start(
        &self,
        call: SearchCall,
        oldest: Option<MaxAgeSeconds>,
    ) -> Result<Joined, ApiError> {
        let own = match oldest {
            None => self.spawn(call),
            Some(oldest) => match self.join_or_spawn(call, oldest) {
                CallEntry::Started(own) => own,
                CallEntry::Joined(other, call) => {
                    let ended = wait_for(other).await?;
                    // It may have taken a stored answer that is too old here.
                    if ended.stored_age.is_none() || ended.is_within(oldest) {
                        return Ok((Outcome::clone(&ended.outcome), Some(ended.age())));
                    }
                    self.spawn(*call)
                }
            },
        };
        let ended = wait_for(own).await?;
        let age = ended.stored_age.map(|_| ended.age());
        Ok((Outcome::clone(&ended.outcome), age))
    }

    fn join_or_spawn(&self, call: SearchCall, oldest: MaxAgeSeconds) -> CallEntry {
        let key = CallKey::new(&call.key, &call.search);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match calls.entry(key) {
            Entry::Vacant(free) => {
                let (sender, own) = watch::channel(None);
                free.insert(own.clone());
                // A runtime that shuts down drops a task where it is spawned, which takes it off the
                // list.
                drop(calls);
                let listed = Unlist(self.clone(), key);
                self.spawn_with(sender, call, Some(oldest), Some(listed));
                CallEntry::Started(own)
            }
            Entry::Occupied(other) => {
                let is_too_old = |ended: &Ended| !ended.is_within(oldest);
                if other.get().borrow().as_ref().is_some_and(is_too_old) {
                    return CallEntry::Started(self.spawn(call));
                }
                CallEntry::Joined(other.get().clone(), Box::new(call))
            }
        }
    }

    /// Starts a task for a call that nobody joins.
    fn spawn(&self, call: SearchCall) -> Ending {
        let (sender, ending) = watch::channel(None);
        self.spawn_with(sender, call, None, None);
        ending
    }

    /// Starts a task for the call. With `oldest` it looks once more for a stored answer: that of an
    /// equal search may have been stored and taken off the list since this one looked. It stays on
    /// the list until its answer is stored, so that others find it either there or here.
    fn spawn_with(
        &self,
        sender: watch::Sender<Option<Ended>>,
        call: SearchCall,
        oldest: Option<MaxAgeSeconds>,
        listed: Option<Unlist>,
    ) {
        let search = Arc::clone(&call.search);
        self.tasks.spawn(async move {
            // Where the look-up fails it takes none.
            let stored = match oldest {
                Some(oldest) => stored_answer::find(&call.app, &call.key, &search, oldest).await,
                None => Ok(None),
            };
            let (outcome, stored_age, recorded) = match stored {
                Ok(Some(stored)) => (stored.outcome, Some(stored.age.unsigned_abs()), None),
                Ok(None) | Err(_) => {
                    let (outcome, recorded) = call.send(Some(WantedBy::Request)).await;
                    (outcome, None, recorded)
                }
            };
            // Who comes later searches again: only a complete answer is given to them.
            let listed = listed.filter(|_| is_complete(&search, &outcome));
            sender.send_replace(Some(Ended {
                outcome: Arc::new(outcome),
                stored_age,
                at: Instant::now(),
            }));
            if let Some(recorded) = recorded {
                drop(recorded.await);
            }
            drop(listed);
        });
    }

    /// Waits until all calls have ended. None may start any more.
    pub async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Takes the call off the list when it is dropped, also if its task fails.
#[derive(Debug)]
struct Unlist(SharedCalls, CallKey);

impl Drop for Unlist {
    fn drop(&mut self) {
        let mut calls = self.0.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.remove(&self.1);
    }
}

/// What a call came to.
///
/// # Errors
/// When its task failed.
async fn wait_for(mut call: Ending) -> Result<Ended, ApiError> {
    let ended = call.wait_for(Option::is_some).await;
    let ended = ended.ok().and_then(|ended| ended.clone());
    ended.ok_or_else(|| ApiError::internal("the task of a search failed"))
}
