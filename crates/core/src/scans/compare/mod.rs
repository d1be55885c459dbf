//! Comparing two scans: which cells became cheaper, dearer, new or gone.
//!
//! Here: matching and comparing cells, both pure. A cell is one product with its dates, without the
//! currency: scans of different routes have no common cell, and prices in different currencies are
//! reported as not comparable. Not here: one scan as a grid (`grid`), and which item represents a
//! cell (`grid::cell`).

mod store;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};
use sqlx::PgPool;

use super::grid::cell::{ItemObservation, difference, representative};
use super::grid::{SweptDimension, SweptDimensions, implausible_items};
use super::read;
use crate::commands::CommandError;
use crate::contract::scans::{
    Change, ChangeCounts, ComparedCell, Comparison, ItemState, Scan, SeenPrice,
};
use crate::contract::{Endpoint, Request, SearchStatus, ValidationError};
use crate::history::Subject;
use crate::ids::{Kind, ScanId, TenantId};

/// Compares two scans of a caller in their current states.
///
/// # Errors
/// `NotFound` for either; `ValidationErrors` when they are of different endpoints.
pub async fn compare(
    pool: &PgPool,
    tenant: TenantId,
    before: ScanId,
    after: ScanId,
) -> Result<Comparison, CommandError> {
    let one = read::scan(pool, tenant, before).await?.ok_or(Kind::Scan)?;
    let other = read::scan(pool, tenant, after).await?.ok_or(Kind::Scan)?;
    if one.endpoint != other.endpoint {
        let expected = format!(
            "a scan of {}, like the first; this one is of {}",
            one.endpoint, other.endpoint
        );
        return Err(CommandError::ValidationErrors(
            ValidationError::new("other", &after.to_string().into(), expected).into(),
        ));
    }
    let dimensions = dimensions(&one, &other);
    let mut items = [
        store::items(pool, tenant, before).await?,
        store::items(pool, tenant, after).await?,
    ];
    for (scan, items) in [&one, &other].into_iter().zip(&mut items) {
        let implausible = implausible_items(scan);
        for (_, observation) in items {
            observation.is_implausible = implausible.contains(&observation.item);
        }
    }
    // On a blocking thread, because it parses thousands of bodies.
    let compared = tokio::task::spawn_blocking(move || {
        let [one_items, other_items] = items.map(|items| cells(one.endpoint, items));
        compare_sides(
            one.endpoint,
            (before, one_items),
            (after, other_items),
            &dimensions,
        )
    });
    match compared.await {
        Ok(comparison) => Ok(comparison),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// The fields that either scan sweeps and those that differ in their requests, in the order of the
/// field table.
fn dimensions(one: &Scan, other: &Scan) -> Vec<SweptDimension> {
    let swept: Vec<_> = [one, other]
        .iter()
        .flat_map(|scan| SweptDimensions::of(scan.endpoint, &scan.request, &scan.sweep).0)
        .collect();
    let differs = |field: &str| one.request.get(field) != other.request.get(field);
    let dimensions = one.endpoint.fields().iter().filter_map(|spec| {
        let swept = swept.iter().find(|swept| swept.field == spec.name);
        let plain = || SweptDimension {
            key: spec.name.to_owned(),
            field: spec.name.to_owned(),
            start_field: None,
        };
        swept.cloned().or_else(|| differs(spec.name).then(plain))
    });
    dimensions.collect()
}

/// One scan of a comparison: its cells in the order of its items.
#[derive(Default)]
struct ComparisonSide {
    order: Vec<String>,
    by_key: HashMap<String, SideCell>,
}

struct SideCell {
    /// Of its first item.
    body: Map<String, Value>,
    observations: Vec<ItemObservation>,
}

/// The cells of a scan's items. Items whose body is no valid search of this endpoint are left out.
fn cells(endpoint: Endpoint, items: Vec<(Map<String, Value>, ItemObservation)>) -> ComparisonSide {
    let mut cells = ComparisonSide::default();
    for (body, observation) in items {
        let Some(key) = cell_key(endpoint, &body) else {
            continue;
        };
        let cell = cells.by_key.entry(key.clone()).or_insert_with(|| {
            cells.order.push(key);
            SideCell {
                body,
                observations: Vec::new(),
            }
        });
        cell.observations.push(observation);
    }
    cells
}

/// Equal for searches of one product with the same dates, in any currency.
fn cell_key(endpoint: Endpoint, body: &Map<String, Value>) -> Option<String> {
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

fn compare_sides(
    endpoint: Endpoint,
    (before, one): (ScanId, ComparisonSide),
    (after, other): (ScanId, ComparisonSide),
    dimensions: &[SweptDimension],
) -> Comparison {
    let known: BTreeSet<_> = one.order.iter().collect();
    let keys = one
        .order
        .iter()
        .chain(other.order.iter().filter(|key| !known.contains(key)));
    let mut counts = ChangeCounts::default();
    let cells = keys.filter_map(|key| {
        let sides = [one.by_key.get(key), other.by_key.get(key)];
        let body = &sides.into_iter().flatten().next()?.body;
        let field = |name: &str| body.get(name).cloned();
        let value = |dimension: &SweptDimension| {
            let start = dimension.start_field.as_deref().and_then(field);
            dimension.value(field(&dimension.field), start)
        };
        let cell = dimensions
            .iter()
            .map(|dimension| (dimension.key.clone(), value(dimension)))
            .collect();
        let [before, after] =
            sides.map(|side| side.and_then(|cell| representative(&cell.observations)));
        let compared = compare_cell(cell, before, after);
        counts.add(compared.change);
        Some(compared)
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

/// Compares one cell; a side is `None` if its scan has no such cell.
fn compare_cell(
    cell: Map<String, Value>,
    before: Option<&ItemObservation>,
    after: Option<&ItemObservation>,
) -> ComparedCell {
    let prices =
        [before, after].map(|side| side.and_then(|observation| observation.price.as_ref()));
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
    let shown = |observation: Option<&ItemObservation>| {
        let observation = observation?;
        let (price, currency) = observation.price.as_ref()?;
        Some(SeenPrice {
            price: price.normalize(),
            currency: currency.clone(),
            item_id: observation.item,
            implausible: observation.is_implausible,
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

/// Whether a side is known to have no price: it has no such cell, or its search was complete.
fn is_known_without(side: Option<&ItemObservation>) -> bool {
    let complete = |observation: &ItemObservation| {
        observation.state == ItemState::Done
            && matches!(
                observation.search_status,
                Some(SearchStatus::Ok | SearchStatus::Empty)
            )
    };
    side.is_none_or(complete)
}
