//! Which grid fits a scan: a calendar, a calendar for each value of a second field, or a matrix.

use maud::{Markup, html};
use serde_json::Value;

use super::{calendar, matrix};
use crate::failure::PageFailure;
use crate::session::Session;
use farescan_core::commands::CommandError;
use farescan_core::contract::Endpoint;
use farescan_core::contract::scans::{Grid, GridQuery, Scan};
use farescan_core::ids::TenantId;
use farescan_core::scans;

/// More cells than this are shown without the second field, so that the page stays small.
const MAX_CELLS: u32 = 2_500;
/// Calendars of one page.
const MAX_CALENDARS: usize = 6;
const MARKET: &str = "proxy_country";

/// The fields of a scan's grid.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GridFields {
    rows: String,
    columns: Option<String>,
    baseline: Option<String>,
}

/// A scan's grid and how to show it.
#[derive(Debug)]
pub(super) struct ScanGrid {
    pub(super) grid: Grid,
    is_shortened: bool,
}

/// The grid of a scan; `None` if it sweeps nothing.
pub(super) async fn read(
    session: &Session,
    tenant: TenantId,
    scan: &Scan,
) -> Result<Option<ScanGrid>, PageFailure> {
    let Some(mut fields) = grid_fields(scan) else {
        return Ok(None);
    };
    let is_shortened = fields.columns.is_some() && scan.items.total > MAX_CELLS;
    if is_shortened {
        fields.columns = None;
        fields.baseline = None;
    }
    let _permits = session.heavy_read_permits().await?;
    let query = GridQuery::from_query(fields.pairs())?;
    match scans::grid::grid_of_prices(session.pool()?, tenant, scan, &query).await {
        Ok(grid) => Ok(Some(ScanGrid { grid, is_shortened })),
        // A sweep of three fields, one of them the currency, has no such grid.
        Err(CommandError::ValidationErrors(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl GridFields {
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let optional = [
            ("columns", self.columns.as_deref()),
            ("baseline", self.baseline.as_deref()),
        ];
        let given = optional
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        std::iter::once(("rows", self.rows.as_str())).chain(given)
    }
}

/// Markets are columns, unless nothing else is swept. A field swept over one value is no side.
fn grid_fields(scan: &Scan) -> Option<GridFields> {
    let is_axis = |name: &str, value: &Value| !value.is_null() && name != "samples";
    let all = || {
        scan.sweep
            .iter()
            .filter(|(name, value)| is_axis(name, value))
    };
    let has_several = |value: &Value| value.as_array().is_none_or(|values| values.len() > 1);
    let mut swept: Vec<&str> = all()
        .filter(|(_, value)| has_several(value))
        .map(|(name, _)| name.as_str())
        .collect();
    if swept.is_empty() {
        swept = all().map(|(name, _)| name.as_str()).collect();
    }
    let has = |name: &str| swept.contains(&name);
    let rows = ["departure_date", "checkin_date"]
        .into_iter()
        .find(|date| has(date))
        .or_else(|| swept.iter().copied().find(|name| *name != MARKET))
        .or_else(|| swept.first().copied())?;
    let columns = ["currency", MARKET, "nights", "return_date", "checkout_date"]
        .into_iter()
        .find(|name| has(name) && *name != rows)
        .or_else(|| swept.iter().copied().find(|name| *name != rows));
    let compares_markets = matches!(
        scan.endpoint,
        Endpoint::HotelsByName | Endpoint::HotelsRooms
    ) && [Some(rows), columns].contains(&Some(MARKET))
        && swept.len() <= 2;
    let first_market = scan
        .sweep
        .get(MARKET)
        .and_then(|markets| markets.get(0)?.as_str());
    Some(GridFields {
        rows: rows.to_owned(),
        columns: columns.map(str::to_owned),
        baseline: first_market.filter(|_| compares_markets).map(str::to_owned),
    })
}

impl ScanGrid {
    fn is_calendar(&self) -> bool {
        matches!(
            self.grid.rows.field.as_str(),
            "departure_date" | "checkin_date"
        ) && match &self.grid.columns {
            None => true,
            Some(columns) => {
                !matches!(
                    columns.field.as_str(),
                    "nights" | "return_date" | "checkout_date" | MARKET
                ) && columns.values.len() <= MAX_CALENDARS
            }
        }
    }

    /// The grid with its heading, legend and notes.
    pub(super) fn render(&self) -> Markup {
        html! {
            @if self.is_calendar() { (calendar::render(&self.grid)) } @else { (matrix::render(&self.grid)) }
            @if self.is_shortened {
                p class="hint" { "This scan has too many cells for one page: each date shows its cheapest price. The exports have all of them." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(endpoint: &str, sweep: serde_json::Value) -> Option<GridFields> {
        let scan = json!({
            "id": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "endpoint": endpoint, "request": {}, "sweep": sweep,
            "label": null, "tags": [], "status": "running", "status_reason": null,
            "items": {
                "total": 1, "pending": 1, "running": 0, "ok": 0, "empty": 0, "partial": 0, "degraded": 0, "failed": 0,
                "cancelled": 0
            },
            "requests": {"planned": 1, "spent": 0, "max": null}, "strategy": null, "best": null,
            "progress": 0.0, "eta_seconds": null, "monitor_id": null, "key_custody": null,
            "created_at": "2026-12-01T08:00:00Z", "started_at": null, "finished_at": null
        });
        grid_fields(&serde_json::from_value(scan).unwrap())
    }

    fn expected(rows: &str, columns: Option<&str>, baseline: Option<&str>) -> GridFields {
        GridFields {
            rows: rows.to_owned(),
            columns: columns.map(str::to_owned),
            baseline: baseline.map(str::to_owned),
        }
    }

    #[test]
    fn dates_are_rows_and_markets_are_compared_columns() {
        let dates = json!(["2030-01-01", "2030-01-02"]);
        for (endpoint, sweep, shown) in [
            (
                "flights/oneway",
                json!({"to_airport": ["LHR", "CDG"], "departure_date": dates}),
                Some(expected("departure_date", Some("to_airport"), None)),
            ),
            (
                "flights/roundtrip",
                json!({"departure_date": dates, "nights": [7, 10]}),
                Some(expected("departure_date", Some("nights"), None)),
            ),
            (
                "hotels/by-name",
                json!({"proxy_country": ["us", "de"], "checkin_date": dates, "nights": [3], "samples": 3}),
                Some(expected("checkin_date", Some("proxy_country"), Some("us"))),
            ),
            (
                "hotels/rooms",
                json!({"proxy_country": ["us", "de"]}),
                Some(expected("proxy_country", None, Some("us"))),
            ),
            (
                "hotels/search",
                json!({"proxy_country": ["us", "de"], "checkin_date": dates}),
                Some(expected("checkin_date", Some("proxy_country"), None)),
            ),
            ("flights/oneway", json!({}), None),
        ] {
            assert_eq!(fields(endpoint, sweep.clone()), shown, "{endpoint} {sweep}");
        }
    }
}
