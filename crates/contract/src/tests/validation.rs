//! The message of a 400 (gateway.md, rule 6) and the parsing of bodies (gateway.md, rule 10).

use crate::{
    MAX_DEPTH, MAX_FOUND_CHARS, MAX_REPORTED_ERRORS, ValidationError, ValidationErrors, read_object,
};
use serde_json::{Value, json};

fn found(value: &Value) -> String {
    ValidationError::new("x", value, "y").found.unwrap()
}

#[test]
fn an_error_names_path_found_and_expected_value() {
    let wrong = ValidationError::new("limit", &json!("ten"), "an integer");
    assert_eq!(
        wrong.to_string(),
        "`limit`: found \"ten\"; expected an integer"
    );
    assert_eq!(
        ValidationError::missing("limit", "an integer").to_string(),
        "`limit` is missing; expected an integer"
    );
}

#[test]
fn an_echoed_value_is_short_without_control_characters() {
    assert_eq!(MAX_FOUND_CHARS, 80);
    let longest = "é".repeat(78);
    assert_eq!(found(&json!(longest)), format!("\"{longest}\""));
    assert_eq!(found(&json!("é".repeat(79))), format!("\"{longest}…"));
    assert_eq!(found(&json!("é".repeat(79))).chars().count(), 80);
    assert_eq!(
        found(&json!("a\u{1b}[31m\u{7f}\u{85}\n")),
        "\"a\\u001b[31m\u{fffd}\u{fffd}\\n\""
    );
    assert_eq!(
        found(&json!(format!("\u{7f}{}", "x".repeat(100)))),
        format!("\"\u{fffd}{}…", "x".repeat(77))
    );
}

#[test]
fn errors_keep_their_order_and_are_bounded() {
    let mut errors = ValidationErrors::default();
    assert!(errors.is_empty());
    errors.push(ValidationError::missing("a", "1"));
    errors.merge(ValidationError::missing("b", "2").into());
    assert_eq!(
        errors.to_string(),
        "`a` is missing; expected 1. `b` is missing; expected 2"
    );
    let asked = ValidationErrors::from(ValidationError::missing("c", "d?"));
    let mut both = asked.clone();
    both.merge(asked);
    assert_eq!(
        both.to_string(),
        "`c` is missing; expected d? `c` is missing; expected d?"
    );
    assert!(!errors.is_empty());
    for index in 2..MAX_REPORTED_ERRORS {
        errors.push(ValidationError::missing(index.to_string(), "x"));
    }
    assert_eq!(
        (errors.len(), errors.iter().count()),
        (MAX_REPORTED_ERRORS, MAX_REPORTED_ERRORS)
    );
    assert!(errors.to_string().ends_with("`99` is missing; expected x"));

    let mut more = errors.clone();
    more.push(ValidationError::missing("late", "x"));
    more.push_lazily(|| panic!("there is no room, so nothing is worked out"));
    assert_eq!(
        (more.len(), more.iter().count()),
        (MAX_REPORTED_ERRORS + 2, MAX_REPORTED_ERRORS)
    );
    assert!(
        more.to_string()
            .ends_with("`99` is missing; expected x. And 2 more")
    );

    errors.merge(more);
    assert_eq!(
        (errors.len(), errors.iter().count()),
        (2 * MAX_REPORTED_ERRORS + 2, MAX_REPORTED_ERRORS)
    );
    assert_eq!((&errors).into_iter().count(), errors.into_iter().count());
}

#[test]
fn a_prefix_extends_the_path_outwards() {
    let path = |inner: &str, outer: &str| {
        let errors = ValidationErrors::from(ValidationError::missing(inner, "x")).prefix(outer);
        errors.into_iter().next().unwrap().path
    };
    assert_eq!(path("", "limit"), "limit");
    assert_eq!(path("[2]", "passengers"), "passengers[2]");
    assert_eq!(path("nights[0]", "sweep"), "sweep.nights[0]");
}

#[test]
fn an_unknown_name_is_shortened_in_the_path() {
    let name = format!("\u{1b}{}", "x".repeat(80));
    let short = format!("\u{fffd}{}…", "x".repeat(78));
    assert_eq!(ValidationError::new(&name, &json!(1), "y").path, short);
    assert_eq!(ValidationError::missing(&name, "y").path, short);
    assert_eq!(
        ValidationErrors::from(ValidationError::missing("", "y"))
            .prefix(&name)
            .into_iter()
            .next()
            .unwrap()
            .path,
        short
    );
}

#[test]
fn an_error_wins_over_a_built_value() {
    assert_eq!(ValidationErrors::default().ok_if_empty(|| Some(1)), Ok(1));
    let errors = ValidationErrors::from(ValidationError::missing("a", "x"));
    assert_eq!(errors.clone().ok_if_empty(|| Some(1)), Err(errors.clone()));
    assert_eq!(errors.clone().ok_if_empty(|| None::<u8>), Err(errors));
}

fn refusal(body: &[u8]) -> String {
    read_object(body, MAX_DEPTH).unwrap_err().to_string()
}

