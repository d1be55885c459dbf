//! One monitor and who hears of its alerts: the notice of its page, whose forms add a channel to it alone
//! (channels.md, rule 30).

use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Map, json};

use super::{PATH, all, code_forms, one_step, origin_fields, own, wants_code};
use crate::failure::PageFailure;
use crate::form::{FormFields, SessionForm, token_field};
use crate::links;
use crate::once::{new_page_key, once_field, once_key};
use crate::session::Session;
use farescan_core::app::error::ApiError;
use farescan_core::commands::{CommandError, IdempotencyKey};
use farescan_core::contract::channels::{Channel, ChannelKind, ChannelPause, ChannelStatus};
use farescan_core::contract::monitors::Monitor;
use farescan_core::ids::{ChannelId, Kind, MonitorId};
use farescan_core::monitors::read;
use farescan_core::monitors::update::{FormUpdate, update_by_form};

/// The field of a form with the monitor whose page it stands on.
pub(super) const MONITOR: &str = "monitor";
/// The most channels with a button.
const MOST: usize = 3;
/// How often a monitor that changes meanwhile is read again.
const TRIES: usize = 3;

/// The monitor from whose page a form came.
pub(super) fn origin(entered: &FormFields) -> Option<MonitorId> {
    entered.text(MONITOR)?.parse().ok()
}

/// Which channels get the monitor's alerts; or that nobody does, with the forms that change it. Nothing for
/// a monitor without rules or with a webhook that is on.
///
/// # Errors
/// When the database does not answer.
pub(crate) async fn notice(session: &Session, monitor: &Monitor) -> Result<Markup, ApiError> {
    let webhook = monitor.webhook.as_ref();
    let is_webhook_on = webhook.is_some_and(|webhook| webhook.off_at.is_none());
    if monitor.alerts.is_empty() || is_webhook_on {
        return Ok(html! {});
    }
    let channels = all(session).await?;
    let is_active = |channel: &&Channel| channel.status == ChannelStatus::Active;
    let mut named = channels
        .iter()
        .filter(|channel| monitor.channels.contains(&channel.id));
    let active: Vec<_> = named.clone().filter(is_active).collect();
    if !active.is_empty() {
        return Ok(html! {
            p class="hint" {
                "Alerts go to "
                @for (index, channel) in active.iter().enumerate() { @if index > 0 { ", " } (channel.name) " (" (channel.url) ")" }
                "."
            }
        });
    }
    let waiting = named.clone().find(|channel| wants_code(channel));
    let guard = session.app().webhook_guard();
    let has_mail = guard.check_kind(ChannelKind::Email).is_ok();
    let pair = (MONITOR.to_owned(), monitor.id.to_string());
    let entered = FormFields::from_pairs(vec![pair]);
    let others = links::with_query(PATH, MONITOR, &monitor.id.to_string());
    Ok(html! {
        div class="notice warn" {
            p {
                b { "Its alerts are sent to nobody. " }
                @match (waiting, named.next()) {
                    (Some(channel), _) => { (channel.name) " (" (channel.url) ") waits for the code that is mailed to it." }
                    (None, Some(channel)) => { "Paused: " (channel.name) "." }
                    (None, None) => { "They stand on the page “" a href=(links::ALERTS) { "Alerts" } "” only." }
                }
            }
            @if let Some(channel) = waiting { div class="actions" { (code_forms(session, &entered, channel)) } }
            div class="actions" {
                @for channel in channels.iter().filter(is_active).take(MOST) {
                    form method="post" action={ (PATH) "/" (channel.id) "/monitor" } {
                        (token_field(session))
                        (once_field())
                        (origin_fields(&entered))
                        button class="primary" type="submit" { "Send them to " (channel.name) }
                    }
                }
                @if has_mail { (one_step::mail_form(session, &entered, &channels, None)) }
                a class="button" href=(others) { @if has_mail { "Phone or chat" } @else { "Add a channel" } }
            }
        }
    })
}

/// Makes the channel one of its monitor's.
pub(super) async fn add(
    Path(id): Path<String>,
    form: SessionForm,
) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    let monitor = origin(&fields).ok_or(Kind::Monitor)?;
    join(&session, &fields, monitor, own(&id)?).await?;
    Ok(Redirect::to(&links::monitor(monitor)).into_response())
}

/// Makes the channel one of the monitor's, in place of an address that nobody has confirmed.
pub(super) async fn join(
    session: &Session,
    fields: &FormFields,
    monitor: MonitorId,
    channel: ChannelId,
) -> Result<(), PageFailure> {
    let tenant = session.tenant().ok_or(Kind::Monitor)?;
    let unconfirmed: Vec<_> = all(session)
        .await?
        .into_iter()
        .filter(|of| of.status_reason == Some(ChannelPause::Unconfirmed))
        .map(|of| of.id)
        .collect();
    let key = match once_key(fields)? {
        Some(key) => key,
        None => IdempotencyKey::parse(new_page_key().as_bytes())?,
    };
    let context = session.context()?;
    let (pool, guard) = (session.pool()?, session.app().webhook_guard());
    for _ in 0..TRIES {
        let found = read::monitor(pool, context.ring, tenant, monitor, context.now).await?;
        let found = found.ok_or(Kind::Monitor)?;
        if found.channels.contains(&channel) {
            return Ok(());
        }
        let kept = found.channels.iter().filter(|id| !unconfirmed.contains(id));
        let channels: Vec<_> = kept.chain([&channel]).collect();
        let patch = Map::from_iter([("channels".to_owned(), json!(channels))]);
        let seen = found.updated_at;
        let update = update_by_form(context, guard, monitor, &patch, seen, &key).await?;
        if matches!(update, FormUpdate::Stored(_)) {
            return Ok(());
        }
    }
    let message =
        "the monitor changes all the time; the channel is made: choose it on the monitor's form";
    Err(CommandError::InvalidState(message.to_owned()).into())
}
