//! What holds on every page: accessible in both themes and widths, nothing to scroll sideways, no
//! key, no other host, no complaint of the browser.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::chromium::{Chromium, Theme, WIDTHS};
use super::filled::Filled;
use super::screenshots;
use crate::support::TestService;
use crate::support::app::KEY;

/// A path whose query ends with a field.
fn with(path: &str, name: &str, value: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair(name, value)
        .finish();
    format!("{path}{query}")
}

/// Every page: a name and a path. A new page gets a line here.
pub fn pages(of: &Filled) -> Vec<(&'static str, String)> {
    let preview = "/scans/new?endpoint=flights/oneway&from_airport=TLV&to_airport=LHR,CDG\
                   &departure_date.from=2030-01-01&departure_date.to=2030-01-31&preview=true";
    let Filled {
        fares,
        markets,
        stays,
        running,
        paused,
        monitor,
        parity,
        runs,
        alert,
        delivery,
        items,
        names,
        ..
    } = of;
    let word: String = names.label.chars().take(6).collect();
    [
        ("overview", "/overview".to_owned()),
        ("ask", "/ask".to_owned()),
        (
            "a question",
            "/ask?q=tel+aviv+london+2030-01-01+to+2030-01-31+below+150".to_owned(),
        ),
        (
            "refused words",
            "/ask?q=tel+aviv+portland+lodnon+march".to_owned(),
        ),
        ("found", with("/find?", "q", &word)),
        ("scans", "/scans".to_owned()),
        ("scans of a tag", with("/scans?", "tag", &names.tag)),
        ("scans of no status", "/scans?status=cancelled".to_owned()),
        ("new scan", "/scans/new".to_owned()),
        (
            "new scan of a hotel",
            "/scans/new?endpoint=hotels/by-name".to_owned(),
        ),
        ("new scan like another", format!("/scans/new?like={stays}")),
        ("cost of a scan", preview.to_owned()),
        (
            "wrong form of a scan",
            format!("{preview}&max_stops=none").replace("TLV", "TLVX"),
        ),
        ("fares", format!("/scans/{fares}")),
        ("markets", format!("/scans/{markets}")),
        ("stays", format!("/scans/{stays}")),
        ("choice of a comparison", format!("/scans/{fares}/compare")),
        (
            "comparison",
            format!("/scans/{}/compare/{}", runs[0], runs[1]),
        ),
        ("running scan", format!("/scans/{running}")),
        ("paused scan", format!("/scans/{paused}")),
        ("degraded item", format!("/items/{}", items[0])),
        ("item with offers", format!("/items/{}", items[1])),
        ("prices", "/prices".to_owned()),
        (
            "prices of a route",
            "/prices/flights?from_airport=TLV&to_airport=LHR".to_owned(),
        ),
        (
            "prices of no route",
            "/prices/flights?from_airport=AAA&to_airport=BBB".to_owned(),
        ),
        (
            "prices of a hotel",
            with(
                "/prices/hotels?nights=3&",
                "hotel_name",
                &names.hotel.to_lowercase(),
            ),
        ),
        ("monitors", "/monitors".to_owned()),
        ("new monitor", "/monitors/new".to_owned()),
        (
            "cost of watching a scan",
            format!("/monitors/new?like={fares}"),
        ),
        ("monitor", format!("/monitors/{monitor}")),
        ("change of a monitor", format!("/monitors/{monitor}/edit")),
        ("markets over time", format!("/monitors/{parity}/parity")),
        (
            "backtest of a monitor",
            format!("/monitors/{monitor}/backtest"),
        ),
        ("activity", "/activity".to_owned()),
        ("activity of no kind", "/activity?text=nothing".to_owned()),
        ("channels", "/channels".to_owned()),
        ("alerts", "/alerts".to_owned()),
        ("alert", format!("/alerts/{alert}")),
        ("deliveries", "/deliveries".to_owned()),
        ("delivery", format!("/deliveries/{delivery}")),
        ("usage", "/usage".to_owned()),
        ("usage by monitor", "/usage?group=monitor".to_owned()),
        (
            "no such page",
            "/scans/scn_00000000000000000000000000000000".to_owned(),
        ),
    ]
    .into()
}

