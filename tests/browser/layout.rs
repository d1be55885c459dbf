//! What stays in view: columns beside long names, ages in their cells, the navigation; and what a
//! live page says while its service does not answer.

use farescan::contract::Endpoint;
use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use super::chromium::{Chromium, WIDTHS};
use crate::history::fixture::HistoryFixture;
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::fare;
use crate::support::{SearchOutcome, TestService, fares, fares_with, wait_until};

/// The tables that need more than their width.
const CUT: &str = "return [...document.querySelectorAll('.scroll')]
    .filter((table) => table.scrollWidth > table.clientWidth + 1).map((table) => table.ariaLabel)";

#[tokio::test(flavor = "multi_thread")]
async fn a_long_name_hides_no_column_and_widens_no_page() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let name = "n".repeat(200);
    let scan = service
        .submit_and_complete(&fares_with(2, &json!({"label": name})), |_| {
            SearchOutcome::Ok(100)
        })
        .await;
    let monitor = service
        .create_monitor(&crate::monitors::with(&json!({"name": name})))
        .await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    for path in [
        "/overview",
        "/activity",
        "/scans",
        "/monitors",
        &format!("/scans/{scan}"),
        &format!("/monitors/{monitor}"),
    ] {
        browser.open(path).await;
        for width in WIDTHS {
            browser.resize(width).await;
            assert_eq!(browser.overflow().await, 0, "{path}, {width}");
        }
        for width in [390, 1280] {
            browser.resize(width).await;
            assert_eq!(browser.script(CUT).await, json!([]), "{path}, {width}");
        }
    }
    browser.open("/monitors").await;
    let title = "return document.querySelector('.rows .clip').title";
    assert_eq!(browser.script(title).await, json!(name));
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_a_card_on_a_phone_and_a_row_for_a_screen_reader() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let body = json!({"name": "my phone", "kind": "ntfy", "url": "https://ntfy.example.com/fares"});
    service.post("/v1/channels", &body).await.created(201);
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    browser.open("/channels").await;
    let seen = "return [...document.querySelectorAll('.cards td')].map((cell) => [
        getComputedStyle(cell).display, getComputedStyle(cell, '::before').content.split(' / ')[0], cell.role])";
    let lines = async |width| {
        browser.resize(width).await;
        browser.script(seen).await.as_array().unwrap().clone()
    };
    let card = lines(390).await;
    assert_eq!(card[0], json!(["flow-root", "none", "cell"]), "the title");
    assert_eq!(card[3], json!(["flow-root", "\"Status\"", "cell"]));
    assert_eq!(lines(600).await[3], json!(["table-cell", "none", "cell"]));
    browser.resize(390).await;
    let tree = browser
        .devtools("Accessibility.getFullAXTree", json!({}))
        .await;
    let nodes = tree["nodes"].as_array().unwrap();
    for (role, count) in [("table", 1), ("columnheader", 7), ("row", 2), ("cell", 7)] {
        let found = nodes.iter().filter(|node| node["role"]["value"] == role);
        assert_eq!(found.count(), count, "{role}");
    }
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_navigation_is_in_view_at_every_width() {
    let service = TestService::start().await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    let hidden = "return [...document.querySelectorAll('.top nav')].flatMap((nav) => {
            const frame = nav.getBoundingClientRect();
            return [...nav.querySelectorAll('a')].filter((link) => {
                const { left, right } = link.getBoundingClientRect();
                return left < frame.left - 8 || right > Math.min(frame.right, innerWidth) + 1;
            });
        }).map((link) => link.textContent)";
    for path in ["/overview", "/activity"] {
        browser.open(path).await;
        for width in [320, 390, 768, 1280] {
            browser.resize(width).await;
            assert_eq!(browser.script(hidden).await, json!([]), "{path}, {width}");
            assert_eq!(browser.overflow().await, 0, "{path}, {width}");
        }
    }
    browser.end().await;
}

