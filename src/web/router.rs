//! Every route of the dashboard: one `routes()` for each page file.

use axum::Router;
use axum::middleware::from_fn;

use super::{
    alerts, assets, deliveries, error_pages, front_page, item, login, monitors, overview, prices,
    scans, usage,
};
use crate::http::{self, AppState};

/// The public listener: the API and the pages.
pub fn router(app: AppState) -> Router {
    http::router(app, routes()).layer(from_fn(error_pages::show))
}

/// Every page, to be merged into the router of the API.
fn routes() -> Router<AppState> {
    Router::new()
        .merge(assets::routes())
        .merge(front_page::routes())
        .merge(login::routes())
        .merge(overview::routes())
        .merge(prices::routes())
        .merge(monitors::routes())
        .merge(alerts::routes())
        .merge(deliveries::routes())
        .merge(usage::routes())
        .merge(scans::routes())
        .merge(item::routes())
}
