//! `/find`: the box in the head of every page, and that of Home. An id leads to its page, a whole question to
//! its answer, other text to the scans and monitors that contain it. What nothing contains is asked as well.

use axum::Router;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use maud::{Markup, html};

use super::failure::PageFailure;
use super::form::{FormFields, MAX_FILTER_CHARS};
use super::layout::{NavItem, page};
use super::parts::head;
use super::session::Session;
use super::{ask, links, monitors, scans};
use farescan_core::app::AppState;
use farescan_core::contract::monitors::{Monitor, MonitorsQuery};
use farescan_core::contract::scans::{Scan, ScansQuery};
use farescan_core::ids::AnyId;
use farescan_core::monitors::read as read_monitors;
use farescan_core::scans::read as read_scans;

/// Scans and monitors on the page, of each the newest.
const MOST: u16 = 10;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(links::FIND, get(find))
}

async fn find(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    let text = query.text("q").map(str::trim).unwrap_or_default();
    if let Some(path) = path_of_id(text) {
        return Ok(Redirect::to(&path).into_response());
    }
    // A whole question costs no search of the lists.
    if ask::is_question(&session, text)? {
        return Ok(Redirect::to(&links::question(text)).into_response());
    }
    let is_comparable = (1..=MAX_FILTER_CHARS).contains(&text.chars().count())
        && !text.chars().any(char::is_control);
    let (scans, monitors) = match session.tenant().filter(|_| is_comparable) {
        Some(_) => containing(&session, text).await?,
        None => (Vec::new(), Vec::new()),
    };
    if scans.is_empty() && monitors.is_empty() {
        return Ok(Redirect::to(&links::question(text)).into_response());
    }
    let body = found(&session, text, &scans, &monitors).await?;
    Ok(page(&session, "Find", NavItem::Home, body))
}

/// The page of an id, whether or not it exists.
fn path_of_id(text: &str) -> Option<String> {
    AnyId::parse(text).map(links::of)
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
        (head(&html! {}, "Find", &html! { "Scans and monitors with each word of “" (text) "” in their name, label, tags, airports or hotel." }, &html! { a class="button clip" href=(links::question(text)) { "Ask “" (text) "”" } }))
        section class="card" { (ask::find_or_ask_box(text)) }
        @if !monitors.is_empty() {
            section class="card" { h2 { "Monitors" } (monitor_rows) }
        }
        @if !scans.is_empty() {
            section class="card" {
                div class="card-head" {
                    h2 { "Scans" }
                    @if is_cut { a href=(links::with_query("/scans", "text", text)) { "All of them" } }
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
        let channels = path_of_id(&format!("chn_{digits}"));
        assert_eq!(channels.as_deref(), Some(links::CHANNELS));
        assert_eq!(path_of_id(&format!("att_{digits}")), None);
        assert_eq!(path_of_id("scn_1"), None);
        assert_eq!(path_of_id("tel aviv"), None);
    }
}
