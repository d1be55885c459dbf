//! Mails: the mail server of the operator, and one try at it (channels.md, rules 19 to 25).
//!
//! Not here: what a mail says (`notices`), who wants it ([`consent`](super::consent)).

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use reqwest::Url;
use secrecy::ExposeSecret as _;
use tokio::time::timeout;

use super::retry_schedule::ReceiverAnswer;
use crate::config::ChannelConfig;
use crate::contract::webhooks::TryError;
use crate::ids::DeliveryId;
use crate::notices::RenderedMail;
use crate::visible_text::VisibleText;

/// How long a mail server may take for a message, from the connection to its last reply.
pub const MAIL_TIMEOUT: Duration = Duration::from_secs(20);
/// How long it may take for one reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest reply that is stored, in characters.
const MAX_REPLY: usize = 500;

/// Replies that are about this service's account at the server and not about the message (RFC 4954).
const ACCOUNT_REPLIES: [u16; 4] = [530, 534, 535, 538];
/// Codes of RFC 3463 and RFC 7505 by which a server says that the mailbox does not exist or has moved.
/// A bare 550 does not say so: servers also refuse by policy with it, and a relay that is refused for its
/// reputation must not pause the channels of everybody.
const NO_MAILBOX: [&str; 3] = ["5.1.1", "5.1.6", "5.1.10"];

