use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{
    ChannelView, MailLink, MonitorView, confirmation, joined, most_urgent_first, of_alerts, render,
    render_mail, render_relayed, single, test_message, with_code,
};
use crate::contract::channels::{ChannelAlerts, ChannelKind, ChannelNotice, NoticePriority};
use crate::contract::monitors::{Alert, MonitorAlerts};
use crate::ids::ChannelId;

const NTFY: &str = "https://ntfy.example.com/fares-3f9a2c71d0";
const TELEGRAM: &str = "tgram://123456:AAF/987654";
const SLACK: &str = "https://hooks.slack.com/services/T0/B0/x";

/// The documented example of an alert, with other fields.
fn alert(more: &Value) -> Alert {
    let mut example = json!({
        "id": "alr_01970a1b2c3d7e4f8a9b0c1d2e3f4a60", "monitor_id": "mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
        "slot": "2026-12-01T06:00:00Z", "slot_kind": "schedule", "scan_id": "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
        "type": "price_below", "rule": {"type": "price_below", "amount": 200, "rearm_percent": 5}, "scope": "scan",
        "cell": {"departure_date": "2027-01-14"},
        "price": 199, "currency": "USD", "item_id": "itm_01970a1b2c3d7e4f8a9b0c1d2e3f4a5c", "observed_at": "2026-12-01T06:00:09Z",
        "search_status": "ok", "before": {"price": 211, "at": "2026-11-30T06:00:08Z"},
        "threshold": 200, "reference": null, "baseline": null,
        "price_insights_low": 180, "price_insights_high": 320, "verdict": "typical",
        "buy_link": "https://example.com/fare?curr=USD&a=<b>|c", "searched": null,
        "state_before": {"armed": true}, "state_after": {"armed": false}, "fired_at": "2026-12-01T06:00:12Z"
    });
    let fields = more.as_object().unwrap().clone();
    example.as_object_mut().unwrap().extend(fields);
    serde_json::from_value(example).unwrap()
}

fn event(name: &str, fired: u32, alerts: Vec<Alert>) -> MonitorAlerts {
    MonitorAlerts {
        monitor_id: alerts[0].monitor_id,
        name: name.to_owned(),
        slot: alerts[0].slot,
        slot_kind: alerts[0].slot_kind,
        scan_id: alerts[0].scan_id,
        fired,
        truncated: false,
        alerts,
    }
}

fn run(scan: &Value) -> MonitorView {
    MonitorView {
        scan: scan.as_object().cloned().unwrap_or_else(Map::new),
        fare: Some("Example Air, 7:15 AM – 10:40 AM, 5 hr 25 min, non-stop".to_owned()),
        public_url: Some("https://fares.example.com".to_owned()),
    }
}

fn flight() -> MonitorView {
    run(
        &json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"}}),
    )
}

fn view(least_priority: NoticePriority) -> ChannelView {
    ChannelView {
        least_priority,
        timezone: "Europe/London".to_owned(),
    }
}

fn notice(event: &MonitorAlerts, run: &MonitorView) -> (ChannelNotice, u64) {
    of_alerts(event, run, &view(NoticePriority::Low)).unwrap()
}

fn channel() -> ChannelId {
    "chn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b".parse().unwrap()
}

fn message(event: &MonitorAlerts, run: &MonitorView) -> ChannelAlerts {
    let (notice, fired) = notice(event, run);
    single(channel(), fired, notice)
}

/// The bodies of a message, as they are sent.
fn rendered(message: &ChannelAlerts) -> String {
    let body = |kind, url| {
        let sent = render(kind, url, None, message).unwrap();
        let body: Value = serde_json::from_str(&sent.body).unwrap();
        format!("POST {}\n{body:#}\n", sent.url)
    };
    let relayed: Value = serde_json::from_str(&render_relayed(TELEGRAM, message).unwrap()).unwrap();
    body(ChannelKind::Ntfy, NTFY)
        + &body(ChannelKind::Slack, SLACK)
        + &mail(message)
        + &format!("POST /notify\n{relayed:#}\n")
}

/// The parts of a mail, as they are before they are encoded.
fn mail(message: &ChannelAlerts) -> String {
    let sent = render_mail(
        message,
        Some(&MailLink::Unsubscribe(
            "https://fares.example.com/unsubscribe/token".to_owned(),
        )),
    );
    format!("Subject: {}\n\n{}\n{}", sent.subject, sent.text, sent.html)
}

