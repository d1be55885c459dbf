//! Channels of kind `email`, against a real mail server and read back by a mail parser.

use serde_json::{Value, json};

use super::mail_server::{MailServer, code, headers, open};
use super::{channel, cheap};
use crate::alerts::{AlertTest, fares};
use crate::cli::monitors::{cli, out};
use crate::support::app::{HttpResponse, KEY};
use crate::support::{TestService, text};

const READER: &str = "quiet.reader@example.com";

fn to(address: &str) -> Value {
    json!({"name": "my mail", "kind": "email", "url": address})
}

/// Asks for a confirmation or a code.
async fn confirm(test: &TestService, id: &str, body: &Value) -> HttpResponse {
    let path = format!("/v1/channels/{id}/confirm");
    test.post(&path, body).await
}

/// A channel whose address is confirmed, after so many mails.
async fn confirmed(test: &AlertTest, server: &MailServer, address: &str, mails: usize) -> String {
    let id = channel(test, &to(address)).await;
    let mailed = server.mails(mails + 1).await;
    let body = json!({"code": code(&mailed[mails])});
    let shown = confirm(test, &id, &body).await.expect(200).json();
    assert_eq!(
        (&shown["status"], &shown["status_reason"]),
        (&json!("active"), &Value::Null)
    );
    id
}

/// Makes an alert for a channel: a rule tells once, so each is of a monitor of its own.
async fn alert(test: &AlertTest, id: &str) {
    let monitor = test.create_monitor(&cheap(&[id])).await;
    assert_eq!(test.run(&monitor).await["judged"]["alerts"], 1);
}

