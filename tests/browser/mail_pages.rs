//! The pages that a mail leads to, which need no session: accessible at both widths and in both themes, before and
//! after their button.

use serde_json::json;

use super::chromium::{Chromium, Theme};
use super::every_page::faults;
use crate::channels::channel;
use crate::channels::mail_server::{MailServer, code, open};
use crate::support::text;

/// The path of a mail's link to a page.
fn path(mail: &serde_json::Value, page: &str) -> String {
    let body = text(&mail["text"]);
    let (_, rest) = body
        .split_once("https://fares.example.com")
        .unwrap_or_else(|| panic!("{body}"));
    let path = rest.split_whitespace().next().unwrap();
    assert!(path.starts_with(page), "{path}");
    path.to_owned()
}

/// What is wrong with a page in either theme.
async fn in_both_themes(browser: &Chromium, name: &str) -> String {
    let mut all = String::new();
    for theme in Theme::ALL {
        browser.prefer(theme).await;
        all += &faults(browser, &format!("{name}, {}", theme.name())).await;
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_mails_lead_to_are_accessible() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let test = open().await;
    let running = server.deliverer(&test);
    let body = json!({"name": "mail", "kind": "email", "url": "reader@example.com"});
    let id = channel(&test, &body).await;
    let first = server.mails(1).await.remove(0);
    let browser = Chromium::start(test.url()).await;
    browser.sign_in().await;
    browser.open("/channels").await;
    Chromium::assert_says(&browser.text().await, &["waits for its code"]);
    let mut all = in_both_themes(&browser, "channel that waits for its code").await;
    browser.set_cookie("ended").await;
    browser.open(&path(&first, "/no-codes/")).await;
    all += &in_both_themes(&browser, "no more codes?").await;
    browser.press("No more codes").await;
    browser.wait_for_text("For a year no code is mailed").await;
    all += &in_both_themes(&browser, "no more codes").await;

    let confirm = format!("/v1/channels/{id}/confirm");
    test.post(&confirm, &json!({"code": code(&first)}))
        .await
        .expect(200);
    test.ask("POST", &format!("/v1/channels/{id}/test"), None)
        .await
        .expect(202);
    let alerted = server.mails(2).await.remove(1);
    let link = path(&alerted, "/unsubscribe/");
    browser.open(&link).await;
    all += &in_both_themes(&browser, "stop these mails?").await;
    browser.press("Stop them").await;
    browser.wait_for_text("gets no more alerts").await;
    all += &in_both_themes(&browser, "no more mails").await;
    browser.open(&link).await;
    browser.press("Stop them").await;
    browser.wait_for_text("This link has ended").await;
    all += &in_both_themes(&browser, "ended link").await;
    browser.open(&format!("{link}A")).await;
    all += &in_both_themes(&browser, "wrong link").await;
    assert!(all.is_empty(), "{all}");
    browser.end().await;
    running.stop().await;
    test.close().await;
}
