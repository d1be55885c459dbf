//! The reference page at `/docs` (gateway.md, rule 21; decision 35): Scalar, which reads
//! `/openapi.json` in the browser. The binary contains all its files. Their paths name their
//! content, so browsers keep them until they change.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{Redirect, Response};
use axum::routing::get;
use bytes::Bytes;

use crate::http::AppState;
use crate::http::assets::Asset;
use crate::http::error::ApiError;

/// The page may load its own files, and send requests to this service only. Scalar inserts its
/// style sheet as an element and sets styles of elements.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

struct PageFile {
    name: String,
    asset: Asset,
}

impl PageFile {
    fn new(stem: &str, extension: &str, content_type: &str, content: impl Into<Bytes>) -> Self {
        let asset = Asset::new(content_type, content).immutable();
        Self {
            name: format!("{stem}-{}.{extension}", asset.digest()),
            asset,
        }
    }
}

static SCALAR: LazyLock<PageFile> = LazyLock::new(|| {
    let script = scalar_api_reference::get_asset("scalar.js").unwrap_or_default();
    PageFile::new("scalar", "js", JAVASCRIPT, script)
});
static START: LazyLock<PageFile> = LazyLock::new(|| {
    let script = include_str!("reference_page/start.js");
    PageFile::new("start", "js", JAVASCRIPT, script)
});
static STYLE: LazyLock<PageFile> = LazyLock::new(|| {
    let style = include_str!("reference_page/style.css");
    PageFile::new("style", "css", "text/css; charset=utf-8", style)
});
static PAGE: LazyLock<Asset> = LazyLock::new(|| {
    let page = include_str!("reference_page/page.html")
        .replace("STYLE", &STYLE.name)
        .replace("SCALAR", &SCALAR.name)
        .replace("START", &START.name);
    Asset::new("text/html; charset=utf-8", page)
});

/// The routes of the page.
pub(in crate::http) fn reference_page_routes() -> Router<AppState> {
    Router::new()
        .route("/docs", get(async || Redirect::to("/docs/")))
        .route("/docs/", get(page))
        .route("/docs/{*file}", get(file))
}

async fn page(headers: HeaderMap) -> Response {
    with_policy(PAGE.answer(&headers).await)
}

async fn file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    let files = [&SCALAR, &START, &STYLE];
    let found = files.into_iter().find(|file| file.name == name);
    match found {
        Some(file) => Ok(with_policy(file.asset.answer(&headers).await)),
        None => Err(ApiError::not_found(
            "the documentation page has no such file",
        )),
    }
}

fn with_policy(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(CONTENT_SECURITY_POLICY, POLICY);
    response
}