/// What is wrong with the page that is open, at both widths and in both themes.
pub async fn faults(browser: &Chromium, name: &str) -> String {
    let mut faults = String::new();
    browser.load_axe().await;
    for width in WIDTHS {
        browser.resize(width).await;
        let overflow = browser.overflow().await;
        if overflow > 0 {
            writeln!(faults, "{name}, {width}: {overflow} pixels too wide").unwrap();
        }
        let mut violations = browser.violations().await;
        browser.prefer(Theme::Dark).await;
        violations.extend(browser.violations_of_colors().await);
        browser.prefer(Theme::Light).await;
        for violation in violations {
            writeln!(faults, "{name}, {width}: {violation:#}").unwrap();
        }
    }
    faults
}

/// Opens the closed panels of the page; whether there are any.
async fn open_panels(browser: &Chromium) -> bool {
    let open = "const closed = document.querySelectorAll('main details:not([open])');
                for (const panel of closed) panel.open = true;
                return closed.length";
    browser.script(open).await != 0
}

/// Every page of an account, then those that only a form leads to, then those of nobody.
#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_accessible() {
    let filled = Filled::open().await;
    let browser = Chromium::start(filled.url()).await;
    let mut all = String::new();
    browser.open("/login").await;
    all += &faults(&browser, "login").await;
    browser.sign_in_with("with space").await;
    all += &faults(&browser, "refused login").await;
    browser.sign_in().await;
    for (name, path) in pages(&filled) {
        browser.open(&path).await;
        screenshots::take(&browser, name).await;
        all += &faults(&browser, name).await;
        // Panels are pages of their own: they ask before something is spent or lost.
        if open_panels(&browser).await {
            all += &faults(&browser, &format!("{name} with open panels")).await;
        }
    }
    browser.open("/channels").await;
    browser.press("Make a topic for my phone").await;
    browser.wait_for_text("Install the app ntfy").await;
    all += &faults(&browser, "topic of a phone").await;
    browser.open("/monitors/new").await;
    browser.press("Show the cost of a month").await;
    browser.wait_for_text("Please correct").await;
    all += &faults(&browser, "wrong form of a monitor").await;
    browser.fill("Name", "London").await;
    browser.fill("From", "TLV").await;
    browser.fill("To", "LHR").await;
    browser.fill("First date", "+7d").await;
    browser.press("Show the cost of a month").await;
    browser.wait_for_text("Create this monitor?").await;
    all += &faults(&browser, "cost of a monitor").await;
    browser.press("Change it").await;
    for (label, text) in [
        ("First date", "+30d"),
        ("Last date", "+44d"),
        ("Price below", "9999"),
        ("Lowest of days", "30"),
        ("Runs without an answer", "3"),
    ] {
        browser.fill(label, text).await;
    }
    let choice = browser.field("Each run").await;
    choice.send_keys("watches the cheapest").await.unwrap();
    browser.fill("Most requests of a run", "5").await;
    all += &faults(&browser, "form of a watch").await;
    browser.press("What would this have reported?").await;
    browser.wait_for_text("Replay again").await;
    Chromium::assert_says(
        &browser.text().await,
        &[
            "Compared with",
            "Price below 9,999 USD",
            "No answers is not replayed:",
            "The watch searches fewer dates",
        ],
    );
    all += &faults(&browser, "backtest of a new monitor").await;
    assert!(all.is_empty(), "{all}");
    browser.end().await;
    filled.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_account_is_accessible() {
    let service = TestService::start().await;
    let browser = Chromium::start(service.url()).await;
    browser.sign_in().await;
    let mut all = String::new();
    for path in [
        "/overview",
        "/scans",
        "/prices",
        "/monitors",
        "/activity",
        "/alerts",
        "/deliveries",
        "/usage",
    ] {
        browser.open(path).await;
        all += &faults(&browser, path).await;
    }
    assert!(all.is_empty(), "{all}");
    browser.end().await;
}

