//! What a browser did: its requests and the messages of its console.

use serde_json::Value;
use thirtyfour::BrowserLogEntry;

#[derive(Debug, Clone, Default)]
pub struct BrowserLog {
    /// The address of every request, also of refused ones.
    pub requests: Vec<String>,
    /// Messages of the console: of scripts, and of the browser about them.
    pub messages: Vec<String>,
    /// Files of pages that were not loaded, with the reason.
    failures: Vec<String>,
    /// Every event as text, to search it.
    pub text: String,
}

/// Chromium says this about every status from 400 on, also of a page that is meant to have it.
const STATUS_MESSAGE: &str = "Failed to load resource: the server responded with a status of";

impl BrowserLog {
    pub(super) fn add(&mut self, console: &[BrowserLogEntry], network: &[BrowserLogEntry]) {
        for entry in console {
            // The rest is advice to developers.
            let is_complaint = matches!(entry.level.as_str(), "SEVERE" | "WARNING");
            if is_complaint && !entry.message.contains(STATUS_MESSAGE) {
                self.messages
                    .push(format!("{} {}", entry.level, entry.message));
            }
        }
        for entry in network {
            self.text.push_str(&entry.message);
            let event: Value = serde_json::from_str(&entry.message).unwrap();
            let (method, about) = (&event["message"]["method"], &event["message"]["params"]);
            match method.as_str().unwrap_or_default() {
                "Network.requestWillBeSent" => self.request(&about["request"]["url"]),
                "Network.webSocketCreated" | "Network.webTransportCreated" => {
                    self.request(&about["url"]);
                }
                "Network.responseReceived" => self.response(about),
                _ => {}
            }
        }
    }

    fn request(&mut self, url: &Value) {
        self.requests.push(url.as_str().unwrap().to_owned());
    }

    fn response(&mut self, about: &Value) {
        let status = &about["response"]["status"];
        // A page may have any status; its style sheet, script and icon may not.
        if about["type"] != "Document" && status.as_u64() >= Some(400) {
            let url = &about["response"]["url"];
            self.failures.push(format!("{url}: {status}"));
        }
    }

    /// The requests to another host, or by another scheme.
    pub fn foreign_requests(&self, origin: &str) -> Vec<&String> {
        let own = |url: &&String| {
            url.starts_with(&format!("{origin}/")) || url.starts_with("data:image/")
        };
        self.requests.iter().filter(|url| !own(url)).collect()
    }

    /// # Panics
    /// If a page asked another host, a file is missing, or there is a message.
    #[track_caller]
    pub fn assert_is_clean(&self, origin: &str) {
        assert!(!self.requests.is_empty(), "nothing was recorded");
        assert_eq!(self.foreign_requests(origin), Vec::<&String>::new());
        assert_eq!(self.failures, Vec::<String>::new());
        assert_eq!(self.messages, Vec::<String>::new());
    }
}
