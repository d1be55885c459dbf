//! A headless Chromium of a test's own, driven over WebDriver, and everything that it did: each
//! request, each message of its console.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::{Capabilities, WebDriver};

use super::log::BrowserLog;

/// Chromium's own services are off, and no name but this machine's can be resolved: what the pages
/// do is all that it does.
const ARGUMENTS: [&str; 15] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-sync",
    "--disable-extensions",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-breakpad",
    "--no-first-run",
    "--no-default-browser-check",
    "--lang=en-US",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

/// The scheme that the person prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
}

impl Theme {
    pub const ALL: [Self; 2] = [Self::Light, Self::Dark];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// The widths that every page is made for, in CSS pixels: a phone's and a desktop's.
pub const WIDTHS: [u32; 2] = [390, 1280];

/// A running Chromium with one window. Its processes end with it.
pub struct Chromium {
    pub driver: WebDriver,
    /// `http://127.0.0.1:port` of the service.
    pub origin: String,
    log: Mutex<BrowserLog>,
    _processes: Processes,
    _profile: TempDir,
}

/// chromedriver and the browser that it started. Both are in the process group of the test, which
/// nextest ends as a whole.
struct Processes {
    chromedriver: Child,
    browser: Option<Pid>,
}

impl Drop for Processes {
    fn drop(&mut self) {
        if let Some(browser) = self.browser {
            // It has ended already, unless the test failed.
            let _ = rustix::process::kill_process(browser, Signal::KILL);
        }
        drop(self.chromedriver.kill());
        drop(self.chromedriver.wait());
    }
}

impl Chromium {
    /// For the pages of this service.
    pub async fn start(origin: &str) -> Self {
        Self::start_with(origin, true).await
    }

    /// With JavaScript switched off in its settings.
    pub async fn without_javascript(origin: &str) -> Self {
        Self::start_with(origin, false).await
    }

    async fn start_with(origin: &str, javascript: bool) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let (chromedriver, port) = start_chromedriver(&profile);
        let mut processes = Processes {
            chromedriver,
            browser: None,
        };
        let driver = WebDriver::builder(
            format!("http://127.0.0.1:{port}"),
            capabilities(&profile, javascript),
        )
        .request_timeout(Duration::from_secs(240))
        .connect()
        .await
        .unwrap_or_else(|error| panic!("Chromium did not start: {error}"));
        let pid = driver.capabilities().get("goog:processID").cloned();
        let pid = pid.and_then(|pid| i32::try_from(pid.as_i64()?).ok());
        processes.browser = pid.and_then(Pid::from_raw);
        let chromium = Self {
            driver,
            origin: origin.to_owned(),
            log: Mutex::default(),
            _processes: processes,
            _profile: profile,
        };
        chromium.resize(WIDTHS[1]).await;
        // What Chromium's own first page did is no matter of the tests.
        chromium.driver.goto("about:blank").await.unwrap();
        chromium.driver.get_log("performance").await.unwrap();
        chromium
    }

    /// Sends a command of the DevTools protocol.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let sent = self.driver.cdp().send_raw(command, parameters).await;
        sent.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Sets the width of the viewport.
    pub async fn resize(&self, width: u32) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", size)
            .await;
    }

    pub async fn prefer(&self, theme: Theme) {
        let feature = json!([{"name": "prefers-color-scheme", "value": theme.name()}]);
        self.devtools("Emulation.setEmulatedMedia", json!({"features": feature}))
            .await;
    }

    /// Everything that the browser did so far.
    pub async fn log(&self) -> BrowserLog {
        let console = self.driver.get_log("browser").await.unwrap();
        let network = self.driver.get_log("performance").await.unwrap();
        let mut log = self.log.lock().unwrap();
        log.add(&console, &network);
        log.clone()
    }

    /// Ends the browser, after a look at what it did: it asked no other host, every file that a page
    /// loads is there, and nothing complained, neither a script nor the content security policy.
    pub async fn end(self) {
        let log = self.log().await;
        log.assert_is_clean(&self.origin);
        self.driver.quit().await.unwrap();
    }
}

fn program(setting: &str, names: &[&str]) -> String {
    std::env::var(setting).unwrap_or_else(|_| {
        let path = std::env::var("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path)
            .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
            .find(|file| file.is_file());
        let found = found.unwrap_or_else(|| {
            panic!(
                "{} is not installed: `script/setup browser` does, or set {setting}",
                names[0]
            )
        });
        found.to_string_lossy().into_owned()
    })
}

/// Starts chromedriver at a port of its own choice. On a loaded machine it has ended before it listened, once in
/// hundreds of starts and without a known reason. So it is started again, and what it wrote is shown if it never listens.
fn start_chromedriver(home: &TempDir) -> (Child, u16) {
    let mut output = Vec::new();
    for _ in 0..5 {
        match try_start_chromedriver(home) {
            Ok(started) => return started,
            Err(lines) => output.extend(lines),
        }
    }
    panic!("chromedriver did not start: {output:#?}")
}

/// `Err`: what it wrote before it ended. All its files are in `home`.
fn try_start_chromedriver(home: &TempDir) -> Result<(Child, u16), Vec<String>> {
    let mut chromedriver = Command::new(program("FARESCAN_CHROMEDRIVER", &["chromedriver"]))
        .args(["--port=0", "--log-level=SEVERE"])
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .env("TZ", "UTC")
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(chromedriver.stdout.take().unwrap());
    let mut lines = output.lines().map_while(Result::ok);
    let mut written = Vec::new();
    for line in lines.by_ref() {
        if let Some((_, port)) = line.split_once("started successfully on port ") {
            let port = port.trim_end_matches('.').parse().unwrap();
            // It writes nothing more, but must never wait for a reader.
            std::thread::spawn(move || lines.for_each(drop));
            return Ok((chromedriver, port));
        }
        written.push(line);
    }
    written.push(chromedriver.wait().unwrap().to_string());
    Err(written)
}

fn capabilities(profile: &TempDir, javascript: bool) -> Capabilities {
    let mut arguments: Vec<String> = ARGUMENTS.map(str::to_owned).to_vec();
    let folder = profile.path().join("profile");
    arguments.push(format!("--user-data-dir={}", folder.display()));
    let mut options = json!({
        "binary": program("FARESCAN_CHROMIUM", &["chromium", "chromium-browser", "google-chrome"]),
        "args": arguments,
        "prefs": {"credentials_enable_service": false},
        "perfLoggingPrefs": {"enableNetwork": true, "enablePage": false},
    });
    if !javascript {
        options["prefs"]["profile.managed_default_content_settings.javascript"] = json!(2);
    }
    let mut capabilities = Capabilities::new();
    let mut set = |name: &str, value: Value| capabilities.set(name, value).unwrap();
    set("browserName", json!("chrome"));
    set("goog:chromeOptions", options);
    let levels = json!({"browser": "ALL", "performance": "ALL"});
    set("goog:loggingPrefs", levels);
    capabilities
}
