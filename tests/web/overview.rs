//! `/overview`: what needs a decision, with its cost and the button that mends it.

use serde_json::json;

use super::{Browser, form, forms, key, redirect, service_with_scan, set};
use crate::monitors::with;
use crate::support::{SearchOutcome, TestService, fares, fares_with};

const OTHER: &str = "another-key-0123456789";

#[tokio::test]
async fn an_incomplete_scan_is_asked_again_from_the_overview() {
    let (service, id) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page("/overview").await;
    for part in [
        "Needs a decision",
        "1 of 4 searches did not complete",
        "Ask again for 1 to 2 requests",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let path = format!("/scans/{id}");
    let retry = form(&page, &format!("{path}/retry"));
    for _ in 0..2 {
        assert_eq!(redirect(browser.send(&retry).await), path);
    }
    service.complete_all(|_| SearchOutcome::Ok(150)).await;
    let scan = service.scan(&id).await;
    assert_eq!(scan["requests"]["spent"], 5, "{scan}");
    let page = browser.page("/overview").await;
    assert!(!page.contains("Needs a decision</h2>"), "{page}");
    let stranger = Browser::sign_in(&service, OTHER).await;
    assert!(!stranger.page("/overview").await.contains(&id));
}

/// Two scans with a search each that did not complete.
async fn service_with_two_incomplete() -> (TestService, [String; 2]) {
    let (service, first) = service_with_scan().await;
    let second = service
        .submit_and_complete(&fares(2), |position| match position {
            0 => SearchOutcome::Degraded("blocked_page"),
            _ => SearchOutcome::Ok(200),
        })
        .await;
    (service, [first, second])
}

#[tokio::test]
async fn all_incomplete_scans_are_asked_again_at_once() {
    let (service, ids) = service_with_two_incomplete().await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page("/overview").await;
    for part in [
        "Ask all 2 again",
        "Makes 2 searches of 2 scans again",
        "Ask again for 2 to 4 requests",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let mut retry = form(&page, "/scans/retry-all");
    // What the page did not say is not spent.
    set(&mut retry, "max_searches", "1");
    let answer = browser.send(&retry).await.expect(200).text();
    for part in [
        "1 search of 1 scan asked again.",
        "More searches are incomplete now than the page showed.",
    ] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    let retry = form(&page, "/scans/retry-all");
    let answer = browser.send(&retry).await.expect(200).text();
    assert!(
        answer.contains("1 search of 1 scan asked again."),
        "the rest: {answer}"
    );
    service
        .complete_all(|_| SearchOutcome::Degraded("blocked_page"))
        .await;
    // They are incomplete again, and the form of before asks nothing again.
    let answer = browser.send(&retry).await.expect(200).text();
    assert!(
        answer.contains("0 searches of 0 scans asked again."),
        "{answer}"
    );
    service.complete_all(|_| SearchOutcome::Ok(150)).await;
    let spent = [service.scan(&ids[0]).await, service.scan(&ids[1]).await];
    let spent = spent.map(|scan| scan["requests"]["spent"].clone());
    assert_eq!(spent, [json!(5), json!(3)]);
    for field in ["max_searches", "scan", "once"] {
        let mut wrong = form(&browser.page("/overview").await, "/scans/retry-all");
        set(&mut wrong, field, "");
        let refused = browser.send(&wrong).await;
        assert!(refused.expect(400).text().contains(field));
    }
}

#[tokio::test]
async fn an_incomplete_scan_is_dismissed_until_it_is_incomplete_again() {
    let (service, [first, second]) = service_with_two_incomplete().await;
    let browser = Browser::sign_in(&service, key()).await;
    let stranger = Browser::sign_in(&service, OTHER).await;
    let dismiss = format!("/scans/{first}/dismiss");
    let mut foreign = form(&browser.page("/overview").await, &dismiss);
    // With the stranger's own token: only the id is another caller's.
    let own = form(&stranger.page("/overview").await, "/logout");
    foreign.fields.clone_from(&own.fields);
    stranger.send(&foreign).await;
    let has = async |id: &str| {
        browser
            .page("/overview")
            .await
            .contains(&format!("/scans/{id}/dismiss"))
    };
    assert!(has(&first).await, "a stranger changes nothing");
    assert_eq!(
        redirect(browser.press("/overview", &dismiss).await),
        "/overview"
    );
    assert_eq!([has(&first).await, has(&second).await], [false, true]);
    let page = browser.page(&format!("/scans/{first}")).await;
    assert!(
        page.contains("Ask again for 1 to 2 requests"),
        "it stays as it is: {page}"
    );
    let body = json!({"search_status": ["degraded"]});
    service.command(&first, "retry", &body).await;
    service
        .complete_all(|_| SearchOutcome::Degraded("blocked_page"))
        .await;
    assert_eq!([has(&first).await, has(&second).await], [true, true]);
    browser
        .press("/overview", "/scans/dismiss-all")
        .await
        .expect(303);
    assert!(
        !browser
            .page("/overview")
            .await
            .contains("Needs a decision</h2>")
    );
}

#[tokio::test]
async fn all_scans_that_the_page_counts_are_cancelled_at_once() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let mut ids = Vec::new();
    for searches in [3, 2, 4] {
        ids.push(service.submit(&fares(searches)).await);
    }
    service.command(&ids[2], "pause", &json!({})).await;
    let statuses = async |ids: &[String]| {
        let mut found = Vec::new();
        for id in ids {
            let status = &service.scan(id).await["status"];
            found.push(status.as_str().unwrap().to_owned());
        }
        found
    };
    // Home counts what runs. The list has paused scans as well.
    let of_home = browser.page("/overview").await;
    let of_list = browser.page("/scans").await;
    for (page, searches, scans) in [(&of_home, 5, 2), (&of_list, 9, 3)] {
        for part in [
            format!("{searches} searches of {scans} scans will not be made"),
            format!("Cancel {scans} scans"),
        ] {
            assert!(page.contains(&part), "{part}: {page}");
        }
    }
    ids.push(service.submit(&fares(2)).await);
    let cancel = form(&of_home, "/scans/cancel-all");
    let answer = browser.send(&cancel).await.expect(200).text();
    assert!(answer.contains("2 scans cancelled."), "{answer}");
    assert_eq!(
        statuses(&ids).await,
        ["cancelled", "cancelled", "paused", "queued"]
    );
    let cancel = form(&of_list, "/scans/cancel-all");
    let answer = browser.send(&cancel).await.expect(200).text();
    assert!(answer.contains("1 scan cancelled."), "{answer}");
    assert_eq!(
        statuses(&ids).await,
        ["cancelled", "cancelled", "cancelled", "queued"]
    );
    assert!(
        !browser
            .page("/overview")
            .await
            .contains("/scans/cancel-all"),
        "one has its own button"
    );
    let without = browser.send(&form_without(cancel, "scan")).await;
    assert!(without.expect(400).text().contains("scan"));
}

fn form_without(mut form: super::Form, field: &str) -> super::Form {
    form.fields.retain(|(name, _)| name != field);
    form
}

#[tokio::test]
async fn a_paused_scan_says_why_and_has_the_button_that_mends_it() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let budget = service
        .submit(&fares_with(3, &json!({"max_requests": 3})))
        .await;
    let by_hand = service.submit(&fares(3)).await;
    let browser = Browser::sign_in(&service, key()).await;
    for id in [&budget, &by_hand] {
        let path = format!("/scans/{id}");
        browser
            .press(&path, &format!("{path}/pause"))
            .await
            .expect(303);
    }
    let page = browser.page("/overview").await;
    assert!(
        page.contains("You paused it; Resume continues it."),
        "{page}"
    );
    let mut ids: Vec<_> = page
        .match_indices(" id=\"")
        .map(|(at, _)| page[at + 5..].split('"').next().unwrap())
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id occurs once: {ids:?}");
    for id in [&budget, &by_hand] {
        let resume = forms(&page, &format!("/scans/{id}/resume"));
        assert_eq!(
            redirect(browser.send(&resume[0]).await),
            format!("/scans/{id}")
        );
        assert_eq!(service.scan(id).await["status"], "queued");
    }
}

