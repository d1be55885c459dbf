//! What lanes are told: that calls have ended, what the headers said, and what synchronous calls used up.
//!
//! Here: news of many calls as one for each lane (pure), and the telling. What a lane makes of it, its pace above all, is decided by the
//! functions of the migration `pace` under the lane's lock; docs/decisions/0010 says how. Synchronous calls come through [`super::charge`].

use std::time::Duration;

use serde::Serialize;
use sqlx::PgExecutor;
use sqlx::types::Json;
use uuid::Uuid;

use crate::contract::Api;
use crate::ids::TenantId;
use crate::search::{PlanQuota, RateWindow};

/// The longest reset that is believed: a plan's month.
const LONGEST_RESET_SECONDS: u32 = 31 * 24 * 3600;

/// What one lane is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneNews {
    pub tenant: TenantId,
    pub api: Api,
    /// Calls of scans that have ended.
    pub answered: u32,
    /// Billed requests of synchronous calls.
    pub charged: u32,
    /// A synchronous call met a rate limit that lasts this long.
    pub limited: Option<Duration>,
    /// What the headers said.
    pub plan: PlanQuota,
}

impl LaneNews {
    /// A call of a scan has ended.
    #[must_use]
    pub fn answered(tenant: TenantId, api: Api, plan: PlanQuota) -> Self {
        Self {
            tenant,
            api,
            answered: 1,
            charged: 0,
            limited: None,
            plan,
        }
    }

    /// Both as one: of what was left the least, because answers come in another order than they were counted in.
    fn join(&mut self, other: &Self) {
        self.answered = self.answered.saturating_add(other.answered);
        self.charged = self.charged.saturating_add(other.charged);
        self.limited = self.limited.max(other.limited);
        let window = least_window(self.plan.window, other.plan.window);
        if is_less(other.plan.remaining, self.plan.remaining)
            || self.plan.limit.is_none() && self.plan.remaining.is_none()
        {
            self.plan = other.plan;
        }
        self.plan.window = window;
    }
}

fn least_window(one: Option<RateWindow>, other: Option<RateWindow>) -> Option<RateWindow> {
    match (one, other) {
        (Some(a), Some(b)) => Some(if is_less(b.remaining, a.remaining) {
            b
        } else {
            a
        }),
        _ => one.or(other),
    }
}

/// Something is known of `one`, and no less is known of `other`.
fn is_less(one: Option<u64>, other: Option<u64>) -> bool {
    one.is_some_and(|one| other.is_none_or(|other| one < other))
}

/// One piece of news for each lane.
pub fn by_lane(news: impl IntoIterator<Item = LaneNews>) -> Vec<LaneNews> {
    let mut lanes = Vec::<LaneNews>::new();
    for one in news {
        match lanes
            .iter_mut()
            .find(|lane| lane.tenant == one.tenant && lane.api == one.api)
        {
            Some(lane) => lane.join(&one),
            None => lanes.push(one),
        }
    }
    lanes
}

/// News in the form of the type `lane_news`.
#[derive(Serialize)]
struct Told {
    tenant_id: Uuid,
    api: &'static str,
    answered: u32,
    charged: u32,
    limited_seconds: Option<f64>,
    plan_limit: Option<i64>,
    plan_remaining: Option<i64>,
    plan_reset_seconds: Option<u32>,
    window_limit: Option<i64>,
    window_remaining: Option<i64>,
    window_reset_seconds: Option<u32>,
}

impl From<&LaneNews> for Told {
    fn from(news: &LaneNews) -> Self {
        let count = |number: Option<u64>| number.and_then(|number| i64::try_from(number).ok());
        let seconds = |number: Option<u64>| {
            number.map(|number| {
                u32::try_from(number)
                    .unwrap_or(u32::MAX)
                    .min(LONGEST_RESET_SECONDS)
            })
        };
        let window = news.plan.window;
        Self {
            tenant_id: news.tenant.uuid(),
            api: news.api.as_str(),
            answered: news.answered,
            charged: news.charged,
            limited_seconds: news.limited.map(|time| time.as_secs_f64()),
            plan_limit: count(news.plan.limit),
            plan_remaining: count(news.plan.remaining),
            plan_reset_seconds: seconds(news.plan.reset_seconds),
            window_limit: count(window.map(|window| window.limit)),
            window_remaining: count(window.and_then(|window| window.remaining)),
            window_reset_seconds: seconds(window.and_then(|window| window.reset_seconds)),
        }
    }
}

/// Tells lanes their news, each lane once; gives how many of them had waited for a call to end. A lane that the news would not change
/// is not locked, and one that does not exist is told nothing.
///
/// # Errors
/// When the database does not answer.
pub async fn tell(conn: impl PgExecutor<'_>, news: &[LaneNews]) -> sqlx::Result<i64> {
    let told: Vec<_> = news.iter().map(Told::from).collect();
    sqlx::query_scalar!(r#"select tell_lanes($1) as "freed!""#, Json(told) as _)
        .fetch_one(conn)
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(remaining: u64) -> RateWindow {
        RateWindow {
            limit: 150,
            remaining: Some(remaining),
            reset_seconds: Some(60),
        }
    }

    fn plan(remaining: u64, window: impl Into<Option<RateWindow>>) -> PlanQuota {
        PlanQuota {
            limit: Some(2_500),
            remaining: Some(remaining),
            reset_seconds: Some(9),
            window: window.into(),
        }
    }

    #[test]
    fn news_of_one_lane_is_one_and_the_least_that_was_left_counts() {
        let (one, two) = (TenantId::new(), TenantId::new());
        let seen = by_lane([
            LaneNews::answered(one, Api::Flights, plan(9, window(70))),
            LaneNews::answered(two, Api::Flights, PlanQuota::default()),
            LaneNews::answered(one, Api::Flights, plan(7, window(80))),
            LaneNews::answered(one, Api::Hotels, plan(1, None)),
            LaneNews {
                limited: Some(Duration::from_secs(3)),
                ..LaneNews::answered(one, Api::Flights, plan(8, None))
            },
            LaneNews {
                answered: 0,
                charged: 2,
                ..LaneNews::answered(two, Api::Flights, plan(5, window(6)))
            },
        ]);
        let first = LaneNews {
            answered: 3,
            limited: Some(Duration::from_secs(3)),
            ..LaneNews::answered(one, Api::Flights, plan(7, window(70)))
        };
        let second = LaneNews {
            charged: 2,
            ..LaneNews::answered(two, Api::Flights, plan(5, window(6)))
        };
        assert_eq!(
            seen,
            [
                first,
                second,
                LaneNews::answered(one, Api::Hotels, plan(1, None))
            ]
        );
    }
}
