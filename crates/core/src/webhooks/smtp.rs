//! One conversation with the operator's mail server (channels.md, rule 19).
//!
//! `lettre`'s own transport awaits the reply to QUIT under the time of the message, so a mail that was
//! accepted could count as not sent, and its timeout covers the TCP connection alone. So each step has a
//! time of its own here, and what follows the reply to the message changes nothing.

use std::time::Duration;

use lettre::Address;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Response;
use lettre::transport::smtp::{SUBMISSION_PORT, SUBMISSIONS_PORT};
use percent_encoding::percent_decode_str;
use reqwest::Url;
use tokio::time::timeout;

/// How long the server may take for each step before the message.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// The steps before the message: connection with greeting and EHLO, STARTTLS, login, MAIL, RCPT, DATA.
const STEPS: u32 = 6;
/// How long it may take to accept a message: it may store or check it first (RFC 5321).
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long its reply to QUIT is awaited, which decides nothing.
const QUIT_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest conversation: 121 seconds.
pub(super) const MAIL_TIMEOUT: Duration = STEP_TIMEOUT
    .saturating_mul(STEPS)
    .saturating_add(MESSAGE_TIMEOUT)
    .saturating_add(QUIT_TIMEOUT);

/// The operator's mail server, as its URL says.
#[derive(Clone)]
pub(super) struct SmtpServer {
    host: String,
    port: u16,
    tls: Tls,
    credentials: Option<Credentials>,
}

/// How TLS is used.
#[derive(Clone)]
enum Tls {
    /// The server is on this machine.
    Never,
    /// STARTTLS where it is offered. Any certificate is taken: no password is sent, and whoever could show
    /// a false one could as well remove the offer.
    IfOffered(TlsParameters),
    /// STARTTLS, or nothing is sent.
    Required(TlsParameters),
    /// Before the greeting.
    FromStart(TlsParameters),
}

/// Where a conversation was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The connection, its greeting, EHLO and STARTTLS.
    Connection,
    /// The login.
    Login,
    /// MAIL FROM.
    Sender,
    /// RCPT TO.
    Recipient,
    /// DATA and the message.
    Message,
}

/// Why a conversation failed.
#[derive(Debug)]
pub(super) struct SmtpFailure {
    pub(super) stage: Stage,
    pub(super) cause: Cause,
}

#[derive(Debug)]
pub(super) enum Cause {
    /// A step took too long.
    Timeout,
    /// The server replied with 4xx or 5xx, or the connection failed.
    Smtp(lettre::transport::smtp::Error),
}

impl SmtpServer {
    /// The server of a URL; `None` if it has another form. A password never goes over a network in the
    /// clear, and a name without one is a setting that was cut off.
    pub(super) fn of_url(text: &str) -> Option<Self> {
        let url = Url::parse(text.trim()).ok()?;
        let is_bare =
            matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        // An address of IPv6 without its brackets.
        let host = url.host_str().filter(|_| is_bare)?;
        let host = host.trim_matches(['[', ']']).to_owned();
        if host.is_empty() || (url.password().is_none() && !url.username().is_empty()) {
            return None;
        }
        let decoded = |text: &str| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
        let credentials = match url.password() {
            Some(password) => Some(Credentials::new(
                decoded(url.username())?,
                decoded(password)?,
            )),
            None => None,
        };
        let is_here = matches!(host.as_str(), "localhost" | "127.0.0.1" | "::1");
        let checked = || TlsParameters::new(host.clone()).ok();
        let tls = match url.scheme() {
            "smtps" => Tls::FromStart(checked()?),
            "smtp" if is_here => Tls::Never,
            "smtp" if credentials.is_some() => Tls::Required(checked()?),
            "smtp" => Tls::IfOffered(
                TlsParameters::builder(host.clone())
                    .dangerous_accept_invalid_certs(true)
                    .dangerous_accept_invalid_hostnames(true)
                    .build()
                    .ok()?,
            ),
            _ => return None,
        };
        let port = match tls {
            Tls::FromStart(_) => SUBMISSIONS_PORT,
            _ => SUBMISSION_PORT,
        };
        Some(Self {
            port: url.port().unwrap_or(port),
            host,
            tls,
            credentials,
        })
    }

