//! Keys, plans and counting: who may ask which engine how often (specification 8).
//!
//! Time comes in as an argument ([`Moment`]); nothing here reads a clock. Counters live for the life of one sandbox.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::civil::DateTime;
use tokio::time::{Duration, Instant};

/// The rate window of the plans that have one.
const WINDOW: Duration = Duration::from_mins(1);
/// Keys counted at once; a suffix makes a new key, so this bounds memory. Past it all counters begin anew.
const MAX_ACCOUNTS: usize = 20_000;
/// Longest suffix after the `.` of a key.
const MAX_SUFFIX_BYTES: usize = 64;

/// The two engines, each a subscription of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Api {
    Flights,
    Hotels,
}

/// A plan of specification 8, or one without limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Basic,
    Pro,
    Ultra,
    Mega,
    Unlimited,
}

/// What a plan allows for one API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    pub(super) per_month: u64,
    pub(super) per_minute: Option<u64>,
    /// True: no request beyond the month's quota. False: such requests go through and are charged as overage.
    pub(super) hard_stop: bool,
}

impl Plan {
    pub(super) fn allowance(self, api: Api) -> Allowance {
        let (per_month, per_minute) = match (self, api) {
            (Self::Basic, _) => (10, None),
            (Self::Pro, Api::Flights) => (2_500, Some(150)),
            (Self::Ultra, Api::Flights) => (10_000, Some(250)),
            (Self::Mega, Api::Flights) => (50_000, Some(500)),
            (Self::Pro, Api::Hotels) => (2_000, Some(25)),
            (Self::Ultra, Api::Hotels) => (6_500, Some(25)),
            (Self::Mega, Api::Hotels) => (25_000, Some(50)),
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
            Self::Unlimited => "UNLIMITED",
        }
    }
}

/// What a key opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subscriptions {
    pub(super) flights: Option<Plan>,
    pub(super) hotels: Option<Plan>,
    /// The demonstration key: dates on a 13th are degraded on the first ask.
    pub(super) trips_on_13th: bool,
}

/// Every key that the sandbox knows, with a line for its front page.
pub(super) const KEYS: [(&str, Subscriptions, &str); 8] = [
    (
        "sandbox-basic",
        both(Plan::Basic),
        "both APIs, 10 requests a month, then a hard stop",
    ),
    (
        "sandbox-pro",
        both(Plan::Pro),
        "flights 2,500 a month at 150/min, hotels 2,000 at 25/min",
    ),
    (
        "sandbox-ultra",
        both(Plan::Ultra),
        "flights 10,000 a month at 250/min, hotels 6,500 at 25/min",
    ),
    (
        "sandbox-mega",
        both(Plan::Mega),
        "flights 50,000 a month at 500/min, hotels 25,000 at 50/min",
    ),
    (
        "sandbox-flights-only",
        Subscriptions {
            flights: Some(Plan::Pro),
            hotels: None,
            trips_on_13th: false,
        },
        "plan Pro for flights; hotels answer 403",
    ),
    (
        "sandbox-hotels-only",
        Subscriptions {
            flights: None,
            hotels: Some(Plan::Pro),
            trips_on_13th: false,
        },
        "plan Pro for hotels; flights answer 403",
    ),
    (
        "sandbox-unlimited",
        both(Plan::Unlimited),
        "both APIs, a billion requests a month, no rate window",
    ),
    (
        "sandbox-demo",
        Subscriptions {
            trips_on_13th: true,
            ..both(Plan::Unlimited)
        },
        "unlimited; departures and check-ins on a 13th are degraded on the first ask, fine on the next",
    ),
];

const fn both(plan: Plan) -> Subscriptions {
    Subscriptions {
        flights: Some(plan),
        hotels: Some(plan),
        trips_on_13th: false,
    }
}

impl Subscriptions {
    /// What `key` opens; none for a key that was never given out. A suffix after the first `.` (letters, digits,
    /// `-`, `_`) opens the same and is counted on its own.
    pub(super) fn of_key(key: &str) -> Option<Self> {
        let (name, suffix) = key
            .split_once('.')
            .map_or((key, None), |(name, suffix)| (name, Some(suffix)));
        let well_formed = suffix.is_none_or(|suffix| {
            (1..=MAX_SUFFIX_BYTES).contains(&suffix.len())
                && suffix
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        });
        KEYS.iter()
            .find(|(known, _, _)| *known == name && well_formed)
            .map(|(_, subscriptions, _)| *subscriptions)
    }

