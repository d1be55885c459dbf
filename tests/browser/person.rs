//! What a person does with a page: opens it, reads it, fills in fields, presses buttons and keys.
//! Everything waits for its condition.

use serde_json::{Value, json};
use thirtyfour::error::{WebDriverErrorInner, WebDriverResult};
use thirtyfour::{By, Key, WebElement};

use super::chromium::Chromium;
use crate::support::app::KEY;
use crate::support::wait_until;

impl Chromium {
    pub async fn open(&self, path: &str) {
        let url = format!("{}{path}", self.origin);
        self.driver.goto(&url).await.unwrap();
    }

    /// Signs in at the login page, with the key of the tests.
    pub async fn sign_in(&self) {
        self.sign_in_with(KEY).await;
        self.wait_for_path("/overview").await;
    }

    pub async fn sign_in_with(&self, key: &str) {
        self.open("/login").await;
        self.fill("Marketplace key", key).await;
        self.press("Sign in").await;
    }

    /// The path and query of the page.
    pub async fn path(&self) -> String {
        let url = self.driver.current_url().await.unwrap();
        let text = url.as_str();
        text.strip_prefix(&self.origin).unwrap_or(text).to_owned()
    }

    pub async fn wait_for_path(&self, path: &str) {
        let what = format!("the page is {path}");
        wait_until(&what, async || self.path().await == path).await;
    }

    /// Waits for a page under `prefix`; returns the rest of its path.
    pub async fn wait_for_path_under(&self, prefix: &str) -> String {
        let what = format!("the page is under {prefix}");
        wait_until(&what, async || self.path().await.starts_with(prefix)).await;
        self.path().await[prefix.len()..].to_owned()
    }

    /// The visible text of the page.
    pub async fn text(&self) -> String {
        match self.driver.find(By::Tag("body")).await {
            Ok(body) => body.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    pub async fn wait_for_text(&self, text: &str) {
        let what = format!("the page says {text:?}");
        wait_until(&what, async || self.text().await.contains(text)).await;
    }

    #[track_caller]
    pub fn assert_says(page: &str, texts: &[&str]) {
        for text in texts {
            assert!(page.contains(text), "{text:?} is not in\n{page}");
        }
    }

    /// The visible text of the first element of a CSS selector. One that is being replaced is looked
    /// for again.
    pub async fn text_of(&self, selector: &str) -> String {
        loop {
            let found = self.driver.find(By::Css(selector)).await;
            let found = found.unwrap_or_else(|error| panic!("{selector}: {error}"));
            match found.text().await {
                Ok(text) => return text,
                Err(error) if matches!(*error, WebDriverErrorInner::StaleElementReference(_)) => {}
                Err(error) => panic!("{selector}: {error}"),
            }
        }
    }

    /// How many elements match a CSS selector.
    pub async fn count(&self, selector: &str) -> usize {
        let found = self.driver.find_all(By::Css(selector)).await;
        found.unwrap().len()
    }

    pub async fn wait_for_count(&self, selector: &str, count: usize) {
        let what = format!("there are {count} of {selector}");
        wait_until(&what, async || self.count(selector).await == count).await;
    }

    /// Presses the link, button or panel whose text begins so.
    pub async fn press(&self, text: &str) {
        let path = format!(
            "//*[self::a or self::button or self::summary][starts-with(normalize-space(), {})]",
            quoted(text)
        );
        self.click_first(&path).await;
    }

    /// Clicks the first visible element of an XPath. One that is being replaced is looked for again:
    /// nothing was clicked then.
    pub async fn click_first(&self, path: &str) {
        let clicked = async || {
            for element in self.driver.find_all(By::XPath(path)).await.unwrap() {
                if element.is_displayed().await.unwrap_or(false) {
                    return is_done(element.click().await);
                }
            }
            false
        };
        wait_until(&format!("{path} is clicked"), clicked).await;
    }

    /// The field with this label, once the page has it.
    pub async fn field(&self, label: &str) -> WebElement {
        let path = format!("//label[normalize-space()={}]", quoted(label));
        let find = async || {
            let label = self.driver.find(By::XPath(&path)).await?;
            let id = label.attr("for").await?.unwrap_or_default();
            self.driver.find(By::Id(&id)).await
        };
        let is_there = async || find().await.is_ok();
        wait_until(&format!("the field {label} is there"), is_there).await;
        find()
            .await
            .unwrap_or_else(|error| panic!("the field {label}: {error}"))
    }

    /// Replaces what is in a field.
    pub async fn fill(&self, label: &str, text: &str) {
        let field = self.field(label).await;
        if field.attr("type").await.unwrap().as_deref() == Some("date") {
            field.send_keys(date_keys(text)).await.unwrap();
        } else {
            field.clear().await.unwrap();
            field.send_keys(text).await.unwrap();
        }
    }

    /// Presses a key where the focus is.
    pub async fn key(&self, key: Key) {
        let keys = self.driver.action_chain().send_keys(key);
        keys.perform().await.unwrap();
    }

    /// Types text where the focus is.
    pub async fn type_text(&self, text: &str) {
        let keys = self.driver.action_chain().send_keys(text);
        keys.perform().await.unwrap();
    }

    /// The value of a script's `return`.
    pub async fn script(&self, script: &str) -> Value {
        let done = self.driver.execute(script, Vec::new()).await;
        let done = done.unwrap_or_else(|error| panic!("{script}: {error}"));
        done.json().clone()
    }

    /// What a script hands to its last argument.
    pub async fn script_async(&self, script: &str) -> Value {
        let done = self.driver.execute_async(script, Vec::new()).await;
        let done = done.unwrap_or_else(|error| panic!("{script}: {error}"));
        done.json().clone()
    }

    /// Sets the session's cookie to another value.
    pub async fn set_cookie(&self, value: &str) {
        let cookie = json!({"name": "farescan_session", "value": value, "url": self.origin,
            "httpOnly": true, "sameSite": "Lax"});
        self.devtools("Network.setCookie", cookie).await;
    }

    /// The session's cookie.
    pub async fn cookie(&self) -> String {
        let cookie = self.driver.get_named_cookie("farescan_session").await;
        cookie.unwrap().value
    }
}

/// Whether a click was made; one that cannot be made yet is tried again.
fn is_done(clicked: WebDriverResult<()>) -> bool {
    match clicked {
        Ok(()) => true,
        Err(error) => match &*error {
            WebDriverErrorInner::StaleElementReference(_)
            | WebDriverErrorInner::ElementClickIntercepted(_)
            | WebDriverErrorInner::ElementNotInteractable(_) => false,
            _ => panic!("{error}"),
        },
    }
}

/// The keys for a date of a date field in US English, the language of a browser without settings.
pub fn date_keys(date: &str) -> String {
    let parts: Vec<_> = date.split('-').collect();
    format!("{}{}{}", parts[1], parts[2], parts[0])
}

/// A text of XPath.
fn quoted(text: &str) -> String {
    assert!(!text.contains('"'), "{text}");
    format!("\"{text}\"")
}
