//! Prices by the days that were left until departure or check-in (history.md, rule 32). The samples
//! of many departures are put together, so this shows when a product is cheap, not what one
//! departure costs.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;

use super::aggregate::BucketSpec;
use super::buckets::{BucketRange, MAX_PRODUCTS, for_each_marked_day};
use super::marked_samples::MarkedSample;
use super::presenter::{Product, ProductPresenter};
use super::price::PriceAccumulator;
use super::query::PriceQuery;
use super::sample::day;
use super::store::products::products;
use super::verdict;
use crate::contract::series::Bucket;
use crate::db;
use crate::ids::TenantId;
use crate::paging;

/// The longest time before departure that is counted, in days.
const MAX_LEAD: i32 = 400;
/// Up to this time before departure each day stands alone; beyond it the days of a week together.
const MAX_DAILY: i32 = 45;

/// The prices of one product by days before departure.
#[derive(Debug, Clone, PartialEq)]
pub struct LeadTimes {
    /// The product.
    pub product: Product,
    /// Whether each row is a week instead of a day.
    pub is_weekly: bool,
    /// The days or weeks that have a price, the last one before departure first.
    pub days: Vec<LeadDay>,
    /// Number of prices that are left out, because they are implausible.
    pub implausible: u64,
}

/// The prices of one number of days before departure, or of the week that begins with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeadDay {
    /// Days left until departure or check-in, counted by dates.
    pub days: i32,
    /// Number of prices.
    pub prices: u64,
    /// The lowest price, in major units.
    pub lowest: Decimal,
    /// The median price.
    pub median: Decimal,
    /// The highest price.
    pub highest: Decimal,
}

/// The plausible prices of each product that a query selects, by days before departure. `nights`: only stays
/// of this length, because the prices of others do not compare.
pub async fn lead_times(
    conn: PoolConnection<Postgres>,
    tenant: TenantId,
    query: &PriceQuery,
    range: &BucketRange,
    nights: Option<i32>,
) -> sqlx::Result<Vec<LeadTimes>> {
    let mut snapshot = db::snapshot(conn).await?;
    let limit = paging::limit_plus_one(MAX_PRODUCTS) - 1;
    let found = products(&mut snapshot, tenant, query, None, limit).await?;
    let mut presenter = ProductPresenter::default();
    let mut all = Vec::new();
    for product in found {
        let mut leads = LeadAggregator::new(range.spec(query), nights);
        for_each_marked_day(
            &mut snapshot,
            tenant,
            product.stored(),
            verdict::plausible_since(range.since),
            verdict::end_of_day(range.until),
            |day| day.iter().for_each(|sample| leads.add(sample)),
        )
        .await?;
        let implausible = leads.implausible;
        let (is_weekly, days) = leads.finish();
        all.push(LeadTimes {
            product: presenter.present(product),
            is_weekly,
            days,
            implausible,
        });
    }
    Ok(all)
}

/// Collects the prices of one product. Samples must arrive in chronological order.
struct LeadAggregator {
    /// Its buckets are days.
    spec: BucketSpec,
    nights: Option<i32>,
    /// The date of the last sample, in days since 1970, and its end in microseconds.
    today: i32,
    ends_at: i64,
    prices: BTreeMap<i32, PriceAccumulator>,
    implausible: u64,
}

impl LeadAggregator {
    fn new(spec: BucketSpec, nights: Option<i32>) -> Self {
        Self {
            spec: BucketSpec {
                bucket: Bucket::Day,
                ..spec
            },
            nights,
            today: 0,
            ends_at: i64::MIN,
            prices: BTreeMap::new(),
            implausible: 0,
        }
    }

    /// Adds the price of a sample that matches the requested range, dates and length.
    fn add(&mut self, marked: &MarkedSample) {
        let sample = &marked.sample;
        let is_length = self
            .nights
            .is_none_or(|nights| sample.nights() == Some(nights));
        let Some(price) = sample.price else {
            return;
        };
        if !is_length || !self.spec.selects(sample) {
            return;
        }
        if sample.at >= self.ends_at
            && let Some((date, ends_at)) = self.spec.bucket_at(sample.at)
        {
            (self.today, self.ends_at) = (day(date), ends_at);
        }
        let lead = sample.first_date() - self.today;
        if !(0..=MAX_LEAD).contains(&lead) {
            return;
        }
        if marked.usual.is_some() {
            self.implausible += 1;
        } else {
            self.prices.entry(lead).or_default().push(price);
        }
    }

