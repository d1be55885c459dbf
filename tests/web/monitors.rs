//! `/monitors`, `/alerts` and `/deliveries`: what they show, what their buttons do, and that each
//! asks before it spends.

use farescan::history::daily_pack::pack_past_days;
use jiff::ToSpan as _;
use serde_json::{Value, json};

use super::{Browser, Form, encoded, form, redirect};
use crate::alerts::AlertTest;
use crate::history::fixture::HistoryFixture;
use crate::monitors::backtest::{seen, today, with_partitions};
use crate::monitors::{monitor, with};
use crate::support::app::KEY;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::support::{SearchOutcome, TestService};

const OTHER: &str = "another-key-0123456789";

async fn monitors(service: &TestService) -> Vec<Value> {
    service.page("/v1/monitors").await
}

/// The form of a new monitor, filled in as a person does.
pub fn filled(page: &str, more: &[(&str, &str)]) -> Form {
    let mut form = form(page, "/monitors/new");
    let given = [
        ("step", "check"),
        ("name", "January fares"),
        ("endpoint", "flights/oneway"),
        ("from_airport", "TLV"),
        ("to_airport", "LHR"),
        ("first", "+7d"),
        ("last", "+9d"),
        ("repeat", "daily"),
        ("time", "06:00"),
        ("timezone", "Europe/London"),
        ("price_below", "200"),
    ];
    for (name, value) in given.iter().chain(more) {
        form.fields.retain(|(known, _)| known != name);
        form.fields.push(((*name).to_owned(), (*value).to_owned()));
    }
    form
}

