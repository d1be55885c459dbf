//! The ten tasks of a first day with the keyboard alone, each from the overview in at most three
//! activations of a link or button. `keyboard` has those that begin with an empty form.

use std::path::Path;

use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use thirtyfour::Key;

use super::called_dates;
use super::chromium::Chromium;
use crate::account::rotate::NEW_KEY;
use crate::history::fixture::HistoryFixture;
use crate::support::app::KEY;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::{Call, default_reply, fare};
use crate::support::{TestService, departing_from, fares, wait_until};
use crate::web::service_with_scan;

const MOST_ACTIVATIONS: usize = 3;

/// A person at the overview who does one task after the other and touches no mouse.
struct Person {
    browser: Chromium,
    /// Links and buttons that were activated in this task.
    activations: usize,
    /// Key presses of this task but the typed text.
    presses: usize,
}

impl Person {
    /// Signed in, at the overview.
    async fn at_overview(service: &TestService) -> Self {
        let browser = Chromium::start(service.url()).await;
        browser.sign_in_by_keyboard().await;
        Self {
            browser,
            activations: 0,
            presses: 0,
        }
    }

    /// Activates the next link or button whose name begins so.
    async fn choose(&mut self, name: &str) {
        self.presses += self.browser.tab_to(name).await + 1;
        self.browser.key(Key::Enter).await;
        self.activations += 1;
    }

    /// Ends a task: it took this many activations. Returns to the overview.
    async fn did(&mut self, task: &str, activations: usize) {
        assert_eq!(self.activations, activations, "{task}");
        assert!(activations <= MOST_ACTIVATIONS, "{task}");
        println!(
            "{task}: {activations} activations, {} key presses",
            self.presses
        );
        if self.browser.path().await != "/overview" {
            self.browser.tab_to("Home").await;
            self.browser.key(Key::Enter).await;
            self.browser.wait_for_path("/overview").await;
        }
        (self.activations, self.presses) = (0, 0);
    }

