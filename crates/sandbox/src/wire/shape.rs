//! Validation of bodies: the engine's 422 with one `detail` for each fault.

use jiff::civil::Date;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use self::BodyFieldKind as Kind;
use crate::world::money::SandboxCurrency;

/// The values that a field accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BodyFieldKind {
    Text,
    Date,
    Currency,
    Flag,
    /// Above zero.
    Amount,
    /// From the first to the second, both included.
    Whole(i64, i64),
    OneOf(&'static [&'static str]),
    Cabin,
    /// A list of at least so many of a kind.
    List(&'static Self, usize),
}

impl BodyFieldKind {
    pub(crate) const TEXTS: Self = Self::List(&Self::Text, 0);
    pub(crate) const PASSENGERS: Self = Self::List(&Self::Whole(1, 4), 1);
}

/// One field of a body: its name, its values, whether it is required.
pub(crate) type BodyField = (&'static str, Kind, bool);

pub(crate) const fn required(name: &'static str, kind: Kind) -> BodyField {
    (name, kind, true)
}

pub(crate) const fn optional(name: &'static str, kind: Kind) -> BodyField {
    (name, kind, false)
}

/// One entry of the `detail` list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Detail {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) loc: Vec<Value>,
    pub(crate) msg: String,
    pub(crate) input: Value,
}

/// Parses a body with the fields of these `parts` and no others, or lists all faults.
pub(crate) fn read<T: DeserializeOwned>(
    parts: &[&[BodyField]],
    body: &Value,
) -> Result<T, Vec<Detail>> {
    let Some(object) = body.as_object() else {
        let message = "Input should be a valid dictionary";
        return Err(vec![detail("model_attributes_type", &[], message, body)]);
    };
    let faults = faults(&parts.concat(), object, body);
    if !faults.is_empty() {
        return Err(faults);
    }
    serde_json::from_value(body.clone())
        .map_err(|error| vec![detail("value_error", &[], &error.to_string(), body)])
}

/// A fault of parsed fields, such as dates in the wrong order.
pub(crate) fn value_error(field: &str, message: &str, body: &Value) -> Vec<Detail> {
    let message = format!("Value error, {message}");
    vec![detail(
        "value_error",
        &[json!(field)],
        &message,
        &body[field],
    )]
}

/// The fault of a body that is not JSON.
pub(crate) fn not_json(error: &serde_json::Error) -> Detail {
    let message = format!("JSON decode error: {error}");
    detail(
        "json_invalid",
        &[json!(error.column())],
        &message,
        &json!({}),
    )
}

fn faults(fields: &[BodyField], object: &Map<String, Value>, body: &Value) -> Vec<Detail> {
    let mut faults = Vec::new();
    for (name, kind, required) in fields {
        let path = [json!(name)];
        match object.get(*name) {
            Some(value) => check(*kind, value, &path, &mut faults),
            None if *required => faults.push(detail("missing", &path, "Field required", body)),
            None => {}
        }
    }
    let unknown = |name: &String| !fields.iter().any(|(known, ..)| known == name);
    for (name, value) in object.iter().filter(|(name, _)| unknown(name)) {
        let message = "Extra inputs are not permitted";
        faults.push(detail("extra_forbidden", &[json!(name)], message, value));
    }
    faults
}

fn check(kind: Kind, value: &Value, path: &[Value], faults: &mut Vec<Detail>) {
    let fault = fault(kind, value);
    faults.extend(fault.map(|(error, message)| detail(error, path, &message, value)));
    if let (Kind::List(each, _), Some(list)) = (kind, value.as_array()) {
        for (index, item) in list.iter().enumerate() {
            check(*each, item, &[path, &[json!(index)]].concat(), faults);
        }
    }
}

/// The fault of one value, with its message; of a list without those of its items.
fn fault(kind: Kind, value: &Value) -> Option<(&'static str, String)> {
    let (text, number) = (value.as_str(), value.as_i64());
    let input = |expected: &str| format!("Input should be {expected}");
    let (accepted, error, message) = match kind {
        Kind::Text if text.is_none() => (false, "string_type", input("a valid string")),
        Kind::Text => {
            let filled = text.is_some_and(|text| !text.trim().is_empty());
            let message = "String should have at least 1 character".to_owned();
            (filled, "string_too_short", message)
        }
        Kind::Date => {
            let message = input("a valid date in the format YYYY-MM-DD");
            (text.is_some_and(is_date), "date_parsing", message)
        }
        Kind::Currency => {
            let message = input(&format!("one of {}", SandboxCurrency::codes()));
            let known = text.and_then(SandboxCurrency::find).is_some();
            (known, "literal_error", message)
        }
        Kind::Flag => (value.is_boolean(), "bool_type", input("a valid boolean")),
        Kind::Amount => {
            let accepted = value.as_f64().is_some_and(|amount| amount > 0.0);
            (accepted, "greater_than", input("a number greater than 0"))
        }
        Kind::Whole(..) if number.is_none() => (false, "int_type", input("a valid integer")),
        Kind::Whole(least, _) if number < Some(least) => {
            let message = input(&format!("greater than or equal to {least}"));
            (false, "greater_than_equal", message)
        }
        Kind::Whole(_, most) => {
            let message = input(&format!("less than or equal to {most}"));
            (number <= Some(most), "less_than_equal", message)
        }
        Kind::OneOf(allowed) => {
            let accepted = text.is_some_and(|text| allowed.contains(&text));
            let message = input(&format!("one of {}", allowed.join(", ")));
            (accepted, "literal_error", message)
        }
        Kind::Cabin => (
            matches!(number, Some(1 | 3)),
            "literal_error",
            input("1 or 3"),
        ),
        Kind::List(_, least) => match value.as_array() {
            None => (false, "list_type", input("a valid list")),
            Some(list) => {
                let message = format!("List should have at least {least} item after validation");
                (list.len() >= least, "too_short", message)
            }
        },
    };
    (!accepted).then_some((error, message))
}

