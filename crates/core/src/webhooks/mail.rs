//! Mails: the mail server of the operator, and one try at it (channels.md, rules 19 to 25).
//!
//! Not here: what a mail says (`notices`), who wants it ([`consent`](super::consent)).

use std::error::Error as _;
use std::fmt;

use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, Message};
use secrecy::ExposeSecret as _;

use super::retry_schedule::ReceiverAnswer;
use super::smtp::{Cause, SmtpFailure, SmtpServer, Stage};
use crate::config::ChannelConfig;
use crate::contract::webhooks::TryError;
use crate::ids::DeliveryId;
use crate::notices::RenderedMail;
use crate::visible_text::VisibleText;

/// The longest reply that is stored, in characters.
const MAX_REPLY: usize = 500;

/// Codes of RFC 3463 and RFC 7505 by which a server says that the mailbox does not exist or has moved.
/// A bare 550 does not say so: servers also refuse by policy with it, and a relay that is refused for its
/// reputation must not pause the channels of everybody.
const NO_MAILBOX: [&str; 3] = ["5.1.1", "5.1.6", "5.1.10"];

/// The operator's mail server. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    server: SmtpServer,
    from: Mailbox,
    public_url: Option<String>,
}

/// What is wrong with the settings of the mail server. Never shows the URL, which has a password.
#[derive(Debug, thiserror::Error)]
pub enum MailerError {
    /// One of the two settings is missing.
    #[error("FARESCAN_SMTP_URL and FARESCAN_SMTP_FROM belong together: {0} is not set")]
    Half(&'static str),
    /// The URL has another form.
    #[error(
        "FARESCAN_SMTP_URL has another form (not shown); expected smtp://USER:PASSWORD@HOST:587 or smtps://USER:PASSWORD@HOST, the name and \
         the password both or neither, IPv6 as [::1]"
    )]
    Url,
    /// The sender is no address.
    #[error(
        "FARESCAN_SMTP_FROM is {0:?}; expected an address such as \"Fares <fares@example.com>\""
    )]
    From(String),
}

/// One mail.
#[derive(Debug)]
pub struct Mail {
    pub(super) delivery: DeliveryId,
    pub(super) to: String,
    pub(super) says: RenderedMail,
    /// Where its reader unsubscribes.
    pub(super) unsubscribe: Option<String>,
}

/// What the server made of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MailAnswer {
    pub(super) answer: ReceiverAnswer,
    pub(super) error: Option<TryError>,
    /// Its reply, without the address.
    pub(super) reply: Option<String>,
}

impl Mailer {
    /// The mail server of these settings; `None` without one.
    ///
    /// # Errors
    /// [`MailerError`], naming the setting.
    pub fn of_config(config: &ChannelConfig) -> Result<Option<Self>, MailerError> {
        let (url, from) = match (&config.smtp_url, &config.smtp_from) {
            (Some(url), Some(from)) => (url, from),
            (None, None) => return Ok(None),
            (Some(_), None) => return Err(MailerError::Half("FARESCAN_SMTP_FROM")),
            (None, Some(_)) => return Err(MailerError::Half("FARESCAN_SMTP_URL")),
        };
        let wrong = || MailerError::From(from.clone());
        let mailbox: Mailbox = from.parse().map_err(|_| wrong())?;
        // Such an address needs SMTPUTF8, which few servers take.
        if !mailbox.email.to_string().is_ascii() {
            return Err(wrong());
        }
        let server = SmtpServer::of_url(url.expose_secret()).ok_or(MailerError::Url)?;
        Ok(Some(Self {
            server,
            from: mailbox,
            public_url: config.public_url.clone(),
        }))
    }

    /// The page of a link for a reader; `None`: people cannot reach the pages of this service.
    pub(super) fn page_url(&self, page: &str, link: &str) -> Option<String> {
        let root = self.public_url.as_ref()?;
        let is_plain = root.bytes().all(|byte| byte.is_ascii_graphic());
        is_plain.then(|| format!("{root}/{page}/{link}"))
    }

