//! Properties that hold for any JSON.

use super::minimal;
use crate::scans::ScanRequest;
use crate::{Endpoint, FieldAlias, MAX_DEPTH, Request, ValidationErrors, offers, read_object};
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use serde_json::{Map, Value, json};

fn any_endpoint() -> impl Strategy<Value = Endpoint> {
    select(Endpoint::ALL)
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3..30_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[A-Za-z]{2,3}|20[0-9]{2}-[01][0-9]-[0-3][0-9]|[a-z]/[a-z]".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any_name(), inner), 0..4)
                .prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

/// Any name, mostly one of a known field.
fn any_name() -> impl Strategy<Value = String> {
    let known: Vec<_> = Endpoint::ALL
        .iter()
        .flat_map(|endpoint| endpoint.fields())
        .map(|field| field.name)
        .collect();
    prop_oneof![6 => select(known).prop_map(str::to_owned), 1 => ".{0,90}"]
}

fn any_body() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((any_name(), any_json()), 0..8)
        .prop_map(|pairs| pairs.into_iter().collect())
}

/// Errors are short and have no control characters.
fn assert_printable(errors: &ValidationErrors) -> Result<(), TestCaseError> {
    prop_assert!(!errors.is_empty());
    for error in errors {
        prop_assert!(
            error
                .found
                .as_ref()
                .is_none_or(|found| found.chars().count() <= 80)
        );
        prop_assert!(
            error.path.chars().count() <= 200,
            "three names of at most 80 or known length: {}",
            error.path
        );
        prop_assert!(!error.to_string().contains(char::is_control), "{}", error);
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_json_makes_validation_panic(endpoint in any_endpoint(), body in any_body()) {
        let alias = FieldAlias::detect(endpoint, &body);
        match Request::check(endpoint, &body) {
            Ok(checked) => prop_assert_eq!(checked.alias, alias),
            Err(errors) => assert_printable(&errors)?,
        }
        let scan = json!({"endpoint": "hotels/rooms", "request": {}, "sweep": body, "retry": body});
        if let Err(errors) = ScanRequest::from_body(scan.as_object().unwrap()) {
            assert_printable(&errors)?;
        }
        let _ = offers(endpoint, Value::Object(body).to_string().as_bytes());
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{}\",:a1\\\\ ]{0,60}") {
        let _ = read_object(&bytes, MAX_DEPTH);
        let _ = read_object(text.as_bytes(), MAX_DEPTH);
    }

    #[test]
    fn a_written_object_reads_back_equal(body in any_body()) {
        prop_assert_eq!(read_object(json!(body).to_string().as_bytes(), MAX_DEPTH), Ok(body));
    }

    #[test]
    fn the_upstream_body_is_the_given_one_and_is_valid(endpoint in any_endpoint(), more in any_body()) {
        let mut body = more;
        body.retain(|name, value| endpoint.field(name).is_some_and(|field| (field.read)(value).is_ok()));
        body.extend(minimal(endpoint));
        let checked = Request::check(endpoint, &body).unwrap();
        let sent = checked.request.to_body();
        let again = Request::check(endpoint, &sent).unwrap();
        prop_assert_eq!(&again.request, &checked.request);
        prop_assert_eq!(again.request.to_body(), sent.clone());
        prop_assert_eq!(again.alias, None);
        for (name, value) in &sent {
            let given = body.get(name).or(body.get("max_stops")).unwrap();
            match given {
                Value::String(text) if name.ends_with("_airport") => {
                    prop_assert!(text.eq_ignore_ascii_case(value.as_str().unwrap()));
                }
                // A whole number is accepted as 2.0 and sent as 2.
                Value::Number(number) => prop_assert_eq!(number.as_f64(), value.as_f64()),
                _ => prop_assert_eq!(given, value, "only the alias sets what was not given"),
            }
        }
        for name in body.keys() {
            prop_assert!(sent.contains_key(name) || name == "max_stops");
        }
    }

    /// An object is invalid for every field, so each field with one is named, and no other.
    #[test]
    fn every_invalid_field_is_named(
        (endpoint, bad) in any_endpoint().prop_flat_map(|endpoint| {
            let names: Vec<_> = endpoint.fields().iter().map(|field| field.name).collect();
            let count = names.len();
            (Just(endpoint), subsequence(names, 1..=count))
        }),
        unknown in "[a-z]{1,8}_x",
        at in any::<Index>(),
    ) {
        let mut body = minimal(endpoint);
        for name in &bad {
            body.insert((*name).to_owned(), json!({"bad": at.index(9)}));
        }
        body.insert(unknown.clone(), json!(1));
        let errors = Request::check(endpoint, &body).unwrap_err();
        let named: Vec<_> = errors.iter().map(|error| error.path.as_str()).collect();
        let mut expected = bad;
        expected.push(&unknown);
        prop_assert_eq!(named, expected);
    }
}
