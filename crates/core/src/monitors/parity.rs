//! The markets of a monitor over its runs (monitors.md, rules 96 to 98): what its rule
//! `parity_gap_percent` compares in one run, for the newest runs together.

use serde_json::Value;
use sqlx::PgPool;

use super::markets::{baseline_of, compared_stays, markets};
use super::read::by_ids;
use super::store;
use crate::commands::CommandError;
use crate::contract::monitors::{Monitor, ParityHistory, ParityQuery, RunParity};
use crate::contract::{FieldValue as _, ValidationError, ValidationErrors};
use crate::ids::{Kind, MonitorId, TenantId};
use crate::scans::cells::{load_ended, mark_implausible};
use crate::scans::grid::by_market::by_market;
use crate::tenants::Keyring;
use jiff::Timestamp;

/// Further runs are left out once so many searches have been read; one scan has at most half of them.
const MAX_SEARCHES: usize = 20_000;

/// The newest runs of a monitor that compare its markets.
///
/// # Errors
/// `NotFound`; `ValidationErrors` for a monitor without several markets of one hotel, or a baseline
/// that is none of them.
pub async fn history(
    pool: &PgPool,
    ring: &Keyring,
    tenant: TenantId,
    id: MonitorId,
    query: &ParityQuery,
    now: Timestamp,
) -> Result<ParityHistory, CommandError> {
    let mut conn = pool.acquire().await?;
    let found = by_ids(&mut conn, ring, tenant, &[id], now).await?.pop();
    let baseline = baseline(&found.ok_or(Kind::Monitor)?, query)?;
    let newest = query.runs_or_default().get();
    let rows = store::run_prices(&mut conn, tenant, &[id], newest.into()).await?;
    let mut runs = Vec::new();
    let mut searches = 0;
    for row in rows.iter().rev() {
        let scan = row.scan_id.into();
        let Some(mut cells) = load_ended(&mut conn, tenant, scan).await? else {
            continue;
        };
        searches += cells.all.iter().map(|cell| cell.items.len()).sum::<usize>();
        if searches > MAX_SEARCHES {
            break;
        }
        mark_implausible(&mut conn, tenant, &mut cells.all).await?;
        let compared = compared_stays(&cells, &baseline);
        if !compared.is_empty() {
            runs.push((row.slot.to_jiff(), scan, compared));
        }
    }
    let all = runs.iter().flat_map(|(_, _, stays)| stays);
    Ok(ParityHistory {
        monitor_id: id,
        markets: by_market(all),
        runs: runs
            .iter()
            .map(|(slot, scan_id, stays)| RunParity {
                slot: *slot,
                scan_id: *scan_id,
                markets: by_market(stays.iter()),
            })
            .collect(),
        baseline,
    })
}

/// The market that the others are compared with, in lower case.
fn baseline(monitor: &Monitor, query: &ParityQuery) -> Result<String, ValidationErrors> {
    let markets = markets(&monitor.scan);
    let given = query.baseline.as_ref();
    let refused = |expected: String| {
        let value = given.map_or(Value::Null, |given| given.to_value());
        Err(ValidationError::new("baseline", &value, expected).into())
    };
    if markets.len() < 2 {
        return refused(
            "a monitor of hotels/by-name or hotels/rooms that sweeps `proxy_country` over at least two markets; this one compares none"
                .to_owned(),
        );
    }
    let given_market = given.map(|given| given.as_str());
    let chosen = given_market.or_else(|| baseline_of(&monitor.alerts));
    let chosen = chosen.map_or_else(|| markets[0].clone(), str::to_ascii_lowercase);
    if markets.contains(&chosen) {
        Ok(chosen)
    } else {
        refused(format!(
            "one of the monitor's markets: {}",
            markets.join(", ")
        ))
    }
}
