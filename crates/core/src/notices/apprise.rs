//! A notice for the operator's relay, a server of the Apprise API: JSON for its `POST /notify`, with one
//! target of the caller.
//!
//! A target may only be of a service whose host is fixed: any other scheme of Apprise makes the relay call
//! a host that the caller names, inside the operator's network too (decision 60).

use serde_json::json;

use super::{plain, text_of};
use crate::contract::channels::{ChannelNotice, NoticePriority};

/// The schemes, each of a service whose host the library fixes.
pub(super) const SCHEMES: [&str; 5] = ["tgram", "discord", "pover", "gchat", "prowl"];
/// The longest target, in characters.
const MAX_TARGET: usize = 300;
/// The most parts of a target: a chat has at most three. More are more receivers.
const MAX_PARTS: usize = 3;
/// The longest title, in characters.
const MAX_TITLE: usize = 150;
/// The longest body, in bytes: the shortest limit of these services is 1,024 characters.
const MAX_BODY: usize = 1_000;

/// Whether a text is one target of a service in the list, without options: those could name a file, an
/// address or other receivers.
pub(super) fn is_target(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b":@/_=-".contains(&byte);
    SCHEMES.contains(&scheme)
        && text.len() <= MAX_TARGET
        && rest.bytes().all(is_allowed)
        && rest.split('/').count() <= MAX_PARTS
        && rest.split('/').all(|part| !part.is_empty())
}

/// The body of the request.
pub(super) fn render(target: &str, notice: &ChannelNotice) -> String {
    let mut body = text_of(notice, MAX_BODY);
    for link in &notice.links {
        let line = format!("\n{}: {}", plain(&link.text, 40), link.url);
        if body.len() + line.len() <= MAX_BODY {
            body.push_str(&line);
        }
    }
    let kind = match notice.priority {
        NoticePriority::Low | NoticePriority::Normal => "info",
        NoticePriority::High => "success",
    };
    json!({
        "urls": target, "title": harmless(&plain(&notice.title, MAX_TITLE)), "body": harmless(&body), "type": kind, "format": "text"
    })
    .to_string()
}

/// Without the characters by which a chat names a person, all of them, or a link.
fn harmless(text: &str) -> String {
    text.replace('@', "\u{ff20}").replace('<', "\u{ff1c}")
}
