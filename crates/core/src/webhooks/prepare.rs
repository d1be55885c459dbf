//! What a try sends: opens what is sealed, and renders the message for its kind.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio::time::timeout;

use super::consent::{self, CODE_LIFETIME, NoCodesLink, UnsubscribeLink};
use super::endpoint::url_of;
use super::mail::{Mail, Mailer};
use super::send::{PostRequest, Prepared};
use super::sign::Secret;
use super::store::consent as consent_store;
use super::store::lock::EndpointOwner;
use super::store::{EndpointKind, LeasedDelivery};
use crate::contract::channels::{ChannelAlerts, ChannelKind};
use crate::contract::webhooks::{Event, TryError};
use crate::ids::ChannelId;
use crate::notices::{self, MailLink};
use crate::tenants::{GrantError, Keyring, open_secrets};

/// The time limit of one statement.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// What messages are made with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means<'a> {
    pub(super) pool: &'a PgPool,
    pub(super) ring: &'a Keyring,
    /// The operator's mail server, if there is one.
    pub(super) mailer: Option<&'a Mailer>,
}

/// What a try sends, or why it sends nothing. `None`: the database failed, the try has not begun and the
/// lease expires.
pub(super) async fn prepare(
    means: Means<'_>,
    leased: &LeasedDelivery,
    now: Timestamp,
) -> Option<Result<Prepared, TryError>> {
    let (url, secrets) = open_secrets_of(means, leased, now).await.ok()?;
    match (leased.kind, leased.owner) {
        (EndpointKind::Channel(ChannelKind::Email), EndpointOwner::Channel(channel)) => {
            let Some(mailer) = means.mailer else {
                return Some(Err(TryError::NotSetUp));
            };
            let preparing = mail(means, mailer, leased, channel, url, now);
            match timeout(STATEMENT_TIMEOUT, preparing).await {
                Ok(Ok(mail)) => Some(mail.map(|mail| Prepared::Mail(Box::new(mail)))),
                Ok(Err(error)) => {
                    tracing::warn!(delivery = %leased.delivery, %error, "reading the consent of an address failed; delivery delayed");
                    None
                }
                Err(_) => None,
            }
        }
        (EndpointKind::Channel(ChannelKind::Apprise), _) => {
            let event = serde_json::from_str::<Event<ChannelAlerts>>(&leased.body).ok();
            let body = event.and_then(|event| notices::render_relayed(&url, &event.data));
            Some(
                body.map(Prepared::Relayed)
                    .ok_or(TryError::SecretUnreadable),
            )
        }
        _ => {
            let request = request(leased, url, &secrets, now);
            let request = request.ok_or(TryError::SecretUnreadable);
            Some(request.map(Prepared::Post))
        }
    }
}

/// The mail of a try: with a new code and a link against further ones, or with a link that unsubscribes. Nothing but a code goes to an
/// address that is not confirmed, whatever has happened since the lease.
async fn mail(
    means: Means<'_>,
    mailer: &Mailer,
    leased: &LeasedDelivery,
    channel: ChannelId,
    to: String,
    now: Timestamp,
) -> sqlx::Result<Result<Mail, TryError>> {
    let Ok(event) = serde_json::from_str::<Event<ChannelAlerts>>(&leased.body) else {
        return Ok(Err(TryError::SecretUnreadable));
    };
    if to.is_empty() {
        return Ok(Err(TryError::SecretUnreadable));
    }
    let tenant = leased.tenant;
    let (alerts, link) = if leased.is_confirmation {
        // Its reader may have answered an earlier mail with that.
        if consent::is_refused(means.pool, means.ring, &to).await? {
            return Ok(Err(TryError::AddressRefused));
        }
        let code = consent::new_code();
        let digest = consent::code_digest(means.ring, tenant, channel, &code);
        let until = now.saturating_add(CODE_LIFETIME).unwrap_or(now);
        // Before the mail: an earlier code ends even if this one never arrives.
        if !consent_store::set_code(means.pool, leased, &digest, until).await? {
            return Ok(Err(TryError::AddressRefused));
        }
        let link = NoCodesLink::seal(means.ring, &to);
        let link = mailer.page_url("no-codes", &link).map(MailLink::NoCodes);
        (notices::with_code(event.data, &code), link)
    } else {
        let Some(confirmed_at) = consent_store::confirmed_at(means.pool, leased).await? else {
            return Ok(Err(TryError::AddressRefused));
        };
        let link = UnsubscribeLink {
            tenant,
            channel,
            confirmed_at,
        };
        let link = mailer.page_url("unsubscribe", &link.seal(means.ring));
        (event.data, link.map(MailLink::Unsubscribe))
    };
    Ok(Ok(Mail {
        delivery: leased.delivery,
        to,
        says: notices::render_mail(&alerts, link.as_ref()),
        unsubscribe: link.and_then(MailLink::one_click),
    }))
}

/// The request of a try; `None` if what was sealed for it cannot be read.
fn request(
    leased: &LeasedDelivery,
    url: String,
    secrets: &[Secret],
    now: Timestamp,
) -> Option<PostRequest> {
    let kind = match leased.kind {
        EndpointKind::Webhook => {
            return PostRequest::signed(leased.delivery, url, leased.body.clone(), secrets, now);
        }
        EndpointKind::Channel(kind) => kind,
    };
    if leased.secrets.len() != secrets.len() {
        return None;
    }
    let token = secrets.first().map(|secret| secret.bytes());
    let token = token.map(std::str::from_utf8).transpose().ok()?;
    let event: Event<ChannelAlerts> = serde_json::from_str(&leased.body).ok()?;
    let message = notices::render(kind, &url, token, &event.data)?;
    PostRequest::message(leased.delivery, message)
}

/// The URL and the secrets of a delivery; none if they cannot be decrypted. `Err`: the database
/// failed, the try has not begun and the lease expires.
async fn open_secrets_of(
    means: Means<'_>,
    leased: &LeasedDelivery,
    now: Timestamp,
) -> Result<(String, Vec<Secret>), ()> {
    let grants = [&[leased.url], leased.secrets.as_slice()].concat();
    let opening = async {
        let mut conn = means.pool.acquire().await?;
        open_secrets(&mut conn, means.ring, leased.tenant, &grants, now).await
    };
    match timeout(STATEMENT_TIMEOUT, opening).await {
        Ok(Ok(opened)) => {
            let (url, secrets): (Vec<_>, Vec<_>) = opened
                .into_iter()
                .partition(|opened| opened.grant == leased.url);
            let secrets = secrets
                .into_iter()
                .map(|opened| Secret::from_bytes(opened.secret));
            Ok((url.iter().map(url_of).collect(), secrets.collect()))
        }
        Ok(Err(GrantError::Database(error))) => {
            tracing::warn!(delivery = %leased.delivery, %error, "loading webhook secrets failed; delivery delayed");
            Err(())
        }
        Ok(Err(error)) => {
            tracing::error!(delivery = %leased.delivery, %error, "decrypting webhook secrets failed");
            Ok((String::new(), Vec::new()))
        }
        Err(_) => Err(()),
    }
}
