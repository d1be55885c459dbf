//! `/openapi.json` and `/docs` (gateway.md, rules 21 and 43): the description matches the routes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::app::{HttpResponse, KEY, TestApp};
use crate::support::{array, text};
use farescan::api::{api_routes, router};
use farescan::app::AppState;
use farescan::upstream::Client;

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

async fn plain(app: &TestApp, method: &str, path: &str) -> HttpResponse {
    app.send(app.request(method, path)).await
}

/// Every path of the description with its methods, in upper case.
fn described_routes(description: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let paths = description["paths"].as_object().unwrap();
    let methods = |item: &Value| {
        item.as_object()
            .unwrap()
            .keys()
            .map(|method| method.to_uppercase())
            .collect()
    };
    paths
        .iter()
        .map(|(path, item)| (path.clone(), methods(item)))
        .collect()
}

/// A path with a value for each parameter.
fn fill_parameters(path: &str) -> String {
    path.split('/')
        .map(|part| if part.starts_with('{') { "x" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

/// A sender expects an effect of a field, and these calls spend money or destroy secrets.
#[tokio::test]
async fn calls_without_a_body_refuse_one() {
    let app = TestApp::start().await;
    let description = plain(&app, "GET", "/openapi.json").await.json();
    let paths = description["paths"].as_object().unwrap();
    let bare: Vec<_> = paths
        .iter()
        .filter(|(_, item)| item["post"].is_object() && item["post"]["requestBody"].is_null())
        .collect();
    assert_eq!(
        bare.len(),
        10,
        "run, pause, resume, test, rotate and enable of a monitor, pause and cancel of a scan, resend, test of a channel"
    );
    for (path, item) in bare {
        let responses = &item["post"]["responses"];
        assert!(
            responses["400"].is_object() && responses["413"].is_object(),
            "{path}: {responses}"
        );
        let ask = async |body: &str| {
            let request = app
                .request("POST", &fill_parameters(path))
                .header("x-api-key", KEY)
                .body(body.to_owned());
            app.send(request).await
        };
        for nothing in ["", "{}", " {} ", r#"{"x": null}"#] {
            assert_eq!(
                ask(nothing).await.kind(),
                "503 key_custody_disabled",
                "{path} {nothing:?}: this service takes no orders"
            );
        }
        for (body, expected) in [
            (
                r#"{"x": 1, "y": 2}"#,
                "`x`: found 1; expected no fields. `y`: found 2; expected no fields",
            ),
            (
                "garbage",
                "`body`: found garbage; expected a JSON object (expected value at line 1 column 1)",
            ),
            ("[]", "`body`: found []; expected a JSON object"),
        ] {
            let refused = ask(body).await;
            assert_eq!(
                (refused.kind(), refused.message()),
                ("400 invalid_request".to_owned(), expected.to_owned()),
                "{path} {body}"
            );
        }
        let keyless = app
            .send(app.request("POST", &fill_parameters(path)).body("garbage"))
            .await;
        assert_eq!(
            keyless.kind(),
            "401 missing_api_key",
            "{path}: who calls is asked first"
        );
    }
}

/// Every path of the router, which lists them only in its `Debug`, as `RouteId(7): "/path"`.
fn served_routes(app: &TestApp) -> BTreeSet<String> {
    let state = AppState::new(Client::new(&app.upstream.config()).unwrap(), None);
    let debug = format!("{:?}", router(state, api_routes()));
    let (routes, _fallbacks) = debug.split_once("fallback_router").unwrap();
    let paths = routes
        .split("RouteId(")
        .filter_map(|part| part.split_once("): \"")?.1.split('"').next());
    paths
        .filter(|path| path.starts_with('/'))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn description_and_docs_need_no_key() {
    let app = TestApp::start().await;
    let description = plain(&app, "GET", "/openapi.json").await.json();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1."));
    assert_eq!(description["info"]["version"], "1.1.0");
    for path in ["/healthz", "/docs/"] {
        assert_eq!(plain(&app, "GET", path).await.status, 200, "{path}");
    }
    assert_eq!(
        plain(&app, "GET", "/docs").await.header("location"),
        "/docs/"
    );
    assert_eq!(
        plain(&app, "GET", "/").await.json()["documentation"],
        "/docs/",
        "who opens the address is shown what is here"
    );
    assert_eq!(
        plain(&app, "POST", "/").await.kind(),
        "405 method_not_allowed"
    );
}

#[tokio::test]
async fn described_routes_are_served_and_take_no_other_method() {
    let app = TestApp::start().await;
    let described = described_routes(&plain(&app, "GET", "/openapi.json").await.json());
    let specified = [
        "verify",
        "flights/oneway",
        "flights/roundtrip",
        "hotels/search",
        "hotels/by-name",
        "hotels/rooms",
        "hotels/resolve",
    ];
    assert!(
        specified
            .iter()
            .all(|path| described.contains_key(&format!("/v1/{path}"))),
        "{described:?}"
    );
    for (path, methods) in &described {
        for method in METHODS {
            let answer = plain(&app, method, &fill_parameters(path)).await;
            if methods.contains(method) {
                assert!(
                    !matches!(answer.status, 404 | 405),
                    "{method} {path}: {}",
                    answer.status
                );
            } else {
                assert_eq!(answer.kind(), "405 method_not_allowed", "{method} {path}");
                let allowed: BTreeSet<_> = answer
                    .header("allow")
                    .split(',')
                    .filter(|method| *method != "HEAD")
                    .map(str::to_owned)
                    .collect();
                assert_eq!(&allowed, methods, "{path}");
            }
        }
    }
}

#[tokio::test]
async fn every_served_route_is_described() {
    let app = TestApp::start().await;
    let described = described_routes(&plain(&app, "GET", "/openapi.json").await.json());
    let served = served_routes(&app);
    assert!(
        described.keys().all(|path| served.contains(path)),
        "the router shows its paths otherwise now: {served:?}"
    );
    let undescribed: Vec<_> = served
        .iter()
        .filter(|path| !path.starts_with("/docs") && *path != "/" && !described.contains_key(*path))
        .collect();
    assert!(undescribed.is_empty(), "{undescribed:?}");
}

#[tokio::test]
async fn every_operation_is_described_completely() {
    let app = TestApp::start().await;
    let description = plain(&app, "GET", "/openapi.json").await.json();
    let mut ids = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(
                operation["summary"].is_string() && operation["tags"][0].is_string(),
                "{method} {path}"
            );
            assert!(
                ids.insert(text(&operation["operationId"])),
                "{path}: its operationId is another's"
            );
            let errors = operation["responses"]
                .as_object()
                .unwrap()
                .iter()
                .filter(|(status, _)| status.as_str() >= "400");
            for (status, error) in errors {
                let schema = &error["content"]["application/json"]["schema"]["$ref"];
                assert_eq!(schema, "#/components/schemas/ErrorBody", "{path} {status}");
            }
        }
    }
    unresolved(&description, &description);
}

#[tokio::test]
async fn described_answers_name_their_headers() {
    let app = TestApp::start().await;
    let description = plain(&app, "GET", "/openapi.json").await.json();
    let headers = |method: &str, path: &str, status: &str| -> BTreeSet<String> {
        let answer = &description["paths"][path][method]["responses"][status];
        assert!(answer.is_object(), "{method} {path} {status}");
        answer["headers"]
            .as_object()
            .map(|headers| headers.keys().cloned().collect())
            .unwrap_or_default()
    };
    let all = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    };
    let plan = [
        "X-Plan-Requests-Limit",
        "X-Plan-Requests-Remaining",
        "X-Plan-Requests-Reset",
        "X-Plan-Limit",
        "X-Plan-Remaining",
        "X-Plan-Reset",
        "X-Upstream-Requests",
        "X-Request-Id",
    ];
    let search: Vec<_> = plan
        .into_iter()
        .chain([
            "X-Search-Status",
            "X-Search-Reason",
            "X-Search-Results",
            "Preference-Applied",
        ])
        .collect();
    let with = |name| search.iter().copied().chain([name]).collect::<Vec<_>>();
    let answered: Vec<_> = with("Idempotent-Replayed")
        .into_iter()
        .chain(["Age"])
        .collect();
    assert_eq!(headers("post", "/v1/flights/oneway", "200"), all(&answered));
    let aliased: Vec<_> = answered
        .iter()
        .copied()
        .chain(["X-Field-Aliased"])
        .collect();
    assert_eq!(
        headers("post", "/v1/flights/roundtrip", "200"),
        all(&aliased)
    );
    for (method, path, status) in [
        ("post", "/v1/scans", "202"),
        ("post", "/v1/monitors", "201"),
        ("post", "/v1/deliveries/{id}/resend", "202"),
    ] {
        assert_eq!(
            headers(method, path, status),
            all(&["X-Request-Id", "Location", "Idempotent-Replayed"]),
            "{path}"
        );
    }
    assert_eq!(
        headers("post", "/v1/hotels/rooms", "429"),
        all(&with("Retry-After"))
    );
    assert_eq!(
        headers("post", "/v1/flights/oneway", "413"),
        all(&["X-Request-Id"])
    );
    assert_eq!(
        headers("post", "/v1/flights/oneway", "202"),
        all(&[
            "X-Request-Id",
            "Location",
            "Preference-Applied",
            "Idempotent-Replayed"
        ])
    );
    assert_eq!(headers("get", "/v1/verify", "200"), all(&plan));
    assert_eq!(
        headers("get", "/v1/scans", "200"),
        all(&["X-Request-Id", "Link"])
    );
    assert_eq!(
        headers("get", "/v1/scans", "429"),
        all(&["X-Request-Id", "Retry-After"])
    );
    assert_eq!(
        headers("get", "/v1/scans", "503"),
        all(&["X-Request-Id", "Retry-After"])
    );
    let defined = description["components"]["headers"].as_object().unwrap();
    assert!(defined.values().all(|header| header["description"].is_string() && header["schema"]["type"].is_string()));
    assert_eq!(
        description["paths"]["/healthz"]["get"]["responses"]["200"]["headers"]
            .as_object()
            .unwrap()
            .len(),
        1
    );
}

/// The webhook payloads are described as webhooks, with their signature headers.
#[tokio::test]
async fn webhooks_are_described_with_their_signature() {
    let app = TestApp::start().await;
    let description = plain(&app, "GET", "/openapi.json").await.json();
    let sent = description["webhooks"].as_object().unwrap();
    assert_eq!(
        sent.keys().collect::<Vec<_>>(),
        ["monitor.alerts", "monitor.digest", "monitor.test"]
    );
    for (event, item) in sent {
        let headers = array(&item["post"]["parameters"]);
        let names: Vec<_> = headers
            .iter()
            .map(|header| (header["in"].as_str(), header["name"].as_str().unwrap()))
            .collect();
        let header = Some("header");
        assert_eq!(
            names,
            [
                (header, "webhook-id"),
                (header, "webhook-timestamp"),
                (header, "webhook-signature")
            ],
            "{event}"
        );
        let body = item["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            .as_str()
            .unwrap();
        let schema = &description["components"]["schemas"][body.rsplit('/').next().unwrap()];
        assert_eq!(
            schema["required"],
            serde_json::json!(["type", "timestamp", "data"]),
            "{event}"
        );
        assert_eq!(
            schema["properties"]["type"]["enum"],
            serde_json::json!([event])
        );
    }
}

/// Asserts that every reference resolves.
fn unresolved(whole: &Value, part: &Value) {
    match part {
        Value::Object(object) => {
            if let Some(Value::String(to)) = object.get("$ref") {
                let target = whole.pointer(to.trim_start_matches('#'));
                assert!(target.is_some(), "{to} leads nowhere");
            }
            object.values().for_each(|value| unresolved(whole, value));
        }
        Value::Array(list) => list.iter().for_each(|value| unresolved(whole, value)),
        _ => {}
    }
}

/// The page's own files, as it names them.
pub async fn docs_files(app: &TestApp) -> Vec<String> {
    let page = plain(app, "GET", "/docs/").await.text();
    let names = ["src=\"/docs/", "href=\"/docs/"];
    names
        .iter()
        .flat_map(|attribute| page.split(attribute).skip(1))
        .map(|rest| format!("/docs/{}", rest.split('"').next().unwrap()))
        .collect()
}

#[tokio::test]
async fn the_docs_page_names_no_other_host() {
    let app = TestApp::start().await;
    let page = plain(&app, "GET", "/docs/").await;
    for attribute in ["src=\"", "href=\""] {
        for found in page.text().split(attribute).skip(1) {
            assert!(
                found.starts_with("/docs/")
                    || found.starts_with("/\"")
                    || found.starts_with("/openapi.json\"")
                    || found.starts_with("data:,\""),
                "{}",
                &found[..found.len().min(80)]
            );
        }
    }
    let policy = page.header("content-security-policy");
    let directives: Vec<_> = policy.split("; ").collect();
    assert!(
        directives.contains(&"default-src 'none'")
            && directives.contains(&"connect-src 'self'")
            && directives.contains(&"script-src 'self'")
            && !policy.contains("http"),
        "whatever the page's script tries, the browser contacts no other host: {policy}"
    );
    let files = docs_files(&app).await;
    assert_eq!(files.len(), 3, "{files:?}");
    let start = files.iter().find(|file| file.contains("start-")).unwrap();
    let start = plain(&app, "GET", start).await.text();
    for setting in [
        "agent: { disabled: true }",
        "mcp: { disabled: true }",
        "persistAuth: false",
        "telemetry: false",
        "withDefaultFonts: false",
        "url: \"/openapi.json\"",
    ] {
        assert!(start.contains(setting), "{setting}");
    }
    assert!(!start.contains("proxyUrl"));
}

#[tokio::test]
async fn the_docs_files_are_kept_until_they_change() {
    let app = TestApp::start().await;
    for file in docs_files(&app).await {
        let found = plain(&app, "GET", &file).await.expect(200);
        assert_eq!(
            found.header("cache-control"),
            "public, max-age=31536000, immutable",
            "{file}"
        );
        assert!(
            found.bytes.len() > 500 && found.header("etag").len() > 10,
            "{file}"
        );
    }
    let other = plain(&app, "GET", "/docs/scalar-0.js").await;
    assert_eq!(other.kind(), "404 not_found");
}
