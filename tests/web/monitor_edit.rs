//! Changing a monitor: its form, what the change costs, and that no change of someone else is lost.

use serde_json::{Value, json};

use super::{Browser, Form, form, redirect};
use crate::monitors::with;
use crate::support::app::KEY;
use crate::support::db::begin_holding;
use crate::support::{TestService, wait_until};

const OTHER: &str = "another-key-0123456789";

/// A service whose marketplace has accepted the key, with this monitor.
async fn service_with_monitor(body: &Value) -> (TestService, String) {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    service.accept_key().await;
    worker.stop().await;
    let id = service.create_monitor(body).await;
    (service, id)
}

pub fn route() -> Value {
    with(&json!({
        "name": "January fares",
        "schedule": {"cron": "0 6 * * *", "timezone": "Europe/London"},
        "scan": {
            "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": {"from": "+7d", "to": "+9d"}}
        },
        "alerts": [{"type": "price_below", "amount": 200}],
        "max_requests_per_month": 500
    }))
}

/// The form with the choices that a browser sends with it.
pub fn edit_form(page: &str, id: &str) -> Form {
    form(page, &format!("/monitors/{id}/edit"))
        .with("endpoint", "flights/oneway")
        .with("repeat", "daily")
        .with("step", "check")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_stored_after_its_cost_was_shown() {
    let (service, id) = service_with_monitor(&route()).await;
    let browser = Browser::sign_in(&service, KEY).await;
    let path = format!("/monitors/{id}");
    assert!(browser.page(&path).await.contains(&format!("{path}/edit")));
    let edit = edit_form(&browser.page(&format!("{path}/edit")).await, &id);
    // Sent back as it is, it changes nothing.
    let page = browser.send(&edit).await.expect(200).text();
    assert!(page.contains("Nothing changes"), "{page}");

    let wanted = edit
        .with("name", "Early fares")
        .with("last", "+11d")
        .with("max_requests_per_month", "100")
        .with("price_below", "180");
    let page = browser.send(&wanted).await.expect(200).text();
    for part in [
        "Early fares",
        "+11d",
        "5 to 10 requests",
        "A slot whose run does not fit your limit is skipped",
        "Another search begins anew",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(service.monitor(&id).await["name"], "January fares");

    let save = form(&page, &format!("{path}/change"));
    for _ in 0..2 {
        assert_eq!(
            redirect(browser.send(&save).await),
            path,
            "also a second press"
        );
    }
    let monitor = service.monitor(&id).await;
    assert_eq!(monitor["name"], "Early fares");
    assert_eq!(monitor["requests"]["max_per_month"], 100);
    assert_eq!(monitor["scan"]["sweep"]["departure_date"]["to"], "+11d");
    assert_eq!(monitor["alerts"][0]["amount"], 180);
    assert_eq!(monitor["schedule"], route()["schedule"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_is_changed_and_ended() {
    let mut body = route();
    body["scan"]["strategy"] = json!({"watch": "below", "below": 150.5});
    body["scan"]["max_requests"] = json!(3);
    let (service, id) = service_with_monitor(&body).await;
    let browser = Browser::sign_in(&service, KEY).await;
    let path = format!("/monitors/{id}");
    let page = browser.page(&format!("{path}/edit")).await;
    // The choice is no input: a browser sends what is selected.
    assert!(page.contains(r#"<option value="below" selected"#), "{page}");
    let edit = edit_form(&page, &id).with("watch", "below");
    let same = browser.send(&edit).await.expect(200).text();
    assert!(same.contains("Nothing changes"), "{same}");
    let replayed = browser.send(&edit.clone().with("step", "backtest")).await;
    let replayed = replayed.expect(200).text();
    assert!(
        replayed.contains("Your history has no price of these searches"),
        "{replayed}"
    );
    for (watch, stored) in [
        ("cheapest", json!({"watch": "cheapest"})),
        ("", Value::Null),
    ] {
        let page = browser.page(&format!("{path}/edit")).await;
        let edit = edit_form(&page, &id).with("watch", watch);
        let page = browser.send(&edit).await.expect(200).text();
        let save = form(&page, &format!("{path}/change"));
        assert_eq!(redirect(browser.send(&save).await), path);
        let scan = service.monitor(&id).await["scan"].clone();
        assert_eq!(
            (&scan["strategy"], &scan["max_requests"]),
            (&stored, &json!(3))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_someone_else_is_not_lost() {
    let (service, id) = service_with_monitor(&route()).await;
    let browser = Browser::sign_in(&service, KEY).await;
    let path = format!("/monitors/{id}");
    let edit = edit_form(&browser.page(&format!("{path}/edit")).await, &id);
    let page = browser
        .send(&edit.with("name", "Mine"))
        .await
        .expect(200)
        .text();
    let body = json!({"name": "Theirs"}).to_string();
    let patch = service
        .request("PATCH", &format!("/v1/monitors/{id}"))
        .header("x-api-key", KEY)
        .header("content-type", "application/json")
        .body(body);
    service.send(patch).await.expect(200);
    let save = form(&page, &format!("{path}/change"));
    let refused = browser.send(&save).await.expect(409).text();
    assert!(refused.contains("Nothing was saved"), "{refused}");
    assert_eq!(service.monitor(&id).await["name"], "Theirs");

    // What was entered is kept, as a change of the monitor as it is now.
    assert!(
        refused.contains("Theirs") && refused.contains("Mine"),
        "{refused}"
    );
    let kept = form(&refused, &format!("{path}/edit"));
    let page = browser.send(&kept.with("step", "check")).await.expect(200);
    let save = form(&page.text(), &format!("{path}/change"));
    assert_eq!(redirect(browser.send(&save).await), path);
    assert_eq!(service.monitor(&id).await["name"], "Mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_changes_at_once_one_is_refused() {
    let (service, id) = service_with_monitor(&route()).await;
    let browser = Browser::sign_in(&service, KEY).await;
    let path = format!("/monitors/{id}");
    let edit = edit_form(&browser.page(&format!("{path}/edit")).await, &id);
    let page = browser.send(&edit.with("name", "Mine")).await.expect(200);
    let save = form(&page.text(), &format!("{path}/change"));
    // The other change has the lock while this one begins.
    let mut other = begin_holding(service.pool()).await;
    execute!(
        &mut *other,
        "update monitors set name = 'Theirs', updated_at = now()"
    );
    let saving = browser.send(&save);
    let storing = async {
        wait_until("the change waits for the lock", async || {
            service
                .count("select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
                .await
                > 0
        })
        .await;
        other.commit().await.unwrap();
    };
    let (saved, ()) = tokio::join!(saving, storing);
    let refused = saved.expect(409).text();
    assert!(
        refused.contains("Theirs") && refused.contains("Mine"),
        "{refused}"
    );
    assert_eq!(service.monitor(&id).await["name"], "Theirs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_press_shows_the_secret_of_the_first() {
    let (service, id) = service_with_monitor(&route()).await;
    let browser = Browser::sign_in(&service, KEY).await;
    let path = format!("/monitors/{id}");
    let secret = |page: String| {
        let (_, rest) = page.split_once("whsec_")?;
        Some(rest.split('<').next()?.to_owned())
    };
    let edit = edit_form(&browser.page(&format!("{path}/edit")).await, &id);
    let edit = edit.with("webhook_url", "https://hooks.example.com/fares");
    let page = browser.send(&edit).await.expect(200).text();
    let save = form(&page, &format!("{path}/change"));
    let first = secret(browser.send(&save).await.expect(200).text());
    let again = browser.send(&save).await.expect(200);
    assert_eq!(again.header("cache-control"), "no-store");
    assert!(first.is_some());
    assert_eq!(secret(again.text()), first);

    // So does the page that creates a monitor.
    let new = form(&browser.page("/monitors/new").await, "/monitors/new")
        .with("endpoint", "flights/oneway")
        .with("repeat", "daily")
        .with("step", "check")
        .with("name", "With a webhook")
        .with("from_airport", "TLV")
        .with("to_airport", "LHR")
        .with("first", "+7d")
        .with("webhook_url", "https://hooks.example.com/fares");
    let page = browser.send(&new).await.expect(200).text();
    let create = form(&page, "/monitors");
    let created = secret(browser.send(&create).await.expect(201).text());
    assert!(created.is_some() && created != first);
    assert_eq!(
        secret(browser.send(&create).await.expect(201).text()),
        created
    );

    // Once it is rotated, no page shows the old one.
    let rotate = form(&browser.page(&path).await, &format!("{path}/rotate-secret"));
    let rotate = rotate.with("current_key", KEY);
    browser.send(&rotate).await.expect(200);
    assert_eq!(redirect(browser.send(&save).await), path);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_change_is_named_and_stores_nothing() {
    let (service, id) = service_with_monitor(&route()).await;
    let browser = Browser::sign_in(&service, KEY).await;
    let edit = edit_form(&browser.page(&format!("/monitors/{id}/edit")).await, &id);
    let wrong = edit
        .clone()
        .with("timezone", "Mars")
        .with("from_airport", "Tel Aviv");
    let page = browser.send(&wrong).await.expect(422).text();
    for part in [
        "schedule.timezone",
        "scan.request.from_airport",
        "value=\"Tel Aviv\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = browser
        .send(&edit.with("rules", "[{"))
        .await
        .expect(422)
        .text();
    assert!(page.contains("alerts"), "{page}");

    let stranger = Browser::sign_in(&service, OTHER).await;
    let path = format!("/monitors/{id}");
    assert_eq!(stranger.get(&format!("{path}/edit")).await.status, 404);
    for action in ["edit", "change"] {
        let mut theft = form(&stranger.page("/usage").await, "/logout")
            .with("request", "{\"name\": \"stolen\"}");
        theft.action = format!("{path}/{action}");
        assert_eq!(stranger.send(&theft).await.status, 404, "{action}");
    }
    assert_eq!(service.monitor(&id).await["name"], "January fares");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_set_and_removed_by_the_form() {
    let (service, id) = service_with_monitor(&route()).await;
    let browser = Browser::sign_in(&service, KEY).await;
    let path = format!("/monitors/{id}");
    let change = async |url: &str| {
        let edit = edit_form(&browser.page(&format!("{path}/edit")).await, &id);
        let page = browser.send(&edit.with("webhook_url", url)).await;
        let save = form(&page.expect(200).text(), &format!("{path}/change"));
        browser.send(&save).await
    };
    let opened = change("https://hooks.example.com/fares").await.expect(200);
    assert_eq!(opened.header("cache-control"), "no-store");
    assert!(opened.text().contains("whsec_"));
    assert!(!browser.page(&path).await.contains("whsec_"));
    assert_eq!(redirect(change("").await), path);
    assert_eq!(service.monitor(&id).await["webhook_url"], Value::Null);
}
