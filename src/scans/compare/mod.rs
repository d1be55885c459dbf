//! Two scans side by side: what became cheaper, dearer, new or gone.
//!
//! Here: matching cells and judging them, both pure. A cell is one product with its dates, but for the currency: so scans of different
//! routes have no cell in common, and prices of different currencies meet and are told not to compare. Not here: one scan as a grid
//! (`grid`), whose rule says which item speaks for a cell.

mod store;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};
use sqlx::PgPool;

use super::grid::cell::{Seen, difference, speaker};
use super::grid::{SweptFields, SweptName};
use super::{ScanError, read};
use crate::contract::scans::{
    Change, ChangeCounts, ComparedCell, Comparison, ItemState, Scan, SeenPrice,
};
use crate::contract::{Endpoint, Fault, Request, SearchStatus};
use crate::history::Subject;
use crate::ids::{ScanId, TenantId};

/// Compares two scans of a caller, as they are now.
///
/// # Errors
/// `NotFound` for either; `Faults` when they are of different endpoints; `Database`.
pub async fn compare(
    pool: &PgPool,
    tenant: TenantId,
    before: ScanId,
    after: ScanId,
) -> Result<Comparison, ScanError> {
    let one = read::scan(pool, tenant, before)
        .await?
        .ok_or(ScanError::NotFound)?;
    let other = read::scan(pool, tenant, after)
        .await?
        .ok_or(ScanError::NotFound)?;
    if one.endpoint != other.endpoint {
        let allowed = format!(
            "a scan of {}, as the first is: this one is of {}",
            one.endpoint, other.endpoint
        );
        return Err(ScanError::Faults(
            Fault::new("other", &after.to_string().into(), allowed).into(),
        ));
    }
    let names = names(&one, &other);
    let items = [
        store::items(pool, tenant, before).await?,
        store::items(pool, tenant, after).await?,
    ];
    // Thousands of bodies are read as products: not on a thread that others' requests wait for.
    let compared = tokio::task::spawn_blocking(move || {
        let [one_items, other_items] = items.map(|items| cells(one.endpoint, items));
        compared(
            one.endpoint,
            (before, one_items),
            (after, other_items),
            &names,
        )
    });
    match compared.await {
        Ok(comparison) => Ok(comparison),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// What either scan sweeps, and what their requests hold differently, in the contract's order.
fn names(one: &Scan, other: &Scan) -> Vec<SweptName> {
    let swept: Vec<_> = [one, other]
        .iter()
        .flat_map(|scan| SweptFields::of(scan.endpoint, &scan.request, &scan.sweep).0)
        .collect();
    let differs = |field: &str| one.request.get(field) != other.request.get(field);
    let names = one.endpoint.fields().iter().filter_map(|spec| {
        let swept = swept.iter().find(|swept| swept.field == spec.name);
        let plain = || SweptName {
            word: spec.name.to_owned(),
            field: spec.name.to_owned(),
            since: None,
        };
        swept.cloned().or_else(|| differs(spec.name).then(plain))
    });
    names.collect()
}

/// One side of a comparison: its cells in the order of its items.
#[derive(Default)]
struct Cells {
    order: Vec<String>,
    found: HashMap<String, Cell>,
}

struct Cell {
    /// Of its first item.
    body: Map<String, Value>,
    seen: Vec<Seen>,
}

/// The cells of a scan's items. What cannot be read as a search of this endpoint is none of any cell.
fn cells(endpoint: Endpoint, items: Vec<(Map<String, Value>, Seen)>) -> Cells {
    let mut cells = Cells::default();
    for (body, seen) in items {
        let Some(key) = identity(endpoint, &body) else {
            continue;
        };
        let cell = cells.found.entry(key.clone()).or_insert_with(|| {
            cells.order.push(key);
            Cell {
                body,
                seen: Vec::new(),
            }
        });
        cell.seen.push(seen);
    }
    cells
}

/// Equal for searches of one product and its dates, whatever the currency.
fn identity(endpoint: Endpoint, body: &Map<String, Value>) -> Option<String> {
    let subject = Subject::of(&Request::check(endpoint, body).ok()?.request)?;
    let mut product = subject.series.product;
    product.remove("currency");
    let last = subject
        .last_date
        .map(|date| date.to_string())
        .unwrap_or_default();
    Some(format!(
        "{} {last} {}",
        subject.first_date,
        Value::Object(product)
    ))
}

fn compared(
    endpoint: Endpoint,
    (before, one): (ScanId, Cells),
    (after, other): (ScanId, Cells),
    names: &[SweptName],
) -> Comparison {
    let known: BTreeSet<_> = one.order.iter().collect();
    let keys = one
        .order
        .iter()
        .chain(other.order.iter().filter(|key| !known.contains(key)));
    let mut counts = ChangeCounts::default();
    let cells = keys.filter_map(|key| {
        let sides = [one.found.get(key), other.found.get(key)];
        let body = &sides.into_iter().flatten().next()?.body;
        let held = |field: &str| body.get(field).cloned();
        let value =
            |name: &SweptName| name.value(held(&name.field), name.since.as_deref().and_then(held));
        let cell = names
            .iter()
            .map(|name| (name.word.clone(), value(name)))
            .collect();
        let [before, after] = sides.map(|side| side.and_then(|cell| speaker(&cell.seen)));
        let judged = judge(cell, before, after);
        counts.add(judged.change);
        Some(judged)
    });
    let cells = cells.collect();
    Comparison {
        endpoint,
        before,
        after,
        counts,
        cells,
    }
}

/// What became of a cell whose sides are these; `None`: the scan has no such cell.
fn judge(cell: Map<String, Value>, before: Option<&Seen>, after: Option<&Seen>) -> ComparedCell {
    let prices = [before, after].map(|side| side.and_then(|seen| seen.price.as_ref()));
    let (change, measured) = match prices {
        [Some((old, from)), Some((new, to))] if from == to => {
            let change = match new.cmp(old) {
                std::cmp::Ordering::Less => Change::Cheaper,
                std::cmp::Ordering::Greater => Change::Dearer,
                std::cmp::Ordering::Equal => Change::Unchanged,
            };
            (change, Some(difference(*old, *new)))
        }
        [Some(_), Some(_)] => (Change::NotComparable, None),
        [None, Some(_)] if is_known_without(before) => (Change::New, None),
        [Some(_), None] if is_known_without(after) => (Change::Gone, None),
        [None, None] if is_known_without(before) && is_known_without(after) => {
            (Change::NoPrice, None)
        }
        _ => (Change::Unknown, None),
    };
    let shown = |seen: Option<&Seen>| {
        let seen = seen?;
        let (price, currency) = seen.price.as_ref()?;
        Some(SeenPrice {
            price: price.normalize(),
            currency: currency.clone(),
            item_id: seen.item,
        })
    };
    ComparedCell {
        cell,
        change,
        before: shown(before),
        after: shown(after),
        difference: measured.map(|(amount, _)| amount),
        difference_percent: measured.and_then(|(_, percent)| percent),
    }
}

/// A side without a price of which it is known: there is no such cell, or its search was complete.
fn is_known_without(side: Option<&Seen>) -> bool {
    let complete = |seen: &Seen| {
        seen.state == ItemState::Done
            && matches!(
                seen.search_status,
                Some(SearchStatus::Ok | SearchStatus::Empty)
            )
    };
    side.is_none_or(complete)
}
