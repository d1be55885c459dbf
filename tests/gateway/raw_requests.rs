//! Requests as bytes: what no client library sends, and errors before a request reaches a handler.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::app::{KEY, TestApp};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use farescan::contract::Endpoint;

/// A parsed answer.
#[derive(Debug)]
struct Raw {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Raw {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// As [`crate::support::app::Answer::kind`].
    fn kind(&self) -> String {
        let json: Value =
            serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"));
        let error = &json["error"];
        assert!(
            error["message"].is_string() && self.header("content-type") == "application/json",
            "{self:?}"
        );
        let id = self.header("x-request-id");
        assert!(!id.is_empty() && error["request_id"] == id, "{self:?}");
        format!("{} {}", self.status, error["type"].as_str().unwrap())
    }
}

fn address(url: &str) -> SocketAddr {
    url.trim_start_matches("http://").parse().unwrap()
}

/// Sends exactly these bytes and reads until the server closes.
async fn send(address: SocketAddr, bytes: impl AsRef<[u8]>) -> Raw {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes.as_ref()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let mut lines = head.lines();
    let status = lines
        .next()
        .unwrap()
        .split(' ')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    Raw {
        status,
        headers: headers.collect(),
        body: body.to_owned(),
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: h\r\nx-api-key: {KEY}\r\nconnection: close\r\n\r\n")
}

#[tokio::test]
async fn every_error_has_the_error_form_whatever_the_path() {
    let app = TestApp::start().await;
    let long = "x".repeat(70_000);
    let rows = [
        (
            get("/v1/verify?api=flights&api=flights"),
            "400 invalid_request",
        ),
        (get("/v1/verify?api=%FF"), "400 invalid_request"),
        (get("/v1/scans/%FF"), "404 not_found"),
        (get("/v1/scans/%C3%28/items"), "404 not_found"),
        (get("/v1/monitors/%FF%FE"), "404 not_found"),
        (get("/%FF"), "404 not_found"),
        (get("/docs/%FF"), "404 not_found"),
        (get("/docs/no-such-file"), "404 not_found"),
        (get("/v1/scans/%00"), "503 key_custody_disabled"),
        (get("//v1//scans"), "404 not_found"),
        (get("/v1/../v1/scans"), "404 not_found"),
        (get("/v1/scans/"), "404 not_found"),
        (get("*").replace("GET", "OPTIONS"), "404 not_found"),
        (
            get("/v1/scans").replace("GET", "BREW"),
            "405 method_not_allowed",
        ),
        (get(&format!("/{long}")), "414 invalid_request"),
        (get(&format!("/v1/scans?x={long}")), "414 invalid_request"),
        (
            get("/").replace(
                "connection",
                &format!("x-long: {}\r\nconnection", long.repeat(4)),
            ),
            "431 invalid_request",
        ),
        (
            get("/").replace(
                "connection",
                &format!("{}connection", "x: y\r\n".repeat(101)),
            ),
            "431 invalid_request",
        ),
        ("NONSENSE\r\n\r\n".to_owned(), "400 invalid_request"),
        (
            "GET / HTTP/3.0\r\nhost: h\r\n\r\n".to_owned(),
            "400 invalid_request",
        ),
        (
            "GET / HTTP/1.1\r\nhost : h\r\n\r\n".to_owned(),
            "400 invalid_request",
        ),
        (
            get("/").replace("connection", "content-length: 1x\r\nconnection"),
            "400 invalid_request",
        ),
    ];
    for (request, kind) in rows {
        let answer = send(address(app.url()), &request).await;
        assert_eq!(
            answer.kind(),
            kind,
            "{}",
            &request[..request.len().min(100)]
        );
    }
}

#[tokio::test]
async fn a_401_names_the_authentication_scheme() {
    let app = TestApp::start().await;
    app.upstream.reply(Reply::status(401));
    for request in [
        "GET /v1/scans HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n".to_owned(),
        get("/v1/verify"),
        get("/v1/scans").replace(KEY, "YOUR_API_KEY"),
    ] {
        let answer = send(address(app.url()), &request).await;
        assert_eq!(
            (answer.status, answer.header("www-authenticate")),
            (401, "Bearer"),
            "{request}"
        );
    }
}

#[tokio::test]
async fn a_request_names_its_host_exactly_once() {
    let app = TestApp::start().await;
    let request = |version: &str, hosts: &str| {
        format!("GET /healthz HTTP/{version}\r\n{hosts}connection: close\r\n\r\n")
    };
    for address in [address(app.url()), address(app.admin_url())] {
        for (version, hosts, fine) in [
            ("1.1", "host: localhost\r\n", true),
            ("1.1", "host: [::1]:8080\r\n", true),
            ("1.1", "host:\r\n", true),
            ("1.0", "", true),
            ("1.1", "", false),
            ("1.1", "host: h\r\nhost: h\r\n", false),
            ("1.1", "host: h\r\nHost: other\r\n", false),
            ("1.0", "host: h\r\nhost: h\r\n", false),
            ("1.1", "host: user@h\r\n", false),
            ("1.1", "host: h/path\r\n", false),
            ("1.1", "host: one two\r\n", false),
        ] {
            let answer = send(address, request(version, hosts)).await;
            if fine {
                assert_eq!(answer.status, 200, "{version} {hosts:?}");
            } else {
                assert_eq!(answer.kind(), "400 invalid_request", "{version} {hosts:?}");
                assert!(answer.body.contains("`Host`"), "{answer:?}");
            }
        }
    }
}

#[tokio::test]
async fn marketplace_content_cannot_run_in_a_browser() {
    let app = TestApp::start().await;
    let page = "<script>alert(document.domain)</script>";
    let html = Reply::status(429)
        .body(page)
        .header("content-type", "text/html");
    app.upstream.on(Endpoint::FlightsOneway).reply(html);
    let body = serde_json::json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14"});
    let answer = app.post("/v1/flights/oneway", &body).await;
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (429, page),
        "unchanged"
    );
    assert_eq!(
        answer.header("content-security-policy"),
        "default-src 'none'; frame-ancestors 'none'; sandbox"
    );
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
}

#[tokio::test]
async fn every_answer_has_the_browser_security_headers() {
    let app = TestApp::start().await;
    app.upstream
        .answer(|call| Reply::json(serde_json::json!([fare(120, &call.body)])));
    let public = [
        "/",
        "/docs",
        "/docs/",
        "/openapi.json",
        "/healthz",
        "/v1/verify",
        "/v1/scans",
        "/none",
    ];
    let mut answers = Vec::new();
    for path in public {
        answers.push((path, app.get(path).await));
    }
    for path in ["/healthz", "/readyz", "/metrics", "/none"] {
        answers.push((path, app.admin(path).await));
    }
    for (path, answer) in answers {
        let headers = [
            "x-content-type-options",
            "referrer-policy",
            "x-frame-options",
        ]
        .map(|name| answer.header(name));
        assert_eq!(headers, ["nosniff", "no-referrer", "DENY"], "{path}");
        let policy = answer.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; ") && policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        assert_eq!(
            policy.contains("script-src 'self'"),
            path.starts_with("/docs/"),
            "{path}: {policy}"
        );
        assert!(
            !policy.contains("unsafe-eval") && !policy.contains("script-src 'self' 'unsafe"),
            "{path}: {policy}"
        );
    }
}