/// A question of all airports of a city is answered by what is known, above the fold.
#[tokio::test(flavor = "multi_thread")]
async fn the_cheapest_known_price_is_seen_without_scrolling() {
    let service = HistoryFixture::open().await;
    let today = service.now.to_zoned(TimeZone::UTC).date();
    let day = today.saturating_add(40.days()).to_string();
    service.insert(&[service.fare(&day, -200, Some(118))]).await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    browser
        .open(&format!("/ask?q=tel+aviv+london+{day}+below+150"))
        .await;
    let bottom = "const answer = document.querySelector('.known-answer');
        return [answer.textContent.includes('118 USD, LHR, 3 h ago'), Math.ceil(answer.getBoundingClientRect().bottom)]";
    for (width, height) in [(390, 844), (1280, 800)] {
        browser.resize(width).await;
        let found = browser.script(bottom).await;
        assert_eq!(found[0], json!(true), "{width}");
        assert!(found[1].as_i64().unwrap() < height, "{width}: {found}");
        assert_eq!(browser.overflow().await, 0, "{width}");
    }
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_table_has_a_shadow_and_says_first_whether_a_plan_fits() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let scan = service
        .submit_and_complete(&fares(90), |_| SearchOutcome::Ok(100))
        .await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    browser.open(&format!("/monitors/new?like={scan}")).await;
    browser.resize(1280).await;
    assert_eq!(browser.script(CUT).await, json!([]));
    browser.resize(500).await;
    let seen = "document.querySelectorAll('details.fold').forEach((fold) => fold.open = true);
        const plans = document.querySelector('details.fold .scroll[aria-label^=\"Cost on\"]');
        const fits = [...plans.querySelectorAll('tbody tr td:nth-child(2) .chip')];
        const right = plans.getBoundingClientRect().right;
        return fits.length > 0 && fits.every((chip) => chip.getBoundingClientRect().right <= right + 1)";
    assert_eq!(browser.script(seen).await, json!(true));
    let shadow = "const plans = document.querySelector('.scroll');
        return [plans.scrollWidth > plans.clientWidth + 1, getComputedStyle(plans).boxShadow !== 'none']";
    // The page's script marks a cut table after the resize.
    wait_until("the table is cut, and has a shadow", async || {
        browser.script(shadow).await == json!([true, true])
    })
    .await;
    // The price in its card is a link, and looks like one.
    browser.open(&format!("/scans/{scan}")).await;
    let line = "return getComputedStyle(document.querySelector('.value > a')).textDecorationLine";
    assert_eq!(browser.script(line).await, json!("underline"));
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ages_stay_on_one_line_in_their_cells() {
    let fixture = HistoryFixture::open().await;
    let today = fixture.now.to_zoned(jiff::tz::TimeZone::UTC).date();
    let day = |days: i64| today.saturating_add(jiff::Span::new().days(days));
    let observations: Vec<_> = (1..28)
        .map(|days| fixture.fare(&day(days).to_string(), -58, Some(1_240 + days)))
        .collect();
    fixture.insert(&observations).await;
    let browser = Chromium::start(fixture.url()).await;
    browser.sign_in().await;
    browser.resize(390).await;
    browser
        .open("/prices/flights?from_airport=TLV&to_airport=LHR")
        .await;
    let broken = "const ages = [...document.querySelectorAll('.cal small')];
        return [ages.length, ages.filter((age) => age.offsetHeight > 14 || age.scrollWidth > age.offsetWidth).length]";
    assert_eq!(browser.script(broken).await, json!([27, 0]));
    browser.end().await;
}

/// Passes connections on to the service, until it is stopped: then all are closed.
async fn relay(address: &str, service: String) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let relaying = tokio::spawn(async move {
        let mut open = JoinSet::new();
        while let Ok((mut browser, _)) = listener.accept().await {
            let service = service.clone();
            open.spawn(async move {
                let mut service = TcpStream::connect(service).await.unwrap();
                drop(tokio::io::copy_bidirectional(&mut browser, &mut service).await);
            });
        }
    });
    (address, relaying)
}

/// A proxy whose service does not answer.
async fn refuse(address: &str) -> JoinHandle<()> {
    let listener = TcpListener::bind(address).await.unwrap();
    tokio::spawn(async move {
        let mut open = JoinSet::new();
        while let Ok((mut browser, _)) = listener.accept().await {
            open.spawn(async move {
                let mut request = [0; 4096];
                let read = browser.read(&mut request).await.unwrap_or_default();
                let answer = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                if read > 0 {
                    browser.write_all(answer.as_bytes()).await.ok();
                }
            });
        }
    })
}

/// Returns when its connections are closed and its address is free.
async fn stop(task: JoinHandle<()>) {
    task.abort();
    task.await.ok();
}

/// What a live page says while its service does not answer.
const SIGN: &str = "The service does not answer.";

#[tokio::test(flavor = "multi_thread")]
async fn a_live_page_that_is_refused_stays_and_one_without_its_session_leads_to_the_login() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let id = service.submit(&fares(2)).await;
    let target = service.url().trim_start_matches("http://").to_owned();
    let (address, relaying) = relay("127.0.0.1:0", target.clone()).await;
    let browser = Chromium::start(&format!("http://{address}")).await;
    browser.sign_in().await;
    let path = format!("/scans/{id}");
    browser.open(&path).await;
    browser.wait_for_count("[data-events]", 1).await;
    stop(relaying).await;
    let refusing = refuse(&address).await;
    browser.wait_for_text(SIGN).await;
    assert_eq!(browser.path().await, path);
    assert!(browser.text().await.contains("TLV → LHR"));
    browser.set_cookie("ended").await;
    stop(refusing).await;
    let (_, relaying) = relay(&address, target).await;
    browser.wait_for_text("Marketplace key").await;
    assert!(!browser.text().await.contains(SIGN));
    stop(relaying).await;
    // Its console has the requests that were refused.
    browser.driver.quit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_page_says_that_its_service_is_away() {
    let service = TestService::start().await;
    let gate = Gate::closed();
    let wait = gate.clone();
    service
        .upstream
        .on(Endpoint::FlightsOneway)
        .answer(move |call| Reply::json(json!([fare(100, &call.body)])).gated_by(&wait));
    let worker = service.start_worker(3);
    let id = service.submit(&fares(2)).await;
    let target = service.url().trim_start_matches("http://").to_owned();
    let (address, relaying) = relay("127.0.0.1:0", target.clone()).await;
    let browser = Chromium::start(&format!("http://{address}")).await;
    browser.sign_in().await;
    browser.open(&format!("/scans/{id}")).await;
    browser.wait_for_text("running").await;
    assert!(!browser.text().await.contains(SIGN));
    relaying.abort();
    browser.wait_for_text(SIGN).await;
    let (_, relaying) = relay(&address, target).await;
    gate.open();
    browser.wait_for_text("completed").await;
    assert!(!browser.text().await.contains(SIGN));
    relaying.abort();
    worker.stop().await;
    // Its console has the connections that were refused.
    browser.driver.quit().await.unwrap();
}
