//! The session of a page: who is signed in, and the caller's tenant (security.md, rule 30).
//!
//! The cookie holds the caller's key, sealed (`tenants::BrowserSession`). It is `HttpOnly`, so no
//! script reads it, and `SameSite=Lax`: a link of a mail or a chat opens its page, and no other
//! request of another site carries it. A page that is loaded changes nothing; what changes something
//! is a form, whose origin and token `form` checks. A browser that came by https gets the cookie
//! with `Secure` and the prefix `__Host-`, under which no other host and no plain http can set it;
//! by https no other name counts.
//!
//! The session has ended if its generation is not that of the caller's row.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::header::{COOKIE, ORIGIN, REFERER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use sqlx::PgPool;
use tokio::time::timeout;

use super::failure::PageFailure;
use farescan_core::app::accept::prefers_html;
use farescan_core::app::api_request::{request_context, submit_context};
use farescan_core::app::auth::ApiKey;
use farescan_core::app::concurrency::Permit;
use farescan_core::app::error::ApiError;
use farescan_core::app::{AppState, Custody};
use farescan_core::commands::RequestContext;
use farescan_core::ids::{ResourceId, TenantId};
use farescan_core::monitors::{self, read::Pauses};
use farescan_core::search::CallerKey;
use farescan_core::tenants::{self, BrowserSession, TOKEN_BYTES};

/// The cookie of a browser that came by plain http, as on this machine.
const COOKIE_NAME: &str = "farescan_session";
/// The cookie of a browser that came by https.
const SECURE_COOKIE_NAME: &str = "__Host-farescan_session";
/// A page waits this long for what its caller has paused, which it can do without.
const PAUSES_TIMEOUT: Duration = Duration::from_secs(1);
/// Set by the proxy that ends TLS.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// A signed-in caller, for a page that changes nothing. A handler of a form takes
/// [`super::form::SessionForm`].
///
/// It counts against the caller's rate limit and holds its concurrency permits until it is dropped.
#[derive(Debug)]
pub(super) struct Session {
    app: AppState,
    caller: ApiKey,
    form_token: [u8; TOKEN_BYTES],
    tenant: Option<TenantId>,
    pauses: Pauses,
}

impl Session {
    /// The session of a request. `is_write`: the request may change data.
    pub(super) async fn open(
        parts: &Parts,
        app: &AppState,
        is_write: bool,
    ) -> Result<Self, PageFailure> {
        let signed_out = || PageFailure::SignedOut(return_path(parts));
        let session = session_of(&parts.headers, app)?.ok_or_else(signed_out)?;
        let caller = app.admit_caller(session.key, is_write).await?;
        let (tenant, generation) = find_generation(app, &caller.key).await?;
        if generation != session.generation {
            return Err(signed_out());
        }
        // The script's refreshes of a part of a page prefer nothing.
        let is_whole_page = !is_write && prefers_html(&parts.headers);
        let pauses = match tenant.filter(|_| is_whole_page) {
            Some(tenant) => pauses(app, tenant).await,
            None => Pauses::default(),
        };
        Ok(Self {
            app: app.clone(),
            caller,
            form_token: session.form_token,
            tenant,
            pauses,
        })
    }

    /// Whether the caller has paused something, and nothing else goes on. Known for whole pages.
    pub(super) fn is_all_paused(&self) -> bool {
        self.pauses.has_paused && !self.pauses.goes_on
    }

    /// Whether a scan or monitor of the caller goes on; false where that was not read.
    pub(super) fn goes_on(&self) -> bool {
        self.pauses.goes_on
    }

    /// The service.
    pub(super) fn app(&self) -> &AppState {
        &self.app
    }

    /// The caller as the handlers of `api` know it.
    pub(super) fn caller(&self) -> &ApiKey {
        &self.caller
    }

    /// The context of the caller's requests, as the handlers of `api` have it.
    pub(super) fn context(&self) -> Result<RequestContext<'_>, ApiError> {
        request_context(&self.app, &self.caller)
    }

    /// The context of a submission: of a scan or monitor.
    pub(super) async fn submit_context(&self) -> Result<RequestContext<'_>, ApiError> {
        submit_context(&self.app, &self.caller).await
    }

    /// The pool for reads.
    pub(super) fn pool(&self) -> Result<&PgPool, ApiError> {
        self.app.read_pool()
    }

    /// The pool for reads of the history.
    pub(super) fn history_pool(&self) -> Result<&PgPool, ApiError> {
        self.app.history_pool()
    }

    /// Keyring, pace and watch of stored work.
    pub(super) fn custody(&self) -> Result<&Custody, ApiError> {
        self.app.custody()
    }

    /// The caller's tenant. `None`: nothing was ever submitted with this key, so every list is
    /// empty and every id is unknown.
    pub(super) fn tenant(&self) -> Option<TenantId> {
        self.tenant
    }

    /// The caller's tenant, and an id in a path. A page for one that the caller does not have: another
    /// caller's gets the same.
    pub(super) fn owned<Id: ResourceId>(&self, id: &str) -> Result<(TenantId, Id), PageFailure> {
        let id = id.parse().map_err(|_| Id::KIND)?;
        Ok((self.tenant.ok_or(Id::KIND)?, id))
    }

    /// The permits of a read of many rows. Hold them until it ends.
    pub(super) async fn heavy_read_permits(&self) -> Result<[Permit; 2], ApiError> {
        self.app.heavy_read_permits(&self.caller.key).await
    }

    /// The permits of a submission or its preview. Hold them until it is stored.
    pub(super) async fn submission_permits(&self) -> Result<[Permit; 2], ApiError> {
        self.app.submission_permits(&self.caller.key).await
    }

    /// What each form of this session sends back.
    pub(super) fn form_token(&self) -> &[u8; TOKEN_BYTES] {
        &self.form_token
    }

    /// Ends every session of the caller, copies of its cookies included.
    pub(super) async fn end_all(&self) -> Result<(), ApiError> {
        if let Some(tenant) = self.tenant {
            tenants::store::end_sessions(self.context()?.pool, tenant).await?;
        }
        Ok(())
    }
}

