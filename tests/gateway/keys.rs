//! Keys (gateway.md, rules 11 to 13): carriers, precedence, malformed ones, placeholders, and where
//! a key must not appear.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::endpoints::body;
use crate::support::app::{HttpResponse, TestApp};
use crate::support::reply::Reply;
use farescan::contract::Endpoint;

/// The carriers of a key: headers and a query.
type Carrier<'a> = (&'a [(&'a str, &'a str)], &'a str);

async fn ask(app: &TestApp, (headers, query): Carrier<'_>) -> HttpResponse {
    let mut request = app
        .request("POST", &format!("/v1/flights/oneway{query}"))
        .json(&body(Endpoint::FlightsOneway));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    app.send(request).await
}

async fn source(app: &TestApp, (headers, query): Carrier<'_>) -> String {
    let mut request = app.request("GET", &format!("/v1/verify{query}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    app.send(request).await.json()["key_source"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn eight_key_carriers_are_equivalent() {
    let app = TestApp::start().await;
    let rows: &[(Carrier, &str)] = &[
        ((&[("x-api-key", "k1")], ""), "x-api-key"),
        ((&[("x-marketplace-key", "k1")], ""), "x-marketplace-key"),
        (
            (&[("x-marketplace-token", "k1")], ""),
            "x-marketplace-token",
        ),
        ((&[("authorization", "Bearer k1")], ""), "authorization"),
        ((&[("authorization", "apikey k1")], ""), "authorization"),
        ((&[("authorization", "TOKEN k1")], ""), "authorization"),
        ((&[], "?api_key=k1"), "query:api_key"),
        ((&[], "?apikey=k1"), "query:apikey"),
        ((&[], "?marketplace_key=k1"), "query:marketplace_key"),
        ((&[], "?key=k1"), "query:key"),
    ];
    for (carrier, expected) in rows {
        assert_eq!(ask(&app, *carrier).await.status, 200, "{expected}");
        assert_eq!(app.upstream.calls().last().unwrap().key, "k1", "{expected}");
        assert_eq!(&source(&app, *carrier).await, expected);
    }
}

#[tokio::test]
async fn headers_outrank_the_query_and_each_other() {
    let app = TestApp::start().await;
    let query = "?key=q4&marketplace_key=q3&apikey=q2&api_key=q1";
    let headers = [
        ("authorization", "Bearer h4"),
        ("x-marketplace-token", "h3"),
        ("x-marketplace-key", "h2"),
        ("x-api-key", "h1"),
    ];
    let expected = [("q1", 0), ("h4", 1), ("h3", 2), ("h2", 3), ("h1", 4)];
    for (key, count) in expected {
        assert_eq!(ask(&app, (&headers[..count], query)).await.status, 200);
        assert_eq!(app.upstream.calls().last().unwrap().key, key);
    }
    let blank = [
        ("x-api-key", " "),
        ("x-marketplace-key", ""),
        ("authorization", "Bearer "),
    ];
    assert_eq!(ask(&app, (&blank, "?api_key=&apikey=q2")).await.status, 200);
    assert_eq!(
        app.upstream.calls().last().unwrap().key,
        "q2",
        "blank counts as absent"
    );
}

#[tokio::test]
async fn malformed_keys_never_reach_upstream() {
    let app = TestApp::start().await;
    let long = "k".repeat(513);
    let rows: &[(Carrier, &str, &str)] = &[
        ((&[], ""), "missing_api_key", "x-api-key"),
        (
            (&[("x-api-key", "")], "?key=%20"),
            "missing_api_key",
            "x-api-key",
        ),
        (
            (&[("x-api-key", "two words")], "?api_key=good"),
            "invalid_api_key",
            "malformed",
        ),
        (
            (&[("x-marketplace-key", &long)], ""),
            "invalid_api_key",
            "malformed",
        ),
        (
            (&[("x-marketplace-token", "schl\u{fc}ssel")], ""),
            "invalid_api_key",
            "malformed",
        ),
        (
            (&[("authorization", "Basic dXNlcg==")], "?api_key=good"),
            "invalid_api_key",
            "Bearer",
        ),
        (
            (&[("authorization", "naked-key")], ""),
            "invalid_api_key",
            "Bearer",
        ),
        ((&[], "?api_key=a%0Ab"), "invalid_api_key", "malformed"),
        (
            (&[("x-api-key", "YOUR_API_KEY")], ""),
            "invalid_api_key",
            "`YOUR_API_KEY` is a placeholder",
        ),
        (
            (&[("x-api-key", "your-api-key")], ""),
            "invalid_api_key",
            "`your-api-key` is a placeholder",
        ),
        (
            (&[("authorization", "Bearer <API_KEY>")], ""),
            "invalid_api_key",
            "`<API_KEY>` is a placeholder",
        ),
        (
            (&[], "?key=API_KEY"),
            "invalid_api_key",
            "`API_KEY` is a placeholder",
        ),
    ];
    for (carrier, error, expected) in rows {
        for answer in [ask(&app, *carrier).await, verify(&app, *carrier).await] {
            assert_eq!(answer.kind(), format!("401 {error}"), "{carrier:?}");
            assert!(answer.message().contains(expected), "{}", answer.message());
        }
    }
    assert_eq!(app.upstream.count(), 0, "nothing was spent");
}

async fn verify(app: &TestApp, (headers, query): Carrier<'_>) -> HttpResponse {
    let mut request = app.request("GET", &format!("/v1/verify{query}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    app.send(request).await
}

/// The log lines of a test on its one thread, at level `trace`.
#[derive(Clone, Default)]
pub struct Logs(Arc<Mutex<Vec<u8>>>);

impl Logs {
    /// Captures the log of this thread until it is dropped.
    pub fn take(&self) -> (tracing::Dispatch, tracing::subscriber::DefaultGuard) {
        let writer = self.clone();
        let lines = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        // With a single subscriber, a test on another thread without one would disable log points
        // for all threads.
        let second = tracing::Dispatch::new(tracing_subscriber::registry());
        (second, tracing::subscriber::set_default(lines))
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_log_line_holds_a_key() {
    let logs = Logs::default();
    let _guard = logs.take();
    let app = TestApp::start().await;
    let headers: [&[(&str, &str)]; 5] = [
        &[("x-api-key", "canary-8f3a")],
        &[("x-marketplace-key", "canary-8f3a")],
        &[("x-marketplace-token", "canary-8f3a")],
        &[("authorization", "Bearer canary-8f3a")],
        &[("authorization", "Basic canary-8f3a")],
    ];
    let carriers = headers.into_iter().map(|headers| (headers, "")).chain(
        [
            "?api_key=canary-8f3a",
            "?apikey=canary-8f3a",
            "?marketplace_key=canary-8f3a",
            "?key=canary-8f3a&a=b",
        ]
        .map(|query| (&[][..], query)),
    );
    for carrier in carriers {
        for reply in [
            Reply::json(json!([])),
            Reply::status(401),
            Reply::status(500),
            Reply::reset(),
        ] {
            app.upstream.reply(reply);
            ask(&app, carrier).await;
            verify(&app, carrier).await;
        }
    }
    let text = logs.text();
    assert!(
        text.contains("/v1/flights/oneway") && text.contains("TRACE"),
        "logs were taken"
    );
    let leaks: Vec<_> = text
        .lines()
        .filter(|line| line.contains("canary"))
        .collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

/// No answer contains a key, not even a refused one or one that upstream echoes.
#[tokio::test]
async fn no_answer_shows_a_key() {
    let app = TestApp::start().await;
    let canary = "canary-8f3a";
    let carriers: [Carrier; 8] = [
        (&[("x-api-key", canary)], ""),
        (&[("x-marketplace-key", canary)], ""),
        (&[("x-marketplace-token", canary)], ""),
        (&[("authorization", "Bearer canary-8f3a")], ""),
        (&[], "?api_key=canary-8f3a"),
        (&[], "?apikey=canary-8f3a"),
        (&[], "?marketplace_key=canary-8f3a"),
        (&[("x-api-key", "canary-8f3a twice")], "?key=canary-8f3a"),
    ];
    for status in [200, 400, 401, 403, 404, 422, 500] {
        let echo = json!({"message": format!("the key {canary} is not welcome")});
        app.upstream.reply(Reply::status(status).with_json(echo));
        for carrier in carriers {
            for answer in [ask(&app, carrier).await, verify(&app, carrier).await] {
                let shown = format!("{} {:?}", answer.text(), answer.headers);
                assert!(!shown.contains(canary), "{status} {carrier:?}: {shown}");
            }
        }
    }
    for path in ["/v1/nothing", "/v1/flights/oneway", "/healthz", "/docs"] {
        let answer = app
            .send(
                app.request("GET", &format!("{path}?api_key={canary}"))
                    .header("x-api-key", canary),
            )
            .await;
        assert!(
            !format!("{} {:?}", answer.text(), answer.headers).contains(canary),
            "{path}"
        );
    }
}
