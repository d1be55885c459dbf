//! A form that spends or creates does so once, however often its button is pressed: each rendered
//! form has its own `Idempotency-Key`.

use maud::{Markup, html};
use uuid::Uuid;

use super::form::FormFields;
use crate::commands::IdempotencyKey;
use crate::contract::ValidationErrors;

const FIELD: &str = "once";

/// The hidden field with a new key.
pub(super) fn once_field() -> Markup {
    html! { input type="hidden" name=(FIELD) value=(Uuid::now_v7()); }
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