/// The operator's mail server. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
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
        "FARESCAN_SMTP_URL has another form (not shown); expected smtp://USER:PASSWORD@HOST:587 or smtps://USER:PASSWORD@HOST"
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
        let from: Mailbox = from.parse().map_err(|_| MailerError::From(from.clone()))?;
        let url = transport_url(url.expose_secret()).ok_or(MailerError::Url)?;
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.as_str())
            .map_err(|_| MailerError::Url)?
            .hello_name(ClientId::Domain(from.email.domain().to_owned()))
            .timeout(Some(REPLY_TIMEOUT))
            .build();
        Ok(Some(Self {
            transport,
            from,
            public_url: config.public_url.clone(),
        }))
    }

    /// The page where a reader unsubscribes; `None`: people cannot reach the pages of this service.
    pub(super) fn unsubscribe_url(&self, token: &str) -> Option<String> {
        let root = self.public_url.as_ref()?;
        let is_plain = root.bytes().all(|byte| byte.is_ascii_graphic());
        is_plain.then(|| format!("{root}/unsubscribe/{token}"))
    }

    /// Sends a mail once.
    pub(super) async fn send(&self, mail: &Mail) -> MailAnswer {
        let unclear = |error| MailAnswer {
            answer: ReceiverAnswer::Unclear,
            error: Some(error),
            reply: None,
        };
        let Some(message) = self.message(mail) else {
            return unclear(TryError::SecretUnreadable);
        };
        match timeout(MAIL_TIMEOUT, self.transport.send(message)).await {
            Err(_) => unclear(TryError::Timeout),
            Ok(Ok(reply)) => {
                let text = reply.message().collect::<Vec<_>>().join(" ");
                answer_of(reply.code().into(), &text, &mail.to)
            }
            Ok(Err(error)) => match error.status() {
                Some(code) => {
                    let text = error.source().map(ToString::to_string);
                    answer_of(code.into(), &text.unwrap_or_default(), &mail.to)
                }
                None if error.is_timeout() => unclear(TryError::Timeout),
                None if error.is_tls() => unclear(TryError::Unconnected),
                None if is_unconnected(&error) => unclear(TryError::Unconnected),
                None => unclear(TryError::Broken),
            },
        }
    }

    /// The message; `None` if the address is none.
    fn message(&self, mail: &Mail) -> Option<Message> {
        let to = Mailbox::new(None, mail.to.parse().ok()?);
        // The same at each try, so that a mail server may drop a second copy.
        let id = format!("<{}@{}>", mail.delivery, self.from.email.domain());
        let mut message = Message::builder()
            .from(self.from.clone())
            .to(to)
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
        message.multipart(parts).ok()
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

/// The URL with how TLS is used: a password never goes over a network in the clear.
fn transport_url(text: &str) -> Option<Url> {
    let mut url = Url::parse(text.trim()).ok()?;
    let is_bare =
        matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    let host = url.host_str().filter(|host| is_bare && !host.is_empty())?;
    let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    match url.scheme() {
        "smtps" => {}
        "smtp" => {
            let is_needed = url.password().is_some() && !is_here;
            let tls = if is_needed {
                "required"
            } else {
                "opportunistic"
            };
            url.set_query(Some(&format!("tls={tls}")));
        }
        _ => return None,
    }
    Some(url)
}

fn is_unconnected(error: &lettre::transport::smtp::Error) -> bool {
    let io = error
        .source()
        .and_then(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| {
        use std::io::ErrorKind::{
            ConnectionRefused, HostUnreachable, NetworkUnreachable, NotFound,
        };
        matches!(
            io.kind(),
            ConnectionRefused | HostUnreachable | NetworkUnreachable | NotFound
        )
    })
}

/// What a reply means for the message to `address`.
fn answer_of(code: u16, text: &str, address: &str) -> MailAnswer {
    let detail = enhanced_code(text);
    let (answer, error) = match code {
        200..=299 => (ReceiverAnswer::Accepted, None),
        500..=599 if ACCOUNT_REPLIES.contains(&code) => {
            (ReceiverAnswer::Unclear, Some(TryError::MailDeferred))
        }
        500..=599 if detail.is_some_and(|detail| NO_MAILBOX.contains(&detail)) => {
            (ReceiverAnswer::Gone, Some(TryError::MailRefused))
        }
        500..=599 => (ReceiverAnswer::Refused, Some(TryError::MailRefused)),
        _ => (ReceiverAnswer::Unclear, Some(TryError::MailDeferred)),
    };
    let reply = if repeats(text, address) {
        format!("{code} {}", detail.unwrap_or_default())
    } else {
        format!("{code} {text}")
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

/// Whether a reply has the address or the part before its `@`.
fn repeats(text: &str, address: &str) -> bool {
    let (text, address) = (text.to_ascii_lowercase(), address.to_ascii_lowercase());
    let local = address.split('@').next().unwrap_or_default();
    text.contains(local)
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

    #[test]
    fn a_reply_decides_about_the_message_or_the_mailbox() {
        use ReceiverAnswer::{Accepted, Gone, Refused, Unclear};
        for (code, text, answer) in [
            (250, "2.0.0 queued as 1", Accepted),
            (421, "4.7.0 try again later", Unclear),
            (450, "4.2.0 greylisted", Unclear),
            (535, "5.7.8 authentication failed", Unclear),
            (530, "5.7.0 must issue a STARTTLS command first", Unclear),
            (550, "5.1.1 no such mailbox", Gone),
            (556, "5.1.10 null MX", Gone),
            (550, "5.7.1 blocked for its reputation", Refused),
            (550, "no", Refused),
            (552, "5.2.2 mailbox full", Refused),
            (554, "5.6.0 malformed", Refused),
        ] {
            let found = answer_of(code, text, "zz@example.com");
            assert_eq!(found.answer, answer, "{code} {text}");
            assert_eq!(found.reply, Some(format!("{code} {text}")));
            assert_eq!(found.error.is_none(), answer == Accepted);
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
            assert_eq!(answer_of(550, text, TO).reply.as_deref(), Some(kept));
        }
        let long = "x".repeat(10_000);
        assert_eq!(answer_of(550, &long, TO).reply.unwrap().len(), MAX_REPLY);
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
    fn a_password_needs_tls_except_on_this_machine() {
        let tls =
            |url: &str| transport_url(url).map(|url| url.query().unwrap_or("wrapped").to_owned());
        for (url, expected) in [
            ("smtp://me:pw@mail.example.com:587", "tls=required"),
            ("smtp://me:pw@localhost:25", "tls=opportunistic"),
            ("smtp://me:pw@127.0.0.1:25", "tls=opportunistic"),
            ("smtp://relay.internal:25", "tls=opportunistic"),
            ("smtps://me:pw@mail.example.com", "wrapped"),
        ] {
            assert_eq!(tls(url).as_deref(), Some(expected), "{url}");
        }
        for url in [
            "",
            "mail.example.com",
            "https://mail.example.com",
            "smtp://",
            "smtp://host/path",
            "smtp://host?tls=none",
        ] {
            assert_eq!(tls(url), None, "{url}");
        }
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
            unsubscribe: mailer.unsubscribe_url("token"),
        };
        let raw = String::from_utf8(mailer.message(&mail).unwrap().formatted()).unwrap();
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
        let raw = String::from_utf8(mailer.message(&none).unwrap().formatted()).unwrap();
        assert!(!raw.contains("List-Unsubscribe"));
    }
}