/// Everything that the page keeps: its source as it is now, its address, what scripts can store.
const KEPT: &str = "
    return JSON.stringify([
        document.documentElement.outerHTML, location.href, document.cookie, document.referrer, document.title,
        Object.entries(localStorage), Object.entries(sessionStorage), window.name, history.state,
        [...document.querySelectorAll('input, textarea, select')].map((field) => field.value),
    ])";

const DATABASES: &str = "
    const done = arguments[0];
    Promise.all([indexedDB.databases(), caches.keys()]).then((all) => done(JSON.stringify(all.flat())));";

/// The log of this process.
#[derive(Clone, Default)]
struct ProcessLog(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for ProcessLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl ProcessLog {
    /// Logs everything from now on but what the driver of the browser says: it types the key.
    fn start() -> Self {
        let log = Self::default();
        let writer = log.clone();
        tracing_subscriber::fmt()
            .with_env_filter("trace,thirtyfour=off")
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .init();
        log
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_or_log_keeps_the_key() {
    let process_log = ProcessLog::start();
    let filled = Filled::open().await;
    let browser = Chromium::start(filled.url()).await;
    browser.sign_in().await;
    // Every page of the table, and every page that one of them leads to.
    let mut left: Vec<_> = pages(&filled).into_iter().map(|(_, path)| path).collect();
    let mut seen = BTreeSet::new();
    let depth = left.len();
    let mut visited = 0;
    while let Some(path) = left.pop() {
        if !seen.insert(shape(&path)) {
            continue;
        }
        browser.open(&path).await;
        let kept = browser.script(KEPT).await.to_string();
        assert!(!kept.contains(KEY), "{path} keeps the key: {kept}");
        let stored = browser.driver.execute_async(DATABASES, Vec::new()).await;
        assert_eq!(
            *stored.unwrap().json(),
            json!("[]"),
            "{path} stores something"
        );
        visited += 1;
        let links = "return [...document.querySelectorAll('main a[href^=\"/\"]:not([href*=export], [href*=files], [href$=answer], [href^=\"/docs\"], [href^=\"/openapi\"])')]
            .map((link) => link.getAttribute('href'))";
        let links = browser.script(links).await;
        let links = links.as_array().unwrap().iter();
        left.extend(links.map(|link| link.as_str().unwrap().to_owned()));
    }
    assert!(visited >= depth, "{visited} pages");
    let log = browser.log().await;
    let posted = log.text.matches(KEY).count();
    let logged_in = log.requests.iter().filter(|url| url.ends_with("/login"));
    assert!(logged_in.count() >= 1);
    assert_eq!(posted, 1, "the key is in the login form's request alone");
    for url in &log.requests {
        assert!(!url.contains(KEY), "{url}");
    }
    let text = process_log.text();
    assert!(
        text.contains("/overview"),
        "the service's requests are logged"
    );
    assert!(!text.contains(KEY), "the log has the key");
    browser.end().await;
    filled.close().await;
}

/// A path with its ids left out: one page of each kind is enough.
fn shape(path: &str) -> String {
    let mut parts: Vec<String> = path.split(['/', '?', '&']).map(str::to_owned).collect();
    for part in &mut parts {
        let value = part.split_once('=').map(|(name, _)| name.to_owned());
        if let Some(name) =
            value.filter(|name| !matches!(name.as_str(), "endpoint" | "group" | "status"))
        {
            *part = name;
        } else if part.len() > 30 && part.contains('_') {
            part.truncate(4);
        }
    }
    parts.join("/")
}
