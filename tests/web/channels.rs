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
    assert!(page.contains("No channel yet"), "{page}");
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

/// Whoever adds a channel because a question had none comes back to the question.
#[tokio::test]
async fn a_channel_that_a_question_lacked_leads_back_to_it() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let words = "q=TLV+LHR+2030-03-01+to+2030-03-10+below+150";
    let question = redirect(browser.get(&format!("/ask?{words}")).await);
    let page = browser.page(&question).await;
    let path = format!("/channels?{words}");
    assert!(page.contains(&format!("href=\"{path}\"")), "{page}");
    // A link enters no settings.
    let set = format!("{path}&kind=slack&name=chat&least_priority=high&quiet_from=00:01");
    let set = browser.page(&set).await;
    assert!(
        !set.contains("value=\"chat\"") && !set.contains("00:01"),
        "{set}"
    );
    let long = browser
        .page(&format!("/channels?q={}", "x".repeat(501)))
        .await;
    assert!(!long.contains("Back to"), "{long}");
    let page = browser.page(&path).await;
    let back = format!("href=\"/ask?{words}\"");
    assert!(page.contains(&back), "{page}");
    let add = form(&page, "/channels")
        .with("name", "chat")
        .with("kind", "slack")
        .with("url", "https://hooks.example.com/services/T000/B000/secret");
    let wrong = browser.send(&add.clone().with("name", "")).await;
    assert!(wrong.expect(400).text().contains(&back));
    let page = browser.page(&redirect(browser.send(&add).await)).await;
    assert!(page.contains(&back), "{page}");
    let page = browser.page(&question).await;
    assert!(page.contains("Alerts go to chat."), "{page}");
}

/// The addresses of topics on a page.
fn topics(page: &str) -> Vec<&str> {
    let urls = page.split("https://ntfy.sh/fares-").skip(1);
    let ids = urls.map(|rest| rest.split(|c: char| !c.is_ascii_hexdigit()).next().unwrap());
    ids.filter(|id| id.len() == 32).collect()
}

/// The address that a form has.
fn topic_of(form: &Form) -> &str {
    let fields = &form.fields;
    &fields.iter().find(|(name, _)| name == "url").unwrap().1
}

#[tokio::test]
async fn a_phone_gets_a_topic_and_its_code_with_one_button() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page("/channels").await;
    assert!(page.contains("Make a topic for my phone"), "{page}");
    assert!(page.contains("This server has no mail server"), "{page}");
    let add = form(&page, "/channels/phone");
    let other = browser.page("/channels").await;
    let other = form(&other, "/channels/phone");
    assert_ne!(topics(topic_of(&add)), topics(topic_of(&other)));

    let shown = browser.send(&add).await.expect(200).text();
    let topic = topics(&shown)[0];
    assert!(topics(topic_of(&add)).contains(&topic), "{add:?}");
    for part in [
        "<svg",
        "Install the app ntfy",
        "ntfy://ntfy.sh/fares-",
        ">Test<",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let again = browser.send(&add).await.expect(200).text();
    assert!(
        again.contains(topic),
        "loaded again it is the same: {again}"
    );
    // A browser that was closed asks for the address alone.
    assert_eq!(redirect(browser.get("/channels/phone").await), "/channels");
    let [phone] = channels(&service).await.try_into().expect("one channel");
    assert_eq!(phone["name"], "My phone");
    let page = browser.page("/channels").await;
    assert!(!page.contains(topic), "the topic is shown once: {page}");
    let next = form(&page, "/channels/phone");
    assert!(
        next.fields
            .contains(&("name".to_owned(), "My phone 2".to_owned()))
    );
}

#[tokio::test]
async fn a_new_channel_joins_the_monitors_that_exist() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let with = async |name: &str, channels: &[&str]| {
        let body = json!({"name": name, "channels": channels});
        service.create_monitor(&crate::monitors::with(&body)).await
    };
    let before = with("before", &[]).await;
    let [phone, _] = phones(&service).await;
    let chosen = with("chosen", &[]).await;
    let named = with("named", &[&phone]).await;
    let browser = Browser::sign_in(&service, key()).await;
    let new = form(&browser.page("/channels").await, "/channels")
        .with("name", "chat")
        .with("kind", "slack")
        .with("url", "https://hooks.example.com/services/T000/B000/secret");
    let path = redirect(browser.send(&new).await);
    let page = browser.page(&path).await;
    assert!(page.contains("Also use it for my 2 monitors"), "{page}");
    assert!(page.contains(&format!("/monitors/{chosen}/edit")), "{page}");
    assert!(
        !page.contains(&format!("/monitors/{before}/edit")),
        "{page}"
    );
    let chat = path.rsplit('=').next().unwrap().to_owned();
    let [join, also] = forms(&page, &format!("/channels/{chat}/monitors"))
        .try_into()
        .expect("one button for those that join, one for the others");
    for _ in 0..2 {
        assert_eq!(redirect(browser.send(&join).await), path);
        for (monitor, channels) in [
            (&before, json!([chat])),
            (&chosen, json!([])),
            (&named, json!([phone, chat])),
        ] {
            assert_eq!(service.monitor(monitor).await["channels"], channels);
        }
    }
    let page = browser.page(&path).await;
    assert!(
        page.contains("2 of 3") && !page.contains("use it for my"),
        "{page}"
    );
    redirect(browser.send(&also).await);
    assert_eq!(service.monitor(&chosen).await["channels"], json!([chat]));
}

#[tokio::test]
async fn a_channel_joins_three_hundred_monitors_and_no_full_one() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let mut ids = Vec::new();
    for number in 0..10 {
        let url = format!("https://ntfy.example.com/topic-{number}");
        let body = json!({"name": format!("{number}"), "kind": "ntfy", "url": url});
        let id = service.post("/v1/channels", &body).await.created(201);
        let (path, off) = (format!("/v1/channels/{id}"), json!({"status": "paused"}));
        service.ask("PATCH", &path, Some(&off)).await.expect(200);
        ids.push(id);
    }
    let named = async |name: &str, channels: &[String]| {
        let body = json!({"name": name, "channels": channels});
        service.create_monitor(&crate::monitors::with(&body)).await
    };
    let full = named("full", &ids).await;
    named("one", &[]).await;
    execute!(
        service.pool(),
        "insert into monitors select r.* from monitors m, generate_series(2, 300) n, lateral jsonb_populate_record(m,
             jsonb_build_object('monitor_id', gen_random_uuid(), 'name', n::text)) r where m.name = $1",
        "one"
    );
    let browser = Browser::sign_in(&service, key()).await;
    let add = form(&browser.page("/channels").await, "/channels/phone");
    let page = browser.send(&add).await.expect(200).text();
    assert!(page.contains("Also use it for my 300 monitors"), "{page}");
    assert!(page.contains(&format!("/monitors/{full}/edit")), "{page}");
    let id = channels(&service).await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let join = form(&page, &format!("/channels/{id}/monitors"));
    let page = browser.page(&redirect(browser.send(&join).await)).await;
    assert!(page.contains("300 of 301"), "{page}");
    assert_eq!(service.monitor(&full).await["channels"], json!(ids));
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
    let watch = forms(&page, "/ask").pop().unwrap();
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
