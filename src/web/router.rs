//! Every route of the dashboard: one `routes()` for each page file.

use axum::Router;

use super::{
    alerts, assets, deliveries, front_page, item, login, monitors, overview, prices, scans, usage,
};
use crate::http::AppState;

/// Every page, to be merged into the router of the API (`http::router`).
pub fn routes() -> Router<AppState> {
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
