//! Saved views: named filters above the list of scans. Each is a link, so it works in any browser
//! of its caller and can be passed on.

use axum::Router;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::post;
use maud::{Markup, html};

use super::filters::{self, ListFilters};
use crate::failure::PageFailure;
use crate::form::{FormFields, SessionForm, token_field};
use crate::parts::ConfirmationPage;
use crate::session::Session;
use farescan_core::app::AppState;
use farescan_core::scans::saved_views::{self, MAX_NAME_CHARS, SavedView};

const PATH: &str = "/scans/views";
const DELETE_PATH: &str = "/scans/views/delete";

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(PATH, post(save))
        .route(DELETE_PATH, post(delete))
}

/// The links of the caller's views; and the form that saves the shown filters, or deletes the shown
/// view.
pub(super) async fn parts(
    session: &Session,
    filters: &ListFilters,
) -> Result<[Markup; 2], PageFailure> {
    let views = match session.tenant() {
        Some(tenant) => saved_views::list(session.pool()?, tenant).await?,
        None => Vec::new(),
    };
    let here = filters.encoded();
    let shown = views.iter().find(|view| view.query == here);
    let links = html! {
        @if !views.is_empty() {
            nav class="tabs views" aria-label="Saved views" {
                @for view in &views {
                    a href=(filters::path(&view.query)) aria-current=[(Some(view) == shown).then_some("true")] { (view.name) }
                }
            }
        }
    };
    let form = match shown {
        Some(view) => delete_form(session, view),
        None if !filters.is_empty() => save_form(session, &here),
        None => html! {},
    };
    Ok([links, html! { div class="save-view-line" { (form) } }])
}

fn save_form(session: &Session, query: &str) -> Markup {
    html! {
        form class="save-view" method="post" action=(PATH) {
            (token_field(session))
            input type="hidden" name="query" value=(query);
            label for="view-name" { "Save these filters as" }
            input id="view-name" name="name" required maxlength=(MAX_NAME_CHARS) placeholder="a name";
            button type="submit" { "Save view" }
        }
    }
}

fn delete_form(session: &Session, view: &SavedView) -> Markup {
    ConfirmationPage::new(
        DELETE_PATH,
        "Delete this view",
        "Delete the view",
        html! { p { "Deletes the view " b { (view.name) } ". Its scans stay." } },
    )
    .destructive()
    .fields(html! { input type="hidden" name="name" value=(view.name); })
    .render(session)
}

/// Stores the filters as this page writes them, so that a view never has one that is not known.
async fn save(form: SessionForm) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    let given = FormFields::parse(fields.text("query").unwrap_or_default().as_bytes());
    let view = SavedView {
        name: fields.text("name").unwrap_or_default().to_owned(),
        query: ListFilters::read(&given)?.encoded(),
    };
    saved_views::save(session.context()?, &view).await?;
    Ok(Redirect::to(&filters::path(&view.query)).into_response())
}

async fn delete(form: SessionForm) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    if let (Some(tenant), Some(name)) = (session.tenant(), fields.text("name")) {
        saved_views::delete(session.pool()?, tenant, name).await?;
    }
    Ok(Redirect::to(super::PATH).into_response())
}
