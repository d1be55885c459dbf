//! Guessed keys, sent to verify and to searches.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _};
use serde_json::json;

use super::service;
use crate::support::app::TestApp;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;

const GOOD: &str = "a-good-key";

#[tokio::test(flavor = "multi_thread")]
async fn guessed_keys_are_relayed_within_the_rate_limit() {
    let service = service().await;
    service.upstream.answer(|call| match call.key.as_str() {
        GOOD | "known-to-the-database" => Reply::json(json!([fare(120, &call.body)])),
        _ => Reply::status(401),
    });
    let search =
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-14"});
    assert_eq!(
        service
            .ask_as(GOOD, "POST", "/v1/flights/oneway", Some(&search))
            .await
            .status,
        200
    );
    service
        .submit_as("known-to-the-database", &crate::support::service::fares(1))
        .await;
    execute!(service.pool(), "update tenants set accepted_at = now()");

    let began = Instant::now();
    let (app, search) = (&service, &search);
    // A hundred at a time: a busy machine would connect to more of them before it sends, and the
    // service closes connections that send nothing.
    let guesses = stream::iter(0..600).map(async |number| {
        let key = format!("guess-{number}");
        match number % 2 {
            0 => app.ask_as(&key, "GET", "/v1/verify", None).await,
            _ => {
                app.ask_as(&key, "POST", "/v1/flights/oneway", Some(search))
                    .await
            }
        }
    });
    let answers: Vec<_> = guesses.buffer_unordered(100).collect().await;
    let took = began.elapsed();
    let relayed = service
        .upstream
        .calls()
        .iter()
        .filter(|call| call.key.starts_with("guess-"))
        .count();
    let held_back: Vec<_> = answers
        .iter()
        .filter(|answer| matches!(answer.status, 429 | 503))
        .collect();
    println!(
        "600 guessed keys in {took:.1?}: {relayed} relayed, {} held back",
        held_back.len()
    );
    let most = 200 + 20 * (usize::try_from(took.as_secs()).unwrap() + 1);
    assert!(
        relayed <= most && held_back.len() == 600 - relayed,
        "{relayed} relayed, {} held back",
        held_back.len()
    );
    assert!(
        held_back
            .iter()
            .all(|answer| !answer.header("retry-after").is_empty())
    );
    for key in [GOOD, "known-to-the-database"] {
        assert_eq!(
            app.ask_as(key, "POST", "/v1/flights/oneway", Some(search))
                .await
                .status,
            200,
            "{key} is known as accepted"
        );
    }
}

/// A client whose connections come from this address.
fn client_at(address: &str) -> reqwest::Client {
    let address: std::net::IpAddr = address.parse().unwrap();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .local_address(address)
        .build()
        .unwrap()
}

/// 75 guesses a second from one network: the share of newcomers elsewhere who are let in.
#[tokio::test(flavor = "multi_thread")]
async fn guesses_from_one_network_keep_no_newcomer_out() {
    let service = service().await;
    service.upstream.answer(|call| {
        if call.key.starts_with("guess-") {
            return Reply::status(401);
        }
        Reply::json(json!([fare(120, &call.body)]))
    });
    let url = service.url().to_owned();
    let (guesser, newcomers) = (client_at("127.0.1.1"), client_at("127.0.2.1"));
    let guess = async |number: usize| {
        let request = guesser
            .get(format!("{url}/v1/verify"))
            .header("x-api-key", format!("guess-{number}"));
        request.send().await.unwrap().status().as_u16()
    };
    // The guesses that a burst allows, at once.
    let burst: Vec<_> = stream::iter(0..300)
        .map(&guess)
        .buffer_unordered(40)
        .collect()
        .await;
    let passed = burst.iter().filter(|&&status| status == 401).count();
    let guessing = async {
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / 75);
        for number in 1_000.. {
            ticks.tick().await;
            guess(number).await;
        }
    };
    let arriving = async {
        let mut let_in = 0;
        for number in 0..34 {
            let verify = newcomers
                .get(format!("{url}/v1/verify"))
                .header("x-api-key", format!("newcomer-{number}"));
            let sign_in = newcomers
                .post(format!("{url}/login"))
                .header("origin", &url)
                .header("content-type", "application/x-www-form-urlencoded")
                .body(format!("key=arrival-{number}"));
            let verified = verify.send().await.unwrap().status();
            let signed_in = sign_in.send().await.unwrap().status();
            let_in += usize::from(verified == 200) + usize::from(signed_in == 303);
        }
        let_in
    };
    let let_in = tokio::select! {
        () = guessing => unreachable!("the guesses do not end"),
        let_in = arriving => let_in,
    };
    println!("{passed} of 300 guesses relayed at once; {let_in} of 68 newcomers let in meanwhile");
    assert!(let_in >= 65, "{let_in} of 68 newcomers were let in");
}

