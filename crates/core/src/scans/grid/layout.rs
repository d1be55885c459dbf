//! The fields that a scan sweeps, and those that a grid shows: pure.

use serde_json::{Map, Value};

use crate::contract::scans::{GridQuery, Scan, SweptField};
use crate::contract::{Endpoint, FieldKind, FieldValue as _, ValidationError, ValidationErrors};

/// The field that a market scan sweeps.
const MARKET: &str = "proxy_country";
/// The key of a sweep that is no field.
const NIGHTS: &str = "nights";
/// Prices in different currencies do not compare.
const CURRENCY: &str = "currency";

/// A swept field, and the fields of an item's body that hold its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::scans) struct SweptDimension {
    /// The key in the sweep.
    pub(in crate::scans) key: String,
    /// The field of the body.
    pub(in crate::scans) field: String,
    /// For `nights`: the field of the start date.
    pub(in crate::scans) start_field: Option<String>,
}

impl SweptDimension {
    /// The value for an item. `field` and `start` are the values of `field` and `start_field` in
    /// its body; with `start_field` it is the number of nights between them.
    pub(in crate::scans) fn value(&self, field: Option<Value>, start: Option<Value>) -> Value {
        let field = field.unwrap_or(Value::Null);
        if self.start_field.is_none() {
            return field;
        }
        let date = |value: &Value| {
            value
                .as_str()
                .and_then(|text| text.parse::<jiff::civil::Date>().ok())
        };
        let nights = date(&field)
            .zip(start.as_ref().and_then(date))
            .and_then(|(end, start)| start.until(end).ok());
        nights.map_or(Value::Null, |nights| nights.get_days().into())
    }
}

/// The fields that a scan sweeps, in the order of the field table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::scans) struct SweptDimensions(pub(in crate::scans) Vec<SweptDimension>);

impl SweptDimensions {
    pub(in crate::scans) fn of(
        endpoint: Endpoint,
        request: &Map<String, Value>,
        sweep: &Map<String, Value>,
    ) -> Self {
        let given = |name: &str| {
            [request, sweep]
                .iter()
                .any(|fields| fields.get(name).is_some_and(|value| !value.is_null()))
        };
        let mut dates = endpoint
            .fields()
            .iter()
            .filter(|field| field.kind == FieldKind::Date)
            .map(|field| field.name);
        let stay = dates.next().zip(dates.next()).filter(|_| given(NIGHTS));
        let name = |key: &str, field: &str, start_field: Option<&str>| SweptDimension {
            key: key.to_owned(),
            field: field.to_owned(),
            start_field: start_field.map(str::to_owned),
        };
        let swept = endpoint.fields().iter().filter_map(|spec| match stay {
            Some((start, end)) if spec.name == end => Some(name(NIGHTS, end, Some(start))),
            _ if sweep.get(spec.name).is_none_or(Value::is_null) => None,
            // Bodies hold the targets of an alias: take the first one that the alias sets.
            _ => Some(name(
                spec.name,
                spec.alias_of
                    .iter()
                    .find(|target| !given(target))
                    .unwrap_or(&spec.name),
                None,
            )),
        });
        Self(swept.collect())
    }

    fn find(
        &self,
        path: &str,
        requested: &SweptField,
        other: Option<&SweptField>,
        faults: &mut ValidationErrors,
    ) -> Option<SweptDimension> {
        let found = self
            .0
            .iter()
            .find(|swept| swept.key == requested.as_str())
            .filter(|_| other != Some(requested));
        if found.is_none() {
            let keys = self.0.iter().map(|swept| swept.key.as_str());
            let left = keys.filter(|key| other.is_none_or(|other| other.as_str() != *key));
            faults.push(ValidationError::new(
                path,
                &requested.to_value(),
                one_of_swept(left),
            ));
        }
        found.cloned()
    }
}

fn one_of_swept<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    let keys: Vec<_> = keys.map(|key| format!("`{key}`")).collect();
    if keys.is_empty() {
        "no field: this scan sweeps no other".to_owned()
    } else {
        format!("a field that this scan sweeps: {}", keys.join(", "))
    }
}

