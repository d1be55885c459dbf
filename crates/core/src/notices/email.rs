//! A notice as a mail: a subject, plain text, and the same as HTML with all text escaped.

use std::fmt::Write as _;

use super::{plain, text_of};
use crate::contract::channels::ChannelNotice;

/// The longest subject, in characters.
const MAX_SUBJECT: usize = 150;
/// The longest text, in bytes.
const MAX_TEXT: usize = 20_000;

/// What a mail says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedMail {
    /// One line without control characters.
    pub subject: String,
    /// The plain part.
    pub text: String,
    /// The same as HTML.
    pub html: String,
}

/// The page by which a reader stops mails (channels.md, rules 21 and 23): a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailLink {
    /// Those of a channel.
    Unsubscribe(String),
    /// Those with codes.
    NoCodes(String),
}

impl MailLink {
    /// The URL that a mail program may post to by itself (RFC 8058).
    pub fn one_click(self) -> Option<String> {
        match self {
            Self::Unsubscribe(url) => Some(url),
            Self::NoCodes(_) => None,
        }
    }

    fn shown(&self) -> (&str, &str) {
        match self {
            Self::Unsubscribe(url) => ("Stop these mails", url),
            Self::NoCodes(url) => ("No more codes to this address", url),
        }
    }
}

/// The mail of a notice. It ends with the link, if there is one.
pub(super) fn render(notice: &ChannelNotice, link: Option<&MailLink>) -> RenderedMail {
    let subject = plain(&notice.title, MAX_SUBJECT);
    let lines = text_of(notice, MAX_TEXT);
    let stop = link.map(MailLink::shown);
    let links = notice.links.iter();
    let links = links.map(|link| (link.text.as_str(), link.url.as_str()));
    let links: Vec<_> = links.chain(stop).collect();

    let mut text = format!("{subject}\n\n{lines}\n");
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{0}</title></head>\n<body>\n<h1>{0}</h1>\n",
        escape(&subject)
    );
    for line in lines.lines() {
        let _ = writeln!(html, "<p>{}</p>", escape(line));
    }
    for (name, url) in links {
        let name = plain(name, 40);
        let _ = writeln!(text, "\n{name}: {url}");
        let (name, url) = (escape(&name), escape(url));
        let _ = writeln!(html, "<p><a href=\"{url}\">{name}</a></p>");
    }
    html.push_str("</body>\n</html>\n");
    RenderedMail {
        subject,
        text,
        html,
    }
}

/// Text for an element or an attribute in double quotes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
