//! The routes of channels.

use serde_json::{Value, json};

use super::{channel, open};
use crate::monitors::with;
use crate::support::app::KEY;
use crate::support::text;

const OTHER: &str = "another-key-0123456789";

fn phone() -> Value {
    json!({"name": "my phone", "kind": "ntfy", "url": "https://ntfy.example.com/fares-3f9a2c71d0", "token": "tk_hunter2"})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_is_created_read_changed_and_deleted() {
    let test = open().await;
    let send = || {
        test.request("POST", "/v1/channels")
            .header("x-api-key", KEY)
            .header("idempotency-key", "one")
            .json(&phone())
    };
    let made = test.send(send()).await.expect(201);
    let shown = made.json();
    let id = text(&shown["id"]);
    assert_eq!(made.header("location"), format!("/v1/channels/{id}"));
    assert_eq!(shown["url"], "https://ntfy.example.com/…71d0");
    assert_eq!(
        [
            &shown["has_token"],
            &shown["least_priority"],
            &shown["timezone"],
            &shown["status"]
        ],
        [&json!(true), &json!("low"), &json!("UTC"), &json!("active")]
    );
    let again = test.send(send()).await;
    assert_eq!(
        (again.header("idempotent-replayed"), again.json()),
        ("true", shown.clone())
    );
    assert_eq!(test.get(&format!("/v1/channels/{id}")).await, shown);
    assert_eq!(
        test.page("/v1/channels").await,
        std::slice::from_ref(&shown)
    );
    let patch = json!({"name": "old phone", "url": "https://ntfy.example.com/other-topic-99aa", "token": null, "status": "paused"});
    let path = format!("/v1/channels/{id}");
    let changed = test
        .ask("PATCH", &path, Some(&patch))
        .await
        .expect(200)
        .json();
    assert_eq!(
        [
            &changed["name"],
            &changed["url"],
            &changed["has_token"],
            &changed["status_reason"]
        ],
        [
            &json!("old phone"),
            &json!("https://ntfy.example.com/…99aa"),
            &json!(false),
            &json!("by_caller")
        ]
    );
    let grants = "select count(*) from key_grants where purpose in ('webhook', 'webhook_url')";
    test.wait_for_count(grants, 1).await;
    let on = test
        .ask("PATCH", &path, Some(&json!({"status": "active"})))
        .await
        .expect(200);
    assert_eq!(on.json()["status"], "active");
    test.ask("DELETE", &path, None).await.expect(204);
    test.wait_for_count(grants, 0).await;
    assert_eq!(test.ask("GET", &path, None).await.kind(), "404 not_found");
    let dump = test.dump_database().await;
    assert!(!dump.contains("hunter2") && !dump.contains("3f9a2c"));
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_error_names_its_field_and_shows_no_secret() {
    let test = open().await;
    let bad = json!({
        "name": "", "kind": "slack", "url": "ftp://hunter2.example.com/", "token": "tk_hunter2",
        "least_priority": "loud", "notify": {}, "timezone": "Mars/Olympus", "colour": "red"
    });
    let refused = test.post("/v1/channels", &bad).await;
    assert_eq!(refused.kind(), "400 invalid_request");
    for field in [
        "name",
        "url",
        "token",
        "least_priority",
        "notify",
        "timezone",
        "colour",
    ] {
        assert!(
            refused.message().contains(&format!("`{field}`")),
            "{field}: {}",
            refused.message()
        );
    }
    assert!(
        !refused.message().contains("hunter2"),
        "{}",
        refused.message()
    );
    for url in [
        "https://ntfy.example.com/",
        "https://ntfy.example.com/a/b",
        "https://ntfy.example.com/a?auth=1",
        "https://ntfy.example.com/a%20b",
    ] {
        let body = json!({"name": "n", "kind": "ntfy", "url": url});
        let refused = test.post("/v1/channels", &body).await;
        assert_eq!(refused.kind(), "400 invalid_request", "{url}");
        assert!(
            refused.message().contains("the URL of an ntfy topic"),
            "{url}"
        );
    }
    let id = channel(&test, &phone()).await;
    let path = format!("/v1/channels/{id}");
    let kind = test
        .ask("PATCH", &path, Some(&json!({"kind": "slack"})))
        .await;
    assert!(kind.message().contains("`kind`"), "{}", kind.message());
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_names_its_own_callers_channels_alone() {
    let test = open().await;
    let own = channel(&test, &phone()).await;
    test.submit_as(OTHER, &crate::support::fares(1)).await;
    test.all_ended().await;
    let others = test
        .post_as(OTHER, "/v1/channels", &phone())
        .await
        .created(201);
    let unknown = "chn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b";
    let body = with(&json!({"channels": [own, others, unknown, "mon_1"]}));
    let refused = test.post("/v1/monitors", &body).await;
    assert_eq!(refused.kind(), "400 invalid_request");
    assert!(
        refused.message().contains("`channels[3]`"),
        "{}",
        refused.message()
    );
    let body = with(&json!({"channels": [own, others, unknown]}));
    for path in [
        "/v1/monitors",
        "/v1/monitors/preview",
        "/v1/monitors/backtest",
    ] {
        let refused = test.post(path, &body).await;
        assert_eq!(refused.kind(), "400 invalid_request", "{path}");
        for (field, is_named) in [
            ("channels[0]", false),
            ("channels[1]", true),
            ("channels[2]", true),
        ] {
            assert_eq!(
                refused.message().contains(field),
                is_named,
                "{path}: {}",
                refused.message()
            );
        }
    }
    // A caller that the service does not know has no channel.
    let key = "a-new-key-0123456789";
    let stranger = test.post_as(key, "/v1/monitors/preview", &body).await;
    assert_eq!(stranger.kind(), "400 invalid_request");
    assert!(
        stranger.message().contains("`channels[0]`"),
        "{}",
        stranger.message()
    );
    assert_eq!(test.count("select count(*) from monitors").await, 0);
    let monitor = test
        .create_monitor(&with(&json!({"channels": [own]})))
        .await;
    let path = format!("/v1/monitors/{monitor}");
    let patch = test
        .ask("PATCH", &path, Some(&json!({"channels": [others]})))
        .await;
    assert!(
        patch.message().contains("`channels[0]`"),
        "{}",
        patch.message()
    );
    let renamed = test
        .ask("PATCH", &path, Some(&json!({"name": "other"})))
        .await;
    assert_eq!(renamed.expect(200).json()["channels"], json!([own]));
    let channel_path = format!("/v1/channels/{own}");
    let refused = test.ask("DELETE", &channel_path, None).await;
    assert_eq!(refused.kind(), "409 invalid_state");
    assert!(
        refused.message().contains(&monitor),
        "{}",
        refused.message()
    );
    let removed = test
        .ask("PATCH", &path, Some(&json!({"channels": []})))
        .await;
    assert_eq!(removed.expect(200).json()["channels"], json!([]));
    test.ask("DELETE", &channel_path, None).await.expect(204);
    for path in [
        format!("/v1/channels/{others}"),
        format!("/v1/deliveries?channel_id={others}"),
    ] {
        assert_eq!(
            test.ask("GET", &path, None).await.kind(),
            "404 not_found",
            "{path}"
        );
    }
    assert_eq!(test.page("/v1/channels").await.len(), 0);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_at_most_a_hundred_channels() {
    let test = open().await;
    channel(&test, &phone()).await;
    let copies = "with copied as (
                      insert into channels select tenant_id, gen_random_uuid(), name, kind, shown_url, least_priority, notify, timezone, created_at,
                                                  updated_at
                      from channels, generate_series(1, 99) returning *)
                  select count(*) from copied";
    let _: i64 = value!(test.pool(), copies);
    let refused = test.post("/v1/channels", &phone()).await;
    assert_eq!(refused.kind(), "409 invalid_state");
    assert!(
        refused.message().contains("at most 100"),
        "{}",
        refused.message()
    );
    test.close().await;
}
