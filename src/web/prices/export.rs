//! The history as files: the same as from the API, for a browser that has a session and no key.

use axum::Router;
use axum::extract::Path;
use axum::http::Uri;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};

use super::subject::path_with;
use crate::contract::Api;
use crate::http::AppState;
use crate::http::HistoryFile;
use crate::web::failure::PageFailure;
use crate::web::session::Session;

const FILES: [(&str, &str, HistoryFile); 3] = [
    ("latest", "Last known prices", HistoryFile::Latest),
    ("series", "Prices by day", HistoryFile::Series),
    (
        "observations",
        "Every observation",
        HistoryFile::Observations,
    ),
];
const FORMATS: [(&str, &str); 3] = [("csv", "CSV"), ("ndjson", "NDJSON"), ("parquet", "Parquet")];

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/prices/{api}/files/{file}", get(file))
}

async fn file(
    session: Session,
    Path((api, file)): Path<(String, String)>,
    uri: Uri,
) -> Result<Response, PageFailure> {
    let found = FILES.iter().find(|(name, ..)| *name == file);
    let (Some(api), Some((.., which))) = (Api::parse(&api), found) else {
        return Err(PageFailure::not_found("file"));
    };
    Ok(session
        .app()
        .history_file(session.caller(), api, *which, &uri)
        .await?)
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