    /// Sends a mail once.
    pub(super) async fn send(&self, mail: &Mail) -> MailAnswer {
        let unclear = |error| MailAnswer {
            answer: ReceiverAnswer::Unclear,
            error: Some(error),
            reply: None,
        };
        let Some((to, message)) = self.message(mail) else {
            return unclear(TryError::SecretUnreadable);
        };
        let hello = ClientId::Domain(self.from.email.domain().to_owned());
        let addresses = (self.from.email.clone(), to);
        let message = message.formatted();
        let sent = self.server.send(&hello, addresses, &message).await;
        let SmtpFailure { stage, cause } = match sent {
            Ok(reply) => {
                let text = reply.message().collect::<Vec<_>>().join(" ");
                return answer_of(Stage::Message, reply.code().into(), &text, &mail.to);
            }
            Err(failure) => failure,
        };
        // For the operator alone: it may name the server and how it is set up.
        let found = match &cause {
            Cause::Timeout => "no reply in time".to_owned(),
            Cause::Smtp(error) => {
                VisibleText::one_line(without(&error.to_string(), &mail.to)).into_string()
            }
        };
        tracing::warn!(delivery = %mail.delivery, ?stage, found, "the mail server did not take a mail");
        match cause {
            Cause::Timeout => unclear(TryError::Timeout),
            Cause::Smtp(error) => match error.status() {
                Some(code) => {
                    let text = error.source().map(ToString::to_string);
                    answer_of(stage, code.into(), &text.unwrap_or_default(), &mail.to)
                }
                None if error.is_timeout() => unclear(TryError::Timeout),
                None if stage == Stage::Connection => unclear(TryError::Unconnected),
                None => unclear(TryError::Broken),
            },
        }
    }

    /// Its receiver and the message; `None` if the address is none.
    fn message(&self, mail: &Mail) -> Option<(Address, Message)> {
        let to: Address = mail.to.parse().ok()?;
        // The same at each try, so that a mail server may drop a second copy.
        let id = format!("<{}@{}>", mail.delivery, self.from.email.domain());
        let mut message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to.clone()))
            .subject(mail.says.subject.clone())
            .message_id(Some(id))
            .raw_header(header("Farescan-Delivery", &mail.delivery.to_string()))
            .raw_header(header("Auto-Submitted", "auto-generated"));
        if let Some(url) = &mail.unsubscribe {
            message = message.raw_header(header("List-Unsubscribe", &format!("<{url}>")));
            // RFC 8058 asks for https.
            if url.starts_with("https://") {
                let one_click = "List-Unsubscribe=One-Click";
                message = message.raw_header(header("List-Unsubscribe-Post", one_click));
            }
        }
        let (text, html) = (mail.says.text.clone(), mail.says.html.clone());
        let parts = MultiPart::alternative_plain_html(text, html);
        Some((to, message.multipart(parts).ok()?))
    }
}

impl fmt::Debug for Mailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailer").finish_non_exhaustive()
    }
}

/// A header of visible ASCII, which needs no encoding. It is not folded: a reader of one-click links need
/// not unfold them, and it is far below the 998 characters of a line.
fn header(name: &'static str, value: &str) -> HeaderValue {
    let name = HeaderName::new_from_ascii_str(name);
    HeaderValue::dangerous_new_pre_encoded(name, value.to_owned(), value.to_owned())
}

/// What a reply at a stage means for the message to `address` (channels.md, rule 25).
fn answer_of(stage: Stage, code: u16, text: &str, address: &str) -> MailAnswer {
    let detail = enhanced_code(text);
    let (answer, error) = match code {
        200..=299 => (ReceiverAnswer::Accepted, None),
        500..=599
            if stage == Stage::Recipient
                && detail.is_some_and(|detail| NO_MAILBOX.contains(&detail)) =>
        {
            (ReceiverAnswer::Gone, Some(TryError::MailRefused))
        }
        500..=599 if is_final(stage, code, detail) => {
            (ReceiverAnswer::Refused, Some(TryError::MailRefused))
        }
        _ => (ReceiverAnswer::Unclear, Some(TryError::MailDeferred)),
    };
    // Other replies are about the operator's server, and callers read what is stored.
    let is_for_caller =
        answer == ReceiverAnswer::Accepted || detail.is_some_and(is_about_recipient_or_message);
    let reply = if is_for_caller && !repeats(text, address) {
        format!("{code} {text}")
    } else {
        format!("{code} {}", detail.unwrap_or_default())
    };
    let reply: String = VisibleText::one_line(reply.trim())
        .chars()
        .take(MAX_REPLY)
        .collect();
    MailAnswer {
        answer,
        error,
        reply: Some(reply),
    }
}

/// Whether a 5xx is about this recipient or this message, and no later try is answered otherwise. Anything
/// else, such as a login, a policy or a reputation, is the operator's to mend, for all channels at once.
fn is_final(stage: Stage, code: u16, detail: Option<&str>) -> bool {
    match (stage, detail) {
        (Stage::Recipient | Stage::Message, Some(detail)) => is_about_recipient_or_message(detail),
        (Stage::Recipient, None) => matches!(code, 550 | 551 | 553),
        _ => false,
    }
}

/// Whether a code of RFC 3463 is about the recipient's mailbox, or about the size or the content of the message.
fn is_about_recipient_or_message(detail: &str) -> bool {
    match detail {
        // About the sender.
        "5.1.7" | "5.1.8" => false,
        // Too large for the server.
        "5.3.4" => true,
        _ => ["5.1.", "5.2.", "5.6."]
            .iter()
            .any(|subject| detail.starts_with(subject)),
    }
}

