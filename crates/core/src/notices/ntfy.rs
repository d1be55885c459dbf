//! A notice for ntfy: JSON, posted to the root of the server that has the topic.

use reqwest::Url;
use serde_json::{Map, Value, json};

use super::{RenderedMessage, plain, text_of};
use crate::contract::channels::{ChannelNotice, NoticePriority};

/// The longest title, in characters.
const MAX_TITLE: usize = 200;
/// The longest message, in bytes: a server makes a file of one over 4,096.
const MAX_MESSAGE: usize = 3_900;
/// The most buttons below a message.
const MAX_ACTIONS: usize = 3;

/// The topic of its URL and the root of its server; `None` if the URL names no topic.
pub(super) fn topic_of(url: &str) -> Option<(Url, String)> {
    let mut root = Url::parse(url).ok()?;
    let topic = root.path().strip_prefix('/')?.to_owned();
    let is_name = (1..=64).contains(&topic.len())
        && topic
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !is_name || root.query().is_some() {
        return None;
    }
    root.set_path("/");
    Some((root, topic))
}

pub(super) fn render(
    url: &str,
    token: Option<&str>,
    notice: &ChannelNotice,
) -> Option<RenderedMessage> {
    let (root, topic) = topic_of(url)?;
    let mut message = Map::new();
    message.insert("topic".to_owned(), topic.into());
    message.insert("title".to_owned(), plain(&notice.title, MAX_TITLE).into());
    message.insert("message".to_owned(), text_of(notice, MAX_MESSAGE).into());
    message.insert("priority".to_owned(), priority(notice.priority).into());
    message.insert("tags".to_owned(), json!([tag(notice.priority)]));
    if let Some(link) = notice.links.first() {
        message.insert("click".to_owned(), link.url.as_str().into());
        let buttons = notice.links.iter().take(MAX_ACTIONS);
        let buttons: Vec<Value> = buttons
            .map(|link| json!({"action": "view", "label": plain(&link.text, 40), "url": link.url}))
            .collect();
        message.insert("actions".to_owned(), buttons.into());
    }
    Some(RenderedMessage {
        url: root.into(),
        body: Value::Object(message).to_string(),
        authorization: token.map(|token| format!("Bearer {token}")),
    })
}

/// From 1 to 5; 3 is the default.
fn priority(priority: NoticePriority) -> u8 {
    match priority {
        NoticePriority::Low => 2,
        NoticePriority::Normal => 3,
        NoticePriority::High => 4,
    }
}

/// The short name of the symbol before the title.
fn tag(priority: NoticePriority) -> &'static str {
    match priority {
        NoticePriority::Low => "information_source",
        NoticePriority::Normal => "chart_with_downwards_trend",
        NoticePriority::High => "bell",
    }
}
