//! Channels: where a person hears of alerts.

use farescan_contract::channels::{
    Channel, ChannelKind, ChannelPause, ChannelStatus, NoticePriority,
};
use farescan_contract::monitors::{MAX_CHANNELS, Monitor, NotifySettings};

use crate::sheet::{Cell, Column, Link, Table, Tone, Value};

/// The channels as rows.
pub fn list(channels: &[Channel]) -> Table {
    let columns = [
        Column::text("Name"),
        Column::text("Kind"),
        Column::text("To").rank(2),
        Column::text("Status"),
        Column::text("Sends"),
        Column::text("Last success").rank(3),
    ];
    let rows = channels.iter().map(|channel| {
        let held = channel.held.as_ref();
        let held = held.map(|held| Value::muted(format!("{} held", held.fired)));
        let sends = std::iter::once(sends(channel).into()).chain(held);
        let last = channel.last_success_at.map(Value::at);
        let cells: [Cell; 6] = [
            vec![channel.name.clone().into()],
            vec![kind_words(channel.kind).into()],
            vec![channel.url.clone().into()],
            status(channel),
            sends.collect(),
            vec![last.unwrap_or(Value::Absent("nothing yet"))],
        ];
        (Some(Link::of(channel.id)), cells)
    });
    Table::new("Channels", columns, rows)
}

/// Whether a channel hears of a monitor, or would if it were added to those that exist (channels.md, rule 30).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hearing {
    /// The monitor names it.
    Hears,
    /// The monitor does not, and nothing speaks against it.
    Joins,
    /// The monitor names as many as it may.
    Full,
    /// Its channels were chosen: when the monitor was last changed, it left another active one out.
    Chosen,
}

/// What adding `channel` to a monitor would do; `active` are the caller's active channels.
pub fn hearing(channel: &Channel, active: &[Channel], monitor: &Monitor) -> Hearing {
    let names = |channel: &Channel| monitor.channels.contains(&channel.id);
    let is_left_out = |other: &Channel| {
        other.id != channel.id && other.created_at <= monitor.updated_at && !names(other)
    };
    if names(channel) {
        Hearing::Hears
    } else if monitor.channels.len() >= MAX_CHANNELS {
        Hearing::Full
    } else if active.iter().any(is_left_out) {
        Hearing::Chosen
    } else {
        Hearing::Joins
    }
}

/// What a kind is called.
pub const fn kind_words(kind: ChannelKind) -> &'static str {
    match kind {
        ChannelKind::Ntfy => "ntfy",
        ChannelKind::Slack => "Slack",
        ChannelKind::Email => "email",
        ChannelKind::Apprise => "Apprise",
    }
}

/// Whether it sends, and why not.
fn status(channel: &Channel) -> Cell {
    match (channel.status, channel.status_reason) {
        (ChannelStatus::Active, _) => match channel.failing_since {
            Some(since) => vec![
                Value::word(Tone::Warn, "failing"),
                Value::Time("since", since),
            ],
            None => vec![Value::word(Tone::Good, "active")],
        },
        (ChannelStatus::Paused, reason) => {
            let why = reason.map(|reason| Value::muted(pause_words(reason)));
            std::iter::once(Value::word(Tone::Warn, "paused"))
                .chain(why)
                .collect()
        }
    }
}

/// Why a channel is paused.
const fn pause_words(reason: ChannelPause) -> &'static str {
    match reason {
        ChannelPause::ByCaller => "by you",
        ChannelPause::Failing => "nothing was accepted for three days",
        ChannelPause::Gone => "its receiver is gone",
        ChannelPause::Unconfirmed => "waits for its code",
        ChannelPause::Unsubscribed => "its reader has unsubscribed",
    }
}

/// What is sent, and when: `all alerts`, `urgent alerts, not from 22:00 to 07:00 in Europe/London`.
fn sends(channel: &Channel) -> String {
    let what = match channel.least_priority {
        NoticePriority::Low => "all alerts",
        NoticePriority::Normal => "prices",
        NoticePriority::High => "urgent alerts",
    };
    match &channel.notify {
        Some(notify) => format!("{what}, {} in {}", when(notify), channel.timezone),
        None => what.to_owned(),
    }
}

fn when(notify: &NotifySettings) -> String {
    let quiet = notify.quiet_hours.as_ref().map(|hours| {
        format!(
            "not from {} to {}",
            hours.from.as_str(),
            hours.until.as_str()
        )
    });
    let digest = notify
        .digest_at
        .as_ref()
        .map(|at| format!("together at {}", at.as_str()));
    let parts: Vec<_> = digest.into_iter().chain(quiet).collect();
    parts.join(", ")
}
