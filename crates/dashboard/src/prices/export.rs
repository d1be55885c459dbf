//! The history as files: the same as from the API, for a browser that has a session and no key.

use axum::extract::{Path, RawQuery};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use maud::{Markup, html};

use crate::api_answer::ApiRoutes;
use crate::failure::PageFailure;
use crate::parts::path_with;
use crate::session::Session;
use farescan_core::app::AppState;
use farescan_core::contract::Api;

/// The name of each file, its title, and its path below `/v1/history/{api}`.
const FILES: [(&str, &str, &str); 3] = [
    ("latest", "Last known prices", "/latest"),
    ("series", "Prices by day", "/series"),
    ("observations", "Every observation", ""),
];
const FORMATS: [(&str, &str); 3] = [("csv", "CSV"), ("ndjson", "NDJSON"), ("parquet", "Parquet")];

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/prices/{api}/files/{file}", get(file))
}

async fn file(
    session: Session,
    Extension(routes): Extension<ApiRoutes>,
    Path((api, file)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, PageFailure> {
    let found = FILES.iter().find(|(name, ..)| *name == file);
    let (Some(api), Some((.., below))) = (Api::parse(&api), found) else {
        return Err(PageFailure::not_found("file"));
    };
    let path = format!("/v1/history/{api}{below}");
    let query = query.unwrap_or_default();
    routes.get(session, &path, &query, &headers).await
}

/// Links to every file of a query; `pairs` has the range that `latest` needs.
pub(super) fn links(pairs: &[(&'static str, String)], api: Api) -> Markup {
    let link = |file: &str, format: &str| {
        let own = pairs.iter().map(|(name, text)| (*name, text.clone()));
        path_with(
            &format!("/prices/{api}/files/{file}"),
            own.chain([("format", format.to_owned())]),
        )
    };
    html! {
        section class="card no-print" {
            h2 { "Files" }
            dl class="kv" {
                @for (file, title, _) in FILES {
                    dt { (title) }
                    dd {
                        @for (place, (format, name)) in FORMATS.iter().enumerate() {
                            @if place > 0 { " · " }
                            a href=(link(file, format)) download { (name) }
                        }
                    }
                }
            }
        }
    }
}
