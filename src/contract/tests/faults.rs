//! The message of a 400 (contract 6) and the way from bytes to an object (contract 10).

use crate::contract::{Fault, Faults, MAX_DEPTH, MAX_HELD_CHARS, MAX_LISTED, read_object};
use serde_json::{Value, json};

fn held(value: &Value) -> String {
    Fault::new("x", value, "y").held.unwrap()
}

#[test]
fn a_fault_tells_path_value_and_what_is_allowed() {
    let wrong = Fault::new("limit", &json!("ten"), "an integer");
    assert_eq!(
        wrong.to_string(),
        "`limit` holds \"ten\"; allowed: an integer"
    );
    assert_eq!(
        Fault::missing("limit", "an integer").to_string(),
        "`limit` is missing; allowed: an integer"
    );
}

#[test]
fn an_echo_is_short_and_has_no_control_characters() {
    assert_eq!(MAX_HELD_CHARS, 80);
    let longest = "é".repeat(78);
    assert_eq!(held(&json!(longest)), format!("\"{longest}\""));
    assert_eq!(held(&json!("é".repeat(79))), format!("\"{longest}…"));
    assert_eq!(held(&json!("é".repeat(79))).chars().count(), 80);
    assert_eq!(
        held(&json!("a\u{1b}[31m\u{7f}\u{85}\n")),
        "\"a\\u001b[31m\u{fffd}\u{fffd}\\n\""
    );
    assert_eq!(
        held(&json!(format!("\u{7f}{}", "x".repeat(100)))),
        format!("\"\u{fffd}{}…", "x".repeat(77))
    );
}

#[test]
fn faults_are_joined_in_their_order_and_bounded() {
    let mut faults = Faults::default();
    assert!(faults.is_empty());
    faults.push(Fault::missing("a", "1"));
    faults.merge(Fault::missing("b", "2").into());
    assert_eq!(
        faults.to_string(),
        "`a` is missing; allowed: 1. `b` is missing; allowed: 2"
    );
    let asked = Faults::from(Fault::missing("c", "d?"));
    let mut both = asked.clone();
    both.merge(asked);
    assert_eq!(
        both.to_string(),
        "`c` is missing; allowed: d? `c` is missing; allowed: d?"
    );
    assert!(!faults.is_empty());
    for index in 2..MAX_LISTED {
        faults.push(Fault::missing(index.to_string(), "x"));
    }
    assert_eq!(
        (faults.len(), faults.iter().count()),
        (MAX_LISTED, MAX_LISTED)
    );
    assert!(faults.to_string().ends_with("`99` is missing; allowed: x"));

    let mut more = faults.clone();
    more.push(Fault::missing("late", "x"));
    more.push_with(|| panic!("there is no room, so nothing is worked out"));
    assert_eq!(
        (more.len(), more.iter().count()),
        (MAX_LISTED + 2, MAX_LISTED)
    );
    assert!(
        more.to_string()
            .ends_with("`99` is missing; allowed: x. And 2 more")
    );

    faults.merge(more);
    assert_eq!(
        (faults.len(), faults.iter().count()),
        (2 * MAX_LISTED + 2, MAX_LISTED)
    );
    assert_eq!((&faults).into_iter().count(), faults.into_iter().count());
}

#[test]
fn a_path_grows_from_the_inside_out() {
    let path = |inner: &str, outer: &str| {
        let faults = Faults::from(Fault::missing(inner, "x")).prefix(outer);
        faults.into_iter().next().unwrap().path
    };
    assert_eq!(path("", "limit"), "limit");
    assert_eq!(path("[2]", "passengers"), "passengers[2]");
    assert_eq!(path("nights[0]", "sweep"), "sweep.nights[0]");
}

#[test]
fn a_name_that_the_caller_made_up_is_shortened_in_the_path() {
    let name = format!("\u{1b}{}", "x".repeat(80));
    let short = format!("\u{fffd}{}…", "x".repeat(78));
    assert_eq!(Fault::new(&name, &json!(1), "y").path, short);
    assert_eq!(Fault::missing(&name, "y").path, short);
    assert_eq!(
        Faults::from(Fault::missing("", "y"))
            .prefix(&name)
            .into_iter()
            .next()
            .unwrap()
            .path,
        short
    );
}

