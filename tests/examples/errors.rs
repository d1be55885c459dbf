//! Provokes every declared error that a request can provoke.

use std::num::NonZeroU32;

use farescan::config::RateLimitConfig;
use serde_json::json;

use super::recorder::{Ask, Recorder};
use super::successes::Context;
use crate::support::app::TestApp;

const UNKNOWN: [(&str, &str); 7] = [
    ("scans", "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b"),
    ("items", "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b"),
    ("monitors", "mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b"),
    ("alerts", "alr_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b"),
    ("deliveries", "dlv_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b"),
    ("quota", "trains"),
    ("channels", "chn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b"),
];

/// The ids of a path that name nothing.
fn unknown_ids(run: &Recorder, operation: &str) -> Ask {
    let path = run.path(operation);
    let (_, id) = UNKNOWN
        .iter()
        .find(|(folder, _)| path.split('/').nth(2) == Some(folder))
        .unwrap_or(&UNKNOWN[0]);
    ["id", "other", "api"]
        .into_iter()
        .filter(|name| path.contains(&format!("{{{name}}}")))
        .fold(Ask::default(), |ask, name| ask.at(name, id))
}

fn is_search(operation: &str) -> bool {
    [
        "search_oneway_flights",
        "search_roundtrip_flights",
        "search_hotels",
        "find_hotel_by_name",
        "list_hotel_rooms",
        "resolve_hotel",
    ]
    .contains(&operation)
}

pub async fn provoke_all(run: &mut Recorder, context: &Context) {
    let stateless = run.other_service(TestApp::builder(), 60).await;
    let limited = TestApp::builder().database(&run.service.db).state(|app| {
        app.with_rate_limits(&RateLimitConfig {
            requests_per_second: NonZeroU32::MIN,
            request_burst: NonZeroU32::MIN,
        })
    });
    let limited = run.other_service(limited, 60).await;
    for (operation, statuses) in run.declared() {
        for status in statuses {
            provoke(run, context, &operation, &status, [&stateless, &limited]).await;
        }
    }
    conflicts(run, context).await;
    marketplace_failures(run).await;
}

