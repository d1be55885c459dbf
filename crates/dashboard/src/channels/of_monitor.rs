//! One monitor and who hears of its alerts: the notice of its page, whose forms add a channel to it alone
//! (channels.md, rule 30).

use maud::{Markup, html};
use serde_json::{Map, json};

use super::{PATH, all, code_forms, one_step, origin_fields, wants_code};
use crate::failure::PageFailure;
use crate::form::{FormFields, token_field};
use crate::links;
use crate::once::{new_page_key, once_field, once_key};
use crate::session::Session;
use farescan_core::app::error::ApiError;
use farescan_core::commands::IdempotencyKey;
use farescan_core::contract::channels::{Channel, ChannelKind, ChannelStatus};
use farescan_core::contract::monitors::Monitor;
use farescan_core::ids::{ChannelId, Kind, MonitorId};
use farescan_core::monitors::read;
use farescan_core::monitors::update::update_by_form;

/// The field of a form with the monitor whose page it stands on.
pub(super) const MONITOR: &str = "monitor";
/// The most channels with a button.
const MOST: usize = 3;

/// The monitor from whose page a form came.
pub(super) fn origin(entered: &FormFields) -> Option<MonitorId> {
    entered.text(MONITOR)?.parse().ok()
}

/// That nobody hears of the monitor's alerts, or that an address waits for its code, with the forms that
/// change it. Nothing for a monitor without rules or with a webhook.
///
/// # Errors
/// When the database does not answer.
pub(crate) async fn notice(session: &Session, monitor: &Monitor) -> Result<Markup, ApiError> {
    if monitor.alerts.is_empty() || monitor.webhook.is_some() {
        return Ok(html! {});
    }
    let channels = all(session).await?;
    let is_named = |channel: &&Channel| monitor.channels.contains(&channel.id);
    let named: Vec<_> = channels.iter().filter(is_named).collect();
    let pair = (MONITOR.to_owned(), monitor.id.to_string());
    let entered = FormFields::from_pairs(vec![pair]);
    if named.is_empty() {
        return Ok(nobody(session, &entered, &channels));
    }
    let waiting = named.into_iter().find(|channel| wants_code(channel));
    Ok(html! {
        @if let Some(channel) = waiting {
            div class="notice warn" {
                p { b { "Enter the code that was mailed to " (channel.url) ". " } "Alerts are sent there from then on." }
                div class="actions" { (code_forms(session, &entered, channel)) }
            }
        }
    })
}

fn nobody(session: &Session, entered: &FormFields, channels: &[Channel]) -> Markup {
    let has_mail = session
        .app()
        .webhook_guard()
        .check_kind(ChannelKind::Email)
        .is_ok();
    let active = channels
        .iter()
        .filter(|channel| channel.status == ChannelStatus::Active);
    html! {
        div class="notice warn" {
            p { b { "Its alerts are sent to nobody. " } "They stand on the page “" a href=(links::ALERTS) { "Alerts" } "” only." }
            div class="actions" {
                @for channel in active.take(MOST) {
                    form method="post" action={ (PATH) "/" (channel.id) "/monitors" } {
                        (token_field(session))
                        (once_field())
                        (origin_fields(entered))
                        button class="primary" type="submit" { "Send them to " (channel.name) }
                    }
                }
                @if has_mail { (one_step::mail_form(session, entered, channels, None)) }
                a class="button" href=(PATH) { @if has_mail { "Phone or chat" } @else { "Add a channel" } }
            }
        }
    }
}

/// Adds the channel to the monitor, if it lacks it. A monitor that changes meanwhile stays as it is.
pub(super) async fn join(
    session: &Session,
    fields: &FormFields,
    monitor: MonitorId,
    channel: ChannelId,
) -> Result<(), PageFailure> {
    let tenant = session.tenant().ok_or(Kind::Monitor)?;
    let context = session.context()?;
    let pool = session.pool()?;
    let found = read::monitor(pool, context.ring, tenant, monitor, context.now).await?;
    let found = found.ok_or(Kind::Monitor)?;
    if found.channels.contains(&channel) {
        return Ok(());
    }
    let channels: Vec<_> = found.channels.iter().chain([&channel]).collect();
    let patch = Map::from_iter([("channels".to_owned(), json!(channels))]);
    let key = match once_key(fields)? {
        Some(key) => key,
        None => IdempotencyKey::parse(new_page_key().as_bytes())?,
    };
    let guard = session.app().webhook_guard();
    update_by_form(context, guard, monitor, &patch, found.updated_at, &key).await?;
    Ok(())
}