/// Whether a reply has the address or the part before its `@`.
fn repeats(text: &str, address: &str) -> bool {
    let (text, address) = (text.to_ascii_lowercase(), address.to_ascii_lowercase());
    let local = address.split('@').next().unwrap_or_default();
    text.contains(local)
}

/// A text with the address replaced.
fn without(text: &str, address: &str) -> String {
    // Of the same length, so that the places are the same.
    let (lower, address) = (text.to_ascii_lowercase(), address.to_ascii_lowercase());
    let (mut left, mut from) = (String::new(), 0);
    for (at, found) in lower.match_indices(&address) {
        left.push_str(&text[from..at]);
        left.push('…');
        from = at + found.len();
    }
    left + &text[from..]
}

/// The status code of RFC 3463 that a reply begins with.
fn enhanced_code(text: &str) -> Option<&str> {
    let first = text.split_ascii_whitespace().next()?;
    let parts: Vec<_> = first.split('.').collect();
    let is_number = |part: &&str| {
        (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    (parts.len() == 3 && parts.iter().all(is_number)).then_some(first)
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    const TO: &str = "Reader@example.com";

    /// At which stage which reply comes, what it means, and what is stored of it.
    const REPLIES: [(Stage, u16, &str, ReceiverAnswer, &str); 24] = [
        (
            Stage::Message,
            250,
            "2.0.0 queued as 1",
            ReceiverAnswer::Accepted,
            "250 2.0.0 queued as 1",
        ),
        (
            Stage::Message,
            250,
            "ok",
            ReceiverAnswer::Accepted,
            "250 ok",
        ),
        (
            Stage::Connection,
            421,
            "4.7.0 try again later",
            ReceiverAnswer::Unclear,
            "421 4.7.0",
        ),
        (
            Stage::Connection,
            554,
            "5.7.1 no service for you",
            ReceiverAnswer::Unclear,
            "554 5.7.1",
        ),
        (Stage::Connection, 554, "no", ReceiverAnswer::Unclear, "554"),
        (
            Stage::Login,
            535,
            "5.7.8 authentication failed",
            ReceiverAnswer::Unclear,
            "535 5.7.8",
        ),
        (
            Stage::Sender,
            530,
            "5.7.0 STARTTLS first",
            ReceiverAnswer::Unclear,
            "530 5.7.0",
        ),
        (
            Stage::Sender,
            550,
            "5.1.8 no such sender",
            ReceiverAnswer::Unclear,
            "550 5.1.8",
        ),
        (
            Stage::Sender,
            550,
            "5.1.1 no such mailbox",
            ReceiverAnswer::Unclear,
            "550 5.1.1 no such mailbox",
        ),
        (
            Stage::Recipient,
            450,
            "4.2.0 greylisted",
            ReceiverAnswer::Unclear,
            "450 4.2.0",
        ),
        (
            Stage::Recipient,
            550,
            "5.1.1 no such mailbox",
            ReceiverAnswer::Gone,
            "550 5.1.1 no such mailbox",
        ),
        (
            Stage::Recipient,
            556,
            "5.1.10 null MX",
            ReceiverAnswer::Gone,
            "556 5.1.10 null MX",
        ),
        (
            Stage::Message,
            550,
            "5.1.1 no such mailbox",
            ReceiverAnswer::Refused,
            "550 5.1.1 no such mailbox",
        ),
        (
            Stage::Recipient,
            550,
            "5.1.8 no such sender",
            ReceiverAnswer::Unclear,
            "550 5.1.8",
        ),
        (
            Stage::Recipient,
            550,
            "5.7.1 blocked for its reputation",
            ReceiverAnswer::Unclear,
            "550 5.7.1",
        ),
        (
            Stage::Recipient,
            554,
            "5.4.4 no route",
            ReceiverAnswer::Unclear,
            "554 5.4.4",
        ),
        (
            Stage::Recipient,
            503,
            "5.5.1 bad sequence",
            ReceiverAnswer::Unclear,
            "503 5.5.1",
        ),
        (Stage::Recipient, 550, "no", ReceiverAnswer::Refused, "550"),
        (Stage::Recipient, 553, "no", ReceiverAnswer::Refused, "553"),
        (
            Stage::Recipient,
            554,
            "relay denied by 10.0.0.7",
            ReceiverAnswer::Unclear,
            "554",
        ),
        (
            Stage::Recipient,
            552,
            "5.2.2 mailbox full",
            ReceiverAnswer::Refused,
            "552 5.2.2 mailbox full",
        ),
        (
            Stage::Message,
            552,
            "5.3.4 too large",
            ReceiverAnswer::Refused,
            "552 5.3.4 too large",
        ),
        (
            Stage::Message,
            554,
            "5.6.0 malformed",
            ReceiverAnswer::Refused,
            "554 5.6.0 malformed",
        ),
        (Stage::Message, 550, "no", ReceiverAnswer::Unclear, "550"),
    ];

    #[test]
    fn a_reply_decides_about_the_message_or_the_mailbox() {
        for (stage, code, text, answer, kept) in REPLIES {
            let found = answer_of(stage, code, text, "zz@example.com");
            assert_eq!(found.answer, answer, "{stage:?} {code} {text}");
            assert_eq!(found.reply.as_deref(), Some(kept));
            assert_eq!(found.error.is_none(), answer == ReceiverAnswer::Accepted);
        }
    }

    #[test]
    fn a_reply_that_repeats_the_address_is_not_kept() {
        for (text, kept) in [
            ("5.1.1 <reader@EXAMPLE.com>: user unknown", "550 5.1.1"),
            ("5.1.1 READER is unknown", "550 5.1.1"),
            ("unknown user reader@example.com", "550"),
            ("5.1.1 user\u{7} unknown", "550 5.1.1 user\u{fffd} unknown"),
        ] {
            let found = answer_of(Stage::Recipient, 550, text, TO);
            assert_eq!(found.reply.as_deref(), Some(kept));
        }
        let long = format!("5.1.1 {}", "x".repeat(10_000));
        let found = answer_of(Stage::Recipient, 550, &long, TO);
        assert_eq!(found.reply.unwrap().len(), MAX_REPLY);
        let logged = without("<READER@example.com> and reader@EXAMPLE.com: ü", TO);
        assert_eq!(logged, "<…> and …: ü");
    }

    fn mailer(url: &str, from: &str) -> Result<Option<Mailer>, MailerError> {
        Mailer::of_config(&ChannelConfig {
            public_url: Some("https://fares.example.com".to_owned()),
            smtp_url: Some(SecretString::from(url)),
            smtp_from: Some(from.to_owned()),
            apprise_url: None,
        })
    }

    #[test]
    fn wrong_settings_name_themselves_and_show_no_password() {
        let refused = |url, from| mailer(url, from).unwrap_err().to_string();
        assert!(refused("https://me:hunter2@host", "a@b.example").contains("FARESCAN_SMTP_URL"));
        assert!(!refused("https://me:hunter2@host", "a@b.example").contains("hunter2"));
        assert!(refused("smtp://host", "nobody").contains("FARESCAN_SMTP_FROM"));
        let half = ChannelConfig {
            smtp_from: Some("a@b.example".to_owned()),
            ..ChannelConfig::default()
        };
        let refused = Mailer::of_config(&half).unwrap_err().to_string();
        assert!(
            refused.contains("FARESCAN_SMTP_URL is not set"),
            "{refused}"
        );
        assert!(
            Mailer::of_config(&ChannelConfig::default())
                .unwrap()
                .is_none()
        );
        let debug = format!(
            "{:?}",
            mailer("smtp://me:hunter2@host", "a@b.example").unwrap()
        );
        assert!(!debug.contains("hunter2"), "{debug}");
    }

    #[test]
    fn no_text_of_others_makes_a_header() {
        let mailer = mailer("smtp://127.0.0.1:1", "Fares <fares@example.com>")
            .unwrap()
            .unwrap();
        let mail = Mail {
            delivery: DeliveryId::new(),
            to: TO.to_owned(),
            says: RenderedMail {
                subject: "München\r\nBcc: victim@example.com".to_owned(),
                text: "one\r\n.\r\ntwo".to_owned(),
                html: "<p>one</p>".to_owned(),
            },
            unsubscribe: mailer.page_url("unsubscribe", "token"),
        };
        let raw = String::from_utf8(mailer.message(&mail).unwrap().1.formatted()).unwrap();
        let (head, _) = raw.split_once("\r\n\r\n").unwrap();
        assert!(!head.lines().any(|line| line.starts_with("Bcc")), "{head}");
        assert!(
            head.contains(&format!("Message-ID: <{}@example.com>", mail.delivery)),
            "{head}"
        );
        let link = "List-Unsubscribe: <https://fares.example.com/unsubscribe/token>\r\n";
        assert!(
            head.contains(link) && head.contains("Auto-Submitted: auto-generated"),
            "{head}"
        );
        let none = Mail {
            unsubscribe: None,
            ..mail
        };
        let raw = String::from_utf8(mailer.message(&none).unwrap().1.formatted()).unwrap();
        assert!(!raw.contains("List-Unsubscribe"));
    }
}
