//! `/find`: the box in the head of every page. An id leads to its page; other text to the scans and monitors that contain it.
//! What nothing contains is read as a question.

use axum::Router;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use maud::{Markup, html};

use super::failure::PageFailure;
use super::form::FormFields;
use super::layout::{NavItem, page};
use super::parts::{item_path, scan_path, with_query};
use super::session::Session;
use super::{ask, links, monitors, scans};
use farescan_core::app::AppState;
use farescan_core::contract::monitors::{Monitor, MonitorsQuery};
use farescan_core::contract::scans::{Scan, ScansQuery};
use farescan_core::ids::{ChannelId, ItemId};
use farescan_core::monitors::read as read_monitors;
use farescan_core::scans::read as read_scans;

/// Scans and monitors on the page, of each the newest.
const MOST: u16 = 10;
/// The longest text that is compared with stored ones, in characters: as in the filters of scans.
const MAX_CHARS: usize = 200;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(links::FIND, get(find))
}

async fn find(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    let text = query.text("q").map(str::trim).unwrap_or_default();
    if let Some(path) = path_of_id(text) {
        return Ok(Redirect::to(&path).into_response());
    }
    let is_comparable =
        (1..=MAX_CHARS).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    let (scans, monitors) = match session.tenant().filter(|_| is_comparable) {
        Some(_) => containing(&session, text).await?,
        None => (Vec::new(), Vec::new()),
    };
    if scans.is_empty() && monitors.is_empty() {
        return Ok(Redirect::to(&ask::path_of(text)).into_response());
    }
    let body = found(&session, text, &scans, &monitors).await?;
    Ok(page(&session, "Find", NavItem::Ask, body))
}

/// The page of an id, whether or not it exists.
fn path_of_id(text: &str) -> Option<String> {
    if let Ok(id) = text.parse() {
        return Some(scan_path(id));
    }
    if let Ok(id) = text.parse::<ItemId>() {
        return Some(item_path(id));
    }
    if text.parse::<ChannelId>().is_ok() {
        return Some(links::CHANNELS.to_owned());
    }
    if let Ok(id) = text.parse() {
        return Some(links::monitor(id));
    }
    if let Ok(id) = text.parse() {
        return Some(links::alert(id));
    }
    text.parse().ok().map(links::delivery)
}

/// The newest scans and monitors of the caller that contain a text.
async fn containing(
    session: &Session,
    text: &str,
) -> Result<(Vec<Scan>, Vec<Monitor>), PageFailure> {
    let _permits = session.heavy_read_permits().await?;
    let (context, pool) = (session.context()?, session.pool()?);
    let Some(tenant) = session.tenant() else {
        return Ok((Vec::new(), Vec::new()));
    };
    let most = MOST.to_string();
    let pairs = [("text", text), ("limit", &most)];
    let scans = read_scans::scans(pool, tenant, &ScansQuery::from_query(pairs)?).await?;
    let (query, ring, now) = (MonitorsQuery::from_query(pairs)?, context.ring, context.now);
    let monitors = read_monitors::monitors(pool, ring, tenant, &query, now).await?;
    Ok((scans.data, monitors.data))
}

async fn found(
    session: &Session,
    text: &str,
    scans: &[Scan],
    monitors: &[Monitor],
) -> Result<Markup, PageFailure> {
    let is_cut = scans.len() >= usize::from(MOST);
    let monitor_rows = monitors::rows(session, monitors).await?;
    Ok(html! {
        div class="head" {
            div {
                h1 { "Find" }
                p class="sub" { "Scans and monitors with “" (text) "” in their name, label, tags, airports or hotel." }
            }
            div class="actions" { a class="button clip" href=(ask::path_of(text)) { "Ask “" (text) "”" } }
        }
        @if !monitors.is_empty() {
            section class="card" { h2 { "Monitors" } (monitor_rows) }
        }
        @if !scans.is_empty() {
            section class="card" {
                div class="card-head" {
                    h2 { "Scans" }
                    @if is_cut { a href=(with_query("/scans", "text", text)) { "All of them" } }
                }
                (scans::table("Scans", scans))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_leads_to_its_page_and_a_word_to_none() {
        let digits = "01970a1b2c3d7e4f8a9b0c1d2e3f4a5b";
        for (prefix, path) in [
            ("scn", "/scans/"),
            ("itm", "/items/"),
            ("mon", "/monitors/"),
            ("alr", "/alerts/"),
            ("dlv", "/deliveries/"),
        ] {
            let id = format!("{prefix}_{digits}");
            assert_eq!(path_of_id(&id), Some(format!("{path}{id}")));
        }
        let channel = format!("chn_{digits}");
        assert_eq!(path_of_id(&channel).as_deref(), Some("/channels"));
        assert_eq!(path_of_id("scn_1"), None);
        assert_eq!(path_of_id("tel aviv"), None);
    }
}
