//! Which channels hear of a monitor's alerts: the choice of its form (channels.md, rule 7).

use farescan_sheets::channel::kind_words;
use maud::{Markup, html};
use serde_json::Value;

use crate::form::FormFields;
use crate::links;
use farescan_core::contract::channels::{Channel, ChannelStatus};
use farescan_core::contract::monitors::MAX_CHANNELS;

/// The field with the id of a channel; each chosen one has its own.
pub(super) const FIELD: &str = "channel";

/// The fields, with each active channel chosen where they name none: what a new monitor begins with.
pub(super) fn with_active(fields: FormFields, channels: &[Channel]) -> FormFields {
    if fields.text(FIELD).is_some() {
        return fields;
    }
    let active = channels
        .iter()
        .filter(|channel| channel.status == ChannelStatus::Active);
    let chosen = active.take(MAX_CHANNELS);
    fields.with(chosen.map(|channel| (FIELD.to_owned(), channel.id.to_string())))
}

/// The chosen ids for a body; an empty list removes all that a monitor names.
pub(super) fn ids(fields: &FormFields) -> Value {
    fields.all(FIELD).collect()
}

/// A box for each channel of the caller. The chosen ones come first and in their order, so that a form
/// that is sent back changes nothing.
pub(super) fn markup(channels: &[Channel], fields: &FormFields) -> Markup {
    let chosen: Vec<_> = fields.all(FIELD).collect();
    let place = |channel: &Channel| {
        let id = channel.id.to_string();
        chosen.iter().position(|chosen| *chosen == id)
    };
    let mut rows: Vec<_> = channels
        .iter()
        .map(|channel| (place(channel), channel))
        .collect();
    rows.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
    html! {
        @if rows.is_empty() {
            p class="sub" {
                "You have no channel: " a href=(links::CHANNELS) { "add one" } " to hear of the alerts on a phone or in a chat."
            }
        } @else {
            fieldset class="field wide" {
                legend { "Channels that hear of its alerts" }
                div class="choices" {
                    @for (place, channel) in &rows {
                        label {
                            input type="checkbox" name=(FIELD) value=(channel.id) checked[place.is_some()];
                            (channel.name) " (" (kind_words(channel.kind))
                            @if channel.status == ChannelStatus::Paused { ", paused" }
                            ")"
                        }
                    }
                }
            }
        }
    }
}

/// The names of the channels of a list of ids; an id that is nobody's stands for itself.
pub(super) fn names(channels: &[Channel], ids: &Value) -> String {
    let ids = ids.as_array().map(Vec::as_slice).unwrap_or_default();
    let name = |id: &Value| {
        let id = id.as_str().unwrap_or_default();
        let named = channels.iter().find(|channel| channel.id.to_string() == id);
        named.map_or_else(|| id.to_owned(), |channel| channel.name.clone())
    };
    ids.iter().map(name).collect::<Vec<_>>().join(", ")
}
