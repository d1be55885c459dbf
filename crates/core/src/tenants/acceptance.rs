//! Limits for a caller whose key no marketplace has accepted yet (security.md, rule 15;
//! docs/decisions/0029).
//!
//! Anybody can invent a key. So until a marketplace has accepted the key once, its caller has one
//! scan, of which only the first item is stored and searched, and nothing else: no monitor, no
//! webhook, no bounds of a lane. Acceptance is stored on the tenant's row, is never revoked, and
//! does not depend on what retention deletes. This module is pure: `store::acceptance` has the
//! rows, `scans::after_acceptance` stores the rest of the items.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Callers that are not accepted yet, in total.
pub const MAX_UNACCEPTED_CALLERS: i64 = 1_000;
/// Those of them that submit for the first time within one minute.
pub const MAX_NEW_CALLERS_PER_MINUTE: i64 = 100;
/// Scans of one such caller. It gets more than one if all searches failed for another reason than
/// the key.
pub const MAX_SCANS_BEFORE_ACCEPTANCE: i64 = 10;
/// Bytes of a submitted request of such a caller, as JSON.
pub const MAX_REQUEST_BYTES: usize = 32 << 10;
/// How long after a submission no second scan is accepted; and how long after the last submission
/// or refusal the caller's rows are kept.
pub const UNACCEPTED_RETENTION: SignedDuration = SignedDuration::from_hours(24);

/// `Retry-After` when a bound over all callers is reached.
const CROWDED_WAIT: Duration = Duration::from_secs(60);
/// `Retry-After` while a scan runs.
const LIVE_SCAN_WAIT: Duration = Duration::from_secs(60);

/// How a caller gets accepted; the end of each message.
const HOW_TO_BE_ACCEPTED: &str = "call GET /v1/verify, which has the marketplace accept the key at once, or wait for the first answer of a scan";

/// Whether an answer with this status proves that the marketplace accepts the key, which it checks
/// before anything else. A server error may arise before that check.
pub const fn means_accepted(http_status: u16) -> bool {
    matches!(http_status, 200..=299 | 400 | 404 | 422 | 429)
}

/// Whether an answer with this status means that the marketplace refuses the key.
pub const fn means_refused(http_status: u16) -> bool {
    matches!(http_status, 401 | 403)
}

/// Why a caller that is not accepted yet is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepted {
    /// The request needs an accepted key.
    #[error(
        "the marketplace has not accepted this key yet; until then its caller may have one scan and nothing else: {HOW_TO_BE_ACCEPTED}"
    )]
    Required,
    /// The request is too large to be stored before acceptance.
    #[error(
        "the marketplace has not accepted this key yet; until then a request may have at most {MAX_REQUEST_BYTES} bytes of JSON, found {0}: {HOW_TO_BE_ACCEPTED}"
    )]
    TooLarge(usize),
    /// The marketplace has refused the key.
    #[error(
        "the marketplace refused this key ({reason}): use another key, or resume the scan once the key is valid"
    )]
    Refused {
        /// The lane's `pause_reason`.
        reason: String,
    },
    /// The caller has a scan already, or there are too many such callers.
    #[error("{message}")]
    Later {
        /// Which bound was reached.
        message: String,
        /// When to try again.
        wait: Duration,
    },
}

/// The facts that decide whether a caller that is not accepted yet may submit a scan.
#[derive(Debug, Clone, Default)]
pub struct Probation {
    /// Other such callers.
    pub others: i64,
    /// Those of them that were created within the last minute.
    pub new_others: i64,
    /// This caller's scans in any state.
    pub scans: i64,
    /// It has a scan that has not ended.
    pub is_live: bool,
    /// Its newest scan was not cancelled: all searches were answered, none accepted the key.
    pub ended_by_itself: bool,
    /// Its last submission.
    pub ordered_at: Option<Timestamp>,
    /// Why the scan's lane is paused, if the key is the reason.
    pub refusal: Option<String>,
}

