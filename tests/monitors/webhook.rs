//! A monitor's webhook: opened, moved and closed with the monitor. Deliveries are tested in
//! `webhooks`.

use serde_json::{Value, json};

use super::with;
use crate::support::app::KEY;
use crate::support::{TestService, text};

const URL: &str = "https://hooks.example.com/fares?token=hidden";

async fn secrets(service: &TestService) -> i64 {
    service
        .count("select count(*) from key_grants where purpose = 'webhook' and wiped_at is null")
        .await
}

#[tokio::test]
async fn a_webhooks_secret_is_shown_once_and_stored_sealed() {
    let service = TestService::start().await;
    let body = with(&json!({"webhook_url": URL}));
    let order = || {
        service
            .request("POST", "/v1/monitors")
            .header("x-api-key", KEY)
            .header("idempotency-key", "one")
            .json(&body)
    };
    let made = service.send(order()).await.expect(201);
    let made = made.json();
    let secret = text(&made["webhook_secret"]);
    assert!(secret.starts_with("whsec_"), "{secret}");
    assert_eq!(
        (
            &made["webhook_url"],
            &made["webhook"]["url"],
            &made["webhook"]["off_at"]
        ),
        (&json!(URL), &json!(URL), &Value::Null)
    );

    let id = made["id"].as_str().unwrap();
    let mut read = service.monitor(id).await;
    assert_eq!(read["webhook_secret"], Value::Null);
    let repeated = service.send(order()).await;
    assert_eq!(
        (repeated.status, repeated.header("idempotent-replayed")),
        (201, "true")
    );
    assert_eq!(
        repeated.json()["webhook_secret"],
        Value::Null,
        "the stored replay lacks the secret"
    );
    (read["webhook_secret"], read["forecast"]) =
        (made["webhook_secret"].clone(), made["forecast"].clone());
    assert_eq!(read, made);
    let resume = async || {
        let request = service
            .request("POST", &format!("/v1/monitors/{id}/resume"))
            .header("x-api-key", KEY)
            .header("idempotency-key", "resume");
        service.send(request).await.expect(200).json()["webhook"]["url"].clone()
    };
    assert_eq!((resume().await, resume().await), (json!(URL), json!(URL)));
    let dump = service.dump_database().await;
    assert!(!dump.contains(&secret), "the secret is sealed");
    assert!(
        !dump.contains("token=hidden"),
        "the URL is sealed, also in the stored response"
    );
    assert_eq!(secrets(&service).await, 1);
}

#[tokio::test]
async fn updates_open_move_and_close_a_webhook() {
    let service = TestService::start().await;
    let made = service
        .ask("POST", "/v1/monitors", Some(&with(&json!({}))))
        .await
        .json();
    assert_eq!(
        (
            &made["webhook_url"],
            &made["webhook"],
            &made["webhook_secret"]
        ),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let id = made["id"].as_str().unwrap();
    let path = format!("/v1/monitors/{id}");
    let change = async |url: Value| {
        service
            .ask("PATCH", &path, Some(&json!({"webhook_url": url})))
            .await
    };

    let opened = change(json!(URL)).await.json();
    assert_eq!(opened["webhook_url"], json!(URL));
    assert_eq!(service.monitor(id).await["webhook_url"], json!(URL));
    assert!(
        !service.dump_database().await.contains("token=hidden"),
        "the URL is sealed (security.md, rule 11)"
    );
    assert!(
        opened["webhook_secret"]
            .as_str()
            .unwrap()
            .starts_with("whsec_")
    );
    let moved = change(json!("https://hooks.example.com/b")).await.json();
    assert_eq!(
        (&moved["webhook_url"], &moved["webhook_secret"]),
        (&json!("https://hooks.example.com/b"), &Value::Null)
    );
    let named = service
        .ask("PATCH", &path, Some(&json!({"name": "another"})))
        .await
        .json();
    assert_eq!(
        named["webhook_url"],
        json!("https://hooks.example.com/b"),
        "an absent field stays"
    );
    let closed = change(Value::Null).await.json();
    assert_eq!(
        (
            &closed["webhook_url"],
            &closed["webhook"],
            secrets(&service).await
        ),
        (&Value::Null, &Value::Null, 0)
    );

    change(json!(URL)).await;
    assert_eq!(secrets(&service).await, 1);
    assert_eq!(service.ask("DELETE", &path, None).await.status, 204);
    assert_eq!(
        (
            secrets(&service).await,
            service
                .count("select count(*) from webhook_endpoints")
                .await,
            service
                .count("select count(*) from key_grants where purpose = 'webhook_url'")
                .await
        ),
        (0, 0, 0)
    );
}

/// A URL may hold a secret (security.md, rule 11).
#[tokio::test]
async fn a_refused_webhook_url_is_not_shown_and_not_stored() {
    let service = TestService::start().await;
    for url in [
        "http://hooks.example.com/?token=hidden",
        "https://127.0.0.1/?token=hidden",
        "https://h.example.com:8443/?token=hidden",
    ] {
        let answer = service
            .ask(
                "POST",
                "/v1/monitors",
                Some(&with(&json!({"webhook_url": url}))),
            )
            .await;
        assert_eq!(answer.kind(), "400 invalid_request", "{url}");
        assert!(answer.message().starts_with(
            "`webhook_url`: found a value that is not shown; expected an https URL on port 443"
        ));
        assert!(!answer.text().contains("hidden"), "{}", answer.text());
    }
    assert_eq!(service.count("select count(*) from monitors").await, 0);
}
