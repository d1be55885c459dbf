//! `/channels`: add, pause and remove one; a watch of a question names those that are active.

use serde_json::{Value, json};

use super::{Browser, form, forms, key, redirect};
use crate::support::TestService;

async fn channels(service: &TestService) -> Vec<Value> {
    let page = service.get("/v1/channels").await;
    page["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_channel_is_added_paused_and_removed_on_its_page() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page("/channels").await;
    assert!(page.contains("alerts are only shown here"), "{page}");
    let add = form(&page, "/channels")
        .with("name", "my phone")
        .with("kind", "ntfy")
        .with("quiet_from", "22:00")
        .with("quiet_until", "07:00")
        .with("timezone", "Europe/London");
    let wrong = add.clone().with("url", "http://10.0.0.1/topic");
    let refused = browser.send(&wrong).await;
    let text = refused.expect(400).text();
    assert!(
        text.contains("<code>url</code>") && text.contains("my phone"),
        "{text}"
    );
    assert_eq!(channels(&service).await, Vec::<Value>::new());

    let right = add.with("url", "https://ntfy.example.com/hidden-8842c1");
    redirect(browser.send(&right).await);
    redirect(browser.send(&right).await);
    let [channel] = channels(&service)
        .await
        .try_into()
        .expect("one, however often it is sent");
    assert_eq!(
        channel["notify"]["quiet_hours"],
        json!({"from": "22:00", "until": "07:00"})
    );
    let page = browser.page("/channels").await;
    assert!(
        page.contains("not from 22:00 to 07:00 in Europe/London"),
        "{page}"
    );
    assert!(
        !page.contains("hidden-8842c1"),
        "the topic is a secret: {page}"
    );

    let path = format!("/channels/{}", channel["id"].as_str().unwrap());
    redirect(browser.send(&form(&page, &format!("{path}/status"))).await);
    assert_eq!(channels(&service).await[0]["status"], "paused");
    let page = browser.page("/channels").await;
    assert!(page.contains("by you") && page.contains("Resume"), "{page}");
    redirect(browser.send(&form(&page, &format!("{path}/remove"))).await);
    assert_eq!(channels(&service).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_watch_of_a_question_names_the_active_channels() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let mut ids = Vec::new();
    for (name, status) in [("my phone", "active"), ("old phone", "paused")] {
        let body = json!({"name": name, "kind": "ntfy", "url": format!("https://ntfy.example.com/{}", name.replace(' ', "-"))});
        let id = service.post("/v1/channels", &body).await.created(201);
        let path = format!("/v1/channels/{id}");
        service
            .ask("PATCH", &path, Some(&json!({"status": status})))
            .await
            .expect(200);
        ids.push(id);
    }
    let browser = Browser::sign_in(&service, key()).await;
    let asked = redirect(
        browser
            .get("/ask?q=tel+aviv+LHR+2030-03-01+below+150")
            .await,
    );
    let page = browser.page(&asked).await;
    assert!(page.contains("Alerts go to my phone."), "{page}");
    let watch = forms(&page, "/monitors").pop().unwrap();
    let monitor = redirect(browser.send(&watch).await);
    let id = monitor.rsplit('/').next().unwrap();
    let monitor = service.get(&format!("/v1/monitors/{id}")).await;
    assert_eq!(monitor["channels"], json!([ids[0]]));
}
