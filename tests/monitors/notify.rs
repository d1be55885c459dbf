//! `notify` of a monitor: validated, stored, shown, changed. What it does is tested in `alerts`.

use serde_json::{Value, json};

use super::{at, monitor, with};
use crate::support::TestService;

const URL: &str = "https://hooks.example.com/fares";

#[tokio::test]
async fn notify_is_stored_shown_replaced_and_removed() {
    let service = TestService::start().await;
    let plain = service.create_monitor(&monitor()).await;
    let shown = service.monitor(&plain).await;
    for field in ["notify", "next_digest_at", "held"] {
        assert_eq!(shown.get(field), Some(&Value::Null), "{field}");
    }

    let notify = json!({"quiet_hours": {"from": "22:00", "until": "07:00"}, "digest_at": "08:30"});
    let body = with(&json!({"notify": notify, "webhook_url": URL}));
    let id = service.create_monitor(&body).await;
    let shown = service.monitor(&id).await;
    assert_eq!(shown["notify"], notify);
    assert_eq!(shown["held"], Value::Null);
    let next = at(shown["next_digest_at"].as_str().unwrap());
    let zone = jiff::tz::TimeZone::get("Europe/London").unwrap();
    let next = next.to_zoned(zone);
    assert_eq!((next.hour(), next.minute()), (8, 30));
    let listed = service.page("/v1/monitors").await;
    assert_eq!(listed[0]["notify"], notify);
    assert_eq!(listed[0]["next_digest_at"], shown["next_digest_at"]);

    // Absent it stays; given it is replaced whole.
    service.patch(&id, &json!({"name": "another"})).await;
    assert_eq!(service.monitor(&id).await["notify"], notify);
    let digest = json!({"digest_at": "00:00"});
    service.patch(&id, &json!({"notify": digest})).await;
    assert_eq!(service.monitor(&id).await["notify"], digest);
    service.patch(&id, &json!({"webhook_url": null})).await;
    assert_eq!(service.monitor(&id).await["next_digest_at"], Value::Null);
    service.patch(&id, &json!({"notify": null})).await;
    assert_eq!(service.monitor(&id).await["notify"], Value::Null);
}

#[tokio::test]
async fn errors_of_notify_name_the_field_and_what_it_held() {
    let service = TestService::start().await;
    let id = service.create_monitor(&monitor()).await;
    let quiet = |from: Value, until: Value| json!({"quiet_hours": {"from": from, "until": until}});
    let with_digest = |from: &str, until: &str, digest: &str| {
        let mut notify = quiet(json!(from), json!(until));
        notify["digest_at"] = json!(digest);
        notify
    };
    for (notify, words) in [
        (
            json!({}),
            "`notify`: found {}; expected at least one of `quiet_hours` and `digest_at`, or null",
        ),
        (
            json!("22:00"),
            "`notify`: found \"22:00\"; expected an object with the fields `quiet_hours`, `digest_at`",
        ),
        (
            json!({"digest_at": "8:00"}),
            "`notify.digest_at`: found \"8:00\"; expected a time of the day from \"00:00\" to \"23:59\", as HH:MM",
        ),
        (
            json!({"digest_at": "24:00"}),
            "`notify.digest_at`: found \"24:00\"; expected a time of the day",
        ),
        (
            json!({"digest": "08:00"}),
            "unknown field `notify.digest` in notify; did you mean `digest_at`?",
        ),
        (
            json!({"quiet_hours": {"from": "22:00"}}),
            "`notify.quiet_hours.until` is missing; expected a time of the day",
        ),
        (
            quiet(json!("22:60"), json!(7)),
            "`notify.quiet_hours.from`: found \"22:60\"; expected a time of the day",
        ),
        (
            quiet(json!("22:00"), json!("22:00")),
            "`notify.quiet_hours.until`: found \"22:00\"; expected another time than `from`",
        ),
        (
            with_digest("22:00", "07:00", "06:59"),
            "`notify.digest_at`: found \"06:59\"; expected a time outside `quiet_hours`, which are from 22:00 until before 07:00",
        ),
        (
            with_digest("12:00", "13:00", "12:00"),
            "`notify.digest_at`: found \"12:00\"; expected a time outside `quiet_hours`",
        ),
    ] {
        let path = format!("/v1/monitors/{id}");
        let body = with(&json!({"notify": notify}));
        for (method, path, body) in [
            ("POST", "/v1/monitors", &body),
            ("POST", "/v1/monitors/preview", &body),
            ("PATCH", path.as_str(), &json!({"notify": notify})),
        ] {
            let answer = service.ask(method, path, Some(body)).await;
            assert_eq!(answer.kind(), "400 invalid_request", "{method} {notify}");
            let message = answer.message();
            assert!(
                message.contains(words),
                "{method} {path}\n{words}\n{message}"
            );
        }
    }
    assert_eq!(service.monitor(&id).await["notify"], Value::Null);
    // The end of the quiet hours is outside of them.
    let digest = with_digest("22:00", "07:00", "07:00");
    service.patch(&id, &json!({"notify": digest})).await;
}
