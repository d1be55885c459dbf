//! A form that spends or creates does so once, however often its button is pressed: each rendered
//! form has its own `Idempotency-Key`.
//!
//! A page that a browser loads again after Back, and whose key must stay the same, has the key in
//! its URL.

use maud::{Markup, html};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::form::FormFields;
use farescan_core::commands::IdempotencyKey;
use farescan_core::contract::ValidationErrors;

/// The field of a form or URL with the key.
pub(super) const FIELD: &str = "once";

/// The hidden field with a new key.
pub(super) fn once_field() -> Markup {
    once_field_with(&new_page_key())
}

/// The same for a link to the page of such a form: the page has the link's key, also after Back and
/// a reload.
pub(super) fn once_pair() -> String {
    format!("{FIELD}={}", new_page_key())
}

/// The same for a form whose body was entered on the page before, with [`once_text_for`].
pub(super) fn once_field_for(entered: &FormFields, body: &str) -> Markup {
    once_field_with(&once_text_for(entered, body))
}

/// The hidden field with this key.
pub(super) fn once_field_with(key: &str) -> Markup {
    html! { input type="hidden" name=(FIELD) value=(key); }
}

/// A new key for the URL of a page.
pub(super) fn new_page_key() -> String {
    Uuid::now_v7().to_string()
}

/// Whether a page was requested with a key of [`new_page_key`] in its URL.
pub(super) fn has_page_key(query: &FormFields) -> bool {
    page_key(query).is_some()
}

fn page_key(fields: &FormFields) -> Option<Uuid> {
    fields.text(FIELD)?.parse().ok()
}

/// The key of a form for a body: from the key of its page, or of the page where the body was
/// entered, and from the body. So the form that is loaded again, after Back, has the same key as
/// long as it would do the same.
pub(super) fn once_text_for(fields: &FormFields, body: &str) -> String {
    let page = page_key(fields).unwrap_or_else(Uuid::now_v7);
    let digest = Sha256::digest(body);
    let digest: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{page}-{digest}")
}

/// The key that a page or its link has, to be kept on the way to the form.
pub(super) fn once_of(fields: &FormFields) -> Option<(String, String)> {
    let key = fields.text(FIELD)?;
    Some((FIELD.to_owned(), key.to_owned()))
}

/// The key of a form that was sent.
///
/// # Errors
/// When it is no valid key.
pub(super) fn once_key(fields: &FormFields) -> Result<Option<IdempotencyKey>, ValidationErrors> {
    fields
        .text(FIELD)
        .map(|key| IdempotencyKey::parse(key.as_bytes()))
        .transpose()
}
