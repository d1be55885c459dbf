//! What a message says of alerts, and how it is written for each kind of channel. Pure.
//!
//! A [`ChannelNotice`] is built once, from the alerts of a run (`of_alerts`), and stored in a delivery.
//! Each try renders it anew for its kind: a renderer is one small file. Not here: when a message is
//! sent (`channels`), its sending (`webhooks`).

mod apprise;
mod email;
mod ntfy;
mod of_alerts;
mod slack;
mod summary;

#[cfg(test)]
mod tests;

pub use email::{MailLink, RenderedMail};
pub use of_alerts::{ChannelView, MonitorView, fare_of, most_urgent_first, of_alerts};
pub use summary::{MAX_NOTICES, confirmation, joined, single, test_message, with_code};

use crate::contract::FieldValue as _;
use crate::contract::channels::{ChannelAlerts, ChannelKind, ChannelNotice, ChannelUrl};
use crate::visible_text::VisibleText;

/// A message for the receiver of a channel: one HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedMessage {
    /// Where it is posted.
    pub url: String,
    /// JSON.
    pub body: String,
    /// The value of the header `Authorization`.
    pub authorization: Option<String>,
}

/// A message for a receiver of this kind; `None` if the target is none of this kind, or is reached through
/// the operator's servers alone.
pub fn render(
    kind: ChannelKind,
    url: &str,
    token: Option<&str>,
    alerts: &ChannelAlerts,
) -> Option<RenderedMessage> {
    let notice = summary::of_message(alerts);
    match kind {
        ChannelKind::Ntfy => ntfy::render(url, token, &notice),
        ChannelKind::Slack => Some(slack::render(url, &notice)),
        ChannelKind::Email | ChannelKind::Apprise => None,
    }
}

/// The mail of a message. It ends with the link, if there is one.
pub fn render_mail(alerts: &ChannelAlerts, link: Option<&MailLink>) -> RenderedMail {
    email::render(&summary::of_message(alerts), link)
}

/// The request of a message for the operator's relay: JSON. `None` if the target is none of it.
pub fn render_relayed(target: &str, alerts: &ChannelAlerts) -> Option<String> {
    apprise::is_target(target).then(|| apprise::render(target, &summary::of_message(alerts)))
}

/// Whether a text is a target of this kind, beyond what the guard of addresses checks. The error says
/// what is expected.
pub fn check_target(kind: ChannelKind, target: &str) -> Result<(), &'static str> {
    let (fits, expected) = match kind {
        ChannelKind::Ntfy => (
            ntfy::topic_of(target).is_some(),
            "the URL of an ntfy topic, such as https://ntfy.sh/my-topic: one part of 1 to 64 letters, digits, _ and -, and no query",
        ),
        ChannelKind::Slack => (true, ""),
        ChannelKind::Email => (
            ChannelUrl::read(&target.into()).is_ok_and(|target| target.is_mail_address()),
            "one mail address, such as me@example.com",
        ),
        ChannelKind::Apprise => (
            apprise::is_target(target),
            "one URL of Apprise without options, such as tgram://123456:AAF/987654: its scheme is tgram, discord, pover, gchat or prowl",
        ),
    };
    fits.then_some(()).ok_or(expected)
}

/// A text for a title or a line: one line, no hidden character, at most so many characters.
fn plain(text: &str, most: usize) -> String {
    let text = VisibleText::one_line(text).into_string();
    let text = text.trim();
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Title and lines as one text, with as many whole lines as fit into `most` bytes.
fn text_of(notice: &ChannelNotice, most: usize) -> String {
    let mut text = String::new();
    for line in &notice.lines {
        let line = plain(line, most);
        if text.len() + line.len() + 1 > most {
            break;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line);
    }
    text
}
