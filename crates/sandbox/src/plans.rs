//! Keys, plans and usage counters (gateway.md, rule 42).
//!
//! Time is an argument ([`RequestTime`]); nothing here reads a clock. Counters are in memory.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::civil::DateTime;
use tokio::time::{Duration, Instant};

/// The rate window of the plans that have one.
const WINDOW: Duration = Duration::from_mins(1);
/// Keys with counters. Each suffix makes a new key, so this bounds memory; beyond it all counters
/// are reset.
const MAX_COUNTED_KEYS: usize = 20_000;
/// Longest suffix after the `.` of a key.
const MAX_SUFFIX_BYTES: usize = 64;

/// The two engines, each a subscription of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Engine {
    Flights,
    Hotels,
}

/// A plan of gateway.md, rule 42, or one of the sandbox's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SandboxPlan {
    Basic,
    Pro,
    Ultra,
    Mega,
    /// The requests of Mega, without its rate window: a demo takes seconds.
    Demo,
    Unlimited,
}

/// What a plan allows for one API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    pub(super) per_month: u64,
    pub(super) per_minute: Option<u64>,
    /// True: requests beyond the monthly quota are refused. False: they are charged as overage.
    pub(super) hard_stop: bool,
}

impl SandboxPlan {
    pub(super) fn allowance(self, engine: Engine) -> Allowance {
        let (per_month, per_minute) = match (self, engine) {
            (Self::Basic, _) => (10, None),
            (Self::Pro, Engine::Flights) => (2_500, Some(150)),
            (Self::Ultra, Engine::Flights) => (10_000, Some(250)),
            (Self::Mega, Engine::Flights) => (50_000, Some(500)),
            (Self::Pro, Engine::Hotels) => (2_000, Some(25)),
            (Self::Ultra, Engine::Hotels) => (6_500, Some(25)),
            (Self::Mega, Engine::Hotels) => (25_000, Some(50)),
            (Self::Demo, Engine::Flights) => (50_000, None),
            (Self::Demo, Engine::Hotels) => (25_000, None),
            (Self::Unlimited, _) => (1_000_000_000, None),
        };
        Allowance {
            per_month,
            per_minute,
            hard_stop: self == Self::Basic,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Basic => "BASIC",
            Self::Pro => "PRO",
            Self::Ultra => "ULTRA",
            Self::Mega => "MEGA",
            Self::Demo => "DEMO",
            Self::Unlimited => "UNLIMITED",
        }
    }
}

/// A key's plans for flights and for hotels.
type KeyPlans = (Option<SandboxPlan>, Option<SandboxPlan>);

const fn both(plan: SandboxPlan) -> KeyPlans {
    (Some(plan), Some(plan))
}

/// Every key of the sandbox; the front page describes them.
pub(super) const KEYS: [(&str, KeyPlans); 8] = [
    ("sandbox-basic", both(SandboxPlan::Basic)),
    ("sandbox-pro", both(SandboxPlan::Pro)),
    ("sandbox-ultra", both(SandboxPlan::Ultra)),
    ("sandbox-mega", both(SandboxPlan::Mega)),
    ("sandbox-flights-only", (Some(SandboxPlan::Pro), None)),
    ("sandbox-hotels-only", (None, Some(SandboxPlan::Pro))),
    ("sandbox-unlimited", both(SandboxPlan::Unlimited)),
    (super::DEMO_KEY, both(SandboxPlan::Demo)),
];

/// The plans of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subscriptions {
    plans: KeyPlans,
    /// The demo key: searches on a 13th are degraded on the first call.
    pub(super) degrades_13ths: bool,
}

