//! Compressed answers, and answers that are the same for all callers.

use serde_json::json;

use super::description::docs_files;
use crate::support::app::{HttpResponse, KEY, TestApp};
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use farescan::contract::Endpoint;

/// A client that does not decompress bodies.
fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .no_gzip()
        .no_zstd()
        .build()
        .unwrap()
}

async fn ask(app: &TestApp, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
    let mut request = client().get(format!("{}{path}", app.url()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    app.send(request).await
}

#[tokio::test]
async fn the_openapi_document_is_cached_by_etag() {
    let app = TestApp::start().await;
    for path in ["/openapi.json", "/docs/"] {
        let plain = ask(&app, path, &[("accept-encoding", "identity")]).await;
        assert_eq!(
            (plain.status, plain.header("content-encoding")),
            (200, ""),
            "{path}"
        );
        assert_eq!(
            (plain.header("cache-control"), plain.header("vary")),
            ("public, max-age=300", "accept-encoding"),
            "{path}"
        );
        let tag = plain.header("etag");
        assert!(tag.len() > 10, "{path}: {tag}");
        let again = ask(&app, path, &[("if-none-match", tag)]).await;
        assert_eq!(
            (again.status, again.bytes.len(), again.header("etag")),
            (304, 0, tag),
            "{path}"
        );
        assert_eq!(again.header("cache-control"), "public, max-age=300");
        let other = ask(&app, path, &[("if-none-match", "\"other\"")]).await;
        assert_eq!(other.status, 200, "{path}");
    }
    let files = docs_files(&app).await;
    let scalar = files.iter().find(|file| file.contains("scalar-")).unwrap();
    let packed = ask(&app, scalar, &[("accept-encoding", "gzip")]).await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    println!("{scalar}: gzip {} bytes", packed.bytes.len());
    let tag = packed.header("etag");
    assert_eq!(
        ask(&app, scalar, &[("if-none-match", tag)]).await.status,
        304
    );
    let plain = ask(&app, "/openapi.json", &[("accept-encoding", "identity")]).await;
    for encoding in ["gzip", "zstd"] {
        let packed = ask(&app, "/openapi.json", &[("accept-encoding", encoding)]).await;
        assert_eq!(packed.header("content-encoding"), encoding);
        println!(
            "/openapi.json: {} bytes, {encoding} {}",
            plain.bytes.len(),
            packed.bytes.len()
        );
        assert!(packed.bytes.len() * 4 < plain.bytes.len());
        let begin: &[u8] = if encoding == "gzip" {
            &[0x1f, 0x8b]
        } else {
            &[0x28, 0xb5, 0x2f, 0xfd]
        };
        assert!(packed.bytes.starts_with(begin), "{encoding}");
    }
    let smallest = ask(
        &app,
        "/openapi.json",
        &[("accept-encoding", "gzip, deflate, br, zstd")],
    )
    .await;
    assert_eq!(smallest.header("content-encoding"), "br");
}

#[tokio::test]
async fn answers_above_a_kilobyte_are_compressed_on_request() {
    let app = TestApp::start().await;
    let body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14"});
    for (rows, is_compressed) in [(10, true), (0, false)] {
        app.upstream
            .on(Endpoint::FlightsOneway)
            .answer(move |call| {
                Reply::json((0..rows).map(|row| fare(100 + row, &call.body)).collect())
            });
        let post = async |encoding: &str| {
            let request = client()
                .post(format!("{}/v1/flights/oneway", app.url()))
                .header("x-api-key", KEY);
            let request = request.header("accept-encoding", encoding);
            app.send(request.json(&body)).await
        };
        let plain = post("identity").await;
        let packed = post("zstd").await;
        assert_eq!(
            packed.header("content-encoding") == "zstd",
            is_compressed,
            "{rows} rows"
        );
        assert_eq!(packed.header("x-search-results"), rows.to_string());
        if is_compressed {
            println!(
                "{rows} fares: {} bytes, zstd {}",
                plain.bytes.len(),
                packed.bytes.len()
            );
            assert_eq!(
                zstd::decode_all(packed.bytes.as_slice()).unwrap(),
                plain.bytes
            );
            assert!(
                packed
                    .headers
                    .get_all("vary")
                    .iter()
                    .any(|name| name == "accept-encoding")
            );
        }
    }
}