impl Probation {
    /// Whether the caller may submit a scan of this size now.
    ///
    /// # Errors
    /// [`NotAccepted`] says why not.
    pub fn check(&self, request_bytes: usize, now: Timestamp) -> Result<(), NotAccepted> {
        if let Some(reason) = &self.refusal {
            return Err(NotAccepted::Refused {
                reason: reason.clone(),
            });
        }
        let since = self
            .ordered_at
            .map(|at| now.duration_since(at))
            .filter(|since| *since < UNACCEPTED_RETENTION);
        if self.is_live {
            return Err(later(
                format!(
                    "one scan at a time until the marketplace has accepted this key: {HOW_TO_BE_ACCEPTED}"
                ),
                LIVE_SCAN_WAIT,
            ));
        }
        if let Some(since) = since.filter(|_| !self.ended_by_itself) {
            let wait = UNACCEPTED_RETENTION
                .checked_sub(since)
                .and_then(|wait| Duration::try_from(wait).ok())
                .unwrap_or(LIVE_SCAN_WAIT);
            return Err(later(
                format!(
                    "one scan in 24 hours until the marketplace has accepted this key: {HOW_TO_BE_ACCEPTED}"
                ),
                wait,
            ));
        }
        if self.scans >= MAX_SCANS_BEFORE_ACCEPTANCE {
            let message = format!(
                "at most {MAX_SCANS_BEFORE_ACCEPTANCE} scans until the marketplace has accepted this key: {HOW_TO_BE_ACCEPTED}"
            );
            return Err(later(message, LIVE_SCAN_WAIT));
        }
        let is_new = self.ordered_at.is_none();
        if is_new
            && (self.others >= MAX_UNACCEPTED_CALLERS
                || self.new_others >= MAX_NEW_CALLERS_PER_MINUTE)
        {
            let message = format!(
                "too many callers whose key the marketplace has not accepted yet; try again later, or {HOW_TO_BE_ACCEPTED}"
            );
            return Err(later(message, CROWDED_WAIT));
        }
        if request_bytes > MAX_REQUEST_BYTES {
            return Err(NotAccepted::TooLarge(request_bytes));
        }
        Ok(())
    }
}

fn later(message: String, wait: Duration) -> NotAccepted {
    NotAccepted::Later { message, wait }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2030-01-02T12:00:00Z".parse().unwrap()
    }

    fn hours_ago(hours: i64) -> Timestamp {
        now() - SignedDuration::from_hours(hours)
    }

    #[test]
    fn an_unaccepted_caller_has_one_small_scan_at_a_time() {
        let first = Probation::default();
        assert_eq!(first.check(100, now()), Ok(()));
        assert_eq!(
            first.check(MAX_REQUEST_BYTES + 1, now()),
            Err(NotAccepted::TooLarge(MAX_REQUEST_BYTES + 1))
        );
        let ordered = |hours| Probation {
            ordered_at: Some(hours_ago(hours)),
            scans: 1,
            ..first.clone()
        };
        for (probation, wait) in [
            (
                Probation {
                    is_live: true,
                    ..ordered(30)
                },
                60,
            ),
            (ordered(1), 23 * 3600),
            (
                Probation {
                    ended_by_itself: true,
                    scans: MAX_SCANS_BEFORE_ACCEPTANCE,
                    ..ordered(1)
                },
                60,
            ),
            (
                Probation {
                    others: MAX_UNACCEPTED_CALLERS,
                    ..first.clone()
                },
                60,
            ),
            (
                Probation {
                    new_others: MAX_NEW_CALLERS_PER_MINUTE,
                    ..first.clone()
                },
                60,
            ),
        ] {
            let refused = probation.check(100, now());
            let Err(NotAccepted::Later { wait: found, .. }) = &refused else {
                panic!("{probation:?}: {refused:?}")
            };
            assert_eq!(found.as_secs(), wait, "{refused:?}");
        }
        for fine in [
            ordered(24),
            Probation {
                ended_by_itself: true,
                ..ordered(1)
            },
            Probation {
                others: MAX_UNACCEPTED_CALLERS,
                ended_by_itself: true,
                ..ordered(1)
            },
        ] {
            assert_eq!(fine.check(100, now()), Ok(()), "{fine:?}");
        }
        let refused = Probation {
            refusal: Some("key_rejected".to_owned()),
            is_live: true,
            ..ordered(1)
        };
        assert!(
            matches!(refused.check(100, now()), Err(NotAccepted::Refused { .. })),
            "the refused key is reported before anything else"
        );
    }

    #[test]
    fn a_server_error_proves_nothing_about_the_key() {
        let accepts: Vec<_> = (100..600)
            .filter(|status| means_accepted(*status))
            .filter(|status| *status >= 300)
            .collect();
        assert_eq!(accepts, [400, 404, 422, 429]);
        assert!((100..600).all(|status| !(means_accepted(status) && means_refused(status))));
    }
}
