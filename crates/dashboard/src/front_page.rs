//! `/`: the overview for a browser, a short index of the API for a program.

use axum::http::header::VARY;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;

use super::links;
use farescan_core::app::AppState;
use farescan_core::app::accept::prefers_html;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/", get(front_page))
}

async fn front_page(headers: HeaderMap) -> Response {
    let response = if prefers_html(&headers) {
        Redirect::to(links::OVERVIEW).into_response()
    } else {
        index().into_response()
    };
    ([(VARY, HeaderValue::from_static("accept"))], response).into_response()
}

fn index() -> Json<serde_json::Value> {
    Json(json!({
        "service": "farescan",
        "version": env!("CARGO_PKG_VERSION"),
        "key": "send your marketplace key in the header `x-api-key`",
        "description": "/openapi.json",
        "documentation": "/docs/",
        "dashboard": links::OVERVIEW,
        "search": [
            "POST /v1/flights/oneway", "POST /v1/flights/roundtrip",
            "POST /v1/hotels/search", "POST /v1/hotels/by-name", "POST /v1/hotels/rooms"
        ],
        "scans": "POST /v1/scans",
        "monitors": "POST /v1/monitors",
        "history": ["GET /v1/history/flights", "GET /v1/history/hotels"],
        "account": ["GET /v1/verify", "GET /v1/quota", "GET /v1/usage"]
    }))
}
