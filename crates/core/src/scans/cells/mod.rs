//! A scan by its cells: the results of each combination of the swept values, samples grouped.
//!
//! `monitors` uses it to follow a product from scan to scan. A cell has the same key in every scan
//! with the same sweep. Not here: grids of two fields (`grid`), scans with different sweeps
//! (`compare`).

mod markets;
mod store;

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Map, Value};
use sqlx::PgConnection;

pub use self::markets::{compare_markets, mark_implausible, market_of};
pub use super::grid::cell::{BestOffer, ItemObservation};
use super::grid::parity::{is_whole, noise_percent, parity};
use super::grid::{SweptDimension, SweptDimensions};
use super::plan::ScanPlan;
use crate::contract::{Endpoint, Request};
use crate::history::Subject;
use crate::ids::{ItemId, ScanId, TenantId};

/// The cells of a scan that has ended.
#[derive(Debug)]
pub struct ScanCells {
    pub endpoint: Endpoint,
    /// The scan's request, without the swept fields.
    pub request: Map<String, Value>,
    /// In the order of their first items.
    pub all: Vec<ScanCell>,
    /// When the scan was stored; all its searches came later.
    pub created_at: Timestamp,
    /// Whether the cell with the lowest price known before the scan was among its searches: of a watch only if it
    /// searched again what was the cheapest (scans.md, rule 98).
    pub searched_known_low: bool,
}

/// One combination of the swept values.
#[derive(Debug, Clone)]
pub struct ScanCell {
    /// The values as canonical JSON.
    pub key: String,
    /// The keys of the sweep with their values, in the order of the field table.
    pub values: Map<String, Value>,
    /// Its items, in the order of their positions.
    pub items: Vec<CellItem>,
}

/// One item of a cell.
#[derive(Debug, Clone)]
pub struct CellItem {
    pub position: i32,
    pub observed_at: Option<Timestamp>,
    pub observation: ItemObservation,
    /// Whether its price is far off its own history, as far as that was looked up.
    pub is_implausible: bool,
}

/// Loads a scan's cells in the transaction on `conn`; `None`: there is no such scan, or it has not
/// ended. Of the bodies it reads only the swept values.
pub async fn load_ended(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
) -> sqlx::Result<Option<ScanCells>> {
    let Some(definition) = store::definition(conn, tenant, scan).await? else {
        return Ok(None);
    };
    let endpoint = definition.endpoint;
    let (request, sweep) = (object(definition.request), object(definition.sweep));
    let swept = SweptDimensions::of(endpoint, &request, &sweep);
    let items = store::items(conn, tenant, scan, &swept.0).await?;
    Ok((!items.is_empty()).then(|| ScanCells {
        endpoint,
        request,
        all: group_by_cell(&swept.0, items),
        created_at: definition.created_at,
        searched_known_low: definition.searched_known_low,
    }))
}

/// The cells of a planned run, before any search: for each its key and values.
#[derive(Debug)]
pub struct PlannedCells {
    pub endpoint: Endpoint,
    pub request: Map<String, Value>,
    pub cells: Vec<(String, Map<String, Value>)>,
    /// The searches, in the order of their items.
    pub searches: Vec<PlannedSearch>,
}

/// A search of a planned run.
#[derive(Debug)]
pub struct PlannedSearch {
    /// The index of its cell.
    pub cell: usize,
    pub first_date: Date,
    pub last_date: Option<Date>,
    pub currency: String,
}

impl PlannedCells {
    /// Those of a plan of this body.
    pub fn of(plan: &ScanPlan, body: &Map<String, Value>) -> Self {
        let part = |name: &str| object(body.get(name).cloned().unwrap_or_default());
        let endpoint = plan.scan_request.endpoint.get();
        let request = part("request");
        let swept = SweptDimensions::of(endpoint, &request, &part("sweep"));
        let mut indexes = HashMap::<String, usize>::new();
        let (mut cells, mut searches) = (Vec::new(), Vec::new());
        for item in &plan.items {
            let Some(subject) = Subject::of(item) else {
                continue;
            };
            let body = item.to_body();
            let field = |name: &str| body.get(name).cloned();
            let fields = swept.0.iter().flat_map(|dimension| {
                let start = dimension.start_field.as_deref();
                [field(&dimension.field), start.and_then(field)]
            });
            let values = values(&swept.0, fields.collect());
            let key = Value::Object(values.clone()).to_string();
            let index = *indexes.entry(key.clone()).or_insert_with(|| {
                cells.push((key, values));
                cells.len() - 1
            });
            searches.push(PlannedSearch {
                cell: index,
                first_date: subject.first_date,
                last_date: subject.last_date,
                currency: subject.series.currency,
            });
        }
        Self {
            endpoint,
            request,
            cells,
            searches,
        }
    }
}

/// The products and dates of some of a scan's items; absent are those whose search has none.
pub async fn subjects(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    endpoint: Endpoint,
    items: &[ItemId],
) -> sqlx::Result<HashMap<ItemId, Subject>> {
    let bodies = store::bodies(conn, tenant, scan, items).await?;
    let subject = move |body| Subject::of(&Request::check(endpoint, &object(body)).ok()?.request);
    // Ten thousand requests are read: too long for an async thread.
    let read = move || {
        let subjects = bodies.into_iter();
        subjects
            .filter_map(|(item, body)| Some((item, subject(body)?)))
            .collect()
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(subjects) => Ok(subjects),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// `items` are in the order of their positions.
fn group_by_cell(
    swept: &[SweptDimension],
    items: Vec<(Vec<Option<Value>>, CellItem)>,
) -> Vec<ScanCell> {
    let mut indexes = HashMap::<String, usize>::new();
    let mut cells = Vec::<ScanCell>::new();
    for (fields, item) in items {
        let values = values(swept, fields);
        let key = Value::Object(values.clone()).to_string();
        let index = *indexes.entry(key.clone()).or_insert_with(|| {
            cells.push(ScanCell {
                key,
                values,
                items: Vec::new(),
            });
            cells.len() - 1
        });
        cells[index].items.push(item);
    }
    cells
}

/// `fields` has two values for each dimension: those of its field and of its start field.
fn values(swept: &[SweptDimension], fields: Vec<Option<Value>>) -> Map<String, Value> {
    let mut fields = fields.into_iter();
    let pairs = swept.iter().map(|dimension| {
        let (field, start) = (fields.next().flatten(), fields.next().flatten());
        (dimension.key.clone(), dimension.value(field, start))
    });
    pairs.collect()
}

fn object(stored: Value) -> Map<String, Value> {
    match stored {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
