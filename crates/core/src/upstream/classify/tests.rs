//! The table of gateway.md, rule 45, and the rules for bodies.

use bytes::Bytes;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::json;

use super::*;

const FLIGHTS: AnswerContext = AnswerContext {
    endpoint: Endpoint::FlightsOneway,
    strict: false,
    row_cap: Some(10),
};
const STRICT: AnswerContext = AnswerContext {
    endpoint: Endpoint::FlightsRoundtrip,
    strict: true,
    row_cap: Some(10),
};
const SEARCH: AnswerContext = hotels(Endpoint::HotelsSearch);

const fn hotels(endpoint: Endpoint) -> AnswerContext {
    AnswerContext {
        endpoint,
        strict: false,
        row_cap: None,
    }
}

fn response(status: u16, headers: &[(&'static str, &str)], body: &str) -> RawResponse {
    let headers = headers
        .iter()
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        })
        .collect();
    RawResponse {
        status,
        headers,
        body: Ok(Bytes::from(body.to_owned())),
    }
}

fn faulty(status: u16, fault: BodyError) -> RawResponse {
    RawResponse {
        status,
        headers: HeaderMap::new(),
        body: Err(fault),
    }
}

fn found(
    context: AnswerContext,
    status: u16,
    headers: &[(&'static str, &str)],
    body: &str,
) -> Finding {
    classify(context, &Ok(response(status, headers, body)))
}

/// A finding as one line of text.
fn line(finding: &Finding) -> String {
    match finding {
        Finding::Answer(answer) => {
            format!(
                "answer {} {:?} {:?}",
                answer.results,
                answer.stated.map(SearchStatus::as_str),
                answer.reason
            )
        }
        Finding::Nothing { message } => format!("nothing: {message}"),
        Finding::Incomplete(incomplete) => {
            format!("incomplete {} {incomplete:?}", incomplete.reason())
        }
        Finding::RateLimited(limit) => format!("rate limited {:?}", limit.retry_after),
        Finding::KeyRejected { message } => format!("key rejected: {message}"),
        Finding::NotSubscribed { api, message } => format!("not subscribed to {api}: {message}"),
        Finding::Refused { message } => format!("refused: {message}"),
    }
}

/// One response and its classification for flights, strict flights and hotels.
fn row(response: impl Fn() -> Result<RawResponse, NoResponse>, expected: [&str; 3]) {
    for (context, expected) in [FLIGHTS, STRICT, SEARCH].into_iter().zip(expected) {
        assert_eq!(
            line(&classify(context, &response())),
            expected,
            "{context:?} {:?}",
            response()
        );
    }
}

fn same(response: impl Fn() -> Result<RawResponse, NoResponse>, expected: &str) {
    row(response, [expected; 3]);
}

#[test]
fn outcome_table_no_answer() {
    same(
        || Err(NoResponse::TimedOut),
        "incomplete upstream_timeout Timeout",
    );
    same(
        || Err(NoResponse::NotConnected),
        "incomplete upstream_connection Connection",
    );
    same(
        || Err(NoResponse::Broken),
        "incomplete upstream_connection Connection",
    );
    same(
        || Ok(faulty(200, BodyError::TimedOut)),
        "incomplete upstream_timeout Timeout",
    );
    same(
        || Ok(faulty(200, BodyError::Broken)),
        "incomplete upstream_connection Connection",
    );
}

#[test]
fn outcome_table_other_statuses() {
    for status in [302, 402, 405, 409, 418, 500, 502, 503, 504, 599, 199] {
        let expected = format!("incomplete upstream_status Status({status})");
        same(
            || Ok(response(status, &[("x-search-status", "ok")], "[]")),
            &expected,
        );
        same(|| Ok(faulty(status, BodyError::Broken)), &expected);
    }
}

#[test]
fn outcome_table_unreadable() {
    let deep = format!("{}{}", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1));
    for body in [
        "",
        "<html>",
        "[{}",
        "[] []",
        "null",
        "\"text\"",
        "1",
        "true",
        "[1]",
        "[{}, null]",
        "[[]]",
        &deep,
    ] {
        same(
            || Ok(response(200, &[("x-search-status", "ok")], body)),
            "incomplete unreadable_response Unreadable",
        );
    }
    same(
        || Ok(faulty(200, BodyError::TooLarge)),
        "incomplete unreadable_response Unreadable",
    );
    same(
        || Ok(faulty(200, BodyError::Undecodable)),
        "incomplete unreadable_response Unreadable",
    );
    let unreadable = "incomplete unreadable_response Unreadable";
    row(
        || Ok(response(200, &[], "[]")),
        ["answer 0 None None", "answer 0 None None", unreadable],
    );
    row(
        || Ok(response(200, &[], r#"{"properties": []}"#)),
        [unreadable, unreadable, "answer 0 None None"],
    );
}

#[test]
fn outcome_table_key_and_subscription() {
    same(
        || Ok(response(401, &[], r#"{"message": "Invalid API key."}"#)),
        "key rejected: Invalid API key.",
    );
    same(
        || Ok(response(401, &[], "")),
        "key rejected: the marketplace does not know this key",
    );
    let message = r#"{"message": "You are not subscribed to this API."}"#;
    let flights = "not subscribed to flights: You are not subscribed to this API.";
    row(
        || Ok(response(403, &[], message)),
        [
            flights,
            flights,
            "not subscribed to hotels: You are not subscribed to this API.",
        ],
    );
    let flights = "not subscribed to flights: the key has no subscription";
    row(
        || Ok(faulty(403, BodyError::Broken)),
        [
            flights,
            flights,
            "not subscribed to hotels: the key has no subscription",
        ],
    );
}

#[test]
fn outcome_table_refused() {
    for status in [400, 422] {
        same(
            || Ok(response(status, &[], r#"{"detail": "no such airport"}"#)),
            "refused: no such airport",
        );
        same(
            || Ok(response(status, &[], "<html>")),
            "refused: the marketplace refused the request",
        );
    }
}

#[test]
fn outcome_table_404() {
    let status = "incomplete upstream_status Status(404)";
    row(
        || Ok(response(404, &[], r#"{"detail": "No hotels"}"#)),
        [status, status, "nothing: No hotels"],
    );
    row(
        || Ok(response(404, &[], "")),
        [status, status, "nothing: nothing was found"],
    );
    for proxy in [
        ("x-rapidapi-proxy-response", "true"),
        ("x-marketplace-proxy-response", "TRUE"),
    ] {
        same(
            || {
                Ok(response(
                    404,
                    &[proxy],
                    r#"{"message": "Endpoint does not exist"}"#,
                ))
            },
            status,
        );
    }
    for engine in [
        ("x-rapidapi-proxy-response", "false"),
        ("x-proxy-response-of", "true"),
        ("proxy-response", "true"),
    ] {
        row(
            || Ok(response(404, &[engine], r#"{"detail": "No hotels"}"#)),
            [status, status, "nothing: No hotels"],
        );
    }
}

#[test]
fn outcome_table_429_is_complete() {
    let headers = [
        ("content-type", "application/problem+json"),
        ("retry-after", "37"),
        ("set-cookie", "a=b"),
    ];
    for context in [FLIGHTS, STRICT, SEARCH] {
        let Finding::RateLimited(limit) =
            found(context, 429, &headers, r#"{ "message":"slow down" }"#)
        else {
            panic!("not a 429")
        };
        assert_eq!(limit.body, r#"{ "message":"slow down" }"#);
        assert_eq!(
            limit.content_type.as_deref(),
            Some("application/problem+json")
        );
        assert_eq!(
            (limit.retry_after.as_deref(), limit.retry_after_seconds()),
            (Some("37"), Some(37))
        );
    }
    same(|| Ok(faulty(429, BodyError::Broken)), "rate limited None");
}

#[test]
fn search_incomplete_keeps_its_stated_reason() {
    let body =
        r#"{"error": {"type": "search_incomplete", "reason": "blocked_page", "message": "m"}}"#;
    same(
        || Ok(response(503, &[], body)),
        r#"incomplete blocked_page Stated { reason: "blocked_page" }"#,
    );
    let bare = r#"{"error": {"type": "search_incomplete"}}"#;
    let header = ("x-search-reason", " parse_error ");
    same(
        || Ok(response(503, &[header], bare)),
        r#"incomplete parse_error Stated { reason: "parse_error" }"#,
    );
    same(
        || Ok(response(503, &[], bare)),
        r#"incomplete not_stated Stated { reason: "not_stated" }"#,
    );
    for other in [
        r#"{"error": {"type": "overloaded"}}"#,
        r#"{"error": "search_incomplete"}"#,
        r#"{"type": "search_incomplete"}"#,
    ] {
        same(
            || Ok(response(503, &[], other)),
            "incomplete upstream_status Status(503)",
        );
    }
    same(
        || Ok(response(500, &[], body)),
        "incomplete upstream_status Status(500)",
    );
}

#[test]
fn degraded_on_a_200_is_incomplete_only_if_strict() {
    let error_message = [
        ("x-search-status", "degraded"),
        ("x-search-reason", "blocked_page"),
    ];
    let stated = |reason: &str| format!("incomplete {reason} Stated {{ reason: {reason:?} }}");
    assert_eq!(
        line(&found(FLIGHTS, 200, &error_message, "[]")),
        r#"answer 0 Some("degraded") Some("blocked_page")"#
    );
    assert_eq!(
        line(&found(STRICT, 200, &error_message, "[]")),
        stated("blocked_page")
    );
    assert_eq!(
        line(&found(STRICT, 200, &error_message[..1], "[]")),
        stated("not_stated")
    );
    assert_eq!(
        line(&found(SEARCH, 200, &error_message, r#"{"properties": []}"#)),
        r#"answer 0 Some("degraded") Some("blocked_page")"#
    );
}

#[test]
fn the_status_decides_not_the_reason() {
    let reason = ("x-search-reason", "search_truncated");
    let rows = [
        ("ok", r#"answer 1 Some("ok") Some("search_truncated")"#),
        (
            "partial",
            r#"answer 1 Some("partial") Some("search_truncated")"#,
        ),
        (
            "empty",
            r#"answer 1 Some("empty") Some("search_truncated")"#,
        ),
        (" ok ", r#"answer 1 Some("ok") Some("search_truncated")"#),
        ("splendid", r#"answer 1 None Some("search_truncated")"#),
    ];
    for (status, expected) in rows {
        assert_eq!(
            line(&found(
                STRICT,
                200,
                &[("x-search-status", status), reason],
                "[{}]"
            )),
            expected
        );
    }
    assert_eq!(
        line(&found(STRICT, 200, &[("x-search-reason", " ")], "[]")),
        "answer 0 None None"
    );
}

#[test]
fn every_row_and_field_is_kept() {
    let body = json!([{"price": "$1", "new_field": [1, {"a": null}], "stops": "Unknown"}, {}]);
    let Finding::Answer(answer) = found(FLIGHTS, 200, &[], &body.to_string()) else {
        panic!("no answer")
    };
    assert_eq!((answer.body.value(), answer.results), (body, 2));
    for status in [200, 203, 299] {
        assert_eq!(
            line(&found(FLIGHTS, status, &[], "[{}]")),
            "answer 1 None None"
        );
    }
}

#[test]
fn an_answer_keeps_its_text() {
    let field = VERDICT_FIELD;
    for (context, text) in [
        (FLIGHTS, r#" [ {"price": 1.50, "b": 1e2, "a": "\u20ac\ud83d\ude00", "a": 12345678901234567890123} ] "#.to_owned()),
        (FLIGHTS, format!(r#"[{{"{field}": "low", "nested": {{"{field}": ""}}}}]"#)),
        (SEARCH, r#"{"properties" : [{}], "x": -0.0}"#.to_owned()),
        (hotels(Endpoint::HotelsRooms), r#"{"rooms": [1], "rooms": [{"a":  2}]}"#.to_owned()),
        (hotels(Endpoint::HotelsByName), r#"{"available" :true}"#.to_owned()),
        (hotels(Endpoint::HotelsResolve), r#"{"hotel_booking_id" :"x"}"#.to_owned()),
    ] {
        let Finding::Answer(answer) = found(context, 200, &[], &text) else { panic!("no answer: {text}") };
        assert_eq!(*answer.body.text(), text);
    }
    let empty_verdicts =
        format!(r#"[{{"{field}"  : "" ,"a":1}}, {{}}, {{ "b": "", "{field}":""}}]"#);
    let Finding::Answer(answer) = found(FLIGHTS, 200, &[], &empty_verdicts) else {
        panic!("no answer")
    };
    assert_eq!(
        *answer.body.text(),
        format!(r#"[{{"{field}"  : null ,"a":1}}, {{}}, {{ "b": "", "{field}":null}}]"#)
    );
}

/// An invalid answer would be unreadable once stored.
#[test]
fn an_answer_is_validated_to_its_last_character() {
    for inside in [
        r#""\ud800""#,
        r#""\ud800\u0041""#,
        r#""\x""#,
        "\"\n\"",
        "1e999",
        "01",
        "1.",
        "-",
        "nul",
        "{1:2}",
        "{\"a\" 1}",
        "[1,]",
        "{\"\\ud800\": 1}",
    ] {
        let body = format!(r#"[{{"a": {inside}}}]"#);
        assert!(serde_json::from_str::<Value>(&body).is_err(), "{body}");
        assert_eq!(
            line(&found(FLIGHTS, 200, &[], &body)),
            "incomplete unreadable_response Unreadable",
            "{body}"
        );
        let body = format!(r#"{{"rooms": [], "a": {inside}}}"#);
        assert_eq!(
            line(&found(hotels(Endpoint::HotelsRooms), 200, &[], &body)),
            "incomplete unreadable_response Unreadable",
            "{body}"
        );
    }
    for bytes in [
        &b"[{\"a\": \"\xff\"}]"[..],
        b"[{\"a\xc3\": 1}]",
        b"\xef\xbb\xbf[]",
        b"[]\0",
    ] {
        let response = RawResponse {
            body: Ok(Bytes::copy_from_slice(bytes)),
            ..response(200, &[], "")
        };
        assert_eq!(
            line(&classify(FLIGHTS, &Ok(response))),
            "incomplete unreadable_response Unreadable",
            "{bytes:?}"
        );
    }
}

mod at_random {
    use proptest::prelude::*;

    use super::*;

    /// Small JSON texts, some with a character removed, doubled or replaced.
    fn text() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            Just("\"\"".to_owned()),
            "-?[0-9]{1,3}(\\.[0-9]{1,2})?(e[0-9])?",
            "\"(a|\\\\u00e9|\\\\n|é|\\\\\"){0,3}\"",
        ];
        let name = prop_oneof![
            Just(format!("\"{VERDICT_FIELD}\"")),
            Just("\"rooms\"".to_owned()),
            Just("\"a\"".to_owned())
        ];
        let value = leaf.prop_recursive(4, 24, 4, move |inner| {
            let fields =
                proptest::collection::vec((name.clone(), inner.clone()), 0..4).prop_map(|fields| {
                    fields
                        .iter()
                        .map(|(name, value)| format!("{name}:{value}"))
                        .collect::<Vec<_>>()
                        .join(",")
                });
            prop_oneof![
                proptest::collection::vec(inner, 0..4)
                    .prop_map(|list| format!("[{}]", list.join(" , "))),
                fields.prop_map(|fields| format!("{{{fields}}}")),
            ]
        });
        (value, any::<prop::sample::Index>(), 0..6).prop_map(|(text, at, fault)| {
            let mut characters: Vec<char> = text.chars().collect();
            let at = at.index(characters.len());
            match fault {
                0 => _ = characters.remove(at),
                1 => characters.insert(at, characters[at]),
                2 => characters[at] = '"',
                _ => {}
            }
            characters.into_iter().collect()
        })
    }

    proptest! {
        /// The reference: parse, cap, clean and serialize.
        #[test]
        fn the_scan_agrees_with_a_full_parse(text in text(), cap in 0..4_usize) {
            let parsed = |(body, results): (AnswerBody, usize)| (body.value(), results);
            let context = AnswerContext { row_cap: Some(cap), ..FLIGHTS };
            let full = read_and_cap(context, &text).map(parsed);
            prop_assert_eq!(read(context, &Bytes::from(text.clone())).map(parsed), full);
            let rooms = serde_json::from_str::<Value>(&text).ok().and_then(|mut body| {
                let count = rows(body.get_mut("rooms")?, None)?;
                Some((body, count))
            });
            prop_assert_eq!(read(hotels(Endpoint::HotelsRooms), &Bytes::from(text)).map(parsed), rooms);
        }
    }
}

#[test]
fn limit_and_fifty_properties_are_caps() {
    let many = |count: usize| vec![json!({}); count];
    for (cap, rows, expected) in [
        (Some(3), 4, 3),
        (Some(3), 3, 3),
        (Some(3), 2, 2),
        (None, 60, 60),
    ] {
        let context = AnswerContext {
            row_cap: cap,
            ..FLIGHTS
        };
        let Finding::Answer(answer) = found(context, 200, &[], &json!(many(rows)).to_string())
        else {
            panic!("no answer")
        };
        assert_eq!(
            (
                answer.results,
                answer.body.value().as_array().unwrap().len()
            ),
            (expected, expected)
        );
    }
    for (list, endpoint, expected) in [
        ("properties", Endpoint::HotelsSearch, 50),
        ("rooms", Endpoint::HotelsRooms, 51),
    ] {
        let Finding::Answer(answer) = found(
            hotels(endpoint),
            200,
            &[],
            &json!({list: many(51)}).to_string(),
        ) else {
            panic!("no answer")
        };
        assert_eq!(
            (
                answer.results,
                answer.body.value()[list].as_array().unwrap().len()
            ),
            (expected, expected)
        );
    }
}

#[test]
fn an_empty_verdict_becomes_null() {
    let field = "price_range_in_relation_to_other_periods";
    let received = json!([{field: ""}, {field: "low"}, {field: null}, {field: 7}, {"other": ""}]);
    let goes = json!([{field: null}, {field: "low"}, {field: null}, {field: 7}, {"other": ""}]);
    let Finding::Answer(answer) = found(FLIGHTS, 200, &[], &received.to_string()) else {
        panic!("no answer")
    };
    assert_eq!(answer.body.value(), goes);
}

#[test]
fn each_hotel_endpoint_counts_its_own_results() {
    let rows = [
        (
            Endpoint::HotelsSearch,
            json!({"properties": [{}, {}]}),
            Some(2),
        ),
        (Endpoint::HotelsSearch, json!({"properties": {}}), None),
        (Endpoint::HotelsSearch, json!({"properties": [1]}), None),
        (Endpoint::HotelsSearch, json!({"message": "no"}), None),
        (Endpoint::HotelsRooms, json!({"rooms": []}), Some(0)),
        (Endpoint::HotelsRooms, json!({"rooms": null}), None),
        (Endpoint::HotelsByName, json!({"available": true}), Some(1)),
        (
            Endpoint::HotelsByName,
            json!({"available": false, "name": "H"}),
            Some(0),
        ),
        (Endpoint::HotelsByName, json!({"available": "yes"}), None),
        (Endpoint::HotelsByName, json!({}), None),
        (
            Endpoint::HotelsResolve,
            json!({"hotel_booking_id": "il/h"}),
            Some(1),
        ),
        (
            Endpoint::HotelsResolve,
            json!({"hotel_booking_id": ""}),
            Some(0),
        ),
        (
            Endpoint::HotelsResolve,
            json!({"hotel_booking_id": null}),
            Some(0),
        ),
        (
            Endpoint::HotelsResolve,
            json!({"hotel_booking_id": 5}),
            None,
        ),
        (Endpoint::HotelsResolve, json!({}), None),
        (Endpoint::HotelsResolve, json!([{}]), None),
    ];
    for (endpoint, body, results) in rows {
        let expected = results.map_or(
            "incomplete unreadable_response Unreadable".to_owned(),
            |n: usize| format!("answer {n} None None"),
        );
        assert_eq!(
            line(&found(hotels(endpoint), 200, &[], &body.to_string())),
            expected,
            "{endpoint} {body}"
        );
    }
}

/// The same object with a hotel id.
fn with_id(object: &str) -> String {
    object.replacen('{', r#"{"hotel_booking_id": "il/h", "#, 1)
}

#[test]
fn an_answer_may_nest_as_deep_as_a_request() {
    let nested = |depth: usize| {
        format!(
            "[{{\"a\": {}{}}}]",
            "[".repeat(depth - 2),
            "]".repeat(depth - 2)
        )
    };
    assert_eq!(
        line(&found(FLIGHTS, 200, &[], &nested(MAX_DEPTH))),
        "answer 1 None None"
    );
    assert_eq!(
        line(&found(FLIGHTS, 200, &[], &nested(MAX_DEPTH + 1))),
        "incomplete unreadable_response Unreadable"
    );
    let objects = |depth: usize| {
        format!(
            "[{}1{}]",
            "{\"a\":".repeat(depth - 1),
            "}".repeat(depth - 1)
        )
    };
    assert_eq!(
        line(&found(FLIGHTS, 200, &[], &objects(MAX_DEPTH))),
        "answer 1 None None"
    );
    assert_eq!(
        line(&found(FLIGHTS, 200, &[], &objects(MAX_DEPTH + 1))),
        "incomplete unreadable_response Unreadable"
    );
    let of_hotels = |depth: usize| {
        format!(
            "{{\"properties\": {}{}}}",
            "[".repeat(depth - 1),
            "]".repeat(depth - 1)
        )
    };
    assert_eq!(
        line(&found(
            hotels(Endpoint::HotelsResolve),
            200,
            &[],
            &with_id(&of_hotels(MAX_DEPTH))
        )),
        "answer 1 None None"
    );
    let deeper = with_id(&of_hotels(MAX_DEPTH + 1));
    assert_eq!(
        line(&found(hotels(Endpoint::HotelsResolve), 200, &[], &deeper)),
        "incomplete unreadable_response Unreadable"
    );
}

#[test]
fn only_server_errors_without_an_answer_are_retryable() {
    let incomplete = r#"{"error": {"type": "search_incomplete", "reason": "blocked_page"}}"#;
    for status in 100..600 {
        let again = matches!(status, 500 | 502 | 503 | 504);
        assert_eq!(
            is_retryable(&response(status, &[], "{}")),
            again,
            "{status}"
        );
    }
    assert!(
        !is_retryable(&response(503, &[], incomplete)),
        "that is an answer"
    );
    assert!(is_retryable(&response(500, &[], incomplete)));
    assert!(is_retryable(&faulty(503, BodyError::TooLarge)));
    for fault in [
        BodyError::Broken,
        BodyError::TimedOut,
        BodyError::Undecodable,
    ] {
        assert!(
            !is_retryable(&faulty(503, fault)),
            "it may have been search_incomplete"
        );
    }
}

#[test]
fn search_headers_are_found_by_their_prefix() {
    let headers = [
        ("x-search-status", "ok"),
        ("x-search-lost-combinations", "2"),
        ("x-searching", "no"),
        ("server", "s"),
    ];
    let expected = [
        ("x-search-status".to_owned(), "ok".to_owned()),
        ("x-search-lost-combinations".to_owned(), "2".to_owned()),
    ];
    assert_eq!(
        search_headers(&response(200, &headers, "").headers),
        expected
    );
}

#[test]
fn error_messages_are_read_in_every_shape() {
    let rows = [
        (json!({"message": "m"}), "m"),
        (json!({"detail": "d", "message": "m"}), "d"),
        (json!({"error": {"message": "e"}, "detail": "d"}), "e"),
        (json!({"error": "e"}), "e"),
        (json!({"error": {"type": "t"}, "message": "m"}), "m"),
        (
            json!({"detail": [{"loc": ["body", "passengers", 0], "msg": "bad"}, {"msg": "worse"}]}),
            "body.passengers.0: bad; worse",
        ),
        (
            json!({"detail": [{"loc": [], "msg": "bad"}, {"loc": ["x"]}, 5]}),
            "bad",
        ),
        (json!({"detail": [], "message": "m"}), "m"),
        (
            json!({"detail": " ", "message": " two\nlines\u{1b}[0m "}),
            "two lines [0m",
        ),
        (json!({"detail": 5}), "otherwise"),
        (json!([]), "otherwise"),
    ];
    for (body, expected) in rows {
        assert_eq!(
            error_message(&response(400, &[], &body.to_string()), "otherwise"),
            expected,
            "{body}"
        );
    }
    let full = error_message(
        &response(
            400,
            &[],
            &json!({"message": "ä".repeat(MAX_MESSAGE + 1)}).to_string(),
        ),
        "",
    );
    assert_eq!(full.chars().count(), MAX_MESSAGE);
}
