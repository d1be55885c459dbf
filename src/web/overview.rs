//! `/overview`: what runs, what needs a decision, and what was spent.

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use maud::html;

use super::layout::{NavItem, page};
use super::session::Session;
use crate::http::AppState;

pub(super) const PATH: &str = "/overview";

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(PATH, get(overview))
}

async fn overview(session: Session) -> Response {
    page(
        &session,
        "Overview",
        NavItem::Overview,
        html! { h1 { "Overview" } },
    )
}