/// Lets the next code be asked for.
async fn a_minute_later(test: &TestService) {
    execute!(
        test.pool(),
        "update webhook_endpoints set code_asked_at = code_asked_at - interval '1 min'"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_gets_a_code_and_nothing_else_until_it_is_confirmed() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let test = open().await;
    let running = server.deliverer(&test);
    let made = test
        .post("/v1/channels", &to(READER))
        .await
        .expect(201)
        .json();
    let id = text(&made["id"]);
    assert_eq!(
        [
            &made["url"],
            &made["status"],
            &made["status_reason"],
            &made["has_token"]
        ],
        [
            &json!("q…@example.com"),
            &json!("paused"),
            &json!("unconfirmed"),
            &json!(false)
        ]
    );
    test.respond_with(|asked| fares(&[90], asked));
    alert(&test, &id).await;
    let failed = "select count(*) from deliveries where event_type = 'channel.alerts' and reason = 'endpoint_off'";
    test.wait_for_count(failed, 1).await;
    let [mail] = &server.mails(1).await[..] else {
        unreachable!()
    };
    assert_eq!(headers(mail, "subject"), ["Confirm this address"]);
    assert_eq!(
        headers(mail, "list-unsubscribe"),
        [""; 0],
        "there is nothing to unsubscribe from"
    );
    let no_codes = "No more codes to this address: https://fares.example.com/no-codes/";
    assert!(text(&mail["text"]).contains(no_codes), "{mail}");
    assert!(
        !mail.to_string().contains("my mail"),
        "no word of the caller: {mail}"
    );

    let path = format!("/v1/channels/{id}");
    let active = test
        .ask("PATCH", &path, Some(&json!({"status": "active"})))
        .await;
    assert_eq!(active.kind(), "409 invalid_state");
    let tested = test.ask("POST", &format!("{path}/test"), None).await;
    assert_eq!(tested.kind(), "409 invalid_state");
    let wrong = confirm(&test, &id, &json!({"code": "2222-2222"})).await;
    assert_eq!(wrong.kind(), "400 invalid_request");
    assert!(wrong.message().contains("`code`"), "{}", wrong.message());
    let soon = confirm(&test, &id, &json!({})).await;
    assert_eq!(soon.kind(), "429 too_many_requests");
    let dump = test.dump_database().await;
    let given = code(mail);
    assert!(
        !dump.contains("quiet.reader")
            && !dump.contains(&given)
            && !dump.contains(&given.replace('-', ""))
    );
    // As people write it.
    let typed = given.to_lowercase().replace('-', " ");
    let shown = confirm(&test, &id, &json!({"code": typed}))
        .await
        .expect(200)
        .json();
    assert_eq!(shown["status"], "active");
    let again = confirm(&test, &id, &json!({"code": given})).await;
    assert_eq!(
        again.expect(200).json(),
        shown,
        "a repetition changes nothing"
    );
    let more = confirm(&test, &id, &json!({})).await;
    assert_eq!(more.kind(), "409 invalid_state");

    alert(&test, &id).await;
    server.mails(2).await;
    let codes = test.page(&format!("/v1/deliveries?channel_id={id}")).await;
    let resend = format!(
        "/v1/deliveries/{}/resend",
        text(&codes.last().unwrap()["id"])
    );
    assert_eq!(
        test.ask("POST", &resend, None).await.kind(),
        "409 invalid_state"
    );
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_is_a_mail_of_two_parts() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let test = open().await;
    let running = server.deliverer(&test);
    let id = confirmed(&test, &server, READER, 0).await;
    test.respond_with(|asked| fares(&[90], asked));
    alert(&test, &id).await;
    let mail = server.mails(2).await.remove(1);
    assert_eq!(
        (&mail["from"], &mail["to"], &mail["helo"]),
        (
            &json!("fares@example.com"),
            &json!([READER]),
            &json!("example.com")
        )
    );
    assert_eq!(mail["type"], "multipart/alternative");
    assert_eq!(mail["parts"], json!(["text/plain", "text/html"]));
    assert_eq!(mail["defects"], json!([]));
    assert!(mail["longest_line"].as_u64().unwrap() <= 998);
    assert_eq!(headers(&mail, "subject"), ["TLV → LHR, 1 Feb 2030: 90 USD"]);
    assert_eq!(headers(&mail, "from"), ["Fares <fares@example.com>"]);
    assert_eq!(headers(&mail, "auto-submitted"), ["auto-generated"]);
    assert_eq!(
        headers(&mail, "list-unsubscribe-post"),
        ["List-Unsubscribe=One-Click"]
    );
    assert_eq!(headers(&mail, "date").len(), 1);
    let delivered = "select count(*) from deliveries where status = 'delivered'";
    test.wait_for_count(delivered, 2).await;
    let listed = test
        .page(&format!("/v1/deliveries?channel_id={id}&status=delivered"))
        .await;
    let delivery = text(&listed[0]["id"]);
    assert_eq!(
        headers(&mail, "message-id"),
        [format!("<{delivery}@example.com>")]
    );
    assert_eq!(headers(&mail, "farescan-delivery"), [delivery.as_str()]);
    let detail = test.get(&format!("/v1/deliveries/{delivery}")).await;
    assert_eq!(detail["tries"][0]["response"], "250 2.0.0 queued as 1");
    let body = mail["text"].as_str().unwrap();
    assert!(
        body.contains("Price below 100 USD") && body.contains("Monitor: a week ahead"),
        "{body}"
    );
    assert!(
        mail["html"]
            .as_str()
            .unwrap()
            .contains("<p>Price below 100 USD</p>")
    );
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_unsubscribes_without_a_session() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let test = open().await;
    let running = server.deliverer(&test);
    let id = confirmed(&test, &server, READER, 0).await;
    test.respond_with(|asked| fares(&[90], asked));
    alert(&test, &id).await;
    let mail = server.mails(2).await.remove(1);
    let body = text(&mail["text"]);
    let link = headers(&mail, "list-unsubscribe")[0];
    let link = link.trim_matches(['<', '>']).to_owned();
    assert!(body.contains(&link), "{body}");
    let path = link.strip_prefix("https://fares.example.com").unwrap();
    let other = if path.as_bytes()[30] == b'A' {
        'B'
    } else {
        'A'
    };
    let changed = format!("{}{other}{}", &path[..30], &path[31..]);
    for method in ["GET", "POST"] {
        let unknown = test.send(test.request(method, &changed)).await;
        assert_eq!(
            unknown.expect(404).header("content-type"),
            "text/html; charset=utf-8"
        );
    }
    let page = test
        .send(test.request("GET", path))
        .await
        .expect(200)
        .text();
    assert!(
        page.contains("<form method=\"post\"") && page.contains("Stop them"),
        "{page}"
    );
    assert_eq!(
        test.get(&format!("/v1/channels/{id}")).await["status"],
        "active",
        "a scanner of mails changes nothing"
    );
    let one_click = || {
        test.request("POST", path)
            .header("content-type", "application/x-www-form-urlencoded")
            .body("List-Unsubscribe=One-Click")
    };
    test.send(one_click()).await.expect(200);
    let again = test.send(one_click()).await.expect(404).text();
    assert!(again.contains("This link has ended"), "{again}");
    let shown = test.get(&format!("/v1/channels/{id}")).await;
    assert_eq!(shown["status_reason"], "unsubscribed");
    let active = test
        .ask(
            "PATCH",
            &format!("/v1/channels/{id}"),
            Some(&json!({"status": "active"})),
        )
        .await;
    assert_eq!(active.kind(), "409 invalid_state", "only the reader can");
    alert(&test, &id).await;
    test.wait_for_count(
        "select count(*) from deliveries where reason = 'endpoint_off'",
        1,
    )
    .await;

    a_minute_later(&test).await;
    let asked = confirm(&test, &id, &json!({})).await.expect(200).json();
    assert_eq!(asked["status_reason"], "unconfirmed");
    let again = server.mails(3).await.remove(2);
    confirm(&test, &id, &json!({"code": code(&again)}))
        .await
        .expect(200);
    test.send(one_click()).await.expect(404);
    assert_eq!(
        test.get(&format!("/v1/channels/{id}")).await["status"],
        "active",
        "the link was of the earlier confirmation"
    );
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_is_text_in_each_part_of_a_mail() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let test = open().await;
    let running = server.deliverer(&test);
    let mut body = to(READER);
    body["name"] = json!("<script>alert(1)</script> & \"co\"");
    let id = channel(&test, &body).await;
    let mailed = server.mails(1).await;
    confirm(&test, &id, &json!({"code": code(&mailed[0])}))
        .await
        .expect(200);
    running.stop().await;
    test.ask("POST", &format!("/v1/channels/{id}/test"), None)
        .await
        .expect(202);
    // No notice has such a title; a table could.
    let title = r"This is a test\r\nBcc: victim@example.com\r\n\r\n<script>";
    execute!(
        test.pool(),
        "update deliveries set body = replace(body, 'This is a test', $1) where event_type = 'channel.test'",
        title
    );
    let running = server.deliverer(&test);
    let mail = server.mails(2).await.remove(1);
    assert_eq!(headers(&mail, "bcc"), [""; 0]);
    assert_eq!(mail["to"], json!([READER]));
    assert_eq!(
        headers(&mail, "subject"),
        ["This is a test  Bcc: victim@example.com    <script>"]
    );
    let (plain, html) = (text(&mail["text"]), text(&mail["html"]));
    assert!(
        plain.contains("The channel \"<script>alert(1)</script> & \"co\"\" works."),
        "{plain}"
    );
    assert!(!html.contains("<script"), "{html}");
    assert!(
        html.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;co&quot;"),
        "{html}"
    );
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_ends_by_time_by_wrong_ones_and_by_a_newer_one() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let test = open().await;
    let running = server.deliverer(&test);
    let id = channel(&test, &to(READER)).await;
    let first = code(&server.mails(1).await[0]);
    execute!(
        test.pool(),
        "update webhook_endpoints set code_until = now() - interval '1 s'"
    );
    let late = confirm(&test, &id, &json!({"code": first})).await;
    assert_eq!(late.kind(), "409 invalid_state");
    execute!(
        test.pool(),
        "update webhook_endpoints set code_until = now() + interval '1 h'"
    );
    for _ in 0..5 {
        let wrong = confirm(&test, &id, &json!({"code": "22222222"})).await;
        assert_eq!(wrong.kind(), "400 invalid_request");
    }
    let spent = confirm(&test, &id, &json!({"code": first})).await;
    assert_eq!(spent.kind(), "409 invalid_state", "even the right one");

    a_minute_later(&test).await;
    confirm(&test, &id, &json!({})).await.expect(200);
    let second = code(&server.mails(2).await[1]);
    // Another address: its code alone counts, and the first address gets nothing more.
    a_minute_later(&test).await;
    let path = format!("/v1/channels/{id}");
    let moved = json!({"url": "other@example.com"});
    let shown = test
        .ask("PATCH", &path, Some(&moved))
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&shown["url"], &shown["status_reason"]),
        (&json!("o…@example.com"), &json!("unconfirmed"))
    );
    let third = server.mails(3).await.remove(2);
    assert_eq!(third["to"], json!(["other@example.com"]));
    let old = confirm(&test, &id, &json!({"code": second})).await;
    assert_eq!(old.kind(), "400 invalid_request");
    confirm(&test, &id, &json!({"code": code(&third)}))
        .await
        .expect(200);
    let again = test
        .ask("PATCH", &path, Some(&json!({"url": READER})))
        .await;
    assert_eq!(again.kind(), "429 too_many_requests");
    assert_eq!(
        test.get(&path).await["status"],
        "active",
        "nothing was changed"
    );

    execute!(
        test.pool(),
        "update tenants set codes_asked = array_fill(now() - interval '23 h', array[20])"
    );
    let refused = test.post("/v1/channels", &to("third@example.com")).await;
    assert_eq!(refused.kind(), "429 too_many_requests");
    assert!(
        refused.message().contains("20 codes"),
        "{}",
        refused.message()
    );
    assert_eq!(
        test.page("/v1/channels").await.len(),
        1,
        "nothing was stored"
    );
    execute!(
        test.pool(),
        "update tenants set codes_asked = array_fill(now() - interval '25 h', array[20])"
    );
    channel(&test, &to("third@example.com")).await;
    server.mails(4).await;
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_of_an_address_are_counted_over_all_callers() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let test = open().await;
    // Written otherwise, and of channels that are deleted.
    for address in [READER, "Quiet.Reader@Example.com", READER] {
        let id = channel(&test, &to(address)).await;
        test.ask("DELETE", &format!("/v1/channels/{id}"), None)
            .await
            .expect(204);
    }
    let refused = test.post("/v1/channels", &to(READER)).await;
    assert_eq!(refused.kind(), "429 too_many_requests");
    assert!(refused.message().contains("3 codes within 7 days"));
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 6 * 24 * 3_600);
    // Whoever asks: the count is of no caller.
    execute!(test.pool(), "update tenants set codes_asked = '{}'");
    let refused = test.post("/v1/channels", &to(READER)).await;
    assert_eq!(refused.kind(), "429 too_many_requests");
    assert!(!test.dump_database().await.contains("quiet.reader"));
    execute!(
        test.pool(),
        "update mailed_addresses set codes_asked = array(select a - interval '7 days' from unnest(codes_asked) a)"
    );
    let running = server.deliverer(&test);
    let id = channel(&test, &to(READER)).await;
    let confirmed = "select count(*) from mailed_addresses where cardinality(codes_asked) = $1";
    let counted: i64 = value!(test.pool(), confirmed, 1_i32);
    assert_eq!(counted, 1);
    let mail = server.mails(1).await.remove(0);
    confirm(&test, &id, &json!({"code": code(&mail)}))
        .await
        .expect(200);
    let counted: i64 = value!(test.pool(), confirmed, 0_i32);
    assert_eq!(counted, 1, "a code that is entered ends the count");

    let body = text(&mail["text"]);
    let (_, link) = body.split_once("https://fares.example.com").unwrap();
    let path = link.split_whitespace().next().unwrap();
    let page = test
        .send(test.request("GET", path))
        .await
        .expect(200)
        .text();
    assert!(page.contains("<form method=\"post\""), "{page}");
    let unknown = format!("{path}A");
    test.send(test.request("POST", &unknown)).await.expect(404);
    running.stop().await;
    channel(&test, &to(READER)).await;
    test.send(test.request("POST", path)).await.expect(200);
    let running = server.deliverer(&test);
    let unsent = "select count(*) from delivery_tries where error = 'address_refused'";
    test.wait_for_count(unsent, 1).await;
    server.mails(1).await;
    let refused = test.post("/v1/channels", &to(READER)).await;
    assert_eq!(refused.kind(), "429 too_many_requests");
    assert_eq!(
        test.get(&format!("/v1/channels/{id}")).await["status"],
        "active",
        "a confirmed channel stays"
    );
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_busy_is_asked_again_and_one_that_refuses_is_not() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let test = open().await;
    let running = server.deliverer(&test);
    for (name, address) in [
        ("recipient", "later.reader@example.com"),
        ("message", "greylisted@example.com"),
    ] {
        let id = channel(&test, &to(address)).await;
        let count = usize::from(name == "message");
        let mailed = server.mails(count + 1).await;
        confirm(&test, &id, &json!({"code": code(&mailed[count])}))
            .await
            .expect(200);
        let delivered = "select count(*) from deliveries where status = 'delivered'";
        test.wait_for_count(delivered, i64::try_from(count + 1).unwrap())
            .await;
        let [delivery] = &test.page(&format!("/v1/deliveries?channel_id={id}")).await[..] else {
            unreachable!()
        };
        let detail = test
            .get(&format!("/v1/deliveries/{}", text(&delivery["id"])))
            .await;
        assert_eq!(
            (&detail["status"], &detail["try_count"]),
            (&json!("delivered"), &json!(2)),
            "{name}: {detail:#}"
        );
        assert_eq!(detail["tries"][1]["error"], "mail_deferred");
    }
    for (address, reason, reply) in [
        ("unknown@example.com", "gone", "550 5.1.1"),
        ("malformed@example.com", "refused", "554 5.6.0 not readable"),
    ] {
        let id = channel(&test, &to(address)).await;
        let failed = format!("/v1/deliveries?channel_id={id}&status=failed");
        crate::support::wait_until("it failed", async || test.page(&failed).await.len() == 1).await;
        let delivery = test.page(&failed).await.remove(0);
        assert_eq!(
            (&delivery["reason"], &delivery["try_count"]),
            (&json!(reason), &json!(1))
        );
        let detail = test
            .get(&format!("/v1/deliveries/{}", text(&delivery["id"])))
            .await;
        assert_eq!(detail["tries"][0]["response"], reply, "without the address");
        assert_eq!(detail["tries"][0]["error"], "mail_refused");
        let shown = test.get(&format!("/v1/channels/{id}")).await;
        assert_eq!(
            shown["status_reason"], "unconfirmed",
            "another code may be asked for"
        );
    }
    // The operator's to mend: it is tried again, and its text is not the caller's.
    let id = channel(&test, &to("policy@example.com")).await;
    let deferred = "select count(*) from delivery_tries where error = 'mail_deferred' and response = '554 5.7.1'";
    test.wait_for_count(deferred, 1).await;
    let waiting = test.page(&format!("/v1/deliveries?channel_id={id}")).await;
    assert_eq!(waiting[0]["status"], "pending");
    // A mailbox that goes away later pauses its channel at once.
    execute!(
        test.pool(),
        "update webhook_endpoints set off_at = now(), off_reason = 'by_caller' where off_at is null"
    );
    let id = confirmed(&test, &server, READER, 2).await;
    running.stop().await;
    test.respond_with(|asked| fares(&[90], asked));
    alert(&test, &id).await;
    let moved = "update webhook_endpoints w set url_id = gone.url_id from webhook_endpoints gone, channels c
                 where c.shown_url = 'u…@example.com' and gone.channel_id = c.channel_id and w.off_at is null";
    execute!(test.pool(), moved);
    let running = server.deliverer(&test);
    let gone = "select count(*) from webhook_endpoints where off_reason = 'gone'";
    test.wait_for_count(gone, 1).await;
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_mail_server_the_kind_is_refused() {
    let test = super::open().await;
    let refused = test.post("/v1/channels", &to(READER)).await;
    assert_eq!(refused.kind(), "400 invalid_request");
    let message = refused.message();
    assert!(
        message.contains("`kind`") && message.contains("FARESCAN_SMTP_URL"),
        "{message}"
    );
    test.close().await;
    let test = open().await;
    for wrong in [
        "reader",
        "reader@localhost",
        "reader@[127.0.0.1]",
        "reader@127.0.0.1",
        "a b@example.com",
        "a@b@example.com",
        "a%b@example.com",
        "\"a\"@example.com",
        "a@example.com,b@example.com",
        "a@example.com\r\nRCPT TO:<b@example.com>",
        "mailto:a@example.com",
        "https://example.com/a",
        "a@-x.example",
        "a@x..example",
        ".a@example.com",
    ] {
        let refused = test.post("/v1/channels", &to(wrong)).await;
        assert_eq!(refused.kind(), "400 invalid_request", "{wrong}");
        assert!(
            refused.message().contains("`url`"),
            "{wrong}: {}",
            refused.message()
        );
    }
    let mut token = to(READER);
    token["token"] = json!("tk_1");
    assert_eq!(
        test.post("/v1/channels", &token).await.kind(),
        "400 invalid_request"
    );
    // A worker without the mail server: it waits for another one and no try is spent.
    let id = channel(&test, &to(READER)).await;
    let running = super::deliverer(&test);
    let waits =
        "select count(*) from deliveries where status = 'pending' and tries = 0 and failures = 0
                 and due_at > now() + interval '30 s'";
    test.wait_for_count(waits, 1).await;
    let shown = test.page(&format!("/v1/deliveries?channel_id={id}")).await;
    assert_eq!(shown[0]["status"], "pending");
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_and_a_command_confirm_an_address() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let test = open().await;
    let running = server.deliverer(&test);
    let added = cli(&test, &["channels", "add", "email", READER]);
    assert!(
        added.out.starts_with("chn_") && added.err.contains("channels confirm @last CODE"),
        "{added:?}"
    );
    let listed = out(&test, &["channels"]);
    assert!(listed.contains("waits for its code"), "{listed}");
    let first = code(&server.mails(1).await[0]);
    let wrong = cli(&test, &["channels", "confirm", "@last", "2222-2222"]);
    assert!(
        wrong.err.contains("the code of the newest mail"),
        "{wrong:?}"
    );
    let confirmed = out(&test, &["channels", "confirm", "@last", &first]);
    assert!(confirmed.contains("active"), "{confirmed}");

    let browser = crate::web::Browser::sign_in(&test, KEY).await;
    let page = browser.page("/channels").await;
    let add = crate::web::form(&page, "/channels");
    let wrong = browser.send(&add.clone().with("url", "no address")).await;
    let wrong = wrong.expect(400).text();
    assert!(wrong.contains("value=\"no address\""), "{wrong}");
    let add = add.with("url", "other@example.com");
    crate::web::redirect(browser.send(&add).await);
    let second = code(&server.mails(2).await[1]);
    let id = text(&test.get("/v1/channels").await["data"][0]["id"]);
    let page = browser.page("/channels").await;
    assert!(
        page.contains("waits for its code") && page.contains("Mail another code"),
        "{page}"
    );
    let form = crate::web::forms(&page, &format!("/channels/{id}/confirm")).remove(0);
    let refused = browser.send(&form.clone().with("code", "22222222")).await;
    assert!(refused.expect(400).text().contains("<code>code</code>"));
    crate::web::redirect(browser.send(&form.with("code", &second)).await);
    assert_eq!(
        test.get(&format!("/v1/channels/{id}")).await["status"],
        "active"
    );
    running.stop().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_monitor_that_nobody_hears_of_takes_an_address_and_its_code() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let test = open().await;
    let running = server.deliverer(&test);
    let monitor = test.create_monitor(&cheap(&[])).await;
    let other = test.create_monitor(&cheap(&[])).await;
    let channels_of = async |id: &str| {
        let stored = test.get(&format!("/v1/monitors/{id}")).await;
        stored["channels"].clone()
    };
    let path = format!("/monitors/{monitor}");
    let browser = crate::web::Browser::sign_in(&test, KEY).await;
    let page = browser.page(&path).await;
    assert!(page.contains("Its alerts are sent to nobody."), "{page}");
    let add = crate::web::form(&page, "/channels").with("url", READER);
    for _ in 0..2 {
        assert_eq!(crate::web::redirect(browser.send(&add).await), path);
    }
    let first = text(&test.get("/v1/channels").await["data"][0]["id"]);
    assert_eq!(channels_of(&monitor).await, json!([first]));
    // The address was wrong: another takes its stead.
    let page = browser.page(&path).await;
    assert!(
        page.contains("(q…@example.com) waits for the code that is mailed to it."),
        "{page}"
    );
    let add = crate::web::form(&page, "/channels").with("url", "right@example.com");
    assert_eq!(crate::web::redirect(browser.send(&add).await), path);
    let mailed = server.mails(2).await;
    let page = browser.page(&path).await;
    let id = text(&test.get("/v1/channels").await["data"][0]["id"]);
    assert_eq!(channels_of(&monitor).await, json!([id]));
    let confirm = crate::web::forms(&page, &format!("/channels/{id}/confirm")).remove(0);
    let wrong = browser
        .send(&confirm.clone().with("code", "22222222"))
        .await;
    let again = crate::web::forms(
        &wrong.expect(400).text(),
        &format!("/channels/{id}/confirm"),
    );
    let right = again[0].clone().with("code", &code(&mailed[1]));
    assert_eq!(crate::web::redirect(browser.send(&right).await), path);
    assert_eq!(channels_of(&monitor).await, json!([id]));
    let page = browser.page(&path).await;
    assert!(!page.contains("sent to nobody"), "{page}");
    // Another monitor takes the channel that exists, and no more than that.
    assert_eq!(channels_of(&other).await, json!([]));
    let path = format!("/monitors/{other}");
    let join = crate::web::form(
        &browser.page(&path).await,
        &format!("/channels/{id}/monitor"),
    );
    assert_eq!(crate::web::redirect(browser.send(&join).await), path);
    assert_eq!(channels_of(&other).await, json!([id]));
    assert_eq!(server.mails(2).await.len(), 2);
    running.stop().await;
    test.close().await;
}