/// `YYYY-MM-DD` of an existing day; the date crate alone would also accept a time after it.
fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<Date>().is_ok()
}

fn detail(kind: &'static str, path: &[Value], message: &str, input: &Value) -> Detail {
    Detail {
        kind,
        loc: [&[json!("body")], path].concat(),
        msg: message.to_owned(),
        input: input.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[BodyField] = &[
        required("name", Kind::Text),
        required("on", Kind::Date),
        optional("hour", Kind::Whole(0, 23)),
        optional("budget", Kind::Amount),
        optional("strict", Kind::Flag),
        optional("sort", Kind::OneOf(&["A", "B"])),
        optional("codes", Kind::TEXTS),
        optional("passengers", Kind::PASSENGERS),
        optional("currency", Kind::Currency),
        optional("cabin", Kind::Cabin),
    ];

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn each_fault_has_its_kind_and_path() {
        for (field, value, kind, place) in [
            ("name", json!(null), "string_type", json!(["body", "name"])),
            (
                "name",
                json!(" "),
                "string_too_short",
                json!(["body", "name"]),
            ),
            (
                "on",
                json!("2027-02-29"),
                "date_parsing",
                json!(["body", "on"]),
            ),
            (
                "on",
                json!("2027-2-1"),
                "date_parsing",
                json!(["body", "on"]),
            ),
            (
                "on",
                json!("2027-02-01T10"),
                "date_parsing",
                json!(["body", "on"]),
            ),
            ("hour", json!("7"), "int_type", json!(["body", "hour"])),
            ("hour", json!(7.5), "int_type", json!(["body", "hour"])),
            ("hour", json!(null), "int_type", json!(["body", "hour"])),
            (
                "hour",
                json!(-1),
                "greater_than_equal",
                json!(["body", "hour"]),
            ),
            (
                "hour",
                json!(24),
                "less_than_equal",
                json!(["body", "hour"]),
            ),
            (
                "budget",
                json!(0),
                "greater_than",
                json!(["body", "budget"]),
            ),
            (
                "budget",
                json!("80"),
                "greater_than",
                json!(["body", "budget"]),
            ),
            (
                "strict",
                json!("true"),
                "bool_type",
                json!(["body", "strict"]),
            ),
            ("sort", json!("a"), "literal_error", json!(["body", "sort"])),
            ("codes", json!("LY"), "list_type", json!(["body", "codes"])),
            (
                "codes",
                json!(["LY", 3]),
                "string_type",
                json!(["body", "codes", 1]),
            ),
            (
                "passengers",
                json!([]),
                "too_short",
                json!(["body", "passengers"]),
            ),
            (
                "passengers",
                json!([1, 5]),
                "less_than_equal",
                json!(["body", "passengers", 1]),
            ),
            (
                "currency",
                json!("XXX"),
                "literal_error",
                json!(["body", "currency"]),
            ),
            ("cabin", json!(2), "literal_error", json!(["body", "cabin"])),
            (
                "hours",
                json!(7),
                "extra_forbidden",
                json!(["body", "hours"]),
            ),
        ] {
            let mut body = json!({"name": "x", "on": "2027-02-01"});
            body[field] = value;
            let faults = read::<Value>(&[FIELDS], &body).expect_err("a fault");
            assert_eq!(faults.len(), 1, "{body}");
            assert_eq!(
                (faults[0].kind, json!(faults[0].loc)),
                (kind, place),
                "{body}"
            );
        }
    }

    #[test]
    fn all_faults_are_listed_and_a_valid_body_has_none() {
        assert_eq!(
            read::<Value>(&[FIELDS], &json!({}))
                .expect_err("faults")
                .len(),
            2
        );
        assert_eq!(
            read::<Value>(&[FIELDS], &json!([]))
                .expect_err("faults")
                .len(),
            1
        );
        let good = json!({"name": "x", "on": "2027-02-01", "hour": 23, "budget": 80.5, "strict": false, "sort": "B",
            "codes": [], "passengers": [1, 4], "currency": "eur", "cabin": 3});
        assert_eq!(read::<Value>(&[FIELDS], &good), Ok(good));
    }
}