#[test]
fn a_fare_is_written_for_each_kind() {
    let second = json!({"cell": {"departure_date": "2027-01-15"}, "price": 205.5});
    let alerts = vec![alert(&json!({})), alert(&second)];
    let sent = message(&event("January fares", 7, alerts), &flight());
    insta::assert_snapshot!("fare", rendered(&sent));
}

fn market(name: &str, counts: [u32; 3], median: Value) -> Value {
    let [cheaper, same, unknown] = counts;
    let range = median
        .is_number()
        .then(|| json!({"lowest": median, "median": median, "highest": median}));
    json!({"market": name, "cheaper": cheaper, "dearer": 0, "same": same, "unknown": unknown, "same_percent": null,
           "difference_percent": range, "noise_percent": range.is_some().then_some(1.5)})
}

#[test]
fn a_report_has_a_line_for_each_market() {
    let more = json!({
        "type": "every_run", "rule": {"type": "every_run"}, "threshold": null, "buy_link": null, "verdict": null,
        "price_insights_low": null, "price_insights_high": null,
        "searched": {"searches": 27, "answered": 25, "partial": 1, "degraded": 1, "share": 0.963},
        "markets": {"baseline": "us", "markets": [
            market("de", [3, 1, 0], json!(-12.5)), market("gb", [0, 4, 0], json!(0)), market("jp", [0, 0, 4], Value::Null)
        ]},
        "cell": {"proxy_country": "de"}
    });
    let hotel = run(&json!({
        "endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts Barcelona"},
        "sweep": {"checkin_date": {"from": "2027-02-05", "to": "2027-02-08"}, "proxy_country": ["us", "de", "gb", "jp"]}
    }));
    let (of_run, _) = notice(&event("Arts: markets", 1, vec![alert(&more)]), &hotel);
    assert!(
        of_run
            .title
            .ends_with(": 1 of 2 markets differs from US, 1 unknown"),
        "{}",
        of_run.title
    );
    for line in [
        "26 of 27 searches completed",
        "DE: −12.5 %, 3 of 4 cheaper, noise 1.5 %",
        "GB: +0.0 %, same, noise 1.5 %",
        "JP: unknown",
    ] {
        assert!(
            of_run.lines.iter().any(|one| one == line),
            "{line}: {:?}",
            of_run.lines
        );
    }
    let without = json!({
        "type": "every_run", "rule": {"type": "every_run"}, "price": null, "before": null, "threshold": null
    });
    let (of_run, _) = notice(&event("Fares", 1, vec![alert(&without)]), &flight());
    assert!(of_run.title.ends_with(": no price"), "{}", of_run.title);
}

/// A report comes with each run, so it hides nothing that happened.
#[test]
fn a_report_is_named_after_the_alerts_of_its_run() {
    let report = json!({
        "type": "every_run", "rule": {"type": "every_run"}, "price": 150,
        "markets": {"baseline": "us", "markets": (0..14).map(|number| {
            market(&format!("m{number}"), if number == 13 { [1, 0, 0] } else { [0, 1, 0] }, json!(number))
        }).collect::<Vec<_>>()}
    });
    let drop = json!({"type": "drop_percent", "rule": {"type": "drop_percent", "percent": 10}, "scope": "cell", "price": 160});
    let alerts = most_urgent_first(&[alert(&report), alert(&drop)]);
    let (both, _) = notice(&event("Arts", 2, alerts), &flight());
    assert!(both.title.ends_with(": 160 USD"), "{}", both.title);
    let also = "Also: 1 of 14 markets differs from US";
    let at = both.lines.iter().position(|line| line == also);
    let next = at.and_then(|at| both.lines.get(at + 1));
    assert!(
        next.is_some_and(|line| line.starts_with("M13: ")),
        "those that differ come first: {:?}",
        both.lines
    );
    assert!(
        both.lines.iter().any(|line| line == "and 2 more markets"),
        "{:?}",
        both.lines
    );
    assert!(
        !both.lines.iter().any(|line| line == "and 1 more"),
        "{:?}",
        both.lines
    );
}

