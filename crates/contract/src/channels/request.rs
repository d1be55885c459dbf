//! Requests that create and change a channel.

use super::notice::NoticePriority;
use super::resource::{ChannelKind, ChannelStatus};
use crate::monitors::NotifySettings;
use crate::primitives::{
    Cursor, MAX_URL_CHARS, PageLimit, TimeZoneName, is_mail_address, is_name, is_receiver,
    text_type,
};
use crate::query_string::query_string;
use crate::request_body::request_body;

request_body! {
    /// Body of `POST /v1/channels`: where a person hears of alerts.
    pub struct ChannelRequest for "channels" {
        required {
            /// Its name.
            name: ChannelName;
            /// What receives the messages. It cannot be changed.
            kind: ChannelKind;
            /// The target. `ntfy`: the URL of the topic, `https://ntfy.sh/my-topic`. `slack`: the URL
            /// of an incoming webhook. `email`: one address, `me@example.com`. `apprise`: one URL of
            /// Apprise without options, `tgram://123456:AAF/987654`; its scheme is `tgram`, `discord`,
            /// `pover`, `gchat` or `prowl`. It is stored sealed and shown masked.
            url: ChannelUrl;
        }
        optional {
            /// `ntfy`: the access token of a protected topic. It is stored sealed and never shown.
            token: ChannelToken;
            /// Alerts of a lower priority are not sent to this channel.
            least_priority: NoticePriority = NoticePriority::Low => least_priority_or_default;
            /// Hours in which nothing is sent, and the time of a daily message. What it holds of all
            /// monitors becomes one message.
            notify: NotifySettings;
            /// The IANA time zone of `notify` and of the times in messages.
            timezone: TimeZoneName = TimeZoneName::utc() => timezone_or_default;
        }
        example { "name": "my phone", "kind": "ntfy", "url": "https://ntfy.sh/fares-3f9a2c71d0" }
    }
}

request_body! {
    /// Body of `PATCH /v1/channels/{id}`. An absent field stays unchanged. `null` removes `token` and
    /// `notify`; for the others it is the same as absent. A new `url` makes the channel active, unless
    /// `status` says otherwise; an address has to be confirmed first.
    pub struct ChannelPatch for "channels" {
        required {}
        optional {
            /// Its name.
            name: ChannelName;
            /// The target.
            url: ChannelUrl;
            /// `ntfy`: the access token of a protected topic.
            token: ChannelToken;
            /// Alerts of a lower priority are not sent to this channel.
            least_priority: NoticePriority;
            /// Hours in which nothing is sent, and the time of a daily message.
            notify: NotifySettings;
            /// The IANA time zone of `notify` and of the times in messages.
            timezone: TimeZoneName;
            /// `paused`: messages are stored as failed and not sent, until it is `active`.
            status: ChannelStatus;
        }
        example { "least_priority": "high", "timezone": "Europe/London" }
    }
}

request_body! {
    /// The query of `GET /v1/channels`.
    pub struct ChannelsQuery for "the query of channels" {
        required {}
        optional {
            /// Only channels in this status.
            status: ChannelStatus;
            /// The maximum channels of a page.
            limit: PageLimit = PageLimit::FIFTY => limit_or_default;
            /// Where the page begins: the `next_cursor` of the previous page.
            cursor: Cursor;
        }
        example { "status": "active" }
    }
}
query_string!(ChannelsQuery);

/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 100;
/// The longest access token, in characters.
const MAX_TOKEN_CHARS: usize = 500;

text_type! {
    /// The name of a channel.
    pub struct ChannelName {
        expected: "text of 1 to 100 characters without control characters, not spaces alone",
        accepts: |text| is_name(text, MAX_NAME_CHARS),
        normalize: str::to_owned,
        examples: ["my phone"],
        schema: { min_length: 1, max_length: MAX_NAME_CHARS, pattern: r"^(?=.*\S)[^\u0000-\u001F\u007F-\u009F]*$" },
    }
}

text_type! {
    /// The target of a channel. Only its format is checked here; `webhooks::Guard` checks scheme and
    /// address of a URL (security.md, rule 25).
    pub struct ChannelUrl {
        expected: "an https URL of at most 2000 characters, without a user name, a password or a fragment; of kind `email` an address, such as me@example.com; of kind `apprise` a URL of Apprise, such as tgram://123456:AAF/987654",
        accepts: |text| is_receiver(text) || is_mail_address(text) || is_relayed(text),
        normalize: str::to_owned,
        examples: ["https://ntfy.sh/fares-3f9a2c71d0", "me@example.com"],
        schema: { min_length: 5, max_length: MAX_URL_CHARS, pattern: r"^([a-z]+://|[^@/\s]+@[^@/\s]+$)" },
    }
}

impl ChannelUrl {
    /// Whether it is a mail address.
    pub fn is_mail_address(&self) -> bool {
        is_mail_address(self.as_str())
    }
}

request_body! {
    /// Body of `POST /v1/channels/{id}/confirm`: the code that was mailed to the address of a channel.
    /// Without it another code is mailed, and the earlier one ends.
    pub struct ChannelConfirmation for "a confirmation" {
        required {}
        optional {
            /// The code of the newest mail.
            code: ConfirmationCode;
        }
        example { "code": "K7QX-2MPT" }
    }
}

/// Whether a text has the form of a URL of Apprise: another scheme than a web page's, and visible ASCII.
/// `notices` knows which ones the relay gets.
fn is_relayed(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.is_empty()
            && !["http", "https"].contains(&scheme)
            && scheme.bytes().all(|byte| byte.is_ascii_lowercase())
    }) && text.len() <= MAX_URL_CHARS
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The characters of a code: none that looks like another.
pub const CODE_ALPHABET: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
/// The length of a code, without the hyphen in its middle.
pub const CODE_CHARS: usize = 8;

text_type! {
    /// A code of a confirmation mail, in upper case without its hyphen.
    pub struct ConfirmationCode {
        expected: "the code of the confirmation mail, 8 letters and digits such as K7QX-2MPT",
        accepts: |text| {
            text.len() <= 2 * CODE_CHARS
                && bare_code(text).bytes().all(|byte| byte.is_ascii_alphanumeric())
                && bare_code(text).len() == CODE_CHARS
        },
        normalize: bare_code,
        examples: ["K7QX-2MPT"],
        schema: { min_length: CODE_CHARS, max_length: 2 * CODE_CHARS, pattern: "^[A-Za-z0-9 -]+$" },
    }
}

/// A code without what people write between its halves.
fn bare_code(text: &str) -> String {
    text.replace(['-', ' '], "").to_ascii_uppercase()
}

text_type! {
    /// An access token, sent in the header `Authorization`.
    pub struct ChannelToken {
        expected: "a token of 1 to 500 visible ASCII characters",
        accepts: |text| {
            (1..=MAX_TOKEN_CHARS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
        },
        normalize: str::to_owned,
        examples: ["tk_3f9a2c71d0"],
        schema: { min_length: 1, max_length: MAX_TOKEN_CHARS, pattern: "^[!-~]+$" },
    }
}
