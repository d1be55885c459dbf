//! A form that spends or creates does so once, however often its button is pressed: each rendered
//! form has its own `Idempotency-Key`.

use maud::{Markup, html};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::form::FormFields;
use crate::commands::IdempotencyKey;
use crate::contract::ValidationErrors;

const FIELD: &str = "once";

/// The hidden field with a new key.
pub(super) fn once_field() -> Markup {
    html! { input type="hidden" name=(FIELD) value=(Uuid::now_v7()); }
}

/// The same for a link to the page of such a form: the page has the link's key, also after Back and
/// a reload.
pub(super) fn once_pair() -> String {
    format!("{FIELD}={}", Uuid::now_v7())
}

/// The same for a form whose body was entered on the page before: the key comes from that page's
/// [`once_field`] and from the body. So the form that is loaded again, after Back, has the same key
/// as long as it would do the same.
pub(super) fn once_field_for(entered: &FormFields, body: &str) -> Markup {
    let page = entered.text(FIELD).and_then(|key| key.parse().ok());
    let page = page.unwrap_or_else(Uuid::now_v7);
    let digest = Sha256::digest(body);
    let digest: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    html! { input type="hidden" name=(FIELD) value={ (page) "-" (digest) }; }
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
