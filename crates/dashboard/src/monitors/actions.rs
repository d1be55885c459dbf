//! What the buttons of a monitor do, through the commands of the API.

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::post;
use maud::html;

use super::one::render;
use super::webhook::secret_notice;
use crate::failure::PageFailure;
use crate::form::{SessionForm, check_current_key};
use crate::layout::{NavItem, page};
use crate::links;
use crate::once::once_key;
use crate::parts;
use crate::scans as scan_pages;
use crate::session::Session;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::commands::CommandError;
use farescan_core::ids::{MonitorId, TenantId};
use farescan_core::monitors::control;
use farescan_core::monitors::deliveries;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/monitors/{id}/run", post(run))
        .route("/monitors/{id}/pause", post(pause))
        .route("/monitors/{id}/resume", post(resume))
        .route("/monitors/{id}/delete", post(delete))
        .route("/monitors/{id}/test", post(test))
        .route("/monitors/{id}/enable-webhook", post(enable_webhook))
        .route("/monitors/{id}/rotate-secret", post(rotate_secret))
}

/// Goes to `path` after success; a refusal that a person can mend is shown on the monitor's page.
async fn answer(
    session: &Session,
    (tenant, id): (TenantId, MonitorId),
    done: Result<String, CommandError>,
) -> Result<Response, PageFailure> {
    match done {
        Ok(path) => Ok(Redirect::to(&path).into_response()),
        Err(
            refused @ (CommandError::InvalidState(_)
            | CommandError::LimitExceeded { .. }
            | CommandError::NotAccepted(_)),
        ) => {
            let error = ApiError::from(refused);
            let refused = Some((error.status(), error.message()));
            render(session, tenant, id, None, refused).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn run(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let session = &form.session;
    let found = session.owned::<MonitorId>(&id)?;
    let key = once_key(&form.fields)?;
    let pace = &session.custody()?.pace;
    let done = control::run::run(session.context()?, pace, found.1, key.as_ref()).await;
    let done = done.map(|run| {
        let path = links::of(run.response.id);
        // The same button makes no second run.
        if run.replayed {
            scan_pages::already_started_path(&path)
        } else {
            path
        }
    });
    answer(session, found, done).await
}

async fn pause(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let session = &form.session;
    let found = session.owned::<MonitorId>(&id)?;
    let done = control::pause::pause(session.context()?, found.1).await;
    answer(session, found, done.map(|_| links::monitor(found.1))).await
}

async fn resume(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let session = &form.session;
    let found = session.owned::<MonitorId>(&id)?;
    let key = once_key(&form.fields)?;
    let pace = &session.custody()?.pace;
    let done = control::resume::resume(session.context()?, pace, found.1, key.as_ref()).await;
    answer(session, found, done.map(|_| links::monitor(found.1))).await
}

async fn delete(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let session = &form.session;
    let found = session.owned::<MonitorId>(&id)?;
    let done = control::delete::delete(session.context()?, found.1).await;
    answer(session, found, done.map(|()| links::MONITORS.to_owned())).await
}

async fn test(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let session = &form.session;
    let found = session.owned::<MonitorId>(&id)?;
    let key = once_key(&form.fields)?;
    let done = deliveries::send_test(session.context()?, found.1, key.as_ref()).await;
    let done = done.map(|sent| links::delivery(sent.response.id));
    answer(session, found, done).await
}

async fn enable_webhook(
    Path(id): Path<String>,
    form: SessionForm,
) -> Result<Response, PageFailure> {
    let session = &form.session;
    let (_, id) = session.owned::<MonitorId>(&id)?;
    deliveries::enable_webhook(session.context()?, id).await?;
    Ok(Redirect::to(&links::monitor(id)).into_response())
}

/// Shows the new secret once, on a page that no browser stores.
async fn rotate_secret(Path(id): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let session = &form.session;
    let (tenant, id) = session.owned::<MonitorId>(&id)?;
    if let Err(refused) = check_current_key(session, &form.fields) {
        let refused = Some((StatusCode::UNPROCESSABLE_ENTITY, refused.message()));
        return render(session, tenant, id, None, refused).await;
    }
    let rotated = deliveries::rotate_secret(session.context()?, id).await?;
    let body = html! {
        (parts::head(&html! {}, "New signing secret", &html! {}, &html! {}))
        (secret_notice(&rotated.webhook_secret))
        p { "Until " (parts::time(rotated.old_secret_until)) " each try is also signed with the old secret." }
        p { a class="button" href=(links::monitor(id)) { "Back to the monitor" } }
    };
    let mut response = page(session, "New signing secret", NavItem::Monitors, body);
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
