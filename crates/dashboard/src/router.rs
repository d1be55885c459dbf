//! Every route of the dashboard: one `routes()` for each page file.

use axum::{Extension, Router};

use super::api_answer::ApiRoutes;
use super::{
    activity, alerts, ask, assets, channels, deliveries, find, front_page, item, login, monitors,
    overview, prices, scans, unsubscribe, usage,
};
use farescan_core::app::AppState;

/// Every page. `api` answers the routes of files and streams; `demo_key` is the sandbox's, which the
/// login page offers if searches go there.
pub fn pages(api: Router, demo_key: &'static str) -> Router<AppState> {
    Router::new()
        .merge(assets::routes())
        .merge(front_page::routes())
        .merge(login::routes())
        .merge(overview::routes())
        .merge(ask::routes())
        .merge(find::routes())
        .merge(prices::routes())
        .merge(monitors::routes())
        .merge(activity::routes())
        .merge(alerts::routes())
        .merge(channels::routes())
        .merge(unsubscribe::routes())
        .merge(deliveries::routes())
        .merge(usage::routes())
        .merge(scans::routes())
        .merge(item::routes())
        .layer(Extension(ApiRoutes::new(api)))
        .layer(Extension(login::DemoKey(demo_key)))
}
