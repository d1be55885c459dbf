//! The past of a sandbox: what it would have answered on days of the last months, stored as observations
//! of the demo's caller. So a trial begins with prices over time and verdicts. No scan is behind them.

use futures::future::join_all;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, ToSpan as _};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::trial::{sandbox_upstream, start_sandbox};
use crate::contract::{Endpoint, Request};
use crate::db::begin;
use crate::db::partitions::create_partition_for;
use crate::history::places::places;
use crate::history::{Observation, ObservedPrice, Subject, insert};
use crate::ids::{ItemId, TenantId};
use crate::sandbox::{DEMO_KEY, DayShift, SandboxOptions};
use crate::search::outcome_status::{self, ItemDisposition};
use crate::search::{CallerKey, Finding, ItemSummary, Outcome, Search};
use crate::service::Service;
use crate::tenants::store::find_or_create;
use crate::upstream::Client;
use farescan_client::Failure;

/// Days from the first visit to today.
pub const DAYS: i32 = 120;
/// Days between two visits.
const DAYS_APART: i32 = 10;
/// The rows of an answer; the first ones are the cheapest.
const ROWS: u32 = 10;

/// The markets of the hotel scan, the baseline first.
pub const MARKETS: [&str; 5] = ["us", "de", "gb", "jp", "br"];
/// Least days until the month and the stay.
const DAYS_AHEAD: i32 = 30;

/// A marketplace that can be asked for its answers of another day.
struct PastMarketplace {
    client: Client,
    days: DayShift,
    key: CallerKey,
}

/// Stores the past of [`searches`], unless the caller has a history already.
pub async fn add_past(service: &Service, now: Timestamp) -> Result<(), Failure> {
    let Some(ring) = service.keyring() else {
        return Ok(());
    };
    let (pool, key) = (service.pool(), CallerKey::new(DEMO_KEY));
    let ages = (1..=DAYS / DAYS_APART)
        .rev()
        .map(|visit| visit * DAYS_APART);
    let visits: Vec<_> = ages
        .map(|ago| (ago, now - SignedDuration::from_hours(24 * i64::from(ago))))
        .collect();
    // Before the transaction, which does not see partitions that are made during it.
    for (_, at) in &visits {
        create_partition_for(pool, *at).await?;
    }
    let mut tx = begin(pool).await?;
    let tenant = find_or_create(&mut tx, ring, &key, now).await?;
    if !places(&mut tx, tenant).await?.is_empty() {
        return Ok(());
    }
    let searches = searches(now.to_zoned(TimeZone::UTC).date())?;
    let stop = CancellationToken::new();
    let _ended_with_this = stop.clone().drop_guard();
    let days = DayShift::default();
    let options = SandboxOptions {
        latency_factor: 0.0,
        ..SandboxOptions::default()
    };
    // One of its own: its day is not that of the searches that are made meanwhile.
    let address = start_sandbox(options, days.clone(), stop).await?;
    let marketplace = PastMarketplace {
        client: Client::new(&sandbox_upstream(address)?)?,
        days,
        key,
    };
    for (ago, at) in visits {
        let found = marketplace.visit(tenant, &searches, at, ago).await;
        insert(&mut tx, &found).await?;
    }
    tx.commit().await?;
    Ok(())
}

impl PastMarketplace {
    /// What each search found on a day so many days ago.
    async fn visit(
        &self,
        tenant: TenantId,
        searches: &[Request],
        at: Timestamp,
        ago: i32,
    ) -> Vec<Observation> {
        self.days.set(-ago);
        let asked = searches.iter().map(|request| async move {
            let search = Search::for_item(request.clone(), ROWS, false);
            let outcome = self
                .client
                .search(&search, &self.key, "past", || async { false });
            observation(tenant, &search, &outcome.await, at)
        });
        join_all(asked).await.into_iter().flatten().collect()
    }
}

/// What the history stores of an outcome, decided as for an item of a scan.
fn observation(
    tenant: TenantId,
    search: &Search,
    outcome: &Outcome,
    at: Timestamp,
) -> Option<Observation> {
    let ItemDisposition::Done { status, reason } = outcome_status::of(search, outcome).item else {
        return None;
    };
    let summary = match &outcome.finding {
        Finding::Answer(answer) => Some(ItemSummary::of(search, answer)),
        _ => None,
    };
    let results = summary
        .as_ref()
        .and_then(|found| i32::try_from(found.results).ok());
    let best = summary.and_then(|found| found.best);
    Some(Observation {
        tenant,
        item: ItemId::new(),
        number: 1,
        subject: Subject::of(search.request())?,
        observed_at: at,
        best: best.map(|(offer, _)| ObservedPrice {
            price: offer.price,
            seller: offer.carrier_or_room,
            band_low: offer.band_low,
            band_high: offer.band_high,
            verdict: offer.verdict,
        }),
        results,
        status,
        reason,
    })
}

/// The searches that have a past: those of the demo's walkthrough.
fn searches(today: Date) -> Result<Vec<Request>, Failure> {
    let (first, last) = month_of_31_days(today)?;
    let dates = first.series(1.day()).take_while(|date| *date <= last);
    let fares = dates.map(|date| {
        let mut body = fare();
        body["departure_date"] = date.to_string().into();
        (Endpoint::FlightsOneway, body)
    });
    let stay = stay(today)?;
    let stays = MARKETS.iter().map(|market| {
        let mut body = stay.clone();
        body["proxy_country"] = (*market).into();
        (Endpoint::HotelsByName, body)
    });
    let read = |(endpoint, body): (Endpoint, Value)| {
        let body = body.as_object().cloned().unwrap_or_default();
        Ok(Request::check(endpoint, &body)?.request)
    };
    fares.chain(stays).map(read).collect()
}

/// The fare, without its date.
pub fn fare() -> Value {
    json!({"from_airport": "TLV", "to_airport": "LHR", "currency": "USD"})
}

/// The stay, without its market.
pub fn stay(today: Date) -> Result<Value, Failure> {
    let checkin = today.checked_add(DAYS_AHEAD.days())?;
    let checkout = checkin.checked_add(3.days())?;
    Ok(json!({
        "hotel_name": "Hotel Arts", "area": "Barcelona", "checkin_date": checkin, "checkout_date": checkout,
        "currency": "USD"
    }))
}

/// First and last day of the first month of 31 days that begins [`DAYS_AHEAD`] or later.
pub fn month_of_31_days(today: Date) -> Result<(Date, Date), Failure> {
    let mut first = today
        .checked_add(DAYS_AHEAD.days())?
        .last_of_month()
        .tomorrow()?;
    while first.days_in_month() != 31 {
        first = first.checked_add(Span::new().months(1))?;
    }
    Ok((first, first.last_of_month()))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn the_month_has_31_days_and_is_in_the_future() {
        for (today, first) in [
            (date(2026, 11, 20), date(2027, 1, 1)),
            (date(2026, 12, 2), date(2027, 3, 1)),
            (date(2027, 5, 31), date(2027, 7, 1)),
            (date(2027, 1, 1), date(2027, 3, 1)),
        ] {
            let month = month_of_31_days(today).unwrap();
            assert_eq!(month, (first, first.last_of_month()), "{today}");
            assert_eq!(month.1.day(), 31);
        }
    }
}