#[test]
fn a_body_is_one_json_object() {
    assert_eq!(
        read_object(br#" {"a": 1, "b": null} "#, MAX_DEPTH)
            .unwrap()
            .len(),
        2
    );
    for (body, message) in [
        ("", "`body` is missing; expected a JSON object"),
        (" \r\n\t", "`body` is missing; expected a JSON object"),
        ("[1]", "`body`: found [1]; expected a JSON object"),
        ("null", "`body`: found null; expected a JSON object"),
        ("\"{}\"", "`body`: found \"{}\"; expected a JSON object"),
    ] {
        assert_eq!(refusal(body.as_bytes()), message);
    }
    for body in [
        "{",
        "{} x",
        "{}{}",
        "{'a': 1}",
        "{\"a\": 1,}",
        "{\"a\": 1e999}",
        "a=1&b=2",
        "]",
    ] {
        let message = refusal(body.as_bytes());
        assert!(
            message.starts_with(&format!("`body`: found {body}; expected a JSON object (")),
            "{message}"
        );
    }
    assert!(refusal(b"{\"a\": \"\xff\"}").contains("\u{fffd}"));
    assert_eq!(
        read_object("😀".repeat(200).as_bytes(), MAX_DEPTH)
            .unwrap_err()
            .iter()
            .next()
            .unwrap()
            .found
            .as_ref()
            .map(|found| found.chars().count()),
        Some(80)
    );
}

/// RFC 8259 leaves open which of two equal names counts, so a caller cannot know which search would
/// be billed.
#[test]
fn a_duplicate_field_is_refused_at_every_depth() {
    for (body, message) in [
        (
            r#"{"a": 1, "a": 2}"#,
            "`a`: found 1 and 2; expected one value: a field is given once",
        ),
        (
            r#"{"a": 1, "a": 1}"#,
            "`a`: found 1 and 1; expected one value: a field is given once",
        ),
        (
            r#"{"a": null, "\u0061": [2]}"#,
            "`a`: found null and [2]; expected one value: a field is given once",
        ),
        (
            r#"{"scan": {"request": {"b": "x", "b": {}}}}"#,
            "`scan.request.b`: found \"x\" and {}; expected one value: a field is given once",
        ),
        (
            r#"{"alerts": [{}, [0, {"b": 1, "c": 2, "b": 3}]]}"#,
            "`alerts[1][1].b`: found 1 and 3; expected one value: a field is given once",
        ),
        (
            r#"{"a": {"x": 1, "x": 2}, "b": 3, "b": 4, "b": 5}"#,
            "`a.x`: found 1 and 2; expected one value: a field is given once. \
             `b`: found 3 and 4; expected one value: a field is given once. \
             `b`: found 4 and 5; expected one value: a field is given once",
        ),
    ] {
        assert_eq!(refusal(body.as_bytes()), message, "{body}");
    }
    for body in [
        r#"{"a": 1, "A": 2, "a ": 3, "": 4, "b": {"a": 1}, "c": [{"a": 1}, {"a": 1}]}"#,
        r#"{"$serde_json::private::RawValue": "x"}"#,
    ] {
        let read = read_object(body.as_bytes(), MAX_DEPTH).unwrap();
        assert_eq!(
            Value::from(read).to_string(),
            body.replace([' ', '\n'], "").replace("\"a\":3", "\"a \":3"),
            "as it was written"
        );
    }
    // Many duplicates give one bounded message.
    let many = format!("{{{}\"a\": 0}}", "\"a\": 0,".repeat(1_000));
    assert!(
        refusal(many.as_bytes()).ends_with("And 900 more"),
        "{}",
        refusal(many.as_bytes())
    );
    // Invalid JSON gives only that error.
    assert!(refusal(br#"{"a": 1, "a": 2"#).starts_with("`body`: found"));
}

#[test]
fn numbers_are_read_as_json_reads_them() {
    let body = r#"{"a":[0,-1,1.5,-0.0,1e3,18446744073709551615,-9223372036854775808,18446744073709551616,0.1,true,null,"\u00e9"]}"#;
    assert_eq!(
        Value::from(read_object(body.as_bytes(), MAX_DEPTH).unwrap()),
        serde_json::from_str::<Value>(body).unwrap()
    );
}

#[test]
fn a_body_is_nested_at_most_64_deep() {
    assert_eq!(MAX_DEPTH, 64);
    let nested = |lists: usize| {
        format!(
            "{{\"s\": \"x\", \"a\": {}{}}}",
            "[".repeat(lists),
            "]".repeat(lists)
        )
    };
    assert!(read_object(nested(63).as_bytes(), MAX_DEPTH).is_ok());
    assert!(
        refusal(nested(64).as_bytes()).ends_with("expected a JSON object nested at most 64 deep")
    );
    let objects = |count: usize| format!("{}1{}", "{\"a\":".repeat(count), "}".repeat(count));
    assert!(read_object(objects(64).as_bytes(), MAX_DEPTH).is_ok());
    assert!(refusal(objects(65).as_bytes()).contains("nested at most 64 deep"));
    // Excessive nesting is refused before any recursion.
    assert!(refusal("[".repeat(60_000).as_bytes()).contains("nested at most 64 deep"));

    let wide = format!(
        "{{\"a\": [{}[]]}}",
        "[],{},".to_owned().repeat(200).as_str()
    );
    assert!(read_object(wide.replace("{},", "{\"b\":1},").as_bytes(), MAX_DEPTH).is_ok());
    let in_text = format!("{{\"a\": \"\\\"{}\\\\\", \"b\": []}}", "[{".repeat(100));
    assert!(read_object(in_text.as_bytes(), MAX_DEPTH).is_ok());
}
