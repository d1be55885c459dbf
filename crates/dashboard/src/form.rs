//! Forms: their fields, and the proof that a page of the same session sent them (security.md, rule 31).
//!
//! A request that may change something must come from a page of this service (`Sec-Fetch-Site`, or
//! `Origin` where the browser sends no such header) and carry the session's form token. Either one
//! would do; both are checked. Each form has the token under a mask of its own, so the length of a
//! compressed page reveals nothing of it.

use std::convert::Infallible;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::civil::Date;
use maud::{Markup, html};
use rand::Rng as _;

use super::failure::PageFailure;
use super::session::Session;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::app::extract::{SEARCH_BODY, read_bytes};
use farescan_core::contract::{FieldValue as _, MAX_KEY_BYTES, ValidationError, ValidationErrors};
use farescan_core::tenants::TOKEN_BYTES;

/// The field with the session's form token.
const TOKEN_FIELD: &str = "form_token";
/// The longest text of a filter of a list, in characters.
pub(super) const MAX_FILTER_CHARS: usize = 200;
/// The field with the key that [`check_current_key`] checks.
const CURRENT_KEY_FIELD: &str = "current_key";
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The fields of a form in their order. A name may occur more than once.
#[derive(Debug, Clone, Default)]
pub(super) struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Parses `application/x-www-form-urlencoded`: a form's body or a query string.
    pub(super) fn parse(encoded: &[u8]) -> Self {
        Self(form_urlencoded::parse(encoded).into_owned().collect())
    }

    /// These fields.
    pub(super) fn from_pairs(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }

    /// These and others.
    pub(super) fn with(mut self, more: impl IntoIterator<Item = (String, String)>) -> Self {
        self.0.extend(more);
        self
    }

    /// The trimmed text of a field; `None` if it is absent or blank.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The trimmed texts of every field of this name that is not blank.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(found, _)| found == name)
            .map(|(_, text)| text.trim())
            .filter(|text| !text.is_empty())
    }

    /// The date of a field; `None` if it is absent or blank.
    pub(super) fn date(&self, name: &str) -> Result<Option<Date>, ValidationErrors> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let expected = "a date in the years 0 to 9999, such as 2027-01-14";
        Date::read(&text.into())
            .map(Some)
            .map_err(|_| ValidationError::new(name, &text.into(), expected).into())
    }

    /// Names and trimmed texts in their order, without blank ones: what [`Self::text`] sees.
    pub(super) fn filled(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs()
            .map(|(name, text)| (name, text.trim()))
            .filter(|(_, text)| !text.is_empty())
    }

    /// Names and texts in their order, without the form token.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .filter(|(name, _)| name != TOKEN_FIELD)
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

/// The query of a page.
impl<S: Sync> FromRequestParts<S> for FormFields {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::parse(
            parts.uri.query().unwrap_or_default().as_bytes(),
        ))
    }
}

/// A form that a page of this session sent: what every handler of a POST takes.
#[derive(Debug)]
pub(super) struct SessionForm {
    pub(super) session: Session,
    pub(super) fields: FormFields,
}

impl FromRequest<AppState> for SessionForm {
    type Rejection = PageFailure;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, PageFailure> {
        let (parts, body) = request.into_parts();
        check_same_origin(&parts.headers)?;
        let session = Session::open(&parts, app, true).await?;
        let fields = FormFields::parse(&read_bytes(body, SEARCH_BODY).await?);
        let sent = fields.text(TOKEN_FIELD).unwrap_or_default();
        if unmasked(sent).is_some_and(|sent| is_equal(&sent, session.form_token())) {
            Ok(Self { session, fields })
        } else {
            Err(PageFailure::ForeignForm)
        }
    }
}

/// A text that is compared with stored ones.
///
/// # Errors
/// When it is longer than [`MAX_FILTER_CHARS`] or has control characters.
pub(super) fn short_text(
    fields: &FormFields,
    name: &str,
) -> Result<Option<String>, ValidationErrors> {
    let Some(text) = fields.text(name) else {
        return Ok(None);
    };
    if text.chars().count() <= MAX_FILTER_CHARS && !text.chars().any(char::is_control) {
        return Ok(Some(text.to_owned()));
    }
    let expected = format!("text of at most {MAX_FILTER_CHARS} characters");
    Err(ValidationError::new(name, &text.into(), expected).into())
}

/// The hidden field that every form of a session has.
pub(super) fn token_field(session: &Session) -> Markup {
    html! { input type="hidden" name=(TOKEN_FIELD) value=(masked(session.form_token())); }
}

/// The field for the key of the session, where a copied cookie must not be enough.
pub(super) fn current_key_field(id: &str) -> Markup {
    html! {
        div class="field" {
            label for=(id) { "Current key" }
            input id=(id) name=(CURRENT_KEY_FIELD) type="password" autocomplete="current-password" spellcheck="false" required maxlength=(MAX_KEY_BYTES);
            span class="hint" { "The key that you signed in with." }
        }
    }
}

/// Checks that whoever sent a form knows the key, and has not only the cookie.
///
/// # Errors
/// 400: the form's current key is not that of the session.
pub(super) fn check_current_key(session: &Session, fields: &FormFields) -> Result<(), ApiError> {
    let given = fields.text(CURRENT_KEY_FIELD).unwrap_or_default();
    if is_equal(given.as_bytes(), session.caller().key.expose().as_bytes()) {
        return Ok(());
    }
    Err(ApiError::invalid_request(
        "the current key is not the one that this session signed in with; enter it again",
    ))
}

/// A new mask and the token under it, in base64url.
fn masked(token: &[u8; TOKEN_BYTES]) -> String {
    let mut mask = [0; TOKEN_BYTES];
    rand::rng().fill_bytes(&mut mask);
    URL_SAFE_NO_PAD.encode([mask, xor(mask, token)].concat())
}

fn unmasked(text: &str) -> Option<[u8; TOKEN_BYTES]> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (mask, token) = bytes.split_first_chunk()?;
    Some(xor(*mask, token.try_into().ok()?))
}

fn xor(mask: [u8; TOKEN_BYTES], token: &[u8; TOKEN_BYTES]) -> [u8; TOKEN_BYTES] {
    std::array::from_fn(|at| mask[at] ^ token[at])
}

/// Checks that a page of this service sent the request.
///
/// # Errors
/// [`PageFailure::ForeignForm`] otherwise, also if the request says nothing about its origin: every
/// browser does.
pub(super) fn check_same_origin(headers: &HeaderMap) -> Result<(), PageFailure> {
    let is_own = match headers.get(FETCH_SITE) {
        Some(site) => site == "same-origin",
        None => is_own_origin(headers),
    };
    if is_own {
        Ok(())
    } else {
        Err(PageFailure::ForeignForm)
    }
}

fn is_own_origin(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let (Some(origin), Some(host)) = (text(ORIGIN), text(HOST)) else {
        return false;
    };
    let authority = origin
        .strip_prefix("https://")
        .or_else(|| origin.strip_prefix("http://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

/// Compares without revealing by its duration where the two differ.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .fold(0, |differ, (a, b)| differ | (a ^ b))
            == 0
}
