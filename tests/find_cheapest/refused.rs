//! What cannot be decided is refused before it costs anything.

use serde_json::{Value, json};

use super::finding;
use crate::support::service::{TestService, airport_code, fares_with, with};

/// Each case: fields of the body, the field of the fault, what is expected there, and what was found.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_decided_is_refused() {
    let service = TestService::start().await;
    let finds = "no price: `find` is `cheapest`";
    let watches = "no price: `watch` is `cheapest`";
    let cases = json!([
        [{"strategy": {"find": "dearest"}}, "strategy.find", "one of `cheapest`", "\"dearest\""],
        [{"strategy": {"max_risk": 0.1}}, "strategy.find", "", null],
        [{"strategy": {"find": "cheapest", "max_risk": 1}}, "strategy.max_risk", "a number from 0 to below 1", "1"],
        [{"strategy": {"find": "cheapest", "max_risk": -0.1}}, "strategy.max_risk", "a number from 0 to below 1", "-0.1"],
        [{"strategy": {"find": "cheapest", "coarse_step": 4}}, "strategy.coarse_step", "", "4"],
        [{"strategy": {"find": "below"}}, "strategy.below", "the price that `find` `below` asks for", null],
        [{"strategy": {"find": "below", "below": 0}}, "strategy.below", "a number above 0", "0"],
        [{"strategy": {"find": "below", "below": "65"}}, "strategy.below", "a number above 0", "\"65\""],
        [{"strategy": {"find": "cheapest", "below": 65}}, "strategy.below", finds, "65"],
        [{"max_requests": null}, "max_requests", "at least 2", null],
        [{"max_requests": 1}, "max_requests", "at least 2", "1"],
        [{"strategy": {"watch": "dearest"}}, "strategy.watch", "`below`", "\"dearest\""],
        [{"strategy": {"watch": "below"}}, "strategy.below", "a number above 0", null],
        [{"strategy": {"watch": "below", "below": 0}}, "strategy.below", "a number above 0", "0"],
        [{"strategy": {"watch": "cheapest", "below": 90}}, "strategy.below", watches, "90"],
        [{"strategy": {"below": 90}}, "strategy.watch", "", null],
        [{"strategy": {"watch": "cheapest", "max_risk": 0.1}}, "strategy.max_risk", "", "0.1"],
        [{"sweep": {"samples": 2}}, "strategy.watch", "no `sweep.samples` above 1", "2 samples"],
    ]);
    for case in cases.as_array().unwrap() {
        let watch = json!({"strategy": {"watch": "cheapest"}, "max_requests": 5});
        let mut body = fares_with(31, &watch);
        if let Some(sweep) = case[0].get("sweep") {
            body["sweep"] = with(body["sweep"].take(), sweep);
        } else {
            body = with(body, &case[0]);
        }
        let [_, field, expected, found] = [0, 1, 2, 3].map(|nth| case[nth].as_str());
        assert_refused(&service, &body, (field.unwrap(), expected.unwrap(), found)).await;
    }
    let airports: Vec<_> = (0..40).map(airport_code).collect();
    for (sweep, expected, found) in [
        (
            json!({"samples": 2}),
            "no `sweep.samples` above 1",
            "2 samples",
        ),
        (
            json!({"currency": ["USD", "EUR"]}),
            "one currency",
            "EUR, USD",
        ),
        (
            json!({"to_airport": airports}),
            "at most 1000 searches",
            "1240 searches",
        ),
    ] {
        let mut body = finding(31);
        body["sweep"] = with(body["sweep"].take(), &sweep);
        let request = body["request"].as_object_mut().unwrap();
        request.retain(|name, _| sweep.get(name).is_none());
        assert_refused(&service, &body, ("strategy.find", expected, Some(found))).await;
    }
    assert_eq!(service.count("select count(*) from scans").await, 0);
    assert_eq!(service.upstream.count(), 0);
}

async fn assert_refused(
    service: &TestService,
    body: &Value,
    (field, expected, found): (&str, &str, Option<&str>),
) {
    let answer = service.post("/v1/scans", body).await;
    let refused = answer.json();
    assert_eq!(answer.status, 400, "{body:#}: {refused:#}");
    let faults = refused["error"]["details"].as_array().unwrap();
    let fault = faults.iter().find(|fault| fault["field"] == field);
    let fault = fault.unwrap_or_else(|| panic!("{field}: {refused:#}"));
    assert_eq!(
        fault.get("found").and_then(Value::as_str),
        found,
        "{body:#}: {fault:#}"
    );
    assert!(
        fault["expected"].as_str().unwrap().contains(expected),
        "{fault:#}"
    );
}
