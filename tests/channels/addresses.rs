//! Which targets a channel may have: those of a webhook, checked when it is set and at each try.

use farescan::config::WebhookConfig;
use farescan::webhooks::{Guard, Sender};
use serde_json::json;

use super::{channel, cheap, open};
use crate::alerts::{AlertTest, fares};
use crate::support::TestService;
use crate::support::reply::Reply;
use crate::support::upstream::ScriptedServer;
use crate::webhooks::harness::{TestResolver, address, deliver, guard};

/// Targets that no webhook may have either.
const FORBIDDEN: [&str; 24] = [
    "http://hooks.example.com/t",
    "https://hooks.example.com:8443/t",
    "https://me:secret@hooks.example.com/t",
    "https://hooks.example.com/t#part",
    "ftp://hooks.example.com/t",
    "https://127.0.0.1/t",
    "https://127.1/t",
    "https://0177.0.0.1/t",
    "https://0x7f000001/t",
    "https://2130706433/t",
    "https://0/t",
    "https://10.0.0.1/t",
    "https://172.16.0.1/t",
    "https://192.168.1.1/t",
    "https://100.64.0.1/t",
    "https://169.254.169.254/t",
    "https://168.63.129.16/t",
    "https://[::1]/t",
    "https://[::]/t",
    "https://[fe80::1]/t",
    "https://[fc00::1]/t",
    "https://[::ffff:127.0.0.1]/t",
    "https://[64:ff9b::7f00:1]/t",
    "https://[2002:7f00:1::]/t",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_kind_takes_a_target_that_a_webhook_may_not_have() {
    let test = AlertTest::of(TestService::start().await);
    test.accept_key().await;
    for kind in ["ntfy", "slack"] {
        for url in FORBIDDEN {
            let body = json!({"name": "n", "kind": kind, "url": url});
            let refused = test.post("/v1/channels", &body).await;
            assert_eq!(refused.kind(), "400 invalid_request", "{kind} {url}");
            assert!(
                refused
                    .message()
                    .contains("`url`: found a value that is not shown")
            );
        }
        let good = json!({"name": "n", "kind": kind, "url": "https://hooks.example.com/t"});
        let id = channel(&test, &good).await;
        let patch = json!({"url": FORBIDDEN[5]});
        let refused = test
            .ask("PATCH", &format!("/v1/channels/{id}"), Some(&patch))
            .await;
        assert_eq!(refused.kind(), "400 invalid_request");
    }
    test.close().await;
}

/// A name that has left the public addresses, and a setting that was withdrawn.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_checked_again_at_each_try() {
    let test = open().await;
    let inside = ScriptedServer::start_at("127.0.0.2:0").await;
    inside.reply(Reply::status(200));
    let names = TestResolver::default();
    names.resolve_to("moved.test", &[&[address(&inside)]]);
    test.respond_with(|asked| fares(&[90], asked));
    for (kind, url) in [
        ("ntfy", "http://moved.test/t"),
        ("slack", "http://moved.test/t"),
    ] {
        let id = channel(&test, &json!({"name": kind, "kind": kind, "url": url})).await;
        let monitor = test.create_monitor(&cheap(&[&id])).await;
        test.run(&monitor).await;
    }
    let resolver = std::sync::Arc::new(names.clone());
    let sender = Sender::with_resolver(guard(), resolver.clone()).unwrap();
    let running = deliver(test.pool(), sender);
    test.wait_for_count(
        "select count(*) from delivery_tries where error = 'unresolved'",
        2,
    )
    .await;
    running.stop().await;
    let strict = Sender::with_resolver(Guard::new(&WebhookConfig::default()), resolver).unwrap();
    let running = deliver(test.pool(), strict);
    execute!(test.pool(), "update deliveries set due_at = now()");
    execute!(test.pool(), "update webhook_endpoints set next_at = now()");
    execute!(test.pool(), "notify farescan_delivery");
    test.wait_for_count(
        "select count(*) from delivery_tries where error = 'address_refused'",
        2,
    )
    .await;
    assert_eq!(inside.count(), 0);
    running.stop().await;
    test.close().await;
}
