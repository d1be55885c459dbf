//! A notice for an incoming webhook of Slack, and of those who take the same form: `text` for all,
//! `blocks` for those that know them.

use serde_json::json;

use super::{RenderedMessage, plain, text_of};
use crate::contract::channels::{ChannelNotice, NoticeLink};

/// The longest title, in characters.
const MAX_TITLE: usize = 200;
/// The longest text, in bytes: escaped it is at most five times as long, but the common case stays
/// below the 3,000 characters of a block.
const MAX_TEXT: usize = 2_200;
/// The most characters of a block's text.
const MAX_BLOCK: usize = 3_000;

pub(super) fn render(url: &str, notice: &ChannelNotice) -> RenderedMessage {
    let title = escape(&plain(&notice.title, MAX_TITLE));
    let lines = escape(&text_of(notice, MAX_TEXT));
    let links = links(&notice.links);
    let parts = [format!("*{title}*"), lines, links];
    let parts = parts.iter().filter(|part| !part.is_empty());
    let text = parts.map(String::as_str).collect::<Vec<_>>().join("\n");
    let blocks: Vec<_> = chunks(&text)
        .map(|chunk| json!({"type": "section", "text": {"type": "mrkdwn", "text": chunk, "verbatim": true}}))
        .collect();
    RenderedMessage {
        url: url.to_owned(),
        body: json!({"text": text, "blocks": blocks}).to_string(),
        authorization: None,
    }
}

/// The characters by which a text could name a channel, a person or a link; a full-width at sign names
/// nobody in servers that take this form.
fn escape(text: &str) -> String {
    text.replace('@', "\u{ff20}")
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Each link by its text. What would end the address is percent-encoded.
fn links(links: &[NoticeLink]) -> String {
    let link = |link: &NoticeLink| {
        let url = link.url.replace('|', "%7C").replace('<', "%3C");
        let url = url.replace('>', "%3E");
        let text = plain(&link.text, 40).replace('|', "/");
        format!("<{}|{}>", url.replace('&', "&amp;"), escape(&text))
    };
    links.iter().map(link).collect::<Vec<_>>().join("  ·  ")
}

/// The text in blocks of whole lines. A line over the limit is left out, and stays in `text`.
fn chunks(text: &str) -> impl Iterator<Item = String> {
    let mut chunks: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| line.len() <= MAX_BLOCK) {
        match chunks.last_mut() {
            Some(last) if last.len() + line.len() < MAX_BLOCK => {
                last.push('\n');
                last.push_str(line);
            }
            _ => chunks.push(line.to_owned()),
        }
    }
    chunks.into_iter()
}
