//! `/scans/new/cost`: what the fields of the form would cost, for the line that the script keeps
//! beside the form's button. It searches nothing and stores nothing.

use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use farescan_sheets::numbers::{count, counted, duration, range};
use serde::Serialize;

use super::new_form::{self, endpoint_of, label};
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::session::Session;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::contract::FieldError;
use farescan_core::contract::scans::ScanPreview;
use farescan_core::scans;

pub(super) const PATH: &str = "/scans/new/cost";

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(PATH, get(cost))
}

/// What the script shows: the cost, or what is wrong with fields that the person has left.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum LiveCost {
    Cost(String),
    Wrong(Vec<WrongField>),
}

#[derive(Debug, Serialize)]
struct WrongField {
    /// Its name in the form; of a range of dates without `.from` and `.to`.
    name: String,
    text: String,
}

/// The preview of the API, under the limits of the page that shows it whole.
async fn cost(session: Session, fields: FormFields) -> Result<Response, PageFailure> {
    let _permits = session.submission_permits().await?;
    let body = new_form::body(endpoint_of(&fields), &fields);
    let pace = &session.custody()?.pace;
    let live = match scans::preview::preview(session.context()?, pace, &body).await {
        Ok(preview) => LiveCost::Cost(sentence(&preview)),
        Err(error) => match ApiError::from(error) {
            error if error.details().is_empty() => return Err(error.into()),
            error => LiveCost::Wrong(error.details().iter().map(wrong).collect()),
        },
    };
    Ok(Json(live).into_response())
}

/// `14 searches: 14 to 28 requests, about 14 s`.
fn sentence(preview: &ScanPreview) -> String {
    let left = preview
        .plan_requests_remaining
        .map_or_else(String::new, |left| {
            format!("; {} left of your plan", count(left))
        });
    format!(
        "{}: {} requests, about {}{left}",
        counted(preview.items, "search"),
        range(preview.requests.least, preview.requests.most),
        duration(preview.seconds)
    )
}

fn wrong(error: &FieldError) -> WrongField {
    let found = error
        .found
        .as_ref()
        .map_or_else(String::new, |found| format!("found {found}; "));
    let name = form_name(&error.field);
    WrongField {
        text: format!("{}: {found}expected {}", label(name), error.expected),
        name: name.to_owned(),
    }
}

/// `from_airport` of `request.from_airport`, `departure_date` of `sweep.departure_date.from`, `tags`
/// of `tags[0]`.
fn form_name(path: &str) -> &str {
    let mut parts = path.split('.');
    let first = parts.next().unwrap_or(path);
    let name = parts.next().unwrap_or(first);
    name.split('[').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_the_field_of_the_form() {
        for (path, name) in [
            ("request.from_airport", "from_airport"),
            ("sweep.departure_date.from", "departure_date"),
            ("sweep.nights[2]", "nights"),
            ("tags[0]", "tags"),
            ("max_requests", "max_requests"),
        ] {
            assert_eq!(form_name(path), name, "{path}");
        }
    }
}