#[tokio::test]
async fn a_text_stays_in_the_links_of_the_list() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    for name in ["Easter 1", "Easter 2", "Autumn"] {
        service.create_monitor(&with(&json!({"name": name}))).await;
    }
    let browser = Browser::sign_in(&service, KEY).await;
    let page = browser.page("/monitors?text=+easter+&limit=1").await;
    assert!(page.contains("Easter 2") && !page.contains("Autumn"));
    assert!(page.contains("href=\"/monitors?text=easter&amp;status=active\""));
    let (_, next) = page.split_once("rel=\"next\" href=\"").unwrap();
    let next = next.split('"').next().unwrap().replace("&amp;", "&");
    assert!(next.starts_with("/monitors?text=easter&cursor="), "{next}");
    let page = browser.page(&next).await;
    assert!(page.contains("Easter 1") && !page.contains("Autumn"));
    let page = browser.page("/monitors?text=++").await;
    assert!(page.contains("Easter 1") && page.contains("Autumn"));
    let page = browser.page("/monitors?text=winter").await;
    assert!(page.contains("No monitor fits these filters."), "{page}");
    assert!(!page.contains("No monitors yet"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_is_stored_after_its_cost_was_shown() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    service.accept_key().await;
    worker.stop().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let new = browser.page("/monitors/new").await;
    let cost = browser.send(&filled(&new, &[])).await.expect(200).text();
    // Three dates, one request each, or two with the retry of a server error.
    assert!(cost.contains("3 to 6 requests"), "{cost}");
    assert!(
        cost.contains("TLV → LHR, one way, 7 to 9 days ahead"),
        "{cost}"
    );
    assert!(monitors(&service).await.is_empty(), "nothing is stored yet");

    let create = form(&cost, "/monitors");
    let path = redirect(browser.send(&create).await);
    assert_eq!(
        redirect(browser.send(&create).await),
        path,
        "a second press creates no second monitor"
    );
    let stored = monitors(&service).await;
    assert_eq!(stored.len(), 1);
    assert_eq!(
        (&stored[0]["schedule"], &stored[0]["alerts"]),
        (
            &json!({"cron": "0 6 * * *", "timezone": "Europe/London"}),
            &json!([{"type": "price_below", "amount": 200}])
        )
    );
    let page = browser.page(&path).await;
    for expected in [
        "January fares",
        "Price below 200",
        "Run now for 3 to 6 requests",
        "London",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
}

#[tokio::test]
async fn a_wrong_field_of_a_new_monitor_is_named() {
    let service = TestService::start().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let new = browser.page("/monitors/new").await;
    let wrong = filled(
        &new,
        &[
            ("from_airport", "Tel Aviv"),
            ("timezone", "Mars"),
            ("max_requests_per_month", "many"),
        ],
    );
    let page = browser.send(&wrong).await.expect(422).text();
    for expected in [
        "scan.request.from_airport",
        "schedule.timezone",
        "max_requests_per_month",
        r#"value="Tel Aviv" aria-invalid="true""#,
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    // What was entered stays.
    assert!(page.contains(r#"value="January fares""#));

    // A watch for an amount without one.
    let watch = [
        ("watch", "below"),
        ("max_requests", "18"),
        ("price_below", ""),
    ];
    let page = browser.send(&filled(&new, &watch)).await.expect(422).text();
    assert!(
        page.contains("Amount: enter the price that the watch is for, such as 150"),
        "{page}"
    );
    assert!(!page.contains("scan.strategy.below"), "{page}");
}

#[tokio::test]
async fn a_watch_for_an_amount_alerts_below_it() {
    let service = TestService::start().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let new = browser.page("/monitors/new").await;
    let below = [("below", "150"), ("price_below", "")];
    let rule = [("below", ""), ("price_below", "150")];
    for amount in [below, rule] {
        let watch = [("watch", "below"), ("max_requests", "18"), ("last", "+36d")];
        let entered = filled(&new, &[&watch[..], &amount].concat());
        let page = browser.send(&entered).await.expect(200).text();
        assert!(
            page.contains("Alerts: Price below 150"),
            "{amount:?}\n{page}"
        );
        assert!(
            page.contains("&quot;below&quot;: 150"),
            "{amount:?}\n{page}"
        );
    }
}

#[tokio::test]
async fn a_watched_route_fills_the_form() {
    let service = TestService::start().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let page = browser
        .page("/monitors/new?endpoint=flights%2Foneway&from_airport=TLV&to_airport=LHR&currency=USD&first=2030-01-01&last=2030-01-09&fields=%7B%22passengers%22%3A%5B1%5D%7D")
        .await;
    for expected in [
        r#"name="from_airport" value="TLV""#,
        r#"name="first" value="2030-01-01""#,
        "{&quot;passengers&quot;:[1]}",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
}

/// A form that watches says what a run costs, and its monitor shows what its last run declares.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_is_a_choice_of_the_form() {
    let service = TestService::start().await;
    let worker = service.start_worker(4);
    service.accept_key().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let new = browser.page("/monitors/new").await;
    let watch = [("watch", "below"), ("below", "150.5"), ("last", "+26d")];
    let page = browser.send(&filled(&new, &watch)).await.expect(422).text();
    for part in [
        "scan.max_requests",
        r#"<option value="below" selected"#,
        r#"name="below" value="150.5""#,
        r#"id="max_requests" name="max_requests" value="" aria-invalid="true""#,
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let watch = [&watch[..], &[("max_requests", "5")]].concat();
    let cost = browser.send(&filled(&new, &watch)).await.expect(200).text();
    for part in [
        "watches for a price below 150.50 with at most 5 requests a run",
        "5 requests",
    ] {
        assert!(cost.contains(part), "{part}\n{cost}");
    }
    let path = redirect(browser.send(&form(&cost, "/monitors")).await);
    let stored = monitors(&service).await;
    assert_eq!(
        (
            &stored[0]["scan"]["strategy"],
            &stored[0]["scan"]["max_requests"]
        ),
        (&json!({"watch": "below", "below": 150.5}), &json!(5))
    );
    assert!(!browser.page(&path).await.contains("Risk of a miss"));
    let scan = redirect(browser.press(&path, &format!("{path}/run")).await);
    let scan = scan.strip_prefix("/scans/").unwrap();
    service
        .wait_for_scan(scan, "the watch has ended", |scan| {
            scan["finished_at"].is_string() && scan["strategy"]["ended_by"].is_string()
        })
        .await;
    let page = browser.page(&path).await;
    for part in ["Risk of a miss", "last run: 5 searches instead of 20"] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_monitor_is_replayed_before_it_is_created() {
    let fixture = HistoryFixture::open().await;
    with_partitions(&fixture, 60).await;
    let date = today(&fixture).saturating_add(60.days());
    let prices = [(9, 210), (8, 199), (7, 205), (5, 250)];
    let prices = prices.map(|(ago, price)| seen(&fixture, date, ago, price));
    fixture.insert(&prices).await;
    pack_past_days(fixture.pool(), fixture.now).await.unwrap();
    let browser = Browser::sign_in(&fixture, KEY).await;
    let new = browser.page("/monitors/new").await;
    assert!(new.contains("What would this have reported?"), "{new}");
    let date = date.to_string();
    let replayed = filled(
        &new,
        &[
            ("first", &date),
            ("last", ""),
            ("timezone", "UTC"),
            ("time", "13:00"),
            ("new_low_days", "30"),
            ("sold_out", "yes"),
            ("step", "backtest"),
        ],
    );
    let calls = fixture.upstream.count();
    let page = browser.send(&replayed).await.expect(200).text();
    for part in [
        "Price below 200 USD",
        "199 USD",
        "210 USD <span",
        "(−5.2 %)",
        "Sold out",
        "only days with a price are replayed, not those on which nothing was on offer",
        "90 to 180 requests",
        "4 of 90",
        "Create this monitor?",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let again = form(&page, "/monitors/new#backtest")
        .with("step", "backtest")
        .with("backtest_days", "400");
    let again = Form {
        action: "/monitors/new".to_owned(),
        ..again
    };
    let refused = browser.send(&again).await.expect(422).text();
    assert!(
        refused.contains("found 400") && refused.contains("Create this monitor?"),
        "{refused}"
    );
    let shorter = again.with("backtest_days", "6");
    let page = browser.send(&shorter).await.expect(200).text();
    assert!(page.contains("No rule would have fired"), "{page}");
    // The button of the replayed page creates the monitor, and its page replays it too.
    let path = redirect(browser.send(&form(&page, "/monitors")).await);
    assert_eq!(monitors(&fixture).await.len(), 1);
    let link = format!("{path}/backtest");
    assert!(browser.page(&path).await.contains(&link));
    let page = browser.page(&format!("{link}?backtest_days=180")).await;
    assert!(
        page.contains("199 USD") && page.contains("4 of 180"),
        "{page}"
    );
    // With a limit of a month it says which runs there would not have been.
    let id = path.rsplit('/').next().unwrap();
    fixture
        .patch(id, &json!({"max_requests_per_month": 3}))
        .await;
    let page = browser.page(&format!("{link}?backtest_days=180")).await;
    for part in [
        "of 180 slots",
        "without a run from",
        "has spent 3 of 3 requests",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    assert_eq!(fixture.upstream.count(), calls, "no call");
    let other = Browser::sign_in(&fixture, OTHER).await;
    assert_eq!(other.get(&link).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_buttons_of_a_monitor_do_what_they_say() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    service.accept_key().await;
    let id = service.create_monitor(&monitor()).await;
    let browser = Browser::sign_in(&service, KEY).await;
    let path = format!("/monitors/{id}");

    let run = form(&browser.page(&path).await, &format!("{path}/run"));
    let scan = redirect(browser.send(&run).await);
    let scan = scan.strip_prefix("/scans/").unwrap().to_owned();
    service.wait_until_ended(&scan).await;
    assert_eq!(
        redirect(browser.send(&run).await),
        format!("/scans/{scan}?already_started=true"),
        "a second press of one form starts no second run"
    );
    assert_eq!(service.call_count("TLV"), 1);

    assert_eq!(
        redirect(browser.press(&path, &format!("{path}/pause")).await),
        path
    );
    assert_eq!(service.monitor(&id).await["status_reason"], "by_caller");
    let page = browser.page(&path).await;
    assert!(
        page.contains("paused") && page.contains("by hand"),
        "{page}"
    );
    assert_eq!(
        redirect(browser.press(&path, &format!("{path}/resume")).await),
        path
    );
    assert_eq!(service.monitor(&id).await["status"], "active");

    assert_eq!(
        redirect(browser.press(&path, &format!("{path}/delete")).await),
        "/monitors"
    );
    browser.get(&path).await.expect(404);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_not_possible_says_why_on_the_page() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    service.accept_key().await;
    worker.stop().await;
    let id = service.create_monitor(&monitor()).await;
    let browser = Browser::sign_in(&service, KEY).await;
    let path = format!("/monitors/{id}");
    redirect(browser.press(&path, &format!("{path}/run")).await);
    let refused = browser
        .press(&path, &format!("{path}/run"))
        .await
        .expect(409);
    let page = refused.text();
    assert!(
        page.contains("Nothing was done: the previous run has not ended"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhooks_secret_is_shown_once_by_its_pages() {
    let service = TestService::start().await;
    let worker = service.start_worker(2);
    service.accept_key().await;
    worker.stop().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let new = browser.page("/monitors/new").await;
    let with_hook = filled(&new, &[("webhook_url", "https://hooks.example.com/fares")]);
    let cost = browser.send(&with_hook).await.expect(200).text();
    let create = form(&cost, "/monitors");
    let created = browser.send(&create).await.expect(201);
    assert_eq!(created.header("cache-control"), "no-store");
    assert!(created.text().contains("whsec_"));
    let monitor = service.page("/v1/monitors").await[0]["id"].clone();
    let path = format!("/monitors/{}", monitor.as_str().unwrap());
    let page = browser.page(&path).await;
    assert!(!page.contains("whsec_"), "{page}");
    let rotate = form(&page, &format!("{path}/rotate-secret"));
    for wrong in ["", "another-key-0123456789"] {
        let refused = browser
            .send(&rotate.clone().with("current_key", wrong))
            .await;
        let page = refused.expect(422).text();
        assert!(
            page.contains("current key") && !page.contains("whsec_"),
            "{page}"
        );
    }
    let rotated = browser
        .send(&rotate.with("current_key", KEY))
        .await
        .expect(200);
    assert_eq!(rotated.header("cache-control"), "no-store");
    assert!(rotated.text().contains("whsec_"));
    assert!(!browser.page(&path).await.contains("whsec_"));
    assert_eq!(redirect(browser.send(&create).await), path);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_opens_with_its_evidence_and_is_sent_again() {
    let test = AlertTest::open().await;
    let id = test
        .monitor(&with(
            &json!({"alerts": [{"type": "price_below", "amount": 200}]}),
        ))
        .await;
    test.respond_with(|body| Reply::json(json!([fare(150, body)])));
    test.run(&id).await;
    let browser = Browser::sign_in(&test, KEY).await;
    let alert = test.page("/v1/alerts").await[0].clone();
    let alert = alert["id"].as_str().unwrap().to_owned();

    let list = browser.page("/alerts").await;
    assert!(
        list.contains(&format!("/alerts/{alert}")) && list.contains("150 USD"),
        "{list}"
    );
    let trip = browser
        .page("/prices/flights?from_airport=TLV&to_airport=LHR")
        .await;
    assert!(trip.contains(&format!("/alerts/{alert}")), "{trip}");
    let page = browser.page(&format!("/alerts/{alert}")).await;
    for expected in [
        ": 150 USD</h1>",
        "Example Air, 7:15 – 10:40, 5 hr, non-stop",
        "href=\"https://flights.example/?tfs=x&amp;curr=USD\" rel=",
        "Price below 200",
        "200 USD",
        "1 of 1 complete",
        "/items/itm_",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    let shown = browser.page(&format!("/monitors/{id}")).await;
    assert!(
        shown.contains("alerted") && shown.contains("150"),
        "{shown}"
    );
    let notify = json!({"quiet_hours": {"from": "22:00", "until": "07:00"}, "digest_at": "08:00"});
    test.patch(&id, &json!({"notify": notify})).await;
    let shown = browser.page(&format!("/monitors/{id}")).await;
    for expected in [
        "Alerts are sent once a day, at 08:00, never between 22:00 and 07:00 Europe/London.",
        "Next digest",
    ] {
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }

    let delivery = test.page("/v1/deliveries").await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/deliveries/{delivery}");
    assert!(browser.page("/deliveries").await.contains(&path));
    let page = browser.page(&path).await;
    assert!(
        page.contains("monitor.alerts") && page.contains("Not tried yet"),
        "{page}"
    );
    let again = form(&page, &format!("{path}/resend"));
    assert_eq!(redirect(browser.send(&again).await), path);

    let other = Browser::sign_in(&test, OTHER).await;
    for path in [
        format!("/monitors/{id}"),
        format!("/alerts/{alert}"),
        path.clone(),
        format!("/alerts?monitor_id={id}"),
    ] {
        other.get(&path).await.expect(404);
    }
    // The other caller's own form token opens nothing of this caller.
    let token = form(&other.page("/usage").await, "/logout").fields;
    for command in ["run", "pause", "resume", "delete", "test", "rotate-secret"] {
        let path = format!("/monitors/{id}/{command}");
        let response = other.request("POST", &path, Some(encoded(&token))).await;
        assert_eq!(response.status, 404, "{command}");
    }
    let response = other
        .request("POST", &format!("{path}/resend"), Some(encoded(&token)))
        .await;
    assert_eq!(response.status, 404);
    assert_eq!(
        test.get(&format!("/v1/monitors/{id}")).await["status"],
        "active"
    );
    test.close().await;
}

#[tokio::test]
async fn empty_lists_say_what_to_do_next() {
    let service = TestService::start().await;
    let browser = Browser::sign_in(&service, KEY).await;
    for (path, next) in [
        ("/monitors", "/monitors/new"),
        ("/monitors?status=paused", "href=\"/monitors\""),
        ("/alerts", "/monitors/new"),
        ("/deliveries", "/monitors"),
        ("/deliveries?status=failed", "href=\"/deliveries\""),
    ] {
        let page = browser.page(path).await;
        let empty = page.split("class=\"empty\"").nth(1).unwrap_or_default();
        assert!(empty.contains(next), "{path}\n{page}");
    }
}

#[tokio::test]
async fn a_scan_becomes_the_form_of_a_monitor() {
    let (service, id) = super::service_with_scan().await;
    let browser = Browser::sign_in(&service, KEY).await;
    let words = "/ask?q=TLV+%E2%86%92+LHR%2C+2030-01-01+to+2030-01-04%2C+one+way%2C+1+adult%2C+USD&amp;watch=true";
    let of_scan = browser.page(&format!("/scans/{id}")).await;
    assert!(of_scan.contains(&format!("href=\"{words}\"")), "{of_scan}");
    // What words cannot ask becomes the form of a monitor.
    let limited = json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "airline_codes": ["BA"]},
        "sweep": {"departure_date": {"from": "2030-01-01", "to": "2030-01-04"}}});
    let limited = service
        .submit_and_complete(&limited, |_| SearchOutcome::Ok(200))
        .await;
    let of_limited = browser.page(&format!("/scans/{limited}")).await;
    let like = format!("/monitors/new?like={limited}");
    assert!(of_limited.contains(&like), "{of_limited}");
    let like = format!("/monitors/new?like={id}");
    let page = browser.page(&like).await;
    let fields = form(&page, "/monitors/new")
        .with("endpoint", "flights/oneway")
        .with("repeat", "daily")
        .with("step", "check");
    for (name, text) in [
        ("from_airport", "TLV"),
        ("first", "2030-01-01"),
        ("last", "2030-01-04"),
    ] {
        let found = fields.fields.iter().find(|(known, _)| known == name);
        assert_eq!(found.map(|(_, text)| text.as_str()), Some(text), "{name}");
    }
    let cost = browser.send(&fields).await.expect(200).text();
    assert!(cost.contains("Create for"), "{cost}");
    let stranger = Browser::sign_in(&service, "another-key-0123456789").await;
    assert_eq!(stranger.get(&like).await.status, 404);
}