/// The fields of a grid, each swept by the scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GridLayout {
    pub(super) rows: SweptDimension,
    pub(super) columns: Option<SweptDimension>,
    pub(super) baseline: Option<Baseline>,
}

/// The market that the others are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Baseline {
    pub(super) country: String,
    /// Whether markets are the rows.
    pub(super) in_rows: bool,
}

impl Baseline {
    /// Whether a market is the baseline; country codes are case-insensitive.
    pub(super) fn is_market(&self, market: &Value) -> bool {
        market
            .as_str()
            .is_some_and(|market| market.eq_ignore_ascii_case(&self.country))
    }
}

impl GridLayout {
    /// # Errors
    /// For fields that the scan does not sweep, one field for rows and columns, a swept currency
    /// that is neither, and an invalid baseline.
    pub(super) fn of(scan: &Scan, query: &GridQuery) -> Result<Self, ValidationErrors> {
        let swept = SweptDimensions::of(scan.endpoint, &scan.request, &scan.sweep);
        let mut faults = ValidationErrors::default();
        let rows = swept.find("rows", &query.rows, None, &mut faults);
        let columns = query
            .columns
            .as_ref()
            .map(|columns| swept.find("columns", columns, Some(&query.rows), &mut faults));
        let axes: Vec<_> = [Some(&query.rows), query.columns.as_ref()]
            .into_iter()
            .flatten()
            .map(SweptField::as_str)
            .collect();
        let off_grid = |name: &&SweptDimension| !axes.contains(&name.key.as_str());
        if faults.is_empty()
            && swept
                .0
                .iter()
                .filter(off_grid)
                .any(|name| name.key == CURRENCY)
        {
            let expected = "`currency` as rows or columns: this scan sweeps it, and prices of different currencies do not compare";
            faults.push(ValidationError::new(
                "rows",
                &query.rows.to_value(),
                expected,
            ));
        }
        let baseline = query.baseline.as_ref().map(|country| Baseline {
            country: country.as_str().to_owned(),
            in_rows: query.rows.as_str() == MARKET,
        });
        if let Some(baseline) = &baseline {
            let off_grid: Vec<_> = swept
                .0
                .iter()
                .filter(off_grid)
                .filter(|name| !has_one_value(scan, &name.key))
                .map(|name| name.key.as_str())
                .collect();
            if let Some(expected) = baseline_fault(baseline, scan, &axes, &off_grid) {
                faults.push(ValidationError::new(
                    "baseline",
                    &baseline.country.as_str().into(),
                    expected,
                ));
            }
        }
        faults.ok_if_empty(|| {
            Some(Self {
                rows: rows?,
                columns: columns.flatten(),
                baseline,
            })
        })
    }
}

/// Whether a field is swept over a list of one value, so that all stays have it in common.
fn has_one_value(scan: &Scan, key: &str) -> bool {
    let values = scan.sweep.get(key).and_then(Value::as_array);
    values.is_some_and(|values| values.len() == 1)
}

/// The `expected` text of a fault, if this baseline is invalid.
fn baseline_fault(
    baseline: &Baseline,
    scan: &Scan,
    axes: &[&str],
    off_grid: &[&str],
) -> Option<String> {
    if !matches!(
        scan.endpoint,
        Endpoint::HotelsByName | Endpoint::HotelsRooms
    ) {
        let endpoint = scan.endpoint;
        return Some(format!(
            "no baseline for {endpoint}: only hotels/by-name and hotels/rooms compare the same hotel"
        ));
    }
    if !axes.contains(&MARKET) {
        return Some(format!(
            "a baseline only with `{MARKET}` as rows or columns"
        ));
    }
    if !off_grid.is_empty() {
        return Some(format!(
            "a baseline only if all fields swept over several values are rows or columns, so that the same stays are compared; missing: `{}`",
            off_grid.join("`, `")
        ));
    }
    let markets: Vec<_> = scan
        .sweep
        .get(MARKET)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|market| market.is_string())
        .collect();
    let known = markets.iter().any(|market| baseline.is_market(market));
    (!known).then(|| {
        let names: Vec<_> = markets
            .iter()
            .filter_map(|market| market.as_str())
            .map(|market| format!("`{market}`"))
            .collect();
        format!("a market that this scan sweeps: {}", names.join(", "))
    })
}