    pub(super) fn plan(self, api: Api) -> Option<Plan> {
        match api {
            Api::Flights => self.flights,
            Api::Hotels => self.hotels,
        }
    }
}

/// When a request arrives: its place in the month (UTC) and on the monotonic clock of the rate windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    month: (i16, i8),
    month_ends_in_seconds: u64,
    instant: Instant,
}

impl Moment {
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

/// What is left, for the quota headers. Seconds until each reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quota {
    pub(super) limit: u64,
    pub(super) remaining: u64,
    pub(super) reset_seconds: u64,
    pub(super) window: Option<Window>,
}

/// The rate window, on the plans that have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) limit: u64,
    pub(super) remaining: u64,
    pub(super) reset_seconds: u64,
}

/// Why the marketplace turned a request away. Nothing was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    QuotaUsedUp,
    TooFast { retry_after_seconds: u64 },
}

/// The counters of all keys.
#[derive(Debug, Default)]
pub(super) struct Meter {
    accounts: Mutex<HashMap<(String, Api), Account>>,
}

#[derive(Debug)]
struct Account {
    month: (i16, i8),
    spent: u64,
    window_began: Instant,
    in_window: u64,
}

impl Meter {
    /// Counts one request of `key`, or says why it is refused; either way with what is left afterwards.
    pub(super) fn charge(
        &self,
        key: &str,
        api: Api,
        plan: Plan,
        at: Moment,
    ) -> (Quota, Result<(), Refusal>) {
        self.with(key, api, at, |account| {
            let outcome = account.charge(plan.allowance(api), at);
            (account.quota(plan.allowance(api), at), outcome)
        })
    }

    /// What is left, without counting anything.
    pub(super) fn standing(&self, key: &str, api: Api, plan: Plan, at: Moment) -> Quota {
        self.with(key, api, at, |account| {
            account.quota(plan.allowance(api), at)
        })
    }

    fn with<T>(&self, key: &str, api: Api, at: Moment, read: impl FnOnce(&mut Account) -> T) -> T {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (key.to_owned(), api);
        if accounts.len() >= MAX_ACCOUNTS && !accounts.contains_key(&name) {
            accounts.clear();
        }
        let account = accounts.entry(name).or_insert(Account {
            month: at.month,
            spent: 0,
            window_began: at.instant,
            in_window: 0,
        });
        account.turn_to(at);
        read(account)
    }
}

impl Account {
    /// Begins a new month or window where one is over.
    fn turn_to(&mut self, at: Moment) {
        if self.month != at.month {
            self.month = at.month;
            self.spent = 0;
        }
        if at.instant.saturating_duration_since(self.window_began) >= WINDOW {
            self.window_began = at.instant;
            self.in_window = 0;
        }
    }

