//! The marketplace's plans (specification 8; figures as read on 2026-08-25), for saying what a scan costs on each, and how fast a plan is
//! that its caller names.
//!
//! Here: the table and its arithmetic. Not here: which plan a caller has; the marketplace says that with every answer. The sandbox has
//! plans of its own, so that no mistake is shared.

use rust_decimal::Decimal;

use super::endpoint::Api;
use super::words::words;

words! {
    /// A plan of the marketplace.
    pub enum PlanName {
        /// Free, and it stops hard.
        Basic = "basic",
        /// The smallest that is paid.
        Pro = "pro",
        /// The middle one.
        Ultra = "ultra",
        /// The largest.
        Mega = "mega",
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Its name.
    pub name: PlanName,
    /// What a month costs.
    pub usd_per_month: u32,
    /// Requests that the month's price includes.
    pub requests_per_month: u64,
    /// The rate limit; `None`: none is stated.
    pub requests_per_minute: Option<u32>,
    /// What each further request costs, in thousandths of a dollar; `None`: there are none, the plan stops.
    thousandths_beyond: Option<u32>,
}

const fn plan(
    name: PlanName,
    usd_per_month: u32,
    requests_per_month: u64,
    requests_per_minute: Option<u32>,
    thousandths_beyond: Option<u32>,
) -> Plan {
    Plan {
        name,
        usd_per_month,
        requests_per_month,
        requests_per_minute,
        thousandths_beyond,
    }
}

const FLIGHTS: [Plan; 4] = [
    plan(PlanName::Basic, 0, 10, None, None),
    plan(PlanName::Pro, 10, 2_500, Some(150), Some(3)),
    plan(PlanName::Ultra, 25, 10_000, Some(250), Some(3)),
    plan(PlanName::Mega, 50, 50_000, Some(500), Some(1)),
];

const HOTELS: [Plan; 4] = [
    plan(PlanName::Basic, 0, 10, None, None),
    plan(PlanName::Pro, 10, 2_000, Some(25), Some(6)),
    plan(PlanName::Ultra, 20, 6_500, Some(25), Some(3)),
    plan(PlanName::Mega, 50, 25_000, Some(50), Some(2)),
];

impl Plan {
    /// The plans of an API, the cheapest first.
    #[must_use]
    pub const fn all(api: Api) -> &'static [Self] {
        match api {
            Api::Flights => &FLIGHTS,
            Api::Hotels => &HOTELS,
        }
    }

    /// The plan of an API that has this name.
    #[must_use]
    pub const fn of(api: Api, name: PlanName) -> &'static Self {
        // In the order of the names.
        &Self::all(api)[name as usize]
    }

    /// What so many requests beyond the quota cost in US dollars; `None`: the plan stops hard instead.
    #[must_use]
    pub fn usd_beyond(&self, requests: u64) -> Option<Decimal> {
        let thousandths = self.thousandths_beyond?;
        Some((Decimal::from(requests) * Decimal::new(thousandths.into(), 3)).normalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Specification 8, row by row.
    #[test]
    fn the_table_is_the_specifications() {
        let rows = |api| {
            Plan::all(api)
                .iter()
                .map(|plan| {
                    let beyond = plan
                        .usd_beyond(1)
                        .map_or("hard stop".to_owned(), |usd| usd.to_string());
                    let rate = plan
                        .requests_per_minute
                        .map_or("none stated".to_owned(), |rate| format!("{rate}/min"));
                    assert_eq!(Plan::of(api, plan.name), plan);
                    format!(
                        "{} {} {} {rate} {beyond}",
                        plan.name, plan.usd_per_month, plan.requests_per_month
                    )
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(
            rows(Api::Flights),
            [
                "basic 0 10 none stated hard stop",
                "pro 10 2500 150/min 0.003",
                "ultra 25 10000 250/min 0.003",
                "mega 50 50000 500/min 0.001"
            ]
        );
        assert_eq!(
            rows(Api::Hotels),
            [
                "basic 0 10 none stated hard stop",
                "pro 10 2000 25/min 0.006",
                "ultra 20 6500 25/min 0.003",
                "mega 50 25000 50/min 0.002"
            ]
        );
        assert_eq!(
            Plan::all(Api::Flights)[1]
                .usd_beyond(1_000)
                .unwrap()
                .to_string(),
            "3"
        );
    }
}