impl FromRequestParts<AppState> for Session {
    type Rejection = PageFailure;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, PageFailure> {
        if !parts.method.is_safe() {
            // Only `SessionForm` checks that a form of this session sent the request.
            return Err(ApiError::internal("a form's handler takes no SessionForm").into());
        }
        Self::open(parts, app, false).await
    }
}

/// Whether the caller has paused something, and whether anything goes on, as far as that can be read in
/// [`PAUSES_TIMEOUT`].
async fn pauses(app: &AppState, tenant: TenantId) -> Pauses {
    let reading = async {
        let pool = app.read_pool()?;
        Ok::<_, ApiError>(monitors::read::pauses(pool, tenant).await?)
    };
    match timeout(PAUSES_TIMEOUT, reading).await {
        Ok(Ok(pauses)) => pauses,
        unread => {
            tracing::info!(?unread, "a page does not say whether everything is paused");
            Pauses::default()
        }
    }
}

/// That of a caller without a tenant, who has no session either once there is one.
const NO_GENERATION: i32 = 0;

/// The caller's tenant, and the generation of its sessions.
async fn find_generation(
    app: &AppState,
    key: &CallerKey,
) -> Result<(Option<TenantId>, i32), ApiError> {
    let (ring, pool) = (&app.custody()?.ring, app.read_pool()?);
    let (mut conn, tenant) =
        tenants::store::find_with_connection(pool, ring, key, app.now()?).await?;
    let generation = match tenant {
        Some(tenant) => tenants::store::session_generation(&mut conn, tenant).await?,
        None => None,
    };
    Ok((tenant, generation.unwrap_or(NO_GENERATION)))
}

/// The session of a request's cookies, if it has not ended; to lead who has one past the login page.
pub(super) async fn is_signed_in(headers: &HeaderMap, app: &AppState) -> Result<bool, ApiError> {
    let Some(session) = session_of(headers, app)? else {
        return Ok(false);
    };
    let (_, generation) = find_generation(app, &session.key).await?;
    Ok(generation == session.generation)
}

/// The readable session of a request's cookies; `None` for none, a changed or an expired one.
///
/// # Errors
/// 503 when this service has no master keys or its clock is wrong.
fn session_of(headers: &HeaderMap, app: &AppState) -> Result<Option<BrowserSession>, ApiError> {
    let (ring, now) = (&app.custody()?.ring, app.now()?);
    // Anybody on the network, and a sibling host, can set the other name.
    let plain = || {
        (!is_https(headers))
            .then(|| cookie(headers, COOKIE_NAME))
            .flatten()
    };
    let sealed = cookie(headers, SECURE_COOKIE_NAME).or_else(plain);
    Ok(sealed.and_then(|text| BrowserSession::open(ring, text, now).ok()))
}

/// The `Set-Cookie` that signs `key` in.
///
/// # Errors
/// 503 when this service has no master keys or its clock is wrong.
pub(super) async fn sign_in(
    headers: &HeaderMap,
    app: &AppState,
    key: CallerKey,
) -> Result<HeaderValue, ApiError> {
    let (_, generation) = find_generation(app, &key).await?;
    let session = BrowserSession::begin(key, generation, app.now()?);
    let sealed = session.seal(&app.custody()?.ring);
    let seconds = BrowserSession::LIFETIME.as_secs();
    Ok(set_cookie(is_https(headers), &sealed, seconds))
}

/// The `Set-Cookie`s that remove the session from the browser, under both names.
pub(super) fn sign_out() -> [HeaderValue; 2] {
    [true, false].map(|secure| set_cookie(secure, "", 0))
}

fn set_cookie(secure: bool, value: &str, seconds: i64) -> HeaderValue {
    let (name, attribute) = if secure {
        (SECURE_COOKIE_NAME, "; Secure")
    } else {
        (COOKIE_NAME, "")
    };
    let text =
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{attribute}");
    let mut header =
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("farescan_session="));
    header.set_sensitive(true);
    header
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .find_map(|pair| {
            let (found, value) = pair.trim().split_once('=')?;
            (found == name && !value.is_empty()).then_some(value)
        })
}

/// Whether the browser came by https: its own word in `Origin`, or the proxy's.
fn is_https(headers: &HeaderMap) -> bool {
    let begins_with = |name: HeaderName, scheme: &str| {
        headers
            .get(name)
            .is_some_and(|value| value.as_bytes().starts_with(scheme.as_bytes()))
    };
    begins_with(ORIGIN, "https://") || begins_with(FORWARDED_PROTO, "https")
}

/// The page to return to after signing in: this one, or the one with the form that was sent.
fn return_path(parts: &Parts) -> String {
    let page = if parts.method.is_safe() {
        Some(parts.uri.clone())
    } else {
        let sender = parts.headers.get(REFERER);
        sender.and_then(|page| page.to_str().ok()?.parse().ok())
    };
    let path = page.as_ref().and_then(Uri::path_and_query);
    path.map_or_else(|| "/".to_owned(), |path| path.as_str().to_owned())
}
