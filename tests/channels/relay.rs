//! Channels of kind `apprise`, against a relay with the real library.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use farescan::webhooks::{Relay, Sender};
use serde_json::{Value, json};

use super::{channel, cheap};
use crate::alerts::{AlertTest, fares};
use crate::support::app::TestApp;
use crate::support::{TestService, text};
use crate::webhooks::harness::{deliver, guard};

/// A target of each service, and the host that the library must call for it.
const TARGETS: [(&str, &str); 5] = [
    (
        "tgram://123456789:AAabcdefghijklmnopqrstuvwxyz012345678/987654321",
        "https://api.telegram.org/",
    ),
    (
        "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
        "https://discord.com/",
    ),
    (
        "pover://uuuuuuuuuuuuuuuuuuuuuuuuuuuuuu@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "https://api.pushover.net/",
    ),
    (
        "gchat://workspace/webhookkey/webhook-token_1=",
        "https://chat.googleapis.com/",
    ),
    (
        "prowl://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "https://api.prowlapp.com/",
    ),
];

struct RelayServer {
    child: Child,
    port: u16,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Drop for RelayServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl RelayServer {
    /// `None`: the library could not be installed.
    fn start() -> Option<Self> {
        let python =
            std::env::var("FARESCAN_APPRISE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        if python == "none" {
            eprintln!("left out: apprise could not be installed (script/setup apprise)");
            return None;
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/channels/relay.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3, or the program that FARESCAN_APPRISE_PYTHON names");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines
            .next()
            .expect("Python with apprise (script/setup apprise)");
        let port = port.unwrap().parse().unwrap();
        Some(Self { child, port, lines })
    }

    /// What the next message made the library send.
    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().expect("a message").unwrap()).unwrap()
    }

    fn sender(&self) -> Sender {
        let relay = Relay::new(&format!("http://127.0.0.1:{}/", self.port)).unwrap();
        Sender::new(guard()).unwrap().with_relay(Some(relay))
    }
}

async fn open() -> AlertTest {
    let builder = TestApp::builder().state(|app| app.with_webhook_guard(guard().with_relay(true)));
    let test = AlertTest::of(TestService::start_with(builder).await);
    test.accept_key().await;
    test
}

fn to(target: &str) -> Value {
    json!({"name": "chat", "kind": "apprise", "url": target})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_library_calls_the_service_of_each_allowed_scheme() {
    let Some(mut relay) = RelayServer::start() else {
        return;
    };
    let test = open().await;
    let running = deliver(test.pool(), relay.sender());
    test.respond_with(|asked| fares(&[90], asked));
    for (index, (target, host)) in TARGETS.iter().enumerate() {
        let id = channel(&test, &to(target)).await;
        let shown = test.get(&format!("/v1/channels/{id}")).await;
        let scheme = target.split("://").next().unwrap();
        assert_eq!(
            (&shown["url"], &shown["status"]),
            (&json!(format!("{scheme}://…")), &json!("active"))
        );
        let monitor = test.create_monitor(&cheap(&[&id])).await;
        test.run(&monitor).await;
        let delivered = "select count(*) from deliveries where status = 'delivered'";
        test.wait_for_count(delivered, i64::try_from(index + 1).unwrap())
            .await;
        let seen = relay.next();
        let asked = &seen["asked"];
        let mut names: Vec<_> = asked
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["body", "format", "title", "type", "urls"]);
        assert_eq!(
            (&asked["urls"], &asked["type"], &asked["format"]),
            (&json!(target), &json!("success"), &json!("text"))
        );
        assert_eq!(asked["title"], "TLV → LHR, 1 Feb 2030: 90 USD");
        let sent = seen["sent"].as_array().unwrap();
        assert!(!sent.is_empty(), "{seen:#}");
        for one in sent {
            assert!(one["url"].as_str().unwrap().starts_with(host), "{one}");
        }
        println!("{scheme}: {} request(s), all to {host}", sent.len());
    }
    let dump = test.dump_database().await;
    assert!(!dump.contains("AAabcdef") && !dump.contains("JHMHI8"));
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_fails_is_tried_again_and_an_unknown_target_is_not() {
    let Some(mut relay) = RelayServer::start() else {
        return;
    };
    let test = open().await;
    // The library knows this scheme, and has another idea of its tokens.
    let unknown = channel(&test, &to("tgram://no-token/1")).await;
    let busy = channel(&test, &to(TARGETS[1].0)).await;
    test.respond_with(|asked| fares(&[90], asked));
    for id in [&unknown, &busy] {
        let monitor = test.create_monitor(&cheap(&[id])).await;
        test.run(&monitor).await;
    }
    execute!(
        test.pool(),
        "update deliveries set body = replace(body, 'TLV → LHR', 'busy') where channel_id = $1",
        busy.parse::<farescan::ids::ChannelId>().unwrap().uuid()
    );
    let running = deliver(test.pool(), relay.sender());
    test.wait_for_count(
        "select count(*) from deliveries where reason = 'refused'",
        1,
    )
    .await;
    test.wait_for_count(
        "select count(*) from deliveries where status = 'delivered'",
        1,
    )
    .await;
    assert!(
        relay.next()["asked"]["title"]
            .as_str()
            .unwrap()
            .starts_with("busy")
    );
    let delivery = test
        .page(&format!("/v1/deliveries?channel_id={busy}"))
        .await
        .remove(0);
    let detail = test
        .get(&format!("/v1/deliveries/{}", text(&delivery["id"])))
        .await;
    assert_eq!(detail["tries"][1]["http_status"], 424);
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_target_reaches_another_host_or_another_receiver() {
    let test = open().await;
    for target in [
        "json://127.0.0.1:9/x",
        "xml://10.0.0.1/",
        "ntfy://inside/x",
        "matrix://a:b@inside",
        "signal://10.0.0.1/1/2",
        "syslog://localhost",
        "https://127.0.0.1/x",
        "tgram://1:A/2?overflow=split",
        "tgram://1:A/2,json://127.0.0.1/",
        "tgram://1:A/2 json://127.0.0.1/",
        "tgram://1:A/2/3/4",
        "TGRAM://1:A/2",
        "me@example.com",
    ] {
        let refused = test.post("/v1/channels", &to(target)).await;
        assert_eq!(refused.kind(), "400 invalid_request", "{target}");
        let message = refused.message();
        assert!(
            message.contains("`url`") && !message.contains("127.0.0.1:9"),
            "{target}: {message}"
        );
    }
    test.close().await;
    let test = super::open().await;
    let refused = test.post("/v1/channels", &to(TARGETS[0].0)).await;
    let message = refused.message();
    assert!(
        message.contains("`kind`") && message.contains("FARESCAN_APPRISE_URL"),
        "{message}"
    );
    test.close().await;
}
