//! `/activity`: everything that happened as one list, and the navigation around it.

use std::collections::BTreeSet;

use farescan::activity::{ActivityConditions, activity};
use farescan::contract::FieldValue as _;
use farescan::contract::primitives::Cursor;
use farescan::ids::TenantId;
use serde_json::json;

use super::{Browser, key, service_with_scan};
use crate::alerts::{AlertTest, fares, monitor};
use crate::monitors::with;
use crate::support::app::KEY;
use crate::support::{TestService, departing_from, text};
use crate::webhooks::harness;

const OTHER: &str = "another-key-0123456789";

/// The paths that the lines of a page lead to, in their order.
fn lines(page: &str) -> Vec<String> {
    let lines = page.split("<div class=\"what\"><a href=\"").skip(1);
    let paths = lines.map(|line| line.split('"').next().unwrap().to_owned());
    paths.collect()
}

/// The path of the next page.
fn older(page: &str) -> Option<String> {
    let (_, link) = page.split_once("rel=\"next\" href=\"")?;
    Some(link.split('"').next()?.replace("&amp;", "&"))
}

/// A monitor whose run fired two alerts in one delivery, and a scan of its own.
async fn busy(test: &AlertTest) -> [String; 2] {
    test.respond_with(|asked| fares(&[150], asked));
    let own = departing_from("HFA", crate::support::fares(3));
    let own = test.submit(&own).await;
    test.wait_until_ended(&own).await;
    let rules = json!([{"type": "price_below", "amount": 200, "scope": "cell"}]);
    let mut body = monitor(2, &rules);
    body["name"] = json!("Home for <Easter>");
    let id = test.monitor(&body).await;
    test.run(&id).await;
    [id, own]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_its_alerts_and_their_delivery_stand_in_one_list() {
    let test = AlertTest::open().await;
    let [id, own] = busy(&test).await;
    let run = text(&test.page(&format!("/v1/scans?monitor_id={id}")).await[0]["id"]);
    let alerts = test.alerts(&id).await;
    let delivery = text(&test.page("/v1/deliveries").await[0]["id"]);
    let browser = Browser::sign_in(&test, KEY).await;
    let path = |kind: &str, id: &str| format!("/{kind}/{id}");
    let of_alerts = alerts
        .iter()
        .map(|alert| path("alerts", &text(&alert["id"])));
    let of_alerts: BTreeSet<_> = of_alerts.collect();
    let of_scans = BTreeSet::from([path("scans", &run), path("scans", &own)]);
    let of_deliveries = BTreeSet::from([path("deliveries", &delivery)]);
    let of_runs = BTreeSet::from([path("scans", &run)]);
    let of_monitor = [&of_alerts, &of_deliveries, &of_runs];
    let of_monitor: BTreeSet<_> = of_monitor.into_iter().flatten().cloned().collect();
    let all: BTreeSet<_> = of_monitor.union(&of_scans).cloned().collect();
    for (query, expected) in [
        ("", &all),
        ("kind=scans", &of_scans),
        ("kind=runs", &of_runs),
        ("kind=alerts", &of_alerts),
        ("kind=deliveries", &of_deliveries),
        ("text=EASTER", &of_monitor),
        ("text=hfa", &BTreeSet::from([path("scans", &own)])),
        ("text=easter&kind=alerts", &of_alerts),
        ("text=%25", &BTreeSet::new()),
        ("attention=true", &BTreeSet::new()),
    ] {
        let page = browser.page(&format!("/activity?{query}")).await;
        let found = lines(&page);
        assert_eq!(found.len(), expected.len(), "{query}: {found:?}");
        assert_eq!(
            &found.into_iter().collect::<BTreeSet<_>>(),
            expected,
            "{query}"
        );
    }
    let page = browser.page("/activity").await;
    let name = format!("href=\"/monitors/{id}\" title=\"Home for &lt;Easter&gt;\">");
    assert_eq!(page.matches(&name).count(), 4, "{page}");
    for part in [
        "2 requests",
        "150 USD",
        "Price below",
        ">completed<",
        ">pending<",
        ">Run<",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let times = page.split("<time datetime=\"").skip(1);
    let times: Vec<_> = times.map(|time| &time[..20]).collect();
    assert!(times.is_sorted_by(|one, other| one >= other), "{times:?}");
    test.close().await;
}

#[tokio::test]
async fn what_needs_attention_stands_alone() {
    let (service, id) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    service.create_monitor(&with(&json!({}))).await;
    let deliveries = "insert into deliveries (tenant_id, delivery_id, monitor_id, event_type, body, status, reason, most_tries, created_at, ended_at)
        select tenant_id, gen_random_uuid(), monitor_id, 'monitor.test', '{}', s.status, s.reason, 8, now(), now()
        from monitors, (values ('failed', 'gone'), ('delivered', null)) s (status, reason)";
    execute!(service.pool(), deliveries);
    let failed = text(&service.page("/v1/deliveries?status=failed").await[0]["id"]);
    service
        .submit_and_complete(&departing_from("HFA", crate::support::fares(1)), |_| {
            crate::support::SearchOutcome::Ok(1)
        })
        .await;
    let page = browser.page("/activity?attention=true").await;
    let expected = [format!("/deliveries/{failed}"), format!("/scans/{id}")];
    assert_eq!(lines(&page), expected);
    assert!(
        page.contains(">incomplete<") && page.contains(">failed<"),
        "{page}"
    );
    assert!(page.contains(">Incomplete and failed</a>"), "{page}");
    assert_eq!(lines(&browser.page("/activity").await).len(), 4);
    for query in ["kind=colours", "status=paused", "cursor=x", "text=a%00b"] {
        browser.get(&format!("/activity?{query}")).await.expect(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_callers_activity_is_not_listed() {
    let test = AlertTest::open().await;
    let [id, own] = busy(&test).await;
    let page = Browser::sign_in(&test, KEY).await;
    assert!(page.page("/activity").await.contains(&own));
    let stranger = Browser::sign_in(&test, OTHER).await;
    let scan = departing_from("OSL", crate::support::fares(1));
    let theirs = test.post_as(OTHER, "/v1/scans", &scan).await.created(202);
    for query in [
        "",
        "text=easter",
        "text=tlv",
        "kind=alerts",
        "kind=runs",
        "attention=true",
    ] {
        let page = stranger.page(&format!("/activity?{query}")).await;
        for foreign in [&id, &own, "HFA", "Easter", "TLV"] {
            assert!(!page.contains(foreign), "{query}: {foreign} in {page}");
        }
    }
    let page = stranger.page("/activity").await;
    assert_eq!(lines(&page), [format!("/scans/{theirs}")]);
    test.close().await;
}

/// As many alerts, scans and deliveries of one time as make several pages.
async fn of_one_time(test: &AlertTest) {
    busy(test).await;
    let at = "2026-11-20T10:00:00Z";
    let copy = "insert into alerts (tenant_id, alert_id, monitor_id, rule_type, fired_at, alert, is_held)
        select tenant_id, gen_random_uuid(), monitor_id, rule_type, fired_at, alert, is_held from alerts, generate_series(1, 40)";
    execute!(test.pool(), copy);
    for _ in 0..5 {
        test.submit(&crate::support::fares(1)).await;
    }
    test.all_ended().await;
    for update in [
        "update alerts set fired_at = $1::timestamptz",
        "update scans set created_at = $1::timestamptz",
        "update deliveries set created_at = $1::timestamptz",
    ] {
        execute!(test.pool(), update, at);
    }
}

/// The total of all rows.
async fn total(service: &TestService) -> usize {
    let sql = "select (select count(*) from scans) + (select count(*) from alerts) + (select count(*) from deliveries)";
    usize::try_from(service.count(sql).await).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_lose_no_row_and_list_none_twice_at_equal_times() {
    let test = AlertTest::open().await;
    of_one_time(&test).await;
    let all = total(&test).await;
    assert!(all > 80, "several pages: {all}");
    let browser = Browser::sign_in(&test, KEY).await;
    let mut path = "/activity".to_owned();
    let mut found = Vec::new();
    loop {
        let page = browser.page(&path).await;
        found.extend(lines(&page));
        let Some(next) = older(&page) else { break };
        path = next;
        // What is added meanwhile is on none of the later pages.
        test.submit(&crate::support::fares(1)).await;
    }
    let different: BTreeSet<_> = found.iter().collect();
    assert_eq!((found.len(), different.len()), (all, all));
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_each_size_are_the_whole_list_in_one_order() {
    let test = AlertTest::open().await;
    of_one_time(&test).await;
    let all = total(&test).await;
    let tenant = harness::tenant(test.pool(), KEY).await;
    let any = ActivityConditions::default();
    let whole = read_all(&test, tenant, &any, 500).await;
    assert_eq!(whole.len(), all);
    // Without the newest scans, which would be whole pages, the rest is the same.
    let ids = test.column("/v1/scans?limit=3", "id").await;
    let without = ActivityConditions {
        without: ids.iter().map(|id| text(id).parse().unwrap()).collect(),
        ..ActivityConditions::default()
    };
    let rest = read_all(&test, tenant, &without, 500).await;
    assert_eq!(rest.len(), all - 3);
    assert!(rest.iter().all(|row| whole.contains(row)));
    for limit in [1, 2, 7, 50] {
        for (conditions, expected) in [(&any, &whole), (&without, &rest)] {
            let found = read_all(&test, tenant, conditions, limit).await;
            assert_eq!(&found, expected, "{limit}");
        }
    }
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_page_has_the_filters_of_the_first() {
    let test = AlertTest::open().await;
    of_one_time(&test).await;
    let failed = "insert into deliveries (tenant_id, delivery_id, monitor_id, event_type, body, status, reason, most_tries, created_at, ended_at)
        select tenant_id, gen_random_uuid(), monitor_id, event_type, body, 'failed', 'gone', most_tries, created_at, now()
        from deliveries, generate_series(1, 40)";
    execute!(test.pool(), failed);
    let browser = Browser::sign_in(&test, KEY).await;
    for (filters, all) in [
        (
            &["text=easter", "kind=alerts"][..],
            "select count(*) from alerts",
        ),
        (
            &["text=easter", "kind=deliveries", "attention=true"][..],
            "select count(*) from deliveries where status = 'failed'",
        ),
    ] {
        let mut next = Some(format!("/activity?{}", filters.join("&")));
        let (mut found, mut pages) = (BTreeSet::new(), 0);
        while let Some(path) = next {
            let has_each = filters.iter().all(|filter| path.contains(filter));
            assert!(has_each, "{filters:?}: {path}");
            let page = browser.page(&path).await;
            found.extend(lines(&page));
            pages += 1;
            next = older(&page);
        }
        let all = usize::try_from(test.count(all).await).unwrap();
        assert!(pages > 1, "{pages} pages of {all}");
        assert_eq!(found.len(), all, "{filters:?}");
    }
    test.close().await;
}

/// The rows of every page, by what they are.
async fn read_all(
    test: &AlertTest,
    tenant: TenantId,
    conditions: &ActivityConditions,
    limit: u16,
) -> Vec<String> {
    let mut rows = Vec::new();
    let mut cursor: Option<Cursor> = None;
    loop {
        let page = activity(test.pool(), tenant, conditions, limit, cursor.as_ref()).await;
        let page = page.unwrap();
        assert!(page.data.len() <= limit.into());
        rows.extend(page.data.iter().map(|row| format!("{row:?}")));
        let Some(next) = page.next_cursor else {
            return rows;
        };
        cursor = Some(Cursor::read(&json!(next)).unwrap());
    }
}

#[tokio::test]
async fn each_page_has_its_place_in_the_navigation() {
    let (service, id) = service_with_scan().await;
    let browser = Browser::sign_in(&service, key()).await;
    for (path, entry, second) in [
        ("/overview", "aria-current=\"true\">Home<", None),
        ("/ask", "aria-current=\"true\">Home<", None),
        ("/prices", "Trips", Some("Routes and hotels")),
        ("/monitors", "Trips", Some("Monitors")),
        ("/monitors/new", "Trips", Some("Monitors")),
        ("/activity", "Activity", Some("All")),
        ("/scans", "Activity", Some("Scans")),
        (&format!("/scans/{id}"), "Activity", Some("Scans")),
        ("/alerts", "Activity", Some("Alerts")),
        ("/deliveries", "Activity", Some("Deliveries")),
        ("/usage", "Account", Some("Usage and limits")),
        ("/channels", "Account", Some("Channels")),
    ] {
        let page = browser.page(path).await;
        let (head, _) = page.split_once("<main").unwrap();
        let marks = head.matches("aria-current").count();
        // Of Home the box of questions finds as well.
        assert_eq!(head.contains("id=\"find\""), second.is_some(), "{path}");
        let Some(second) = second else {
            assert!(head.contains(entry) && marks == 1, "{path}: {head}");
            continue;
        };
        for part in [
            format!("aria-current=\"true\">{entry}</a>"),
            format!("<nav class=\"second\" aria-label=\"{entry}\">"),
            format!("aria-current=\"page\">{second}</a>"),
        ] {
            assert!(head.contains(&part), "{path}: {part} not in {head}");
        }
        assert_eq!(marks, 2, "{path}: {head}");
    }
}
