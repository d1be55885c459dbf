//! Pictures of pages for the documents: `FARESCAN_SCREENSHOTS=1` writes `docs/images/*.png`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use super::chromium::{Chromium, Theme, WIDTHS};

/// The pages with a picture: their name in `every_page::pages`, their file, and whether there is one
/// at the width of a phone.
const PICTURES: [(&str, &str, bool); 6] = [
    ("overview", "overview", true),
    ("fares", "scan", true),
    ("markets", "markets", false),
    ("prices of a route", "prices", false),
    ("monitor", "monitor", true),
    ("usage", "usage", false),
];

/// The most pixels of a picture's height.
const HEIGHT: [u64; 2] = [1400, 1000];

/// Whether pictures are wanted.
pub fn are_wanted() -> bool {
    std::env::var_os("FARESCAN_SCREENSHOTS").is_some()
}

/// Writes the pictures of the page that is open, if it has any and they are wanted.
pub async fn take(browser: &Chromium, page: &str) {
    let pictured = PICTURES.iter().find(|(name, ..)| *name == page);
    let Some((_, file, on_phone)) = pictured else {
        return;
    };
    if !are_wanted() {
        return;
    }
    let folder = folder();
    for theme in Theme::ALL {
        browser.prefer(theme).await;
        for (width, most) in WIDTHS.into_iter().zip(HEIGHT.into_iter().rev()) {
            let is_phone = width == WIDTHS[0];
            if is_phone && !on_phone {
                continue;
            }
            let suffix = if is_phone { "-phone" } else { "" };
            let target = folder.join(format!("{file}{suffix}-{}.png", theme.name()));
            browser.resize(width).await;
            write(browser, &target, width, most).await;
        }
    }
    browser.prefer(Theme::Light).await;
}

/// A picture of the page that is open, for a document about several pages, if pictures are wanted.
pub async fn take_one(browser: &Chromium, file: &str) {
    if are_wanted() {
        let target = folder().join(format!("{file}.png"));
        write(browser, &target, WIDTHS[1], HEIGHT[1]).await;
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images")
}

/// Writes a picture of the page, at most so high.
async fn write(browser: &Chromium, target: &Path, width: u32, most: u64) {
    let height = browser
        .script("return document.documentElement.scrollHeight")
        .await;
    let height = height.as_u64().unwrap().min(most);
    let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
    let shot = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
    let shot = browser.devtools("Page.captureScreenshot", shot).await;
    let png = BASE64_STANDARD
        .decode(shot["data"].as_str().unwrap())
        .unwrap();
    std::fs::write(target, png).unwrap();
    reduce(target);
}

/// Reduces a picture to a palette with `pngquant`, where it is installed.
pub fn reduce(file: &Path) {
    let reduced = Command::new("pngquant")
        .args([
            "--force",
            "--skip-if-larger",
            "--strip",
            "--quality=80-100",
            "--ext=.png",
        ])
        .arg(file)
        .stderr(Stdio::null())
        .status();
    drop(reduced);
}
