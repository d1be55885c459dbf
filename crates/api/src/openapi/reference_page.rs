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

use crate::AppState;
use farescan_core::app::assets::Asset;
use farescan_core::app::error::ApiError;

/// Two policies, and both hold. The page may load its own files; Scalar inserts its style sheet as an
/// element and sets styles of elements. It may send requests to this service, and there to the API
/// only, where no cookie counts: whoever altered Scalar could not read or send a page of the dashboard
/// as its signed-in reader. A page that it opens is out of its reach by that page's
/// `Cross-Origin-Opener-Policy` (`dashboard::layout`). A path needs a host, and `'self'` has none.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; worker-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none', \
     connect-src *:*/openapi.json *:*/v1/",
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
pub(crate) fn reference_page_routes() -> Router<AppState> {
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

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    /// Another release of Scalar changes this digest: look at what its script does before you change
    /// it here.
    #[test]
    fn the_script_of_others_is_the_one_that_was_looked_at() {
        let script = scalar_api_reference::get_asset("scalar.js").unwrap();
        let digest: String = Sha256::digest(&script)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            digest,
            "93951f1794b0463b87ab58d0557a6610075af79a9f94c2a3f261c993bc7f3913",
            "{} bytes",
            script.len()
        );
    }
}
