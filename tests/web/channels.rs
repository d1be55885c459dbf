//! `/channels`: add, pause and remove one; a watch of a question names those that are active.

use serde_json::{Value, json};

use super::monitors::filled;
use super::{Browser, Form, form, forms, key, redirect};
use crate::support::TestService;

const UNKNOWN: &str = "chn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b";

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

/// An active and a paused channel.
async fn phones(service: &TestService) -> [String; 2] {
    let mut ids = Vec::new();
    for (name, status) in [("my phone", "active"), ("old phone", "paused")] {
        let url = format!("https://ntfy.example.com/{}", name.replace(' ', "-"));
        let body = json!({"name": name, "kind": "ntfy", "url": url});
        let id = service.post("/v1/channels", &body).await.created(201);
        let path = format!("/v1/channels/{id}");
        service
            .ask("PATCH", &path, Some(&json!({"status": status})))
            .await
            .expect(200);
        ids.push(id);
    }
    ids.try_into().unwrap()
}

#[tokio::test]
async fn a_watch_of_a_question_names_the_active_channels() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let ids = phones(&service).await;
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

/// The form with these boxes checked and no others.
fn choosing(mut form: Form, ids: &[&str]) -> Form {
    form.fields.retain(|(name, _)| name != "channel");
    let chosen = ids
        .iter()
        .map(|id| ("channel".to_owned(), (*id).to_owned()));
    form.fields.extend(chosen);
    form
}

#[tokio::test]
async fn the_form_of_a_new_monitor_chooses_its_channels() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page("/monitors/new").await;
    assert!(
        page.contains(r#"You have no channel: <a href="/channels">add one</a>"#),
        "{page}"
    );
    let [phone, old] = phones(&service).await;
    let page = browser.page("/monitors/new").await;
    assert!(
        page.contains("my phone (ntfy)") && page.contains("old phone (ntfy, paused)"),
        "{page}"
    );
    let new = filled(&page, &[]);
    let named = |form: &Form| -> Vec<String> {
        let boxes = form.fields.iter().filter(|(name, _)| name == "channel");
        boxes.map(|(_, id)| id.clone()).collect()
    };
    assert_eq!(named(&new), [phone.as_str()], "each active one");
    let refused = browser.send(&choosing(new.clone(), &[UNKNOWN])).await;
    assert!(refused.expect(422).text().contains("channels[0]"));
    for (chosen, says) in [
        (
            &[old.as_str(), &phone][..],
            "Alerts go to old phone, my phone.",
        ),
        (&[], "No channel hears of its alerts."),
    ] {
        let cost = browser.send(&choosing(new.clone(), chosen)).await;
        let cost = cost.expect(200).text();
        assert!(cost.contains(says), "{says}: {cost}");
        // A choice is kept on the way back.
        let edit = forms(&cost, "/monitors/new").pop().unwrap();
        let again = browser.send(&edit.with("step", "edit")).await;
        let again = form(&again.expect(200).text(), "/monitors/new");
        assert_eq!(named(&again), chosen);
        let monitor = redirect(browser.send(&form(&cost, "/monitors")).await);
        let id = monitor.rsplit('/').next().unwrap();
        let stored = service.get(&format!("/v1/monitors/{id}")).await;
        assert_eq!(stored["channels"], json!(chosen));
    }
}

#[tokio::test]
async fn the_form_of_a_changed_monitor_keeps_adds_and_removes_channels() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let [phone, old] = phones(&service).await;
    let browser = Browser::sign_in(&service, key()).await;
    let mut body = super::monitor_edit::route();
    body["channels"] = json!([phone, old]);
    let id = service.create_monitor(&body).await;
    let path = format!("/monitors/{id}");
    let edit = async || {
        let page = browser.page(&format!("{path}/edit")).await;
        super::monitor_edit::edit_form(&page, &id)
    };
    // Sent back as it is, it changes nothing, whatever the order of the list.
    let page = browser.send(&edit().await).await.expect(200).text();
    assert!(page.contains("Nothing changes"), "{page}");
    for (chosen, says) in [
        (&[old.as_str()][..], "my phone, old phone"),
        (&[], "<td>Channels</td>"),
        (&[phone.as_str()], "my phone"),
    ] {
        let page = browser.send(&choosing(edit().await, chosen)).await;
        let page = page.expect(200).text();
        assert!(page.contains(says), "{says}: {page}");
        let save = form(&page, &format!("{path}/change"));
        assert_eq!(redirect(browser.send(&save).await), path);
        assert_eq!(service.monitor(&id).await["channels"], json!(chosen));
    }
}
