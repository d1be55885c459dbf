//! How many items are claimed ahead of the call permits that they need.
//!
//! A claim takes some milliseconds until its call can begin. So the claimer also claims for the
//! calls that end meanwhile: as many as lately ended in that time. With slow searches that is
//! none, so that no process keeps items that another could call at once.

use std::time::Duration;

use tokio::time::Instant;

/// About the time from the request of a claim until its call can begin.
const LEAD_TIME: Duration = Duration::from_millis(25);
/// The time over which the rate of ended calls is averaged.
const AVERAGED_OVER: Duration = Duration::from_millis(200);

/// The rate at which calls end.
#[derive(Debug)]
pub(super) struct ClaimsAhead {
    /// Calls in a second.
    rate: f64,
    ended: u64,
    at: Instant,
}

impl ClaimsAhead {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            rate: 0.0,
            ended: 0,
            at: now,
        }
    }

    /// How many calls will probably end within the lead time. `ended`: how many have, since the
    /// start.
    pub(super) fn expect(&mut self, ended: u64, now: Instant) -> u32 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        if passed > 0.0 {
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            let lately = ended.saturating_sub(self.ended) as f64 / passed;
            let kept = (-passed / AVERAGED_OVER.as_secs_f64()).exp();
            self.rate = self.rate * kept + lately * (1.0 - kept);
            (self.ended, self.at) = (ended, now);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the rate is not negative, and a cast saturates"
        )]
        let expected = (self.rate * LEAD_TIME.as_secs_f64()) as u32;
        expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is expected after `seconds` in which `rate` calls a second ended.
    fn expected(ahead: &mut ClaimsAhead, rate: u64, seconds: u64) -> u32 {
        let mut last = 0;
        for _ in 0..seconds * 100 {
            let (ended, at) = (
                ahead.ended + rate / 100,
                ahead.at + Duration::from_millis(10),
            );
            last = ahead.expect(ended, at);
        }
        last
    }

    #[test]
    fn as_many_are_claimed_ahead_as_end_meanwhile() {
        let mut ahead = ClaimsAhead::new(Instant::now());
        assert_eq!(expected(&mut ahead, 4_000, 2), 99);
        assert_eq!(expected(&mut ahead, 400, 2), 10);
    }

    #[test]
    fn slow_calls_have_none_ahead() {
        let mut ahead = ClaimsAhead::new(Instant::now());
        assert_eq!(expected(&mut ahead, 4_000, 1), 99);
        assert_eq!(expected(&mut ahead, 0, 2), 0);
        let (ended, at) = (ahead.ended + 3, ahead.at + Duration::from_secs(1));
        assert_eq!(ahead.expect(ended, at), 0, "three a second");
    }
}