    /// Whether the rows are weeks, and the rows.
    fn finish(mut self) -> (bool, Vec<LeadDay>) {
        let longest = self.prices.last_key_value().map(|(lead, _)| *lead);
        let is_weekly = longest > Some(MAX_DAILY);
        if is_weekly {
            let mut weeks = BTreeMap::<i32, PriceAccumulator>::new();
            for (lead, prices) in std::mem::take(&mut self.prices) {
                weeks.entry(lead / 7 * 7).or_default().absorb(prices);
            }
            self.prices = weeks;
        }
        let lead = |(days, mut prices): (i32, PriceAccumulator)| {
            let count = prices.len() as u64;
            let range = prices.take_range()?;
            Some(LeadDay {
                days,
                prices: count,
                lowest: range.lowest,
                median: range.middle,
                highest: range.highest,
            })
        };
        (
            is_weekly,
            self.prices.into_iter().filter_map(lead).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;
    use jiff::civil::{Date, date};
    use jiff::tz::TimeZone;

    use super::*;
    use crate::contract::SearchStatus;
    use crate::history::sample::{DateFilter, RawSample, Sample};

    fn sample(at: &str, first: Date, nights: Option<i64>, price: Option<i64>) -> Sample {
        Sample::of(&RawSample {
            observed_at: at.parse().unwrap(),
            first_date: first,
            last_date: nights.map(|nights| first.saturating_add(nights.days())),
            status: SearchStatus::Ok,
            price: price.map(Decimal::from),
            band_low: None,
            band_high: None,
        })
    }

    fn leads(
        zone: &str,
        dates: DateFilter,
        nights: Option<i32>,
        samples: &[Sample],
    ) -> Vec<(i32, u64, String)> {
        let spec = BucketSpec {
            since: "2026-11-01T00:00:00Z".parse().unwrap(),
            until: "2026-12-01T00:00:00Z".parse().unwrap(),
            bucket: Bucket::Week,
            zone: TimeZone::get(zone).unwrap(),
            dates,
        };
        let mut all = LeadAggregator::new(spec, nights);
        for sample in samples {
            all.add(&MarkedSample {
                sample: *sample,
                usual: None,
            });
        }
        all.finish()
            .1
            .into_iter()
            .map(|lead| {
                (
                    lead.days,
                    lead.prices,
                    format!("{} {} {}", lead.lowest, lead.median, lead.highest),
                )
            })
            .collect()
    }

    #[test]
    fn departures_meet_at_the_same_number_of_days_left() {
        let samples = [
            sample("2026-11-10T08:00:00Z", date(2026, 11, 20), None, Some(100)),
            sample("2026-11-10T09:00:00Z", date(2026, 11, 10), None, Some(300)),
            sample("2026-11-10T23:30:00Z", date(2026, 11, 20), None, Some(110)),
            sample("2026-11-11T08:00:00Z", date(2026, 11, 21), None, Some(130)),
            sample("2026-11-11T09:00:00Z", date(2026, 11, 21), None, None),
        ];
        assert_eq!(
            leads("UTC", DateFilter::default(), None, &samples),
            [
                (0, 1, "300 300 300".to_owned()),
                (10, 3, "100 110 130".to_owned())
            ]
        );
        // In Tokyo the sample of 23:30 is of the next day.
        assert_eq!(
            leads("Asia/Tokyo", DateFilter::default(), None, &samples)[1],
            (9, 1, "110 110 110".to_owned())
        );
    }

    #[test]
    fn long_times_before_departure_are_weeks() {
        let first = date(2026, 12, 31);
        let day = |day: i8, price| {
            sample(
                &format!("2026-11-{day:02}T08:00:00Z"),
                first,
                None,
                Some(price),
            )
        };
        let long = [day(10, 100), day(11, 200), day(17, 300)];
        assert_eq!(
            leads("UTC", DateFilter::default(), None, &long),
            [
                (42, 1, "300 300 300".to_owned()),
                (49, 2, "100 150 200".to_owned())
            ]
        );
    }

    #[test]
    fn only_the_requested_range_dates_and_length_count() {
        let first = date(2026, 11, 20);
        let samples = [
            sample("2026-10-31T23:59:59Z", first, Some(3), Some(1)),
            sample("2026-11-10T08:00:00Z", first, Some(3), Some(2)),
            sample("2026-11-10T08:00:00Z", first, Some(4), Some(3)),
            sample("2026-11-10T08:00:00Z", date(2026, 11, 21), Some(3), Some(4)),
            // After its date: a late answer.
            sample("2026-11-22T08:00:00Z", first, Some(3), Some(5)),
            sample("2026-12-01T00:00:00Z", date(2026, 12, 5), Some(3), Some(6)),
        ];
        let one = DateFilter::of(Some(first), Some(first), None);
        assert_eq!(
            leads("UTC", one, Some(3), &samples),
            [(10, 1, "2 2 2".to_owned())]
        );
    }
}
