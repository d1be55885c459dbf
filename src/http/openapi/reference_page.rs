//! The reference page at `/docs` (gateway.md, rule 21; decision 35): Scalar, which reads
//! `/openapi.json` in the browser. The binary contains all its files. Their paths name their
//! content, so browsers keep them until they change.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::header::{CONTENT_SECURITY_POLICY, HOST};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{Redirect, Response};
use axum::routing::get;
use bytes::Bytes;

use crate::http::AppState;
use crate::http::assets::Asset;
use crate::http::error::ApiError;

/// The page may load its own files. Scalar inserts its style sheet as an element and sets styles of
/// elements. The page may send requests to the API only, where no cookie counts: whoever altered
/// Scalar could not read or send a page of the dashboard as its signed-in reader. A page that it
/// opens is out of its reach by that page's `Cross-Origin-Opener-Policy` (`web::layout`).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     worker-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src";
/// What the page may request: the description and the API.
const REQUESTED: [&str; 2] = ["/openapi.json", "/v1/"];

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
    let page = PAGE.answer(&headers).await;
    with_policy(page, &headers)
}

async fn file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    let files = [&SCALAR, &START, &STYLE];
    let found = files.into_iter().find(|file| file.name == name);
    match found {
        Some(file) => {
            let content = file.asset.answer(&headers).await;
            Ok(with_policy(content, &headers))
        }
        None => Err(ApiError::not_found(
            "the documentation page has no such file",
        )),
    }
}

/// A path of a policy needs a host: that of the request, whose characters `middleware` has checked.
fn with_policy(mut response: Response, headers: &HeaderMap) -> Response {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let policy = match host {
        Some(host) => {
            let [description, api] = REQUESTED.map(|path| format!("{host}{path}"));
            format!("{POLICY} {description} {api}")
        }
        None => format!("{POLICY} 'none'"),
    };
    let none = HeaderValue::from_static("default-src 'none'");
    response.headers_mut().insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::try_from(policy).unwrap_or(none),
    );
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