    fn charge(&mut self, allowance: Allowance, at: Moment) -> Result<(), Refusal> {
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

    fn quota(&self, allowance: Allowance, at: Moment) -> Quota {
        Quota {
            limit: allowance.per_month,
            remaining: allowance.per_month.saturating_sub(self.spent),
            reset_seconds: at.month_ends_in_seconds,
            window: allowance.per_minute.map(|limit| Window {
                limit,
                remaining: limit.saturating_sub(self.in_window),
                reset_seconds: self.window_ends_in_seconds(at),
            }),
        }
    }

    /// Rounded up, so that who waits this long is let in.
    fn window_ends_in_seconds(&self, at: Moment) -> u64 {
        let left = WINDOW.saturating_sub(at.instant.saturating_duration_since(self.window_began));
        left.as_secs() + u64::from(left.subsec_nanos() > 0)
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::{Date, date};

    use super::*;

    fn start_of(day: Date, instant: Instant) -> Moment {
        Moment::new(day.at(0, 0, 0, 0), instant)
    }

    #[test]
    fn every_allowance_is_that_of_the_specification() {
        for (plan, api, per_month, per_minute, hard_stop) in [
            (Plan::Basic, Api::Flights, 10, None, true),
            (Plan::Pro, Api::Flights, 2_500, Some(150), false),
            (Plan::Ultra, Api::Flights, 10_000, Some(250), false),
            (Plan::Mega, Api::Flights, 50_000, Some(500), false),
            (Plan::Basic, Api::Hotels, 10, None, true),
            (Plan::Pro, Api::Hotels, 2_000, Some(25), false),
            (Plan::Ultra, Api::Hotels, 6_500, Some(25), false),
            (Plan::Mega, Api::Hotels, 25_000, Some(50), false),
        ] {
            assert_eq!(
                plan.allowance(api),
                Allowance {
                    per_month,
                    per_minute,
                    hard_stop
                },
                "{plan:?} {api:?}"
            );
        }
    }

    #[test]
    fn keys_open_what_their_name_says() {
        let of = |key| Subscriptions::of_key(key);
        assert_eq!(of("sandbox-pro.alice"), of("sandbox-pro"));
        assert_eq!(
            of("sandbox-flights-only").and_then(|key| key.plan(Api::Hotels)),
            None
        );
        assert_eq!(
            of("sandbox-hotels-only").and_then(|key| key.plan(Api::Flights)),
            None
        );
        assert!(of("sandbox-demo").is_some_and(|key| key.trips_on_13th));
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
    fn basic_stops_hard_and_a_new_month_lets_it_in_again() {
        let (meter, instant) = (Meter::default(), Instant::now());
        let november = start_of(date(2026, 11, 20), instant);
        for left in (0..10).rev() {
            let (quota, outcome) = meter.charge("k", Api::Flights, Plan::Basic, november);
            assert_eq!((quota.limit, quota.remaining, outcome), (10, left, Ok(())));
            assert_eq!(quota.window, None);
            assert_eq!(quota.reset_seconds, 11 * 86_400);
        }
        let (quota, outcome) = meter.charge("k", Api::Flights, Plan::Basic, november);
        assert_eq!((quota.remaining, outcome), (0, Err(Refusal::QuotaUsedUp)));
        assert_eq!(
            meter.charge("k", Api::Hotels, Plan::Basic, november).1,
            Ok(()),
            "counted for each API"
        );
        assert_eq!(
            meter.charge("k.b", Api::Flights, Plan::Basic, november).1,
            Ok(()),
            "counted for each key"
        );
        let december = start_of(date(2026, 12, 1), instant);
        assert_eq!(
            meter.charge("k", Api::Flights, Plan::Basic, december).1,
            Ok(())
        );
    }

    #[test]
    fn paid_plans_go_on_beyond_their_quota() {
        let (meter, instant) = (Meter::default(), Instant::now());
        for minute in 0..100 {
            let at = start_of(date(2026, 11, 20), instant + WINDOW * minute);
            for _ in 0..25 {
                assert_eq!(meter.charge("k", Api::Hotels, Plan::Pro, at).1, Ok(()));
            }
        }
        let at = start_of(date(2026, 11, 20), instant + WINDOW * 100);
        assert_eq!(meter.standing("k", Api::Hotels, Plan::Pro, at).remaining, 0);
    }

    #[test]
    fn a_window_opens_with_its_first_request_and_refusals_are_not_counted() {
        let (meter, start) = (Meter::default(), Instant::now());
        let after = |ms| start_of(date(2026, 11, 20), start + Duration::from_millis(ms));
        for _ in 0..25 {
            assert_eq!(
                meter.charge("k", Api::Hotels, Plan::Pro, after(0)).1,
                Ok(())
            );
        }
        for _ in 0..3 {
            let (quota, outcome) = meter.charge("k", Api::Hotels, Plan::Pro, after(20_500));
            assert_eq!(
                outcome,
                Err(Refusal::TooFast {
                    retry_after_seconds: 40
                })
            );
            assert_eq!(
                quota.window,
                Some(Window {
                    limit: 25,
                    remaining: 0,
                    reset_seconds: 40
                })
            );
            assert_eq!(quota.remaining, 1_975);
        }
        assert_eq!(
            meter.charge("k", Api::Hotels, Plan::Pro, after(60_500)).1,
            Ok(())
        );
        let window = meter
            .standing("k", Api::Hotels, Plan::Pro, after(70_500))
            .window
            .expect("a window");
        assert_eq!((window.remaining, window.reset_seconds), (24, 50));
        meter.standing("idle", Api::Hotels, Plan::Pro, after(0));
        let (quota, _) = meter.charge("idle", Api::Hotels, Plan::Pro, after(30_000));
        assert_eq!(
            quota.window.expect("a window").reset_seconds,
            60,
            "an idle key has no window running"
        );
    }

    #[test]
    fn memory_is_bounded_however_many_suffixes_there_are() {
        let (meter, at) = (
            Meter::default(),
            start_of(date(2026, 11, 20), Instant::now()),
        );
        for number in 0..=MAX_ACCOUNTS {
            let _ = meter.charge(&format!("k.{number}"), Api::Flights, Plan::Pro, at);
        }
        assert!(meter.accounts.lock().expect("no panic").len() <= MAX_ACCOUNTS);
    }
}