impl Subscriptions {
    /// The plans of `key`; `None` for an unknown key. A key with a suffix after the first `.`
    /// (letters, digits, `-`, `_`) has the same plans and its own counters.
    pub(super) fn of_key(key: &str) -> Option<Self> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let (name, well_formed) = key.split_once('.').map_or((key, true), |(name, suffix)| {
            let fits = (1..=MAX_SUFFIX_BYTES).contains(&suffix.len());
            (name, fits && suffix.bytes().all(is_allowed))
        });
        let (known, plans) = KEYS.into_iter().find(|(known, _)| *known == name)?;
        well_formed.then_some(Self {
            plans,
            degrades_13ths: known == super::DEMO_KEY,
        })
    }

    pub(super) fn plan(self, engine: Engine) -> Option<SandboxPlan> {
        match engine {
            Engine::Flights => self.plans.0,
            Engine::Hotels => self.plans.1,
        }
    }
}

/// A key at one engine, which has its own counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct SandboxAccount<'a> {
    pub(super) key: &'a str,
    pub(super) engine: Engine,
    pub(super) plan: SandboxPlan,
}

/// When a request arrives, in the month (UTC) and on the monotonic clock of the rate windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestTime {
    month: (i16, i8),
    month_ends_in_seconds: u64,
    instant: Instant,
}

impl RequestTime {
    pub(super) fn new(now: DateTime, instant: Instant) -> Self {
        let next = now
            .date()
            .last_of_month()
            .saturating_add(jiff::Span::new().days(1));
        let left = next.at(0, 0, 0, 0).duration_since(now).as_secs();
        Self {
            month: (now.year(), now.month()),
            month_ends_in_seconds: u64::try_from(left).unwrap_or(0),
            instant,
        }
    }
}

/// What is left of a plan, for the quota headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RemainingQuota {
    pub(super) month: SandboxQuota,
    /// The rate window of the plans that have one.
    pub(super) window: Option<SandboxQuota>,
}

/// Requests of a month or a rate window, with the seconds until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SandboxQuota {
    pub(super) limit: u64,
    pub(super) remaining: u64,
    pub(super) reset_seconds: u64,
}

/// Why the marketplace refused a request, which is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    QuotaUsedUp,
    TooFast { retry_after_seconds: u64 },
}

/// The counters of all keys.
#[derive(Debug, Default)]
pub(super) struct UsageMeter {
    usages: Mutex<HashMap<(String, Engine), KeyUsage>>,
}

#[derive(Debug)]
struct KeyUsage {
    month: (i16, i8),
    spent: u64,
    window_began: Instant,
    in_window: u64,
}

impl UsageMeter {
    /// Counts one request or refuses it; returns what is left afterwards.
    pub(super) fn charge(
        &self,
        account: SandboxAccount,
        at: RequestTime,
    ) -> (RemainingQuota, Result<(), Refusal>) {
        self.with_usage(account, at, |usage, allowance| {
            let outcome = usage.charge(allowance, at);
            (usage.quota(allowance, at), outcome)
        })
    }

    /// What is left, without counting a request.
    pub(super) fn remaining_quota(
        &self,
        account: SandboxAccount,
        at: RequestTime,
    ) -> RemainingQuota {
        self.with_usage(account, at, |usage, allowance| usage.quota(allowance, at))
    }

    fn with_usage<T>(
        &self,
        account: SandboxAccount,
        at: RequestTime,
        read: impl FnOnce(&mut KeyUsage, Allowance) -> T,
    ) -> T {
        let mut usages = self.usages.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (account.key.to_owned(), account.engine);
        if usages.len() >= MAX_COUNTED_KEYS && !usages.contains_key(&name) {
            usages.clear();
        }
        let usage = usages.entry(name).or_insert(KeyUsage {
            month: at.month,
            spent: 0,
            window_began: at.instant,
            in_window: 0,
        });
        usage.reset_if_over(at);
        read(usage, account.plan.allowance(account.engine))
    }
}

impl KeyUsage {
    /// Resets the counters of a month or window that is over.
    fn reset_if_over(&mut self, at: RequestTime) {
        if self.month != at.month {
            self.month = at.month;
            self.spent = 0;
        }
        if at.instant.saturating_duration_since(self.window_began) >= WINDOW {
            self.window_began = at.instant;
            self.in_window = 0;
        }
    }

