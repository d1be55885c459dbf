//! The Swagger UI page at `/docs`. The binary contains all its files; the online validator is
//! disabled.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::Path;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{Redirect, Response};
use axum::routing::get;
use bytes::Bytes;
use utoipa_swagger_ui::{Config, serve};

use crate::http::AppState;
use crate::http::assets::Asset;
use crate::http::error::ApiError;

/// The page may load its own files and the description. Swagger UI uses inline styles.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

const INDEX: &str = "index.html";
/// The files of the page.
const FILES: [&str; 8] = [
    INDEX,
    "index.css",
    "swagger-ui.css",
    "swagger-ui-bundle.js",
    "swagger-ui-standalone-preset.js",
    "swagger-initializer.js",
    "favicon-16x16.png",
    "favicon-32x32.png",
];

/// The routes of the page.
pub(in crate::http) fn swagger_ui_routes() -> Router<AppState> {
    Router::new()
        .route("/docs", get(async || Redirect::to("/docs/")))
        .route(
            "/docs/",
            get(async |headers: HeaderMap| file(INDEX, &headers).await),
        )
        .route(
            "/docs/{*file}",
            get(async |Path(name): Path<String>, headers: HeaderMap| file(&name, &headers).await),
        )
}

async fn file(name: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    static ASSETS: LazyLock<Vec<(&str, Asset)>> = LazyLock::new(assets);
    let (_, asset) = ASSETS
        .iter()
        .find(|(file, _)| *file == name)
        .ok_or_else(|| ApiError::not_found("the documentation page has no such file"))?;
    let mut response = asset.answer(headers).await;
    response
        .headers_mut()
        .insert(CONTENT_SECURITY_POLICY, POLICY);
    Ok(response)
}

fn assets() -> Vec<(&'static str, Asset)> {
    let config = Arc::new(
        Config::from("/openapi.json")
            .validator_url("none")
            .try_it_out_enabled(true),
    );
    let found = FILES.iter().filter_map(|name| {
        let file = serve(name, Arc::clone(&config)).ok().flatten()?;
        let bytes = match file.bytes {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => bytes.into(),
        };
        Some((*name, Asset::new(&file.content_type, bytes)))
    });
    found.collect()
}
