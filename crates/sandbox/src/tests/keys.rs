//! Keys, subscriptions, quotas and their headers.

use super::*;

#[tokio::test]
async fn each_key_has_its_plans() {
    let sandbox = TestSandbox::open().await;
    let billion = 1_000_000_000;
    for (key, flights, hotels) in [
        ("sandbox-basic", Some((10, None)), Some((10, None))),
        (
            "sandbox-pro",
            Some((2_500, Some(150))),
            Some((2_000, Some(25))),
        ),
        (
            "sandbox-ultra",
            Some((10_000, Some(250))),
            Some((6_500, Some(25))),
        ),
        (
            "sandbox-mega",
            Some((50_000, Some(500))),
            Some((25_000, Some(50))),
        ),
        ("sandbox-flights-only", Some((2_500, Some(150))), None),
        ("sandbox-hotels-only", None, Some((2_000, Some(25)))),
        (
            "sandbox-unlimited",
            Some((billion, None)),
            Some((billion, None)),
        ),
        ("sandbox-demo", Some((50_000, None)), Some((25_000, None))),
    ] {
        for (path, body, plan) in [
            (ONEWAY, oneway("LHR"), flights),
            (RESOLVE, hotel(RESOLVE, "The Grand London"), hotels),
        ] {
            let answer = sandbox.call(key, path, &body).await;
            let Some((month, window)) = plan else {
                assert_eq!(answer.status, 403, "{key} {path}");
                assert_eq!(
                    answer.json(),
                    json!({"message": "You are not subscribed to this API."})
                );
                assert_eq!(answer.header("x-rapidapi-proxy-response"), Some("true"));
                continue;
            };
            assert_eq!(answer.status, 200, "{key} {path}");
            assert_eq!(answer.header("x-rapidapi-proxy-response"), None);
            assert_eq!(
                answer.number("x-ratelimit-requests-limit"),
                Some(month),
                "{key} {path}"
            );
            assert_eq!(
                answer.number("x-ratelimit-requests-remaining"),
                Some(month - 1),
                "{key} {path}"
            );
            assert_eq!(
                answer.number("x-ratelimit-requests-reset"),
                Some(11 * 86_400),
                "until December"
            );
            assert_eq!(answer.number("x-ratelimit-limit"), window, "{key} {path}");
            assert_eq!(
                answer.number("x-ratelimit-remaining"),
                window.map(|limit| limit - 1)
            );
            assert_eq!(
                answer.header("x-ratelimit-reset").is_some(),
                window.is_some()
            );
            assert!(
                answer
                    .number("x-ratelimit-reset")
                    .is_none_or(|seconds| (1..=60).contains(&seconds))
            );
        }
    }
    sandbox.close().await;
}

#[tokio::test]
async fn both_key_headers_are_accepted() {
    let sandbox = TestSandbox::open().await;
    for (header, key, status) in [
        ("x-rapidapi-key", "sandbox-pro", 200),
        ("x-marketplace-key", "sandbox-pro", 200),
        ("x-marketplace-key", "sandbox-pro.alice", 200),
        ("x-marketplace-key", "sandbox-prod", 401),
        ("x-marketplace-key", "", 401),
        ("x-api-key", "sandbox-pro", 401),
    ] {
        let answer =
            SandboxResponse::of(sandbox.request(ONEWAY, &oneway("LHR")).header(header, key)).await;
        assert_eq!(answer.status, status, "{header}: {key}");
        if status == 401 {
            assert!(answer.json()["message"].is_string());
            assert_eq!(answer.header("x-ratelimit-requests-limit"), None);
        }
    }
    sandbox.close().await;
}

#[tokio::test]
async fn only_requests_that_reach_an_engine_are_counted() {
    let sandbox = TestSandbox::open().await;
    let left = |answer: &SandboxResponse| answer.number("x-ratelimit-requests-remaining");
    for (path, body, status, remaining) in [
        (ONEWAY, json!({}), 422, 2_499),
        (ONEWAY, oneway("LHR"), 200, 2_498),
        (ONEWAY, oneway("ZZX"), 503, 2_497),
        (ONEWAY, oneway("ZZQ"), 429, 2_497),
        (ROUNDTRIP, roundtrip("ZZE"), 200, 2_496),
        (RESOLVE, json!({}), 422, 1_999),
        (SEARCH, hotel(SEARCH, "ZZE City"), 404, 1_998),
        (SEARCH, hotel(SEARCH, "ZZQ City"), 429, 1_998),
        (SEARCH, json!({"location": "London"}), 400, 1_997),
    ] {
        let answer = sandbox.call("sandbox-pro", path, &body).await;
        assert_eq!(
            (answer.status.as_u16(), left(&answer)),
            (status, Some(remaining)),
            "{path} {body}"
        );
    }
    sandbox.close().await;
}

#[tokio::test]
async fn basic_stops_after_ten_requests_per_suffix() {
    let sandbox = TestSandbox::open().await;
    for remaining in (0..10).rev() {
        let answer = sandbox.call("sandbox-basic", ONEWAY, &oneway("LHR")).await;
        assert_eq!(
            answer.number("x-ratelimit-requests-remaining"),
            Some(remaining)
        );
    }
    for _ in 0..2 {
        let answer = sandbox.call("sandbox-basic", ONEWAY, &oneway("LHR")).await;
        assert_eq!(answer.status, 429);
        assert!(
            answer.json()["message"]
                .as_str()
                .is_some_and(|text| text.contains("MONTHLY quota"))
        );
        assert_eq!(answer.number("x-ratelimit-requests-remaining"), Some(0));
        assert_eq!(answer.header("retry-after"), None);
    }
    assert_eq!(
        sandbox
            .call(
                "sandbox-basic",
                RESOLVE,
                &hotel(RESOLVE, "The Grand London")
            )
            .await
            .status,
        200
    );
    assert_eq!(
        sandbox
            .call("sandbox-basic.bob", ONEWAY, &oneway("LHR"))
            .await
            .status,
        200
    );
    sandbox.close().await;
}

#[tokio::test]
async fn plan_pro_allows_25_hotel_requests_per_window() {
    let sandbox = TestSandbox::open().await;
    let body = hotel(RESOLVE, "The Grand London");
    for _ in 0..25 {
        assert_eq!(
            sandbox.call("sandbox-pro", RESOLVE, &body).await.status,
            200
        );
    }
    let answer = sandbox.call("sandbox-pro", RESOLVE, &body).await;
    assert_eq!(answer.status, 429);
    assert!(
        answer
            .number("retry-after")
            .is_some_and(|seconds| (1..=60).contains(&seconds))
    );
    assert_eq!(
        answer.number("retry-after"),
        answer.number("x-ratelimit-reset")
    );
    assert_eq!(answer.number("x-ratelimit-remaining"), Some(0));
    assert_eq!(
        answer.number("x-ratelimit-requests-remaining"),
        Some(1_975),
        "the refused one is not counted"
    );
    sandbox.close().await;
}

#[tokio::test]
async fn concurrent_requests_are_counted_exactly() {
    let sandbox = TestSandbox::open().await;
    let body = oneway("LHR");
    let calls = (0..30).map(|_| sandbox.call("sandbox-basic", ONEWAY, &body));
    let answers = futures::future::join_all(calls).await;
    assert_eq!(
        answers.iter().filter(|answer| answer.status == 200).count(),
        10
    );
    assert_eq!(
        answers.iter().filter(|answer| answer.status == 429).count(),
        20
    );
    sandbox.close().await;
}