/// Made-up keys of one network leave room for others within the minute.
#[tokio::test(flavor = "multi_thread")]
async fn made_up_orders_of_one_network_leave_room_for_others() {
    let service = service().await;
    let order = crate::support::service::fares(1);
    let url = format!("{}/v1/scans", service.url());
    let submit = async |client: &reqwest::Client, key: String| {
        let request = client.post(&url).header("x-api-key", key).json(&order);
        request.send().await.unwrap().status().as_u16()
    };
    let crowd = client_at("127.0.1.1");
    let mut accepted = 0;
    for number in 0..120 {
        accepted += usize::from(submit(&crowd, format!("made-up-{number}")).await == 202);
    }
    let newcomer = client_at("127.0.2.1");
    let status = submit(&newcomer, "a-newcomer-0123456789".to_owned()).await;
    println!("{accepted} of 120 made-up orders accepted, then a newcomer's: {status}");
    assert_eq!(status, 202);
    assert!(accepted <= 50, "{accepted}");
}

/// The client's address is the proxy's word only where the proxy is named.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_a_header_counts_from_a_named_proxy_only() {
    // What stands before the address that the proxy added is the client's own invention.
    for (is_named, added, are_one_network) in [
        (false, "", true),
        (true, "", false),
        (true, ", 203.0.113.9", true),
    ] {
        let builder = TestApp::builder().state(move |app| {
            if is_named {
                app.with_trusted_proxies(vec!["127.0.3.0/24".parse().unwrap()])
            } else {
                app
            }
        });
        let service = super::service_with(builder).await;
        service.upstream.reply(Reply::status(401));
        let url = format!("{}/v1/verify", service.url());
        let proxy = client_at("127.0.3.1");
        let (url, proxy) = (&url, &proxy);
        let guesses = stream::iter(0..150).map(|number| async move {
            let request = proxy
                .get(url)
                .header("x-api-key", format!("guess-{number}"))
                .header("x-forwarded-for", format!("198.18.{number}.7{added}"));
            request.send().await.unwrap().status().as_u16()
        });
        let seen: Vec<_> = guesses.buffer_unordered(30).collect().await;
        let limited = seen.iter().filter(|&&status| status == 429).count();
        println!("named: {is_named}, added: {added:?}: {limited} of 150 limited");
        assert_eq!(limited > 0, are_one_network, "{limited}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_in_flight_are_bounded() {
    let app = TestApp::builder()
        .state(|app| app.with_search_limit(2))
        .start()
        .await;
    let gate = Gate::closed();
    let call_gate = gate.clone();
    app.upstream
        .answer(move |call| Reply::json(json!([fare(120, &call.body)])).gated_by(&call_gate));
    let search =
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-14"});
    let (first, second, third) = tokio::join!(
        app.post("/v1/flights/oneway", &search),
        app.get("/v1/verify"),
        async {
            app.upstream.wait_for_in_flight(2).await;
            let third = app.post("/v1/flights/oneway", &search).await;
            gate.open();
            third
        }
    );
    assert_eq!(
        (third.kind().as_str(), third.header("retry-after")),
        ("503 unavailable", "5"),
        "{}",
        third.text()
    );
    assert_eq!((first.status, second.status), (200, 200));
    let after = tokio::time::timeout(
        Duration::from_secs(30),
        app.post("/v1/flights/oneway", &search),
    )
    .await
    .unwrap();
    assert_eq!(after.status, 200);
}