    async fn says(&self, texts: &[&str]) {
        for text in texts {
            self.browser.wait_for_text(text).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cheapest_date_and_a_missing_one_by_keyboard() {
    let (service, id) = service_with_scan().await;
    let mut person = Person::at_overview(&service).await;
    let calls = service.upstream.count();

    person.choose("TLV → LHR").await;
    person.browser.wait_for_path(&format!("/scans/{id}")).await;
    let cheapest = person.browser.text_of(".stat").await;
    assert!(
        cheapest.starts_with("Cheapest\n200 USD\n4 Jan 2030"),
        "{cheapest}"
    );
    person.did("find the cheapest date", 1).await;

    person.choose("TLV → LHR").await;
    person.browser.wait_for_path(&format!("/scans/{id}")).await;
    person.choose("3\n?").await;
    person.browser.wait_for_path_under("/items/").await;
    person
        .says(&["The searched site blocked the marketplace."])
        .await;
    person.did("see why one is missing", 2).await;
    assert_eq!(service.upstream.count(), calls, "looking costs nothing");

    person.choose("Ask again: 1 search").await;
    person
        .says(&["It costs 1 to 2 requests of your plan."])
        .await;
    person.choose("Ask again for 1 to 2 requests").await;
    person.browser.wait_for_path(&format!("/scans/{id}")).await;
    let worker = service.start_worker(2);
    service.wait_until_ended(&id).await;
    assert_eq!(called_dates(&service, "TLV"), ["2030-01-03"], "only that");
    person.did("ask again only that", 2).await;
    worker.stop().await;
    person.browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_is_watched_by_keyboard_and_once() {
    let (service, id) = service_with_scan().await;
    let mut person = Person::at_overview(&service).await;
    let calls = service.upstream.count();
    person.choose("TLV → LHR").await;
    person.browser.wait_for_path(&format!("/scans/{id}")).await;
    person.choose("Watch this").await;
    person
        .says(&["Tell me below", "Looks each day at 06:00 UTC"])
        .await;
    assert_eq!(service.count("select count(*) from monitors").await, 0);
    person.browser.tab_and_type("Tell me below", "190").await;
    person.choose("Tell me ·").await;
    let monitor = person.browser.wait_for_path_under("/monitors/mon_").await;
    let stored = service.monitor(&format!("mon_{monitor}")).await;
    assert_eq!(
        stored["alerts"],
        json!([{"type": "price_below", "amount": 190}])
    );
    assert_eq!(stored["schedule"]["cron"], "0 6 * * *");

    // Back to the cost, loaded again: its button still means this monitor.
    person.browser.driver.back().await.unwrap();
    person.says(&["Tell me below"]).await;
    person.browser.driver.refresh().await.unwrap();
    person.browser.tab_and_type("Tell me below", "190").await;
    person.browser.tab_to("Tell me ·").await;
    person.browser.key(Key::Enter).await;
    person
        .browser
        .wait_for_path(&format!("/monitors/mon_{monitor}"))
        .await;
    assert_eq!(service.count("select count(*) from monitors").await, 1);
    assert_eq!(service.upstream.count(), calls, "its first slot is not due");
    person.did("watch it", 3).await;
    person.browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spending_is_seen_and_stopped_by_keyboard() {
    let service = TestService::start().await;
    service.upstream.answer_fares(150);
    let worker = service.start_worker(2);
    service.accept_key().await;
    let ended = service.submit(&departing_from("GVA", fares(3))).await;
    service.wait_until_ended(&ended).await;
    let monitor = json!({
        "name": "a month", "schedule": {"cron": "0 6 * * *", "timezone": "UTC"}, "alerts": [],
        "scan": {"endpoint": "flights/oneway", "request": {"from_airport": "MXP", "to_airport": "LHR"},
                 "sweep": {"departure_date": {"from": "+7d", "to": "+9d"}}},
    });
    let monitor = service.create_monitor(&monitor).await;
    let billed = service.upstream.count();
    let mut person = Person::at_overview(&service).await;
    assert_eq!(service.upstream.count(), billed, "the key is known");
    let figures = person.browser.text_of(".stats").await;
    let spent = format!("Billed this month (UTC)\n{billed} flights, 0 hotels");
    assert!(figures.contains(&spent), "{spent:?} is not in {figures}");
    person.did("know this month's spend", 0).await;

    let gate = service.upstream.answer_fares_after_gate();
    let id = service.submit(&departing_from("ZRH", fares(10))).await;
    service.upstream.wait_for_in_flight(2).await;
    person.choose("Pause everything").await;
    person.browser.wait_for_path("/usage#pause-all").await;
    person
        .says(&["Searches in flight end and are billed; no other search of them begins. A scan that you start later runs."])
        .await;
    person.choose("Pause all monitors and scans").await;
    person.says(&["1 monitor and 1 scan paused."]).await;
    gate.open();
    let paused = service.wait_until_idle(&id).await;
    assert_eq!(paused["status"], "paused");
    assert_eq!(service.monitor(&monitor).await["status"], "paused");
    let slot = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(48);
    service.tick(slot).await;
    assert_eq!(
        service.call_count("ZRH"),
        2,
        "those in flight, and no other"
    );
    assert_eq!(service.call_count("MXP"), 0);
    person.did("stop spending", 2).await;
    worker.stop().await;
    person.browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn last_weeks_price_is_found_by_keyboard() {
    let service = HistoryFixture::open().await;
    let today = service.now.to_zoned(TimeZone::UTC).date();
    let date = today.saturating_add(40.days());
    let week = 7 * 24 * 60;
    let seen = |price: i64, minutes: i64| service.fare(&date.to_string(), -minutes, Some(price));
    let other = service.fare(
        &today.saturating_add(41.days()).to_string(),
        -week,
        Some(180),
    );
    // A month on one page: no date is hidden behind a link.
    let observations = [
        seen(205, week),
        seen(230, week + 2 * 24 * 60),
        seen(190, 0),
        other,
    ];
    service.insert(&observations).await;
    let mut person = Person::at_overview(&service).await;
    let calls = service.upstream.count();
    person.choose("Trips").await;
    person.browser.wait_for_path("/prices").await;
    person.choose("TLV → LHR").await;
    person
        .says(&["Lowest of the dates searched. A week ago: 180 USD; newest: 190 USD."])
        .await;
    person.choose(&format!("{}\n190", date.day())).await;
    person
        .says(&["A week ago: 205 USD; newest: 190 USD (−7.3 %)."])
        .await;
    assert_eq!(service.upstream.count(), calls, "the history costs nothing");
    person.did("find last week's price of a date", 3).await;
    person.browser.end().await;
}

/// A rate that differs by market.
fn rate(call: &Call) -> Reply {
    let market = call.body["proxy_country"].as_str().unwrap_or_default();
    let price = if market == "de" { 330 } else { 300 };
    let mut reply = json!({
        "name": "Hotel Arts", "available": true, "review_score": 8.9, "review_count": 12, "room_type": "Double",
        "image_url": null, "link": "https://hotels.example/arts", "nights": 3, "adults": 2, "children": null
    });
    reply["price"] = json!(price);
    reply["price_string"] = json!(format!("${price}"));
    Reply::json(reply).header("x-search-status", "ok")
}

#[tokio::test(flavor = "multi_thread")]
async fn markets_are_compared_and_exported_by_keyboard() {
    let service = TestService::start().await;
    service.upstream.answer(|call| {
        if call.body["hotel_name"].is_string() {
            rate(call)
        } else {
            default_reply(call)
        }
    });
    let worker = service.start_worker(4);
    service.accept_key().await;
    let mut body = json!({
        "endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts"},
        "sweep": {"checkin_date": {"from": "2030-01-01", "to": "2030-01-02"}, "nights": [3], "proxy_country": ["us", "de"]}
    });
    let mut ids = Vec::new();
    for label in ["Monday", "Tuesday"] {
        body["label"] = json!(label);
        let id = service.submit(&body).await;
        service.wait_until_ended(&id).await;
        ids.push(id);
    }
    let mut person = Person::at_overview(&service).await;
    let calls = service.upstream.count();
    person.choose("Tuesday").await;
    person
        .browser
        .wait_for_path(&format!("/scans/{}", ids[1]))
        .await;
    person.says(&["DE", "330", "+10.0 %"]).await;
    person.did("compare markets", 1).await;

    person.choose("Tuesday").await;
    person
        .browser
        .wait_for_path(&format!("/scans/{}", ids[1]))
        .await;
    person.choose("Compare").await;
    person.says(&["Compare with another scan"]).await;
    person.choose("Monday").await;
    person.says(&["What changed", "4 unchanged"]).await;
    // The link to the scan itself stands above the list.
    person.did("compare two scans", 3).await;

    let folder = tempfile::tempdir().unwrap();
    let downloads = json!({"behavior": "allow", "downloadPath": folder.path()});
    person
        .browser
        .devtools("Page.setDownloadBehavior", downloads)
        .await;
    person.choose("Tuesday").await;
    person
        .browser
        .wait_for_path(&format!("/scans/{}", ids[1]))
        .await;
    person.choose("CSV").await;
    wait_until("the file is there", async || csv(folder.path()).is_some()).await;
    let file = csv(folder.path()).unwrap();
    assert_eq!(file.lines().count(), 5, "{file}");
    assert_eq!(file.matches("2030-01-02").count(), 2, "{file}");
    person.did("export", 2).await;
    assert_eq!(
        service.upstream.count(),
        calls,
        "none of this costs a request"
    );
    worker.stop().await;
    person.browser.end().await;
}

/// The whole file that was downloaded.
fn csv(folder: &Path) -> Option<String> {
    let files = std::fs::read_dir(folder).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let file = files.find(|file| file.extension().is_some_and(|kind| kind == "csv"))?;
    let text = std::fs::read_to_string(file).ok()?;
    // The browser makes the file before it has the text.
    Some(text).filter(|text| !text.is_empty())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_changed_by_keyboard() {
    let service = TestService::start().await;
    let gate = Gate::closed();
    let wait = gate.clone();
    service
        .upstream
        .answer(move |call| match call.key.as_str() {
            NEW_KEY => Reply::json(json!([fare(164, &call.body)])).gated_by(&wait),
            _ if call.body["from_airport"] == "YYY" => Reply::json(json!([fare(120, &call.body)])),
            _ => Reply::status(401).with_json(json!({"message": "Invalid API key"})),
        });
    let worker = service.start_worker(2);
    service.accept_key().await;
    let id = service.submit(&departing_from("ZRH", fares(3))).await;
    let paused = |scan: &Value| scan["status_reason"] == "key_rejected";
    service
        .wait_for_scan(&id, "its key is rejected", paused)
        .await;
    service.wait_until_idle(&id).await;
    let mut person = Person::at_overview(&service).await;
    let with_old = |service: &TestService| {
        let calls = service.upstream.calls();
        calls.iter().filter(|call| call.key != NEW_KEY).count()
    };
    let before = with_old(&service);

    person.choose("Change the key").await;
    person.browser.wait_for_path("/usage").await;
    person
        .choose("Move this account to another marketplace key")
        .await;
    person.browser.tab_and_type("Current key", KEY).await;
    person.browser.tab_and_type("New key", NEW_KEY).await;
    person.browser.tab_to("Afterwards the old key").await;
    person.browser.key(Key::Space).await;
    gate.open();
    person.choose("Check the new key and move to it").await;
    person
        .says(&["The account has a new key", "Lanes that go on"])
        .await;
    let source = person.browser.driver.source().await.unwrap();
    assert!(!source.contains(NEW_KEY), "the page shows the key");
    // The browser is signed in with the new key, and the scan goes on with it.
    person.did("change the key", 3).await;
    person.browser.wait_for_text("ZRH → LHR").await;
    service.wait_for_scan_as(NEW_KEY, &id).await;
    assert_eq!(with_old(&service), before, "the old key is not used again");
    worker.stop().await;
    person.browser.end().await;
}
