//! Validation of bodies: the engine's 422 with one `detail` for each fault.

use jiff::civil::Date;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

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
    Texts,
    Passengers,
}

/// One field of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyField {
    pub(crate) name: &'static str,
    pub(crate) kind: BodyFieldKind,
    pub(crate) required: bool,
}

pub(crate) const fn required(name: &'static str, kind: BodyFieldKind) -> BodyField {
    BodyField {
        name,
        kind,
        required: true,
    }
}

pub(crate) const fn optional(name: &'static str, kind: BodyFieldKind) -> BodyField {
    BodyField {
        name,
        kind,
        required: false,
    }
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

/// Parses a body with these `fields` and no others, or lists all faults.
pub(crate) fn read<T: DeserializeOwned>(
    fields: &[BodyField],
    body: &Value,
) -> Result<T, Vec<Detail>> {
    let Some(object) = body.as_object() else {
        return Err(vec![detail(
            "model_attributes_type",
            &[],
            "Input should be a valid dictionary",
            body,
        )]);
    };
    let faults = faults(fields, object, body);
    if !faults.is_empty() {
        return Err(faults);
    }
    serde_json::from_value(body.clone())
        .map_err(|error| vec![detail("value_error", &[], &error.to_string(), body)])
}

/// A fault of parsed fields, such as dates in the wrong order.
pub(crate) fn value_error(field: &str, message: &str, body: &Value) -> Vec<Detail> {
    vec![detail(
        "value_error",
        &[json!(field)],
        &format!("Value error, {message}"),
        &body[field],
    )]
}

/// The fault of a body that is not JSON.
pub(crate) fn not_json(error: &serde_json::Error) -> Detail {
    detail(
        "json_invalid",
        &[json!(error.column())],
        &format!("JSON decode error: {error}"),
        &json!({}),
    )
}

fn faults(fields: &[BodyField], object: &Map<String, Value>, body: &Value) -> Vec<Detail> {
    let mut faults = Vec::new();
    for field in fields {
        let path = [json!(field.name)];
        match object.get(field.name) {
            Some(value) => check(field.kind, value, &path, &mut faults),
            None if field.required => faults.push(detail("missing", &path, "Field required", body)),
            None => {}
        }
    }
    for (name, value) in object {
        if !fields.iter().any(|field| field.name == name) {
            faults.push(detail(
                "extra_forbidden",
                &[json!(name)],
                "Extra inputs are not permitted",
                value,
            ));
        }
    }
    faults
}

fn check(kind: BodyFieldKind, value: &Value, path: &[Value], faults: &mut Vec<Detail>) {
    let fault = match kind {
        BodyFieldKind::Text => match value.as_str() {
            None => Some(("string_type", "Input should be a valid string".to_owned())),
            Some(text) if text.trim().is_empty() => Some((
                "string_too_short",
                "String should have at least 1 character".to_owned(),
            )),
            Some(_) => None,
        },
        BodyFieldKind::Date => (!value.as_str().is_some_and(is_date)).then(|| {
            (
                "date_parsing",
                "Input should be a valid date in the format YYYY-MM-DD".to_owned(),
            )
        }),
        BodyFieldKind::Currency => value
            .as_str()
            .and_then(SandboxCurrency::find)
            .is_none()
            .then(|| {
                (
                    "literal_error",
                    format!("Input should be one of {}", SandboxCurrency::codes()),
                )
            }),
        BodyFieldKind::Flag => (!value.is_boolean())
            .then(|| ("bool_type", "Input should be a valid boolean".to_owned())),
        BodyFieldKind::Amount => (!value.as_f64().is_some_and(|amount| amount > 0.0)).then(|| {
            (
                "greater_than",
                "Input should be a number greater than 0".to_owned(),
            )
        }),
        BodyFieldKind::Whole(least, most) => whole_fault(value, least, most),
        BodyFieldKind::OneOf(allowed) => {
            (!value.as_str().is_some_and(|text| allowed.contains(&text))).then(|| {
                (
                    "literal_error",
                    format!("Input should be one of {}", allowed.join(", ")),
                )
            })
        }
        BodyFieldKind::Cabin => (!matches!(value.as_i64(), Some(1 | 3)))
            .then(|| ("literal_error", "Input should be 1 or 3".to_owned())),
        BodyFieldKind::Texts => return check_list(BodyFieldKind::Text, 0, value, path, faults),
        BodyFieldKind::Passengers => {
            return check_list(BodyFieldKind::Whole(1, 4), 1, value, path, faults);
        }
    };
    faults.extend(fault.map(|(kind, message)| detail(kind, path, &message, value)));
}

fn check_list(
    each: BodyFieldKind,
    least: usize,
    value: &Value,
    path: &[Value],
    faults: &mut Vec<Detail>,
) {
    let Some(list) = value.as_array() else {
        faults.push(detail(
            "list_type",
            path,
            "Input should be a valid list",
            value,
        ));
        return;
    };
    if list.len() < least {
        let message = format!("List should have at least {least} item after validation");
        faults.push(detail("too_short", path, &message, value));
    }
    for (index, item) in list.iter().enumerate() {
        check(each, item, &[path, &[json!(index)]].concat(), faults);
    }
}

fn whole_fault(value: &Value, least: i64, most: i64) -> Option<(&'static str, String)> {
    match value.as_i64() {
        None => Some(("int_type", "Input should be a valid integer".to_owned())),
        Some(number) if number < least => Some((
            "greater_than_equal",
            format!("Input should be greater than or equal to {least}"),
        )),
        Some(number) if number > most => Some((
            "less_than_equal",
            format!("Input should be less than or equal to {most}"),
        )),
        Some(_) => None,
    }
}

/// `YYYY-MM-DD` of an existing day; the date crate alone would also accept a time after it.
fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<Date>().is_ok()
}

fn detail(kind: &'static str, path: &[Value], message: &str, input: &Value) -> Detail {
    let loc = [&[json!("body")], path].concat();
    Detail {
        kind,
        loc,
        msg: message.to_owned(),
        input: input.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[BodyField] = &[
        required("name", BodyFieldKind::Text),
        required("on", BodyFieldKind::Date),
        optional("hour", BodyFieldKind::Whole(0, 23)),
        optional("budget", BodyFieldKind::Amount),
        optional("strict", BodyFieldKind::Flag),
        optional("sort", BodyFieldKind::OneOf(&["A", "B"])),
        optional("codes", BodyFieldKind::Texts),
        optional("passengers", BodyFieldKind::Passengers),
        optional("currency", BodyFieldKind::Currency),
        optional("cabin", BodyFieldKind::Cabin),
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
            let faults = read::<Value>(FIELDS, &body).expect_err("a fault");
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
            read::<Value>(FIELDS, &json!({})).expect_err("faults").len(),
            2
        );
        assert_eq!(
            read::<Value>(FIELDS, &json!([])).expect_err("faults").len(),
            1
        );
        let good = json!({"name": "x", "on": "2027-02-01", "hour": 23, "budget": 80.5, "strict": false, "sort": "B",
            "codes": [], "passengers": [1, 4], "currency": "eur", "cabin": 3});
        assert_eq!(read::<Value>(FIELDS, &good), Ok(good));
    }
}
