//! The past of a sandbox: what it would have answered on days of the last months, stored as observations
//! of the demo's caller. So a trial begins with prices over time and verdicts. No scan is behind them.

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::serve::{sandbox_upstream, start_sandbox};
use crate::contract::{Request, SearchStatus};
use crate::db::partitions::create_partition_for;
use crate::history::places::places;
use crate::history::{Observation, ObservedPrice, Subject, insert};
use crate::ids::{ItemId, TenantId};
use crate::sandbox::{DEMO_KEY, DayShift, SandboxOptions};
use crate::search::{CallerKey, Finding, ItemSummary, Outcome, Search};
use crate::service::Service;
use crate::tenants::store::find_or_create;
use crate::upstream::Client;
use farescan_client::Failure;

/// Days from the first visit to today.
const DAYS: i32 = 120;
/// Days between two visits.
const DAYS_APART: i32 = 10;
/// The rows of an answer; the first ones are the cheapest.
const ROWS: u32 = 10;

/// A marketplace that can be asked for its answers of another day.
struct PastMarketplace {
    client: Client,
    days: DayShift,
    key: CallerKey,
}

/// Stores the past of these searches, unless the caller has a history already.
pub async fn add_past(service: &Service, searches: &[Request]) -> Result<(), Failure> {
    let Some(ring) = service.keyring() else {
        return Ok(());
    };
    let (pool, key, now) = (service.pool(), CallerKey::new(DEMO_KEY), Timestamp::now());
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
    let mut tx = pool.begin().await?;
    let tenant = find_or_create(&mut tx, ring, &key, now).await?;
    if !places(&mut tx, tenant).await?.is_empty() {
        return Ok(());
    }
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
        let found = marketplace.visit(tenant, searches, at, ago).await;
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

/// What a complete answer shows; `None` for any other.
fn observation(
    tenant: TenantId,
    search: &Search,
    outcome: &Outcome,
    at: Timestamp,
) -> Option<Observation> {
    let Finding::Answer(answer) = &outcome.finding else {
        return None;
    };
    let (offer, _) = ItemSummary::of(search, answer).best?;
    Some(Observation {
        tenant,
        item: ItemId::new(),
        number: 1,
        subject: Subject::of(search.request())?,
        observed_at: at,
        best: Some(ObservedPrice {
            price: offer.price,
            seller: offer.carrier_or_room,
            band_low: offer.band_low,
            band_high: offer.band_high,
            verdict: offer.verdict,
        }),
        results: i32::try_from(answer.results).ok(),
        status: SearchStatus::Ok,
        reason: None,
    })
}
