//! `/v1/usage` and `/v1/account` (jobs-api, "Account").

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};

use super::AppState;
use super::auth::Caller;
use super::docs::{ListErrors, RotationErrors};
use super::error::ApiError;
use super::extract::{Pairs, SEARCH_BODY, bytes};
use super::guesses::Verdict;
use super::layers::request_id;
use super::scans::{desk, mark_replayed, next_page, tenant};
use super::verify::{self, Checked};
use crate::account::usage;
use crate::contract::rotation::{KeyRotation, NewKey, RotateKeyRequest};
use crate::contract::usage::{Usage, UsageQuery};
use crate::contract::{Api, Fault, FieldValue as _};
use crate::search::CallerKey;
use crate::tenants::rotate::{Rotation, look, rotate};

/// Read what scans have cost
///
/// Billed requests from the attempts on record, by UTC day, endpoint or scan. What a deleted scan had cost stays: it was billed.
#[utoipa::path(
    get, path = "/v1/usage", operation_id = "get_usage", tag = "Account", params(UsageQuery),
    responses((status = 200, description = "The usage; `Link` names the next page of scans", body = Usage), ListErrors)
)]
pub(super) async fn usage(
    State(app): State<AppState>,
    caller: Caller,
    pairs: Pairs,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let query = UsageQuery::from_query(pairs.iter())?;
    let usage = usage::usage(desk.pool, tenant(desk).await?, &query, desk.now).await?;
    Ok((
        next_page("/v1/usage", &pairs, usage.next_cursor.as_deref()),
        Json(usage),
    )
        .into_response())
}

/// Pass everything to a new key
///
/// The old key is the one that the request comes with; what it owns, its lanes too, is the new key's from then on, and the old key is an
/// unknown caller's. The marketplace checks the new key first, and nothing passes to one that it refuses. Keys held for live scans are sealed anew, and lanes that the old key's refusal had stopped go on. Sent again within
/// two days because its answer was lost, it is answered the same (`Idempotent-Replayed: true`).
#[utoipa::path(
    post, path = "/v1/account/rotate-key", operation_id = "rotate_key", tag = "Account", request_body = RotateKeyRequest,
    responses((status = 200, description = "What has passed", body = KeyRotation), RotationErrors)
)]
pub(super) async fn rotate_key(
    State(app): State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let desk = desk(&app, &caller)?;
    let extensions = request.extensions().clone();
    let new_key =
        RotateKeyRequest::from_bytes(&bytes(request.into_body(), SEARCH_BODY).await?)?.new_key;
    if new_key.expose() == caller.key.expose() {
        let allowed = format!("{}, another than this request came with", NewKey::allowed());
        return Err(Fault::secret("new_key", allowed).into());
    }
    let new = Caller::uncounted(CallerKey::new(new_key.expose()), "new_key");
    let rotation = match look(desk.pool, desk.ring, desk.key, &new.key, desk.now).await? {
        Some(before) => before,
        None => {
            let checked = check(&app, &new, request_id(&extensions)).await?;
            let rotation = rotate(desk.pool, desk.ring, desk.key, &new.key, desk.now).await?;
            checked.charge(&app, &new);
            app.record_acceptance(&new.key).await;
            rotation
        }
    };
    Ok((
        mark_replayed(rotation.repeated),
        Json(KeyRotation::from(rotation)),
    )
        .into_response())
}

/// Has the marketplace check the key that is to take over: with one that it refuses, its owner would be locked out.
async fn check(app: &AppState, new: &Caller, request_id: &str) -> Result<Checked, ApiError> {
    let pass = app.admit_search(&new.key).await?;
    let mut checked = verify::check(app, new, None, request_id).await;
    let verdict = checked.verdict();
    pass.learn(verdict);
    match (verdict, checked.take_failure()) {
        (Verdict::Accepted, _) => Ok(checked),
        (_, Some(failure)) => Err(failure),
        _ => Err(ApiError::invalid_request(
            Fault::secret(
                "new_key",
                "a key that the marketplace accepts: it refuses this one",
            )
            .to_string(),
        )),
    }
}

impl From<Rotation> for KeyRotation {
    fn from(rotation: Rotation) -> Self {
        let lanes_resumed = rotation
            .lanes_resumed
            .iter()
            .filter_map(|lane| Api::parse(lane))
            .collect();
        Self {
            rotated_at: rotation.at,
            held_keys: rotation.held_keys,
            lanes_resumed,
        }
    }
}
