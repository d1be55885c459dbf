//! Concurrent commands on one webhook, at two services.

use std::sync::Arc;

use farescan::config::DatabaseConfig;
use farescan::db::{self, Database};
use farescan::ids::{DeliveryId, MonitorId};
use farescan::webhooks::Sender;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::harness::{self, TestResolver};
use crate::support::app::{HttpResponse, KEY, TestApp};
use crate::support::db::PrivatePg;
use crate::support::reply::Reply;
use crate::support::upstream::ScriptedServer;

/// How often each pair of commands runs.
const ROUNDS: usize = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Test,
    Resend,
    Move,
    Close,
    Delete,
}

const CALLS: [Call; 5] = [
    Call::Test,
    Call::Resend,
    Call::Move,
    Call::Close,
    Call::Delete,
];

impl Call {
    async fn send(self, app: &TestApp, monitor: MonitorId, delivery: DeliveryId) -> HttpResponse {
        let path = format!("/v1/monitors/{monitor}");
        let (method, path, body) = match self {
            Self::Test => ("POST", format!("{path}/test"), json!({})),
            Self::Resend => (
                "POST",
                format!("/v1/deliveries/{delivery}/resend"),
                json!({}),
            ),
            Self::Move => (
                "PATCH",
                path,
                json!({"webhook_url": "http://pair.test/moved"}),
            ),
            Self::Close => ("PATCH", path, json!({"webhook_url": Value::Null})),
            Self::Delete => ("DELETE", path, Value::Null),
        };
        let request = app.request(method, &path).header("x-api-key", KEY);
        app.send(if body.is_null() {
            request
        } else {
            request.json(&body)
        })
        .await
    }
}

async fn service(server: &PrivatePg) -> (Database, TestApp) {
    let database = Database::open(&DatabaseConfig {
        url: Some(server.url().into()),
        ..DatabaseConfig::default()
    })
    .await
    .unwrap();
    db::migrate(database.pool()).await.unwrap();
    let orders =
        TestApp::builder().scan_api(database.pool().clone(), database.connect_options().clone());
    let app = orders
        .state(|app| app.with_webhook_guard(harness::guard()))
        .start()
        .await;
    (database, app)
}

/// Runs every pair of commands on one webhook, each at its own service, while deliveries are tried.
#[tokio::test(flavor = "multi_thread")]
async fn webhook_calls_at_two_services_never_deadlock() {
    let server = PrivatePg::start().await;
    let (database, one) = service(&server).await;
    let (_other_database, other) = service(&server).await;
    let receiver = ScriptedServer::start().await;
    receiver.reply(Reply::status(200));
    let names = TestResolver::default();
    names.resolve_to("pair.test", &[&[harness::address(&receiver)]]);
    let pool = database.pool();
    let deliverer = harness::deliver(
        pool,
        Sender::with_resolver(harness::guard(), Arc::new(names)).unwrap(),
    );
    let tenant = harness::tenant(pool, KEY).await;
    let mut wrong = Vec::new();
    for (place, first) in CALLS.into_iter().enumerate() {
        for second in CALLS.into_iter().skip(place) {
            for _ in 0..ROUNDS {
                let (monitor, _) = harness::webhook(pool, tenant, "http://pair.test/").await;
                let delivery = harness::enqueue(pool, tenant, monitor).await;
                let answers = tokio::join!(
                    first.send(&one, monitor, delivery),
                    second.send(&other, monitor, delivery)
                );
                for (call, answer) in [(first, answers.0), (second, answers.1)] {
                    if ![200, 202, 204, 404, 409, 429].contains(&answer.status) {
                        wrong.push(format!(
                            "{call:?} of {first:?} beside {second:?}: {}",
                            answer.kind()
                        ));
                    }
                }
            }
        }
    }
    deliverer.stop().await;
    let log = server.log();
    let deadlocks = log
        .lines()
        .filter(|line| line.contains("deadlock detected"))
        .count();
    assert_eq!(
        (wrong, deadlocks),
        (vec![], 0),
        "{}",
        log.lines()
            .filter(|line| line.contains("ERROR"))
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_of_transactions_is_409_and_not_an_outage() {
    let hooks = harness::WebhookTest::open().await;
    let app = TestApp::builder().database(&hooks.db).start().await;
    let (monitor, _) = hooks.webhook("http://pair.test/").await;
    for code in ["40P01", "40001"] {
        let refuse = format!(
            "create or replace function refuse() returns trigger language plpgsql as $$
             begin raise exception 'deadlock detected' using errcode = '{code}'; end $$;
             create or replace trigger refuse before insert on deliveries for each row execute function refuse()"
        );
        execute!(hooks.pool(), AssertSqlSafe(refuse));
        let answer = app
            .post(&format!("/v1/monitors/{monitor}/test"), &json!({}))
            .await;
        assert_eq!(
            (answer.kind().as_str(), answer.header("retry-after")),
            ("409 invalid_state", "1"),
            "{code}"
        );
        assert!(
            answer
                .message()
                .contains("nothing of this request was stored"),
            "{}",
            answer.message()
        );
    }
}