/// Sends requests until one exceeds the rate limit of this service, a request a second. None has
/// an effect: bodies are invalid.
async fn limit(run: &mut Recorder, limited: &TestApp, operation: &str, example: Ask) {
    let body = example
        .body
        .as_ref()
        .map(|_| r#"{"colour": "red"}"#.to_owned());
    let ask = Ask { body, ..example };
    for _ in 0..50 {
        run.send(Some(limited), "list_scans", &Ask::default()).await;
        let answer = run.send(Some(limited), operation, &ask).await;
        if answer.status == 429 {
            run.check(operation, 429, &answer);
            return;
        }
    }
    let answer = run.send(Some(limited), operation, &ask).await;
    run.check(operation, 429, &answer);
}

async fn provoke(
    run: &mut Recorder,
    context: &Context,
    operation: &str,
    status: &str,
    [stateless, limited]: [&TestApp; 2],
) {
    let unknown = unknown_ids(run, operation);
    let example = run.example_of(operation, unknown.clone());
    let method = run.method(operation).to_owned();
    match status {
        "401" => {
            run.answer(operation, 401, example.key("")).await;
        }
        "400" if method == "GET" || method == "DELETE" => {
            let mut ask = example;
            ask.query.push(("colour".to_owned(), "red".to_owned()));
            if operation == "verify_key" {
                ask.query = vec![("api".to_owned(), "trains".to_owned())];
            }
            run.answer(operation, 400, ask).await;
        }
        "400" => {
            let mut example = example;
            if ["set_lane_bounds", "update_lane_bounds"].contains(&operation) {
                example.path = vec![("api", "flights".to_owned())];
            }
            let body = Some(r#"{"colour": "red"}"#.to_owned());
            run.answer(operation, 400, Ask { body, ..example }).await;
        }
        "404"
            if ["list_hotel_rooms", "find_hotel_by_name"].contains(&operation)
                || operation == "create_scan"
                || operation == "create_monitor" => {}
        "404" if operation == "rotate_key" => {
            let new = Ask::body(&json!({"new_key": "sandbox-unlimited.other"}));
            run.answer(operation, 404, new.key("sandbox-pro.nobody"))
                .await;
        }
        "404" if is_search(operation) => {
            let place = magic_field(operation);
            let ask = with_field(example, place, "ZZE Hotel");
            run.answer(operation, 404, ask).await;
        }
        "404" => {
            let mut example = example;
            if ["list_alerts", "list_deliveries"].contains(&operation) {
                example.query = vec![("monitor_id".to_owned(), UNKNOWN[2].1.to_owned())];
            }
            run.answer(operation, 404, example).await;
        }
        "406" => {
            let ask = Ask {
                path: example
                    .path
                    .iter()
                    .map(|(name, _)| (*name, context.ended.clone()))
                    .collect(),
                ..example
            };
            run.answer(operation, 406, ask.header("accept", "image/png"))
                .await;
        }
        // Just above the limits of searches and of scans: the service closes the connection after
        // a larger body.
        "413" => {
            for size in [64 << 10, 1 << 20] {
                let body = Some(format!("{{{}}}", " ".repeat(size)));
                let ask = Ask {
                    body,
                    ..example.clone()
                };
                let answer = run.send(None, operation, &ask).await;
                if answer.status == 413 || size > 64 << 10 {
                    run.check(operation, 413, &answer);
                    break;
                }
            }
        }
        "403" => {
            let key = if operation.contains("flights") {
                "sandbox-hotels-only"
            } else {
                "sandbox-flights-only"
            };
            run.answer(operation, 403, example.key(key)).await;
        }
        // The marketplace's own body, passed on.
        "429" if is_search(operation) => {}
        "429" if !["verify_key", "test_webhook", "test_channel"].contains(&operation) => {
            limit(run, limited, operation, example).await;
        }
        "503" if operation.contains("flights") && is_search(operation) => {
            let mut ask = with_field(example, "to_airport", "ZZD");
            ask.body = ask
                .body
                .map(|body| body.replacen('{', r#"{"strict": true, "#, 1));
            run.answer(operation, 503, ask).await;
        }
        "503" if is_search(operation) => {
            let ask = with_field(
                example,
                magic_field(operation),
                magic_value(operation, "ZZD"),
            );
            run.answer(operation, 503, ask).await;
        }
        "503" if operation != "verify_key" => {
            run.answer_of(Some(stateless), operation, 503, example)
                .await;
        }
        _ => {}
    }
}

fn magic_field(operation: &str) -> &'static str {
    match operation {
        "search_oneway_flights" | "search_roundtrip_flights" => "to_airport",
        "search_hotels" => "destination",
        "list_hotel_rooms" => "hotel_booking_id",
        _ => "hotel_name",
    }
}

fn magic_value(operation: &str, word: &'static str) -> &'static str {
    match (operation, word) {
        ("search_oneway_flights" | "search_roundtrip_flights", word) => word,
        ("list_hotel_rooms", "ZZQ") => "xx/zzq-hotel",
        ("list_hotel_rooms", "ZZD") => "xx/zzd-hotel",
        ("list_hotel_rooms", "ZZG") => "xx/zzg-hotel",
        ("list_hotel_rooms", _) => "xx/zzt-hotel",
        (_, "ZZQ") => "ZZQ Hotel",
        (_, "ZZD") => "ZZD Hotel",
        (_, "ZZG") => "ZZG Hotel",
        _ => "ZZT Hotel",
    }
}

/// The request with another value of a field.
fn with_field(ask: Ask, field: &str, value: &str) -> Ask {
    let mut body: serde_json::Value =
        serde_json::from_str(ask.body.as_deref().unwrap_or("{}")).unwrap();
    body[field] = json!(value);
    Ask {
        body: Some(body.to_string()),
        ..ask
    }
}

/// The conflicts with a state.
async fn conflicts(run: &mut Recorder, context: &Context) {
    let at = |id: &str| Ask::default().at("id", id);
    run.answer("pause_scan", 409, at(&context.ended)).await;
    run.answer("cancel_scan", 409, at(&context.ended)).await;
    run.answer("resume_scan", 409, at(&context.cancelled)).await;
    let degraded = Ask::body(&json!({"search_status": ["degraded"]}));
    run.answer("retry_scan", 409, degraded.at("id", &context.cancelled))
        .await;
    run.answer("run_monitor", 409, at(&context.busy)).await;
    let example = run.example_of("backtest_monitor", Ask::default());
    let unknown = example.key("sandbox-unlimited.nobody");
    run.answer("backtest_monitor", 409, unknown).await;
}

/// A marketplace that answers garbage, one that does not answer, and one that is not asked.
async fn marketplace_failures(run: &mut Recorder) {
    let impatient = run.other_service(TestApp::builder(), 1).await;
    for operation in [
        "search_hotels",
        "find_hotel_by_name",
        "list_hotel_rooms",
        "resolve_hotel",
    ] {
        let field = magic_field(operation);
        let example = run.example_of(operation, Ask::default());
        let garbage = with_field(example.clone(), field, magic_value(operation, "ZZG"));
        run.answer(operation, 502, garbage).await;
        let silence = with_field(example, field, magic_value(operation, "ZZT"));
        run.answer_of(Some(&impatient), operation, 504, silence)
            .await;
    }
    for operation in ["search_oneway_flights", "search_roundtrip_flights"] {
        let example = run.example_of(operation, Ask::default());
        let new = with_field(example, "departure_date", "2027-01-15");
        let stored = new.header("cache-control", "only-if-cached");
        run.answer(operation, 504, stored).await;
    }
}
