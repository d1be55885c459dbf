//! Whether a marketplace has accepted a caller's key: the rule **not accepted yet** (docs/decisions/0029).
//!
//! Anybody can make up a key. So until a marketplace has accepted the key once, its caller has one scan, of which only the first item is
//! stored and asked, and nothing else: no monitor, no webhook, no bounds of a lane. Acceptance stands on the tenant's row, is never taken
//! back, and does not depend on what retention deletes. Here: the rule and its bounds, pure. Not here: the rows (`store::acceptance`), the
//! rest of a scan's items (`scans::expand`).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The most callers that are not accepted yet, all together.
pub const MOST_CALLERS: i64 = 1_000;
/// The most of them that order for the first time within one minute.
pub const NEW_CALLERS_A_MINUTE: i64 = 100;
/// The most scans that one of them keeps: those whose searches all failed for another reason than the key.
pub const MOST_SCANS: i64 = 10;
/// The most bytes of an order of one of them, as JSON.
pub const LARGEST_ORDER_BYTES: usize = 32 << 10;
/// How long after its order a scan stands in the way of the next one; and how long after an order or a refusal what is left is kept.
pub const RECENT: SignedDuration = SignedDuration::from_hours(24);

/// When it is worth asking again after a bound over all callers was met.
const CROWDED_WAIT: Duration = Duration::from_secs(60);
/// When it is worth asking again while a scan runs.
const LIVE_WAIT: Duration = Duration::from_secs(60);

/// What a caller can do to be accepted; the end of each refusal.
const HOW: &str = "call GET /v1/verify, which has the marketplace accept the key at once, or wait for the first answer of a scan";

/// Whether an answer with this status shows that the marketplace knows the key: it checks the key before anything else. A server error
/// may come from in front of that check.
#[must_use]
pub const fn shows_acceptance(http_status: u16) -> bool {
    matches!(http_status, 200..=299 | 400 | 404 | 422 | 429)
}

/// Whether an answer with this status refuses the key.
#[must_use]
pub const fn shows_refusal(http_status: u16) -> bool {
    matches!(http_status, 401 | 403)
}

/// Why a caller that is not accepted yet may not order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepted {
    /// This is not for callers that are not accepted yet.
    #[error(
        "the marketplace has not accepted this key yet, and until then its caller has one scan and nothing else: {HOW}"
    )]
    Required,
    /// The order is too large to be kept until then.
    #[error(
        "the marketplace has not accepted this key yet, and until then an order has at most {LARGEST_ORDER_BYTES} bytes of JSON; this one has {0}: {HOW}"
    )]
    TooLarge(usize),
    /// The marketplace has refused the key.
    #[error(
        "the marketplace refused this key ({reason}): order with another key, or resume the scan once the key is good"
    )]
    Refused {
        /// The lane's word.
        reason: String,
    },
    /// There is a scan already, or there are too many such callers.
    #[error("{message}")]
    Later {
        /// Which bound was met.
        message: String,
        /// When it is worth another try.
        wait: Duration,
    },
}

/// What decides over an order of a caller that is not accepted yet.
#[derive(Debug, Clone, Default)]
pub struct Probation {
    /// Other such callers in all.
    pub others: i64,
    /// Those of them that came within the last minute.
    pub new_others: i64,
    /// This caller's scans, in whatever state.
    pub scans: i64,
    /// It has a scan that has not ended.
    pub is_live: bool,
    /// Its newest scan ended by itself: its searches were answered, though not with an acceptance.
    pub ended_by_itself: bool,
    /// When it ordered last.
    pub ordered_at: Option<Timestamp>,
    /// Why the lane of the order is stopped, where the key is the reason.
    pub refusal: Option<String>,
}

impl Probation {
    /// Whether the caller may order a scan of so many bytes now.
    ///
    /// # Errors
    /// [`NotAccepted`] says why not.
    pub fn check(&self, order_bytes: usize, now: Timestamp) -> Result<(), NotAccepted> {
        if let Some(reason) = &self.refusal {
            return Err(NotAccepted::Refused {
                reason: reason.clone(),
            });
        }
        let since = self
            .ordered_at
            .map(|at| now.duration_since(at))
            .filter(|since| *since < RECENT);
        if self.is_live {
            return Err(later(
                format!(
                    "one scan at a time until the marketplace has accepted this key once: {HOW}"
                ),
                LIVE_WAIT,
            ));
        }
        if let Some(since) = since.filter(|_| !self.ended_by_itself) {
            let wait = RECENT
                .checked_sub(since)
                .and_then(|wait| Duration::try_from(wait).ok())
                .unwrap_or(LIVE_WAIT);
            return Err(later(
                format!(
                    "one scan in 24 hours until the marketplace has accepted this key once: {HOW}"
                ),
                wait,
            ));
        }
        if self.scans >= MOST_SCANS {
            let message = format!(
                "at most {MOST_SCANS} scans until the marketplace has accepted this key once: {HOW}"
            );
            return Err(later(message, LIVE_WAIT));
        }
        let is_new = self.ordered_at.is_none();
        if is_new && (self.others >= MOST_CALLERS || self.new_others >= NEW_CALLERS_A_MINUTE) {
            let message = format!(
                "too many callers whose key the marketplace has not accepted yet; try again, or {HOW}"
            );
            return Err(later(message, CROWDED_WAIT));
        }
        if order_bytes > LARGEST_ORDER_BYTES {
            return Err(NotAccepted::TooLarge(order_bytes));
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
    fn what_a_caller_that_is_not_accepted_yet_may_order() {
        let first = Probation::default();
        assert_eq!(first.check(100, now()), Ok(()));
        assert_eq!(
            first.check(LARGEST_ORDER_BYTES + 1, now()),
            Err(NotAccepted::TooLarge(LARGEST_ORDER_BYTES + 1))
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
                    scans: MOST_SCANS,
                    ..ordered(1)
                },
                60,
            ),
            (
                Probation {
                    others: MOST_CALLERS,
                    ..first.clone()
                },
                60,
            ),
            (
                Probation {
                    new_others: NEW_CALLERS_A_MINUTE,
                    ..first.clone()
                },
                60,
            ),
        ] {
            let refused = probation.check(100, now());
            let Err(NotAccepted::Later { wait: told, .. }) = &refused else {
                panic!("{probation:?}: {refused:?}")
            };
            assert_eq!(told.as_secs(), wait, "{refused:?}");
        }
        for fine in [
            ordered(24),
            Probation {
                ended_by_itself: true,
                ..ordered(1)
            },
            Probation {
                others: MOST_CALLERS,
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
            "the refusal is told before anything else"
        );
    }

    #[test]
    fn a_server_error_says_nothing_of_the_key() {
        let accepts: Vec<_> = (100..600)
            .filter(|status| shows_acceptance(*status))
            .filter(|status| *status >= 300)
            .collect();
        assert_eq!(accepts, [400, 404, 422, 429]);
        assert!((100..600).all(|status| !(shows_acceptance(status) && shows_refusal(status))));
    }
}
