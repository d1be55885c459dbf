//! The marketplace's plans (gateway.md, rule 42; figures of 2026-08-25): the cost of a scan on
//! each, and the rate of a plan that the caller names.
//!
//! Here: the table and its arithmetic. Not here: the plan of a caller; the marketplace reports it
//! with every response. The sandbox has its own plans, so that tests do not share a mistake of this
//! table.

use rust_decimal::Decimal;

use super::endpoint::Api;
use super::string_enum::string_enum;

string_enum! {
    /// A plan of the marketplace.
    pub enum PlanName {
        /// Free; it stops at its quota.
        Basic = "basic",
        /// The smallest paid plan.
        Pro = "pro",
        /// The middle plan.
        Ultra = "ultra",
        /// The largest plan.
        Mega = "mega",
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarketplacePlan {
    /// Its name.
    pub name: PlanName,
    /// The monthly price in US dollars.
    pub usd_per_month: u32,
    /// Requests included per month.
    pub requests_per_month: u64,
    /// The rate limit; `None`: not documented.
    pub requests_per_minute: Option<u32>,
    /// The price of each further request in thousandths of a dollar; `None`: the plan stops.
    thousandths_beyond: Option<u32>,
}

const fn plan(
    name: PlanName,
    usd_per_month: u32,
    requests_per_month: u64,
    requests_per_minute: Option<u32>,
    thousandths_beyond: Option<u32>,
) -> MarketplacePlan {
    MarketplacePlan {
        name,
        usd_per_month,
        requests_per_month,
        requests_per_minute,
        thousandths_beyond,
    }
}

const FLIGHTS: [MarketplacePlan; 4] = [
    plan(PlanName::Basic, 0, 10, None, None),
    plan(PlanName::Pro, 10, 2_500, Some(150), Some(3)),
    plan(PlanName::Ultra, 25, 10_000, Some(250), Some(3)),
    plan(PlanName::Mega, 50, 50_000, Some(500), Some(1)),
];

const HOTELS: [MarketplacePlan; 4] = [
    plan(PlanName::Basic, 0, 10, None, None),
    plan(PlanName::Pro, 10, 2_000, Some(25), Some(6)),
    plan(PlanName::Ultra, 20, 6_500, Some(25), Some(3)),
    plan(PlanName::Mega, 50, 25_000, Some(50), Some(2)),
];

impl MarketplacePlan {
    /// The plans of an API, the cheapest first.
    pub const fn all(api: Api) -> &'static [Self] {
        match api {
            Api::Flights => &FLIGHTS,
            Api::Hotels => &HOTELS,
        }
    }

    /// The plan of an API with this name.
    pub const fn by_name(api: Api, name: PlanName) -> &'static Self {
        // Both tables are in the order of `PlanName`.
        &Self::all(api)[name as usize]
    }

    /// The price of an included request in US dollars.
    pub fn usd_per_request(&self) -> Decimal {
        Decimal::from(self.usd_per_month) / Decimal::from(self.requests_per_month)
    }

    /// The price of `requests` beyond the quota in US dollars; `None`: the plan stops.
    pub fn usd_beyond(&self, requests: u64) -> Option<Decimal> {
        let thousandths = self.thousandths_beyond?;
        Some((Decimal::from(requests) * Decimal::new(thousandths.into(), 3)).normalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// gateway.md, rule 42, row by row.
    #[test]
    fn every_plan_has_its_documented_figures() {
        let rows = |api| {
            MarketplacePlan::all(api)
                .iter()
                .map(|plan| {
                    let beyond = plan
                        .usd_beyond(1)
                        .map_or("hard stop".to_owned(), |usd| usd.to_string());
                    let rate = plan
                        .requests_per_minute
                        .map_or("none stated".to_owned(), |rate| format!("{rate}/min"));
                    assert_eq!(MarketplacePlan::by_name(api, plan.name), plan);
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
            MarketplacePlan::all(Api::Flights)[1]
                .usd_beyond(1_000)
                .unwrap()
                .to_string(),
            "3"
        );
    }
}
