//! Which fields a scan sweeps, and which of them a grid has: pure.

use serde_json::{Map, Value};

use crate::contract::scans::{GridQuery, Scan, SweptField};
use crate::contract::{Endpoint, Fault, Faults, FieldKind, FieldValue as _};

/// The field that a market scan sweeps.
const MARKET: &str = "proxy_country";
/// The word of a sweep that is no field.
const NIGHTS: &str = "nights";
/// Of two different currencies no price is the cheaper one.
const CURRENCY: &str = "currency";

/// A swept field, and where items hold its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::scans) struct SweptName {
    /// The word in the sweep.
    pub(in crate::scans) word: String,
    /// The field of the body.
    pub(in crate::scans) field: String,
    /// For `nights`: the field that it counts from.
    pub(in crate::scans) since: Option<String>,
}

impl SweptName {
    /// The value in an item's body, where `field` and `since` are what it holds; nights are counted.
    pub(in crate::scans) fn value(&self, field: Option<Value>, since: Option<Value>) -> Value {
        let field = field.unwrap_or(Value::Null);
        if self.since.is_none() {
            return field;
        }
        let date = |value: &Value| {
            value
                .as_str()
                .and_then(|text| text.parse::<jiff::civil::Date>().ok())
        };
        let nights = date(&field)
            .zip(since.as_ref().and_then(date))
            .and_then(|(end, start)| start.until(end).ok());
        nights.map_or(Value::Null, |nights| nights.get_days().into())
    }
}

/// The fields that a scan sweeps, in the contract's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::scans) struct SweptFields(pub(in crate::scans) Vec<SweptName>);

impl SweptFields {
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
        let name = |word: &str, field: &str, since: Option<&str>| SweptName {
            word: word.to_owned(),
            field: field.to_owned(),
            since: since.map(str::to_owned),
        };
        let swept = endpoint.fields().iter().filter_map(|spec| match stay {
            Some((start, end)) if spec.name == end => Some(name(NIGHTS, end, Some(start))),
            _ if sweep.get(spec.name).is_none_or(Value::is_null) => None,
            // Bodies hold what an alias stands for: the first of those that it sets.
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
        place: &str,
        wanted: &SweptField,
        other: Option<&SweptField>,
        faults: &mut Faults,
    ) -> Option<SweptName> {
        let found = self
            .0
            .iter()
            .find(|swept| swept.word == wanted.as_str())
            .filter(|_| other != Some(wanted));
        if found.is_none() {
            let words = self.0.iter().map(|swept| swept.word.as_str());
            let left = words.filter(|word| other.is_none_or(|other| other.as_str() != *word));
            faults.push(Fault::new(place, &wanted.to_value(), one_of_swept(left)));
        }
        found.cloned()
    }
}

fn one_of_swept<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<_> = words.map(|word| format!("`{word}`")).collect();
    if words.is_empty() {
        "no field: this scan sweeps no other".to_owned()
    } else {
        format!("a field that this scan sweeps: {}", words.join(", "))
    }
}

/// The fields of a grid, each swept by the scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) rows: SweptName,
    pub(super) columns: Option<SweptName>,
    pub(super) baseline: Option<Baseline>,
}

/// The market that others are measured against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Baseline {
    country: String,
    /// Markets are the rows, not the columns.
    pub(super) in_rows: bool,
}

impl Baseline {
    /// Whether a market is the baseline: a code is the same in any case.
    pub(super) fn is(&self, market: &Value) -> bool {
        market
            .as_str()
            .is_some_and(|market| market.eq_ignore_ascii_case(&self.country))
    }
}

impl Layout {
    /// # Errors
    /// Fields that the scan does not sweep, one for both sides, a swept currency that is on no side, a baseline that cannot be.
    pub(super) fn of(scan: &Scan, query: &GridQuery) -> Result<Self, Faults> {
        let swept = SweptFields::of(scan.endpoint, &scan.request, &scan.sweep);
        let mut faults = Faults::default();
        let rows = swept.find("rows", &query.rows, None, &mut faults);
        let columns = query
            .columns
            .as_ref()
            .map(|columns| swept.find("columns", columns, Some(&query.rows), &mut faults));
        let sides: Vec<_> = [Some(&query.rows), query.columns.as_ref()]
            .into_iter()
            .flatten()
            .map(SweptField::as_str)
            .collect();
        let off_grid = |name: &&SweptName| !sides.contains(&name.word.as_str());
        if faults.is_empty()
            && swept
                .0
                .iter()
                .filter(off_grid)
                .any(|name| name.word == CURRENCY)
        {
            let allowed = "`currency` as rows or columns: this scan sweeps it, and prices of different currencies do not compare";
            faults.push(Fault::new("rows", &query.rows.to_value(), allowed));
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
                .map(|name| name.word.as_str())
                .collect();
            if let Some(allowed) = refusal(baseline, scan, &sides, &off_grid) {
                faults.push(Fault::new(
                    "baseline",
                    &baseline.country.as_str().into(),
                    allowed,
                ));
            }
        }
        faults.or_else_build(|| {
            Some(Self {
                rows: rows?,
                columns: columns.flatten(),
                baseline,
            })
        })
    }
}

/// What is allowed instead of this baseline.
fn refusal(baseline: &Baseline, scan: &Scan, sides: &[&str], off_grid: &[&str]) -> Option<String> {
    if !matches!(
        scan.endpoint,
        Endpoint::HotelsByName | Endpoint::HotelsRooms
    ) {
        let endpoint = scan.endpoint;
        return Some(format!(
            "no baseline for {endpoint}: only hotels/by-name and hotels/rooms compare the same hotel"
        ));
    }
    if !sides.contains(&MARKET) {
        return Some(format!(
            "a baseline only beside `{MARKET}` as rows or columns"
        ));
    }
    if !off_grid.is_empty() {
        return Some(format!(
            "a baseline only where all that is swept is on the grid, so that the same stays are compared: not on it is `{}`",
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
    let known = markets.iter().any(|market| baseline.is(market));
    (!known).then(|| {
        let words: Vec<_> = markets
            .iter()
            .filter_map(|market| market.as_str())
            .map(|market| format!("`{market}`"))
            .collect();
        format!("a market that this scan sweeps: {}", words.join(", "))
    })
}
