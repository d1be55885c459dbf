//! The style sheet, the script and the icon. Each path names the content's digest, so browsers keep
//! a file until it changes.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;

use farescan_core::app::AppState;
use farescan_core::app::assets::Asset;
use farescan_core::app::error::ApiError;

struct File {
    path: String,
    asset: Asset,
}

static STYLE: LazyLock<File> = LazyLock::new(|| {
    File::new(
        "css",
        "text/css; charset=utf-8",
        concat!(
            include_str!("assets/style.css"),
            include_str!("assets/scans.css"),
            include_str!("assets/charts.css"),
            include_str!("assets/prices.css"),
        ),
    )
});
static SCRIPT: LazyLock<File> = LazyLock::new(|| {
    File::new(
        "js",
        "text/javascript; charset=utf-8",
        include_str!("assets/script.js"),
    )
});
static ICON: LazyLock<File> =
    LazyLock::new(|| File::new("svg", "image/svg+xml", include_str!("assets/icon.svg")));

impl File {
    fn new(extension: &str, content_type: &str, content: &'static str) -> Self {
        let asset = Asset::new(content_type, content).immutable();
        Self {
            path: format!("/assets/farescan-{}.{extension}", asset.digest()),
            asset,
        }
    }
}

/// The path of the style sheet.
pub(super) fn style_path() -> &'static str {
    &STYLE.path
}

/// The path of the script.
pub(super) fn script_path() -> &'static str {
    &SCRIPT.path
}

/// The path of the icon.
pub(super) fn icon_path() -> &'static str {
    &ICON.path
}

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/assets/{file}", get(file))
}

async fn file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    let files = [&STYLE, &SCRIPT, &ICON];
    let found = files
        .into_iter()
        .find(|file| file.path.strip_prefix("/assets/") == Some(&name));
    match found {
        Some(file) => Ok(file.asset.answer(&headers).await),
        None => Err(ApiError::not_found("the dashboard has no such file")),
    }
}
