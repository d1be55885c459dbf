//! Which items have an implausibly low price (history.md, rules 43 to 46).

use std::collections::BTreeMap;

use jiff_sqlx::Timestamp as SqlTimestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::contract::history_verdict::UsualPrice;
use crate::contract::{Endpoint, Request};
use crate::history::Subject;
use crate::history::known_price::KnownPrice;
use crate::history::past_prices::implausibly_low;
use crate::ids::TenantId;

/// Those of these items whose price is implausibly low by what is stored now, with what is usual.
pub(in crate::scans) async fn implausible_items(
    conn: &mut PgConnection,
    tenant: TenantId,
    items: &[Uuid],
) -> sqlx::Result<BTreeMap<Uuid, UsualPrice>> {
    let rows = sqlx::query!(
        r#"select i.item_id, s.endpoint as "endpoint: Endpoint", i.body, i.best_price as "price!", i.currency as "currency!",
                  i.observed_at as "observed_at!: SqlTimestamp"
           from scan_items i join scans s on s.tenant_id = i.tenant_id and s.scan_id = i.scan_id
           where i.tenant_id = $1 and i.item_id = any ($2)
             and i.best_price is not null and i.currency is not null and i.observed_at is not null"#,
        tenant.uuid(),
        items,
    );
    let rows = rows.fetch_all(&mut *conn).await?;
    let known = rows.iter().filter_map(|row| {
        let request = Request::check(row.endpoint, row.body.as_object()?).ok()?;
        let subject = Subject::of(&request.request)?;
        let seen_at = row.observed_at.to_jiff();
        let price = KnownPrice::of(&subject, row.price, &row.currency, seen_at)?;
        Some((row.item_id, price))
    });
    let (ids, prices): (Vec<_>, Vec<_>) = known.unzip();
    let usual = implausibly_low(conn, tenant, &prices).await?;
    let items = ids.into_iter().zip(usual);
    Ok(items
        .filter_map(|(item, usual)| Some((item, usual?)))
        .collect())
}
