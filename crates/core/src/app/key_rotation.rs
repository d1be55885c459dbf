//! A caller moves to a new key (`POST /v1/account/rotate-key`), for the API and the dashboard.

use super::AppState;
use super::api_request::request_context;
use super::auth::ApiKey;
use super::error::ApiError;
use super::key_check::{KeyVerification, probe_apis};
use super::key_guessing::KeyVerdict;
use super::request_id::current_request_id;
use crate::contract::key_rotation::{KeyRotation, NewKey};
use crate::contract::{Api, FieldValue as _, ValidationError};
use crate::search::CallerKey;
use crate::tenants::rotate::{Rotation, check_rotation, rotate};

impl AppState {
    /// Moves the caller to a new key.
    ///
    /// # Errors
    /// Those of `POST /v1/account/rotate-key`.
    pub async fn rotate_key(
        &self,
        caller: &ApiKey,
        new_key: &NewKey,
    ) -> Result<Rotation, ApiError> {
        if new_key.expose() == caller.key.expose() {
            let expected = format!("{}, other than the key of this request", NewKey::expected());
            return Err(ValidationError::secret("new_key", expected).into());
        }
        let context = request_context(self, caller)?;
        let (pool, ring, old, now) = (context.pool, context.ring, context.key, context.now);
        let new = ApiKey::without_permits(CallerKey::new(new_key.expose()), "new_key");
        if let Some(before) = check_rotation(pool, ring, old, &new.key, now).await? {
            return Ok(before);
        }
        let verification = check_new_key(self, &new).await?;
        // The check of the key may have taken minutes.
        let rotation = rotate(pool, ring, old, &new.key, self.now()?).await?;
        verification.charge(self, &new);
        self.record_acceptance(&new.key).await;
        Ok(rotation)
    }
}

/// Has the marketplace check the new key: a key that it rejects would lock its owner out.
async fn check_new_key(app: &AppState, new: &ApiKey) -> Result<KeyVerification, ApiError> {
    let permit = app.admit_search(&new.key).await?;
    let request_id = current_request_id().unwrap_or_default();
    let mut verification = probe_apis(app, new, None, &request_id).await;
    let verdict = verification.verdict();
    permit.record_verdict(verdict);
    match (verdict, verification.take_failure()) {
        (KeyVerdict::Accepted, _) => Ok(verification),
        (_, Some(failure)) => Err(failure),
        _ => Err(ApiError::invalid_request(
            ValidationError::secret(
                "new_key",
                "a key that the marketplace accepts; it rejected this one",
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