    /// Sends a message once. The result is the server's reply to it.
    pub(super) async fn send(
        &self,
        hello: &ClientId,
        (from, to): (Address, Address),
        message: &[u8],
    ) -> Result<Response, SmtpFailure> {
        let mut conn = self.open(hello).await?;
        let sent = self.converse(&mut conn, (from, to), message).await;
        let is_late = matches!(&sent, Err(failure) if matches!(failure.cause, Cause::Timeout));
        if !is_late {
            let _ = timeout(QUIT_TIMEOUT, conn.quit()).await;
        }
        sent
    }

    async fn open(&self, hello: &ClientId) -> Result<AsyncSmtpConnection, SmtpFailure> {
        let wrapped = match &self.tls {
            Tls::FromStart(tls) => Some(tls.clone()),
            _ => None,
        };
        let address = (self.host.as_str(), self.port);
        let opening = AsyncSmtpConnection::connect_tokio1(address, None, hello, wrapped, None);
        let mut conn = step(Stage::Connection, STEP_TIMEOUT, opening).await?;
        let tls = match &self.tls {
            Tls::Required(tls) => Some(tls),
            Tls::IfOffered(tls) => Some(tls).filter(|_| conn.can_starttls()),
            Tls::Never | Tls::FromStart(_) => None,
        };
        if let Some(tls) = tls {
            let upgrade = conn.starttls(tls.clone(), hello);
            step(Stage::Connection, STEP_TIMEOUT, upgrade).await?;
        }
        Ok(conn)
    }

    async fn converse(
        &self,
        conn: &mut AsyncSmtpConnection,
        (from, to): (Address, Address),
        message: &[u8],
    ) -> Result<Response, SmtpFailure> {
        if let Some(credentials) = &self.credentials {
            let login = conn.auth(DEFAULT_MECHANISMS, credentials);
            step(Stage::Login, STEP_TIMEOUT, login).await?;
        }
        let command = conn.command(Mail::new(Some(from), Vec::new()));
        step(Stage::Sender, STEP_TIMEOUT, command).await?;
        let command = conn.command(Rcpt::new(to, Vec::new()));
        step(Stage::Recipient, STEP_TIMEOUT, command).await?;
        step(Stage::Message, STEP_TIMEOUT, conn.command(Data)).await?;
        step(Stage::Message, MESSAGE_TIMEOUT, conn.message(message)).await
    }
}

async fn step<T>(
    stage: Stage,
    limit: Duration,
    reply: impl Future<Output = Result<T, lettre::transport::smtp::Error>>,
) -> Result<T, SmtpFailure> {
    let cause = match timeout(limit, reply).await {
        Ok(Ok(replied)) => return Ok(replied),
        Ok(Err(error)) => Cause::Smtp(error),
        Err(_) => Cause::Timeout,
    };
    Err(SmtpFailure { stage, cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_needs_tls_except_on_this_machine() {
        let tls = |url: &str| {
            SmtpServer::of_url(url).map(|server| {
                let tls = match server.tls {
                    Tls::Never => "never",
                    Tls::IfOffered(_) => "if offered",
                    Tls::Required(_) => "required",
                    Tls::FromStart(_) => "from start",
                };
                format!("{}:{} {tls}", server.host, server.port)
            })
        };
        for (url, expected) in [
            (
                "smtp://me:pw@mail.example.com:2525",
                "mail.example.com:2525 required",
            ),
            ("smtp://me:pw@localhost:25", "localhost:25 never"),
            ("smtp://127.0.0.1", "127.0.0.1:587 never"),
            ("smtp://[::1]:25", "::1:25 never"),
            ("smtp://relay.internal:25", "relay.internal:25 if offered"),
            (
                "smtps://me:p%40w@mail.example.com",
                "mail.example.com:465 from start",
            ),
        ] {
            assert_eq!(tls(url).as_deref(), Some(expected), "{url}");
        }
        for url in [
            "",
            "mail.example.com",
            "https://mail.example.com",
            "smtp://",
            "smtp://me@mail.example.com",
            "smtp://host/path",
            "smtp://host?tls=none",
        ] {
            assert_eq!(tls(url), None, "{url}");
        }
    }

    #[test]
    fn a_try_is_bounded() {
        assert_eq!(MAIL_TIMEOUT, Duration::from_secs(121));
    }
}