    fn charge(&mut self, allowance: Allowance, at: RequestTime) -> Result<(), Refusal> {
        if allowance.hard_stop && self.spent >= allowance.per_month {
            return Err(Refusal::QuotaUsedUp);
        }
        if allowance
            .per_minute
            .is_some_and(|limit| self.in_window >= limit)
        {
            return Err(Refusal::TooFast {
                retry_after_seconds: self.window_ends_in_seconds(at),
            });
        }
        if self.in_window == 0 {
            // A window opens with its first request.
            self.window_began = at.instant;
        }
        self.spent += 1;
        self.in_window += 1;
        Ok(())
    }

    fn quota(&self, allowance: Allowance, at: RequestTime) -> RemainingQuota {
        let quota = |limit: u64, used: u64, reset_seconds: u64| SandboxQuota {
            limit,
            remaining: limit.saturating_sub(used),
            reset_seconds,
        };
        RemainingQuota {
            month: quota(allowance.per_month, self.spent, at.month_ends_in_seconds),
            window: allowance
                .per_minute
                .map(|limit| quota(limit, self.in_window, self.window_ends_in_seconds(at))),
        }
    }

    /// Rounded up, so that a request after this time is accepted.
    fn window_ends_in_seconds(&self, at: RequestTime) -> u64 {
        let left = WINDOW.saturating_sub(at.instant.saturating_duration_since(self.window_began));
        left.as_secs() + u64::from(left.subsec_nanos() > 0)
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::{Date, date};

    use super::*;

    fn account(key: &str, engine: Engine, plan: SandboxPlan) -> SandboxAccount<'_> {
        SandboxAccount { key, engine, plan }
    }

    fn start_of(day: Date, instant: Instant) -> RequestTime {
        RequestTime::new(day.at(0, 0, 0, 0), instant)
    }

    #[test]
    fn every_sandbox_plan_has_its_documented_allowance() {
        for (plan, engine, per_month, per_minute, hard_stop) in [
            (SandboxPlan::Basic, Engine::Flights, 10, None, true),
            (SandboxPlan::Pro, Engine::Flights, 2_500, Some(150), false),
            (
                SandboxPlan::Ultra,
                Engine::Flights,
                10_000,
                Some(250),
                false,
            ),
            (SandboxPlan::Mega, Engine::Flights, 50_000, Some(500), false),
            (SandboxPlan::Basic, Engine::Hotels, 10, None, true),
            (SandboxPlan::Pro, Engine::Hotels, 2_000, Some(25), false),
            (SandboxPlan::Ultra, Engine::Hotels, 6_500, Some(25), false),
            (SandboxPlan::Mega, Engine::Hotels, 25_000, Some(50), false),
        ] {
            assert_eq!(
                plan.allowance(engine),
                Allowance {
                    per_month,
                    per_minute,
                    hard_stop
                },
                "{plan:?} {engine:?}"
            );
        }
    }

    #[test]
    fn keys_have_the_plans_of_their_names() {
        let of = |key| Subscriptions::of_key(key);
        assert_eq!(of("sandbox-pro.alice"), of("sandbox-pro"));
        assert_eq!(
            of("sandbox-flights-only").and_then(|key| key.plan(Engine::Hotels)),
            None
        );
        assert_eq!(
            of("sandbox-hotels-only").and_then(|key| key.plan(Engine::Flights)),
            None
        );
        assert!(of("sandbox-demo").is_some_and(|key| key.degrades_13ths));
        for unknown in [
            "sandbox",
            "sandbox-pro.",
            "sandbox-pro.a b",
            "sandbox-pro.a.b",
            "SANDBOX-PRO",
            "",
        ] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
        assert_eq!(of(&format!("sandbox-pro.{}", "a".repeat(65))), None);
    }

