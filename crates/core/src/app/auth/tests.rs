//! gateway.md, rules 11 to 13, on the pure parts: precedence of carriers, valid keys, cleaned URIs.

use super::*;
use crate::contract::PLACEHOLDERS;

fn headers(rows: &[(&'static str, &[u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in rows {
        headers.append(*name, HeaderValue::from_bytes(value).unwrap());
    }
    headers
}

fn extracted(
    rows: &[(&'static str, &[u8])],
    uri: &str,
) -> Result<(String, &'static str), ApiKeyError> {
    find_api_key(&headers(rows), &uri.parse().unwrap())
        .map(|caller| (caller.key.expose().to_owned(), caller.key_source))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "reads as the answers that it is compared with"
)]
fn expected(text: &str, source: &'static str) -> Result<(String, &'static str), ApiKeyError> {
    Ok((text.to_owned(), source))
}

#[test]
fn each_carrier_yields_key_and_source() {
    for name in HEADER_SOURCES {
        assert_eq!(extracted(&[(name, b"k1")], "/"), expected("k1", name));
    }
    for value in [
        "Bearer k1",
        "bearer k1",
        "ApiKey k1",
        "APIKEY k1",
        "Token k1",
        "tOkEn \t k1  ",
    ] {
        assert_eq!(
            extracted(&[("authorization", value.as_bytes())], "/"),
            expected("k1", "authorization"),
            "{value}"
        );
    }
    for (name, source) in QUERY {
        assert_eq!(
            extracted(&[], &format!("/p?a=b&{name}=k%31&c")),
            expected("k1", source)
        );
    }
}

#[test]
fn carriers_are_read_in_their_order() {
    let uri = "/?key=q4&marketplace_key=q3&apikey=q2&api_key=q1";
    let all: [(&'static str, &[u8]); 4] = [
        ("authorization", b"Bearer h4"),
        ("x-marketplace-token", b"h3"),
        ("x-marketplace-key", b"h2"),
        ("x-api-key", b"h1"),
    ];
    let order = [
        "x-api-key",
        "x-marketplace-key",
        "x-marketplace-token",
        "authorization",
    ];
    for (index, source) in order.iter().enumerate() {
        assert_eq!(
            extracted(&all[..4 - index], uri),
            expected(&format!("h{}", index + 1), source)
        );
    }
    let queries = [
        "/?key=q4&marketplace_key=q3&apikey=q2&api_key=q1",
        "/?key=q4&marketplace_key=q3&apikey=q2",
        "/?key=q4&marketplace_key=q3",
        "/?key=q4",
    ];
    for ((query, (_, source)), name) in queries.iter().zip(QUERY).zip(["q1", "q2", "q3", "q4"]) {
        assert_eq!(extracted(&[], query), expected(name, source));
    }
}

#[test]
fn a_blank_key_is_absent_a_malformed_one_is_refused() {
    let blank: [(&'static str, &[u8]); 5] = [
        ("x-api-key", b""),
        ("x-api-key", b"  "),
        ("x-marketplace-key", b"\t"),
        ("authorization", b""),
        ("authorization", b"Bearer  "),
    ];
    assert_eq!(
        extracted(&blank, "/?api_key=&api_key=%20&apikey=k1"),
        expected("k1", "query:apikey")
    );
    assert_eq!(extracted(&blank, "/"), Err(ApiKeyError::Missing));
    assert_eq!(
        extracted(&[("x-api-key", b""), ("x-api-key", b"k1")], "/"),
        expected("k1", "x-api-key")
    );
    let good = "/?api_key=k1";
    assert_eq!(
        extracted(&[("x-api-key", b"a b"), ("x-marketplace-key", b"k1")], good),
        Err(ApiKeyError::Malformed("x-api-key"))
    );
    assert_eq!(
        extracted(&[("authorization", b"Bearer a b")], good),
        Err(ApiKeyError::Malformed("authorization"))
    );
    for other in ["Basic k1", "k1", "Bearerk1"] {
        assert_eq!(
            extracted(&[("authorization", other.as_bytes())], good),
            Err(ApiKeyError::Scheme),
            "{other}"
        );
    }
}

#[test]
fn keys_are_visible_ascii_of_bounded_length() {
    let (longest, too_long) = ("k".repeat(MAX_KEY_BYTES), "k".repeat(MAX_KEY_BYTES + 1));
    assert_eq!(
        extracted(&[("x-api-key", longest.as_bytes())], "/"),
        expected(&longest, "x-api-key")
    );
    for bad in [
        too_long.as_bytes(),
        b"two words",
        b"a\tb",
        "schl\u{fc}ssel".as_bytes(),
        b"\xff",
    ] {
        assert_eq!(
            extracted(&[("x-api-key", bad)], "/"),
            Err(ApiKeyError::Malformed("x-api-key"))
        );
    }
    for bad in ["a%20b", "a+b", "a%0Ab", "%C3%BC", "%00"] {
        assert_eq!(
            extracted(&[], &format!("/?api_key={bad}")),
            Err(ApiKeyError::Malformed("query:api_key")),
            "{bad}"
        );
    }
    assert_eq!(
        extracted(&[("x-api-key", b" !\"#$%&'()*+,-./:;<=>?@[]^_`{|}~ ")], "/"),
        expected("!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~", "x-api-key")
    );
}

#[test]
fn placeholders_are_refused_and_named() {
    for placeholder in PLACEHOLDERS {
        assert_eq!(
            extracted(&[("x-api-key", placeholder.as_bytes())], "/"),
            Err(ApiKeyError::Placeholder(placeholder))
        );
    }
    let fault = extracted(&[("authorization", b"Bearer Your_Api_Key")], "/").unwrap_err();
    assert_eq!(
        fault,
        ApiKeyError::Placeholder("YOUR_API_KEY"),
        "only the list's own spelling is echoed"
    );
    assert_eq!(
        extracted(&[("x-api-key", b"MY_API_KEY_1")], "/"),
        expected("MY_API_KEY_1", "x-api-key")
    );
}

#[test]
fn the_query_is_stripped_of_keys() {
    let rows = [
        ("/v1/verify?api_key=k", Some("/v1/verify")),
        (
            "/v1/verify?api=both&api_key=k&wait=3",
            Some("/v1/verify?api=both&wait=3"),
        ),
        ("/p?API_KEY=k&apikey&Key=&marketplace%5Fkey=k", Some("/p")),
        (
            "http://h.example:80/p?key=k&a=%20",
            Some("http://h.example:80/p?a=%20"),
        ),
        ("/p?keys=1&my_key=2", None),
        ("/p?", None),
        ("/p", None),
    ];
    for (uri, clean) in rows {
        assert_eq!(
            remove_keys_from_uri(&uri.parse().unwrap())
                .map(|uri| uri.to_string())
                .as_deref(),
            clean,
            "{uri}"
        );
    }
}
