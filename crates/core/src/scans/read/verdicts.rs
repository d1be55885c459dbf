//! Verdicts from the caller's own history on the prices that searches found (history.md, rules 41 and
//! 42). Not here: how a verdict is computed (`history`).

use std::collections::HashMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde_json::{Map, Value};
use sqlx::PgPool;

use super::store;
use crate::contract::history_verdict::HistoryVerdict;
use crate::contract::scans::Item;
use crate::contract::{Endpoint, Request};
use crate::history::Subject;
use crate::history::known_price::KnownPrice;
use crate::history::past_prices;
use crate::ids::{ItemId, ScanId, TenantId};

/// A price that an item found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPrice {
    /// The item.
    pub item: ItemId,
    /// In major units.
    pub price: Decimal,
    /// Its currency.
    pub currency: String,
    /// When it was found.
    pub at: Timestamp,
}

/// Sets the verdicts on the prices of a scan's items. The history is read from `history`, the
/// primary database or its replica.
pub async fn judge_items(
    pool: &PgPool,
    history: &PgPool,
    tenant: TenantId,
    scan: ScanId,
    items: &mut [Item],
) -> sqlx::Result<()> {
    let Some(form) = store::items_form(pool, tenant, scan).await? else {
        return Ok(());
    };
    let known = |item: &Item| {
        let currency = item.currency.as_deref()?;
        known_price(
            form.endpoint,
            &item.search,
            item.best_price?,
            currency,
            item.observed_at?,
        )
    };
    let prices = items.iter().map(known).collect();
    let verdicts = past_prices::verdicts(history.acquire().await?, tenant, prices).await?;
    for (item, verdict) in items.iter_mut().zip(verdicts) {
        item.history_verdict = verdict;
    }
    Ok(())
}

/// The verdicts on prices of items of any scans; absent are those of items that were deleted.
pub async fn judge_prices(
    pool: &PgPool,
    history: &PgPool,
    tenant: TenantId,
    prices: &[FoundPrice],
) -> sqlx::Result<HashMap<ItemId, HistoryVerdict>> {
    let ids: Vec<_> = prices.iter().map(|price| price.item).collect();
    let searches = store::searches(pool, tenant, &ids).await?;
    let known = |found: &FoundPrice| {
        let (endpoint, body) = searches.get(&found.item)?;
        known_price(*endpoint, body, found.price, &found.currency, found.at)
    };
    let known = prices.iter().map(known).collect();
    let verdicts = past_prices::verdicts(history.acquire().await?, tenant, known).await?;
    let verdicts = ids.into_iter().zip(verdicts);
    Ok(verdicts
        .filter_map(|(item, verdict)| Some((item, verdict?)))
        .collect())
}

fn known_price(
    endpoint: Endpoint,
    body: &Map<String, Value>,
    price: Decimal,
    currency: &str,
    at: Timestamp,
) -> Option<KnownPrice> {
    let subject = Subject::of(&Request::check(endpoint, body).ok()?.request)?;
    KnownPrice::of(&subject, price, currency, at)
}