    #[test]
    fn basic_stops_at_its_quota_until_the_next_month() {
        let (meter, instant) = (UsageMeter::default(), Instant::now());
        let november = start_of(date(2026, 11, 20), instant);
        for left in (0..10).rev() {
            let (quota, outcome) =
                meter.charge(account("k", Engine::Flights, SandboxPlan::Basic), november);
            assert_eq!(
                (quota.month.limit, quota.month.remaining, outcome),
                (10, left, Ok(()))
            );
            assert_eq!(quota.window, None);
            assert_eq!(quota.month.reset_seconds, 11 * 86_400);
        }
        let (quota, outcome) =
            meter.charge(account("k", Engine::Flights, SandboxPlan::Basic), november);
        assert_eq!(
            (quota.month.remaining, outcome),
            (0, Err(Refusal::QuotaUsedUp))
        );
        assert_eq!(
            meter
                .charge(account("k", Engine::Hotels, SandboxPlan::Basic), november)
                .1,
            Ok(()),
            "counted for each API"
        );
        assert_eq!(
            meter
                .charge(
                    account("k.b", Engine::Flights, SandboxPlan::Basic),
                    november
                )
                .1,
            Ok(()),
            "counted for each key"
        );
        let december = start_of(date(2026, 12, 1), instant);
        assert_eq!(
            meter
                .charge(account("k", Engine::Flights, SandboxPlan::Basic), december)
                .1,
            Ok(())
        );
    }

    #[test]
    fn paid_plans_go_on_beyond_their_quota() {
        let (meter, instant) = (UsageMeter::default(), Instant::now());
        for minute in 0..100 {
            let at = start_of(date(2026, 11, 20), instant + WINDOW * minute);
            for _ in 0..25 {
                assert_eq!(
                    meter
                        .charge(account("k", Engine::Hotels, SandboxPlan::Pro), at)
                        .1,
                    Ok(())
                );
            }
        }
        let at = start_of(date(2026, 11, 20), instant + WINDOW * 100);
        assert_eq!(
            meter
                .remaining_quota(account("k", Engine::Hotels, SandboxPlan::Pro), at)
                .month
                .remaining,
            0
        );
    }

    #[test]
    fn a_window_opens_with_its_first_counted_request() {
        let (meter, start) = (UsageMeter::default(), Instant::now());
        let after = |ms| start_of(date(2026, 11, 20), start + Duration::from_millis(ms));
        for _ in 0..25 {
            assert_eq!(
                meter
                    .charge(account("k", Engine::Hotels, SandboxPlan::Pro), after(0))
                    .1,
                Ok(())
            );
        }
        for _ in 0..3 {
            let (quota, outcome) = meter.charge(
                account("k", Engine::Hotels, SandboxPlan::Pro),
                after(20_500),
            );
            assert_eq!(
                outcome,
                Err(Refusal::TooFast {
                    retry_after_seconds: 40
                })
            );
            assert_eq!(
                quota.window,
                Some(SandboxQuota {
                    limit: 25,
                    remaining: 0,
                    reset_seconds: 40
                })
            );
            assert_eq!(quota.month.remaining, 1_975);
        }
        assert_eq!(
            meter
                .charge(
                    account("k", Engine::Hotels, SandboxPlan::Pro),
                    after(60_500)
                )
                .1,
            Ok(())
        );
        let window = meter
            .remaining_quota(
                account("k", Engine::Hotels, SandboxPlan::Pro),
                after(70_500),
            )
            .window
            .expect("a window");
        assert_eq!((window.remaining, window.reset_seconds), (24, 50));
        meter.remaining_quota(account("idle", Engine::Hotels, SandboxPlan::Pro), after(0));
        let (quota, _) = meter.charge(
            account("idle", Engine::Hotels, SandboxPlan::Pro),
            after(30_000),
        );
        assert_eq!(
            quota.window.expect("a window").reset_seconds,
            60,
            "an idle key has no window running"
        );
    }

    #[test]
    fn the_number_of_counted_keys_is_bounded() {
        let (meter, at) = (
            UsageMeter::default(),
            start_of(date(2026, 11, 20), Instant::now()),
        );
        for number in 0..=MAX_COUNTED_KEYS {
            let key = format!("k.{number}");
            let _ = meter.charge(account(&key, Engine::Flights, SandboxPlan::Pro), at);
        }
        assert!(meter.usages.lock().expect("no panic").len() <= MAX_COUNTED_KEYS);
    }
}