#[test]
fn a_parity_alert_says_its_gap() {
    let gap = json!({
        "type": "parity_gap_percent", "rule": {"type": "parity_gap_percent", "percent": 5, "baseline": "us"}, "scope": "cell",
        "cell": {"proxy_country": "de"}, "price": 175, "threshold": 5,
        "baseline": {"proxy_country": "us", "price": 200, "item_id": null, "difference": -25, "difference_percent": -12.5,
                     "samples": 3, "baseline_samples": 3, "verdict": "gap"}
    });
    let (gap, _) = notice(&event("Arts", 1, vec![alert(&gap)]), &flight());
    let line = "DE is 12.5 % below US, 200 USD";
    assert!(gap.lines.iter().any(|one| one == line), "{:?}", gap.lines);
}

#[test]
fn a_room_is_written_for_each_kind() {
    let more = json!({
        "type": "sold_out", "rule": {"type": "sold_out"}, "cell": {"checkin_date": "2027-01-14"}, "price": null, "before": null,
        "buy_link": null, "link": "javascript:alert(1)", "room": "Double, breakfast", "verdict": null,
        "price_insights_low": null, "price_insights_high": null
    });
    let stay = run(
        &json!({"endpoint": "hotels/by-name", "request": {"hotel_name": "Grand Hotel", "checkout_date": "2027-01-17"}}),
    );
    let sent = message(&event("one hotel", 1, vec![alert(&more)]), &stay);
    insta::assert_snapshot!("room", rendered(&sent));
}

#[test]
fn hostile_names_stay_text() {
    let hotel = "Evil\r\nX: 1 <!channel> & <https://e.example|x>\u{202e}abc\u{7}";
    let stay = run(&json!({"endpoint": "hotels/by-name", "request": {"hotel_name": hotel}}));
    let more =
        json!({"room": "<!here>\nTwin", "buy_link": null, "link": "https://ok.example/\u{202e}"});
    let sent = message(&event("<@U1>", 1, vec![alert(&more)]), &stay);
    insta::assert_snapshot!("hostile", rendered(&sent));
}

#[test]
fn several_messages_become_one_and_a_test_says_so() {
    let mut held = message(&event("first", 2, vec![alert(&json!({}))]), &flight());
    for price in 0..30 {
        let next = event("next", 1, vec![alert(&json!({"price": price}))]);
        let (notice, fired) = notice(&next, &flight());
        held = joined(held, fired, notice);
    }
    assert_eq!(
        (held.fired, held.notices.len(), held.truncated),
        (32, 20, true)
    );
    let tested = test_message(channel(), "my phone", Timestamp::UNIX_EPOCH);
    insta::assert_snapshot!("several", rendered(&held) + &rendered(&tested));
}

#[test]
fn only_services_with_a_fixed_host_are_relayed() {
    let tested = test_message(channel(), "chat", Timestamp::UNIX_EPOCH);
    for target in [
        TELEGRAM,
        "discord://4174216298/JHMHI8qBe7bk",
        "pover://user@token",
        "gchat://space/key/token",
        "prowl://key",
    ] {
        assert!(render_relayed(target, &tested).is_some(), "{target}");
    }
    for target in [
        "json://127.0.0.1/x",
        "xml://10.0.0.1",
        "ntfy://inside/x",
        "mailto://a:b@mail.inside",
        "syslog://",
        "file:///etc/passwd",
        "signal://10.0.0.1:8080/1/2",
        "tgram://1:A/2?template=/etc/passwd",
        "tgram://1:A/2,json://127.0.0.1",
        "tgram://1:A/2 json://x",
        "tgram://1:A/2;json://x",
        "tgram://1:A/2%2Cjson",
        "tgram://1:A/2/3/4",
        "tgram://",
        "tgram:///2",
        "TGRAM://1:A/2",
        "tgram://1:A/../x",
        "tgram://1:A/2#x",
        "tgrams://1:A/2",
        "https://api.telegram.org/x",
        "discord://a\n/b",
    ] {
        assert_eq!(render_relayed(target, &tested), None, "{target}");
    }
}

#[test]
fn a_confirmation_has_its_code_in_the_mail_alone() {
    let stored = confirmation(channel(), Timestamp::UNIX_EPOCH);
    let sent = render_mail(&with_code(stored.clone(), "K7QX2MPT"), None);
    assert!(sent.text.contains("Code: K7QX-2MPT (") && sent.html.contains("K7QX-2MPT"));
    assert!(!serde_json::to_string(&stored).unwrap().contains("K7QX"));
    assert_eq!(
        render(ChannelKind::Email, "me@example.com", None, &stored),
        None
    );
}

