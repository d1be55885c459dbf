//! A monitor's webhook: opened, moved and closed with the monitor. What is delivered to it is tried in `webhooks`.

use serde_json::{Value, json};

use super::with;
use crate::scans::office::Office;
use crate::support::app::KEY;

const URL: &str = "https://hooks.example.com/fares?token=hidden";

async fn secrets(office: &Office) -> i64 {
    office
        .count("select count(*) from key_grants where purpose = 'webhook' and wiped_at is null")
        .await
}

#[tokio::test]
async fn its_secret_is_shown_once_and_kept_sealed() {
    let office = Office::open().await;
    let body = with(&json!({"webhook_url": URL}));
    let order = || {
        office
            .app
            .request("POST", "/v1/monitors")
            .header("x-api-key", KEY)
            .header("idempotency-key", "one")
            .json(&body)
    };
    let made = office.app.send(order()).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    let secret = made["webhook_secret"].as_str().unwrap().to_owned();
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
    let mut read = office.monitor(id).await;
    assert_eq!(read["webhook_secret"], Value::Null);
    let repeated = office.app.send(order()).await;
    assert_eq!(
        (repeated.status, repeated.header("idempotent-replayed")),
        (201, "true")
    );
    assert_eq!(
        repeated.json()["webhook_secret"],
        Value::Null,
        "an answer is kept without it"
    );
    (read["webhook_secret"], read["forecast"]) =
        (made["webhook_secret"].clone(), made["forecast"].clone());
    assert_eq!(read, made);
    assert!(
        !office.dump().await.contains(&secret),
        "the secret is sealed"
    );
    assert_eq!(secrets(&office).await, 1);
}

#[tokio::test]
async fn it_is_opened_moved_and_closed_by_changes_and_goes_with_its_monitor() {
    let office = Office::open().await;
    let made = office
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
    let path = format!("/v1/monitors/{}", made["id"].as_str().unwrap());
    let change = async |url: Value| {
        office
            .ask("PATCH", &path, Some(&json!({"webhook_url": url})))
            .await
    };

    let opened = change(json!(URL)).await.json();
    assert_eq!(opened["webhook_url"], json!(URL));
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
    let named = office
        .ask("PATCH", &path, Some(&json!({"name": "another"})))
        .await
        .json();
    assert_eq!(
        named["webhook_url"],
        json!("https://hooks.example.com/b"),
        "what is absent stays"
    );
    let closed = change(Value::Null).await.json();
    assert_eq!(
        (
            &closed["webhook_url"],
            &closed["webhook"],
            secrets(&office).await
        ),
        (&Value::Null, &Value::Null, 0)
    );

    change(json!(URL)).await;
    assert_eq!(secrets(&office).await, 1);
    assert_eq!(office.ask("DELETE", &path, None).await.status, 204);
    assert_eq!(
        (
            secrets(&office).await,
            office.count("select count(*) from webhook_endpoints").await
        ),
        (0, 0)
    );
}

/// Security: a URL may hold a secret, so no fault shows it; and what is no place for a webhook is refused before anything is stored.
#[tokio::test]
async fn a_place_that_may_not_be_called_is_refused_and_not_shown() {
    let office = Office::open().await;
    for url in [
        "http://hooks.example.com/?token=hidden",
        "https://127.0.0.1/?token=hidden",
        "https://h.example.com:8443/?token=hidden",
    ] {
        let answer = office
            .ask(
                "POST",
                "/v1/monitors",
                Some(&with(&json!({"webhook_url": url}))),
            )
            .await;
        assert_eq!(answer.kind(), "400 invalid_request", "{url}");
        assert!(answer.message().starts_with(
            "`webhook_url` holds a value that is not shown; allowed: an https URL on port 443"
        ));
        assert!(!answer.text().contains("hidden"), "{}", answer.text());
    }
    assert_eq!(office.count("select count(*) from monitors").await, 0);
}
