//! A scan by its cells: what each combination of the swept values has seen, samples together.
//!
//! For who follows a product from scan to scan (`monitors`). A cell's key is the same in every scan with the same sweep. Not here: two
//! sides of a grid (`grid`), scans with different sweeps (`compare`).

mod store;

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Map, Value};
use sqlx::PgConnection;

pub(crate) use super::grid::cell::{BestOffer, Seen};
pub(crate) use super::grid::parity::parity;
use super::grid::{SweptFields, SweptName};
use crate::contract::Endpoint;
use crate::ids::{ScanId, TenantId};

/// A scan that has ended, by its cells.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) endpoint: Endpoint,
    /// As it was asked, without what was swept.
    pub(crate) request: Map<String, Value>,
    /// In the order of their first items.
    pub(crate) all: Vec<Cell>,
}

/// One combination of the swept values.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// The values as canonical JSON.
    pub(crate) key: String,
    /// The swept words with their values, in the contract's order.
    pub(crate) values: Map<String, Value>,
    /// Its searches, in the order of the scan.
    pub(crate) items: Vec<Searched>,
}

/// One search of a cell.
#[derive(Debug, Clone)]
pub(crate) struct Searched {
    pub(crate) position: i32,
    pub(crate) observed_at: Option<Timestamp>,
    pub(crate) seen: Seen,
}

/// A scan's cells as the transaction on `conn` sees them; `None`: there is no such scan, or it has not ended. Two statements; of the
/// bodies only the swept values are read.
pub(crate) async fn ended(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
) -> sqlx::Result<Option<Cells>> {
    let Some(asked) = store::asked(conn, tenant, scan).await? else {
        return Ok(None);
    };
    let Some(endpoint) = Endpoint::parse(&asked.endpoint) else {
        return Ok(None);
    };
    let (request, sweep) = (object(asked.request), object(asked.sweep));
    let swept = SweptFields::of(endpoint, &request, &sweep);
    let items = store::items(conn, tenant, scan, &swept.0).await?;
    Ok((!items.is_empty()).then(|| Cells {
        endpoint,
        request,
        all: grouped(&swept.0, items),
    }))
}

/// Items come in the order of their positions.
fn grouped(swept: &[SweptName], items: Vec<(Vec<Option<Value>>, Searched)>) -> Vec<Cell> {
    let mut places = HashMap::<String, usize>::new();
    let mut cells = Vec::<Cell>::new();
    for (held, searched) in items {
        let values = values(swept, held);
        let key = Value::Object(values.clone()).to_string();
        let place = *places.entry(key.clone()).or_insert_with(|| {
            cells.push(Cell {
                key,
                values,
                items: Vec::new(),
            });
            cells.len() - 1
        });
        cells[place].items.push(searched);
    }
    cells
}

/// `held` has two values for each swept word: that of its field and that of the field it counts from.
fn values(swept: &[SweptName], held: Vec<Option<Value>>) -> Map<String, Value> {
    let mut held = held.into_iter();
    let pairs = swept.iter().map(|name| {
        let (field, since) = (held.next().flatten(), held.next().flatten());
        (name.word.clone(), name.value(field, since))
    });
    pairs.collect()
}

fn object(stored: Value) -> Map<String, Value> {
    match stored {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
