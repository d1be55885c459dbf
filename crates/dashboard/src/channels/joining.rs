//! The monitors that exist and a channel that was added after them (channels.md, rule 30).

use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use farescan_sheets::channel::{Hearing, hearing};
use farescan_sheets::numbers::counted;
use maud::{Markup, html};
use serde_json::{Map, json};

use super::{active, origin_fields, own, with_origin};
use crate::failure::PageFailure;
use crate::form::{FormFields, SessionForm, token_field};
use crate::links;
use crate::once::{new_page_key, once_field, once_key};
use crate::session::Session;
use farescan_core::app::error::ApiError;
use farescan_core::commands::{CommandError, IdempotencyKey};
use farescan_core::contract::channels::Channel;
use farescan_core::contract::monitors::{Monitor, MonitorsQuery};
use farescan_core::ids::{ChannelId, Kind};
use farescan_core::monitors::read;
use farescan_core::monitors::update::update_by_form;

/// The query field of `/channels` with the channel whose monitors are shown.
pub(super) const OF: &str = "of";
/// The field of a form that also takes monitors whose channels were chosen.
const CHOSEN: &str = "chosen";
/// The most monitors of a page, and the most names in a list.
const PAGE: &str = "500";
const MOST_NAMED: usize = 20;

/// The page of channels with the monitors of one.
pub(super) fn path(id: ChannelId) -> String {
    links::with_query(links::CHANNELS, OF, &id.to_string())
}

/// The caller's monitors, each with what adding the channel to it would do.
async fn monitors(
    session: &Session,
    channel: &Channel,
) -> Result<Vec<(Hearing, Monitor)>, ApiError> {
    let Some(tenant) = session.tenant() else {
        return Ok(Vec::new());
    };
    let active = active(session).await?;
    let (pool, custody) = (session.pool()?, session.custody()?);
    let now = session.app().now()?;
    let (mut all, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let next = cursor.as_deref().map(|cursor| ("cursor", cursor));
        let query = MonitorsQuery::from_query([("limit", PAGE)].into_iter().chain(next))?;
        let page = read::monitors(pool, &custody.ring, tenant, &query, now).await?;
        let page_of = |monitor| (hearing(channel, &active, &monitor), monitor);
        all.extend(page.data.into_iter().map(page_of));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(all);
        }
    }
}

/// How many monitors name the channel, and the buttons that make others do so.
pub(super) async fn card(
    session: &Session,
    entered: &FormFields,
    channel: &Channel,
) -> Result<Markup, ApiError> {
    let monitors = monitors(session, channel).await?;
    if monitors.is_empty() {
        return Ok(html! {
            section class="card" { p class="hint" { "You have no monitor yet. A new one uses " (channel.name) "." } }
        });
    }
    let of = |wanted: Hearing| -> Vec<&Monitor> {
        let those = monitors.iter().filter(|(hearing, _)| *hearing == wanted);
        those.map(|(_, monitor)| monitor).collect()
    };
    let [hear, join, chosen, full] = [
        Hearing::Hears,
        Hearing::Joins,
        Hearing::Chosen,
        Hearing::Full,
    ]
    .map(of);
    Ok(html! {
        section class="card stack-16" {
            h2 { "Monitors that use " (channel.name) ": " (hear.len()) " of " (monitors.len()) }
            @if !join.is_empty() {
                (button(session, entered, channel, false, &format!("Also use it for my {}", counted(join.len() as u64, "monitor"))))
            }
            @if !chosen.is_empty() {
                div {
                    p { "You chose other channels for:" }
                    (names(&chosen))
                }
                (button(session, entered, channel, true, "Also use it for these"))
            }
            @if !full.is_empty() {
                div {
                    p { "These have as many channels as a monitor may have:" }
                    (names(&full))
                }
            }
        }
    })
}

fn names(monitors: &[&Monitor]) -> Markup {
    html! {
        ul class="plain-list" {
            @for monitor in monitors.iter().take(MOST_NAMED) {
                li { a href={ (links::monitor(monitor.id)) "/edit" } { (monitor.name) } }
            }
            @if monitors.len() > MOST_NAMED {
                li { (counted((monitors.len() - MOST_NAMED) as u64, "more monitor")) }
            }
        }
    }
}

fn button(
    session: &Session,
    entered: &FormFields,
    channel: &Channel,
    chosen: bool,
    label: &str,
) -> Markup {
    html! {
        form method="post" action={ (links::CHANNELS) "/" (channel.id) "/monitors" } {
            (token_field(session))
            (once_field())
            (origin_fields(entered))
            @if chosen { input type="hidden" name=(CHOSEN) value="true"; }
            button class=[(!chosen).then_some("primary")] type="submit" { (label) }
        }
    }
}

/// Adds the channel to each monitor that the button spoke of. One that changes meanwhile stays as it is. A
/// process that dies leaves the rest for another press.
pub(super) async fn join(
    Path(id): Path<String>,
    form: SessionForm,
) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    let id = own(&id)?;
    let channel = active(&session)
        .await?
        .into_iter()
        .find(|channel| channel.id == id);
    let channel = channel.ok_or(Kind::Channel)?;
    let wanted = match fields.text(CHOSEN) {
        Some(_) => Hearing::Chosen,
        None => Hearing::Joins,
    };
    let key = once_key(&fields)?;
    let key = match key {
        Some(key) => key,
        None => IdempotencyKey::parse(new_page_key().as_bytes())?,
    };
    let guard = session.app().webhook_guard();
    // One that cannot be changed keeps none of the others.
    let mut refused = None;
    for (_, monitor) in monitors(&session, &channel)
        .await?
        .into_iter()
        .filter(|(hearing, _)| *hearing == wanted)
    {
        let channels: Vec<_> = monitor.channels.iter().chain([&id]).collect();
        let patch = Map::from_iter([("channels".to_owned(), json!(channels))]);
        let (context, seen) = (session.context()?, monitor.updated_at);
        match update_by_form(context, guard, monitor.id, &patch, seen, &key).await {
            Ok(_) | Err(CommandError::NotFound(_)) => {}
            Err(error) => refused = Some(error),
        }
    }
    if let Some(error) = refused {
        return Err(error.into());
    }
    Ok(Redirect::to(&with_origin(&path(id), &fields)).into_response())
}