#[test]
fn what_was_pushed_wins_over_what_was_built() {
    assert_eq!(Faults::default().or_else_build(|| Some(1)), Ok(1));
    let faults = Faults::from(Fault::missing("a", "x"));
    assert_eq!(
        faults.clone().or_else_build(|| Some(1)),
        Err(faults.clone())
    );
    assert_eq!(faults.clone().or_else_build(|| None::<u8>), Err(faults));
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
    for (body, told) in [
        ("", "`body` is missing; allowed: a JSON object"),
        (" \r\n\t", "`body` is missing; allowed: a JSON object"),
        ("[1]", "`body` holds [1]; allowed: a JSON object"),
        ("null", "`body` holds null; allowed: a JSON object"),
        ("\"{}\"", "`body` holds \"{}\"; allowed: a JSON object"),
    ] {
        assert_eq!(refusal(body.as_bytes()), told);
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
        let told = refusal(body.as_bytes());
        assert!(
            told.starts_with(&format!("`body` holds {body}; allowed: a JSON object (")),
            "{told}"
        );
    }
    assert!(refusal(b"{\"a\": \"\xff\"}").contains("\u{fffd}"));
    assert_eq!(
        read_object("😀".repeat(200).as_bytes(), MAX_DEPTH)
            .unwrap_err()
            .iter()
            .next()
            .unwrap()
            .held
            .as_ref()
            .map(|held| held.chars().count()),
        Some(80)
    );
}

/// RFC 8259 leaves open which of two equal names counts, so a caller cannot know which one would be paid for.
#[test]
fn a_field_is_given_once_at_every_depth() {
    for (body, told) in [
        (
            r#"{"a": 1, "a": 2}"#,
            "`a` holds 1 and 2; allowed: one value: a field is given once",
        ),
        (
            r#"{"a": 1, "a": 1}"#,
            "`a` holds 1 and 1; allowed: one value: a field is given once",
        ),
        (
            r#"{"a": null, "\u0061": [2]}"#,
            "`a` holds null and [2]; allowed: one value: a field is given once",
        ),
        (
            r#"{"scan": {"request": {"b": "x", "b": {}}}}"#,
            "`scan.request.b` holds \"x\" and {}; allowed: one value: a field is given once",
        ),
        (
            r#"{"alerts": [{}, [0, {"b": 1, "c": 2, "b": 3}]]}"#,
            "`alerts[1][1].b` holds 1 and 3; allowed: one value: a field is given once",
        ),
        (
            r#"{"a": {"x": 1, "x": 2}, "b": 3, "b": 4, "b": 5}"#,
            "`a.x` holds 1 and 2; allowed: one value: a field is given once. \
             `b` holds 3 and 4; allowed: one value: a field is given once. \
             `b` holds 4 and 5; allowed: one value: a field is given once",
        ),
    ] {
        assert_eq!(refusal(body.as_bytes()), told, "{body}");
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
    // Many of them cost no more than a message.
    let many = format!("{{{}\"a\": 0}}", "\"a\": 0,".repeat(1_000));
    assert!(
        refusal(many.as_bytes()).ends_with("And 900 more"),
        "{}",
        refusal(many.as_bytes())
    );
    // What is no JSON is told as that alone.
    assert!(refusal(br#"{"a": 1, "a": 2"#).starts_with("`body` holds"));
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
        refusal(nested(64).as_bytes()).ends_with("allowed: a JSON object nested at most 64 deep")
    );
    let objects = |count: usize| format!("{}1{}", "{\"a\":".repeat(count), "}".repeat(count));
    assert!(read_object(objects(64).as_bytes(), MAX_DEPTH).is_ok());
    assert!(refusal(objects(65).as_bytes()).contains("nested at most 64 deep"));
    // Far too deep is refused before anything recurses.
    assert!(refusal("[".repeat(60_000).as_bytes()).contains("nested at most 64 deep"));

    let wide = format!(
        "{{\"a\": [{}[]]}}",
        "[],{},".to_owned().repeat(200).as_str()
    );
    assert!(read_object(wide.replace("{},", "{\"b\":1},").as_bytes(), MAX_DEPTH).is_ok());
    let in_text = format!("{{\"a\": \"\\\"{}\\\\\", \"b\": []}}", "[{".repeat(100));
    assert!(read_object(in_text.as_bytes(), MAX_DEPTH).is_ok());
}