#[test]
fn a_channel_hears_of_nothing_below_its_least_priority() {
    let low = alert(&json!({"type": "stale", "rule": {"type": "stale"}, "price": null}));
    let both = event("m", 2, vec![low.clone(), alert(&json!({}))]);
    let (notice, fired) = of_alerts(&both, &flight(), &view(NoticePriority::High)).unwrap();
    assert_eq!((fired, notice.priority), (1, NoticePriority::High));
    assert!(notice.title.contains("199"), "{}", notice.title);
    let only_low = event("m", 1, vec![low]);
    assert_eq!(
        of_alerts(&only_low, &flight(), &view(NoticePriority::Normal)),
        None
    );
}

#[test]
fn what_was_waited_for_comes_before_a_thousand_other_alerts() {
    let other = || alert(&json!({"type": "drop_percent", "price": 150}));
    let mut alerts: Vec<_> = std::iter::repeat_with(other).take(999).collect();
    let stock = json!({"type": "back_in_stock", "rule": {"type": "back_in_stock"}, "price": 777});
    alerts.push(alert(&stock));
    let event = event("stock", 1_000, most_urgent_first(&alerts));
    let (notice, fired) = of_alerts(&event, &flight(), &view(NoticePriority::High)).unwrap();
    assert_eq!((notice.price, fired), (Some(777.into()), 1));
    let (notice, fired) = of_alerts(&event, &flight(), &view(NoticePriority::Low)).unwrap();
    assert_eq!((notice.price, fired), (Some(777.into()), 1_000));
    assert_eq!(notice.priority, NoticePriority::High);
}

#[test]
fn an_ntfy_message_goes_to_the_root_with_its_token() {
    let tested = test_message(channel(), "phone", Timestamp::UNIX_EPOCH);
    let sent = render(ChannelKind::Ntfy, NTFY, Some("tk_1"), &tested).unwrap();
    assert_eq!(sent.url, "https://ntfy.example.com/");
    assert_eq!(sent.authorization.as_deref(), Some("Bearer tk_1"));
    assert_eq!(
        render(ChannelKind::Ntfy, "https://ntfy.sh/a/b", None, &tested),
        None
    );
}

proptest! {
    /// No text of a marketplace or a caller becomes markup, a control character or too much.
    #[test]
    fn any_text_is_sent_as_text(name in "\\PC{0,80}|(?s).{0,80}", hotel in "(?s).{0,400}", link in "(?s).{0,40}") {
        let stay = run(&json!({"endpoint": "hotels/by-name", "request": {"hotel_name": hotel}}));
        let more = json!({"buy_link": format!("https://b.example/{link}"), "room": name});
        let sent = message(&event(&name, 1, vec![alert(&more)]), &stay);
        let ntfy = render(ChannelKind::Ntfy, NTFY, None, &sent).unwrap();
        let ntfy: Value = serde_json::from_str(&ntfy.body).unwrap();
        let (title, body) = (ntfy["title"].as_str().unwrap(), ntfy["message"].as_str().unwrap());
        prop_assert!(!title.chars().any(char::is_control) && title.chars().count() <= 200);
        prop_assert!(!body.chars().any(|c| c.is_control() && c != '\n') && body.len() <= 4_096);
        let slack = render(ChannelKind::Slack, SLACK, None, &sent).unwrap();
        let slack: Value = serde_json::from_str(&slack.body).unwrap();
        let mut texts = vec![slack["text"].as_str().unwrap()];
        for block in slack["blocks"].as_array().unwrap() {
            let text = block["text"]["text"].as_str().unwrap();
            prop_assert!(text.chars().count() <= 3_000);
            texts.push(text);
        }
        for text in texts {
            for rest in text.split('<').skip(1) {
                prop_assert!(rest.starts_with("https://"), "{text}");
            }
        }
        let mail = render_mail(&sent, None);
        prop_assert!(!mail.subject.chars().any(char::is_control) && mail.subject.chars().count() <= 150);
        prop_assert!(!mail.text.chars().any(|c| c.is_control() && c != '\n'));
        for rest in mail.html.split('<').skip(1) {
            let own = ["!DOCTYPE html>", "html lang", "/html>", "head>", "/head>", "meta charset", "title>", "/title>", "body>", "/body>",
                       "h1>", "/h1>", "p>", "/p>", "a href=\"https://", "/a>"];
            prop_assert!(own.iter().any(|tag| rest.starts_with(tag)), "{rest}");
        }
    }
}