#[tokio::test]
async fn a_failing_channel_is_to_be_tested_or_removed() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let body = json!({"name": "my phone", "kind": "ntfy", "url": "https://ntfy.example.com/fares"});
    let id = service.post("/v1/channels", &body).await.created(201);
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page("/overview").await;
    assert!(!page.contains("<h2>Needs a decision</h2>"), "{page}");
    execute!(
        service.pool(),
        "update webhook_endpoints set failing_since = $1::text::timestamptz where channel_id = (select channel_id from channels)",
        "2026-11-20T06:00:00Z"
    );
    let page = browser.page("/overview").await;
    let (_, needed) = page.split_once("<h2>Needs a decision</h2>").unwrap();
    assert!(
        needed.contains("Messages to my phone have failed since"),
        "{page}"
    );
    assert!(needed.contains("20 Nov 2026, 06:00 UTC") && needed.contains("href=\"/channels\""));
    let test = form(&page, &format!("/channels/{id}/test"));
    let delivery = redirect(browser.send(&test).await);
    assert!(delivery.starts_with("/deliveries/dlv_"), "{delivery}");
    execute!(
        service.pool(),
        "update webhook_endpoints set off_at = now(), off_reason = 'failing', next_at = null where channel_id = (select channel_id from channels where name = $1)",
        "my phone"
    );
    let page = browser.page("/overview").await;
    assert!(
        page.contains("it is paused: resume it or remove it"),
        "{page}"
    );
    assert!(forms(&page, &format!("/channels/{id}/test")).is_empty());
}

#[tokio::test]
async fn a_failing_monitor_is_shown_however_old_it_is() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let mut ids = Vec::new();
    for number in 0..12 {
        let name = json!({"name": format!("Monitor {number}")});
        ids.push(service.create_monitor(&with(&name)).await);
    }
    let fail = async |name: &str| {
        execute!(
            service.pool(),
            "insert into monitor_slots (tenant_id, monitor_id, slot, kind, outcome, reason, decided_at)
             select tenant_id, monitor_id, now(), 'schedule', 'failed', 'a test', now() from monitors where name like $1
             on conflict do nothing",
            name
        );
    };
    let browser = Browser::sign_in(&service, key()).await;
    let needed = |page: &str| page.split("Needs a decision").count();
    assert_eq!(
        needed(&browser.page("/overview").await),
        2,
        "the figure alone"
    );
    fail("Monitor 0").await;
    let page = browser.page("/overview").await;
    let (_, section) = page.split_once("<h2>Needs a decision</h2>").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    assert!(
        section.contains(&ids[0]) && section.contains("could not start"),
        "{section}"
    );
    assert!(!section.contains(&ids[11]), "{section}");

    fail("Monitor %").await;
    let page = browser.page("/overview").await;
    assert!(page.contains("<dd class=\"value\">12</dd>"), "{page}");
    assert!(page.contains("2 more failing monitors"), "{page}");
    // Who paused a monitor knows of it.
    for id in &ids {
        service
            .post(&format!("/v1/monitors/{id}/pause"), &json!({}))
            .await;
    }
    assert_eq!(needed(&browser.page("/overview").await), 2);
}
