//! Names as long as they may be, from right to left, and hostile ones: no page becomes wider than its window, no
//! table loses a column, nothing stands outside of its card, and no name becomes markup.

use std::fmt::Write as _;

use farescan::visible_text::VisibleText;
use serde_json::json;

use super::chromium::{Chromium, WIDTHS};
use super::every_page::pages;
use super::filled::{Filled, Names};

/// Elements with a name in which something stands out, neither cut nor scrolled; cells that are wider than the window
/// of their table; on a wide screen tables with names that need more than their window.
const FAULTS: &str = "
    const has = (node) => node.textContent.includes(NAME);
    const shown = [...document.querySelectorAll('main *')].filter((node) => has(node) && node.checkVisibility()
        && !node.closest('svg, .visually-hidden'));
    const missing = (node) => node.scrollWidth - node.clientWidth;
    const out = shown.filter((node) => getComputedStyle(node).overflowX === 'visible'
        && getComputedStyle(node).display !== 'inline' && missing(node) > 1);
    const cells = shown.filter((node) => node.matches('.scroll :is(td, th)')
        && node.offsetWidth > node.closest('.scroll').clientWidth);
    const cut = shown.filter((node) => innerWidth > 1000 && node.matches('.scroll') && missing(node) > 1);
    return [...out, ...cells, ...cut].slice(0, 5)
        .map((node) => `${node.tagName} ${node.className} ${node.ariaLabel ?? node.textContent.trim().slice(0, 30)} by ${missing(node)}`)";

/// What is wrong with the page that is open.
async fn faults(browser: &Chromium, page: &str, name: &str) -> String {
    let mut faults = String::new();
    let script = format!("const NAME = {};{FAULTS}", json!(name));
    for width in WIDTHS {
        browser.resize(width).await;
        let overflow = browser.overflow().await;
        if overflow > 0 {
            writeln!(faults, "{page}, {width}: {overflow} pixels too wide").unwrap();
        }
        let found = browser.script(&script).await;
        if found != json!([]) {
            writeln!(faults, "{page}, {width}: {found}").unwrap();
        }
    }
    faults
}

/// What is wrong with every page of an account with these names.
async fn all_faults(name: &str) -> String {
    let names = Names::of(name);
    // As pages show it.
    let part: String = VisibleText::one_line(names.tag.as_str())
        .chars()
        .take(12)
        .collect();
    let filled = Filled::named(names).await;
    let browser = Chromium::start(filled.url()).await;
    browser.sign_in().await;
    let mut all = String::new();
    let mut paths = pages(&filled);
    let asked: String = form_urlencoded::byte_serialize(filled.names.label.as_bytes()).collect();
    paths.push(("a question of this name", format!("/ask?q={asked}")));
    paths.push(("found by the whole name", format!("/find?q={asked}")));
    for (page, path) in paths {
        browser.open(&path).await;
        all += &faults(&browser, page, &part).await;
        let open =
            "for (const panel of document.querySelectorAll('main details')) panel.open = true";
        browser.script(open).await;
        all += &faults(&browser, &format!("{page} with open panels"), &part).await;
    }
    browser.end().await;
    filled.close().await;
    all
}

async fn nothing_breaks(name: &str) {
    let found = all_faults(name).await;
    assert!(found.is_empty(), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_one_long_word_break_no_page() {
    nothing_breaks("n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_many_words_break_no_page() {
    nothing_breaks("Lisbon in June ").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_from_right_to_left_break_no_page() {
    nothing_breaks("שלום\u{202e}عالم").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_markup_break_no_page() {
    nothing_breaks(
        "\"'><script>alert(1)</script><img/src=x/onerror=alert(2)></td></table>&#60;{{7*7}}",
    )
    .await;
}
