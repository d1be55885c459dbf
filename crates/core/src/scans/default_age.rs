//! The age of answers that a submission takes if it names none: the default of its caller (scans.md,
//! rule 90). It counts as given, and is stored with the scan.

use std::borrow::Cow;

use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::store;
use crate::contract::FieldValue as _;
use crate::contract::scans::Samples;
use crate::ids::TenantId;

/// The field of a submission.
const FIELD: &str = "max_age_seconds";

/// The body with its caller's default age, if it needs one and its caller has set one.
pub(super) async fn with_default_age<'a>(
    conn: &mut PgConnection,
    tenant: Option<TenantId>,
    body: &'a Map<String, Value>,
) -> sqlx::Result<Cow<'a, Map<String, Value>>> {
    if names_age(body) || has_samples(body) {
        return Ok(Cow::Borrowed(body));
    }
    let age = match tenant {
        Some(tenant) => store::default_max_age(conn, tenant).await?,
        None => None,
    };
    let Some(age) = age else {
        return Ok(Cow::Borrowed(body));
    };
    let mut body = body.clone();
    body.insert(FIELD.to_owned(), age.into());
    Ok(Cow::Owned(body))
}

fn names_age(body: &Map<String, Value>) -> bool {
    body.get(FIELD).is_some_and(|age| !age.is_null())
}

/// Samples are equal searches that are all wanted, so no age is possible.
fn has_samples(body: &Map<String, Value>) -> bool {
    let samples = body.get("sweep").and_then(|sweep| sweep.get("samples"));
    samples
        .and_then(|samples| Samples::read(samples).ok())
        .is_some_and(|samples| samples.get() > 1)
}
