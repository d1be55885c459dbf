//! The message of several notices that are sent together.

use jiff::Timestamp;

use super::of_alerts::DETAILS;
use super::plain;
use crate::contract::channels::{ChannelAlerts, ChannelNotice, NoticeLink, NoticePriority};
use crate::ids::ChannelId;

/// The most notices in a message. Further ones are only counted.
pub const MAX_NOTICES: usize = 20;
/// The longest line of a notice within others, in characters.
const MAX_LINE: usize = 160;

/// The message of one notice.
pub fn single(channel: ChannelId, fired: u64, notice: ChannelNotice) -> ChannelAlerts {
    ChannelAlerts {
        channel_id: channel,
        fired,
        truncated: false,
        notices: vec![notice],
    }
}

/// A held message that a further notice joins: the newest first.
pub fn joined(mut held: ChannelAlerts, fired: u64, notice: ChannelNotice) -> ChannelAlerts {
    held.notices.insert(0, notice);
    held.truncated |= held.notices.len() > MAX_NOTICES;
    held.notices.truncate(MAX_NOTICES);
    held.fired = held.fired.saturating_add(fired);
    held
}

/// A message that says that it is a test.
pub fn test_message(channel: ChannelId, name: &str, now: Timestamp) -> ChannelAlerts {
    let lines = vec![
        plain(&format!("The channel \"{name}\" works."), MAX_LINE),
        "Nothing has happened.".to_owned(),
    ];
    single(channel, 0, of_no_alert("This is a test", lines, now))
}

/// The mail that asks whether alerts may be sent to an address. It has no word of its caller: whoever
/// reads it has not asked for any.
pub fn confirmation(channel: ChannelId, now: Timestamp) -> ChannelAlerts {
    let lines = vec![
        "Somebody wants price alerts of farescan to be sent to this address.".to_owned(),
        "If that is you, enter the code where you have entered the address.".to_owned(),
        "If it is not, do nothing: without the code nothing else is sent.".to_owned(),
    ];
    single(channel, 0, of_no_alert("Confirm this address", lines, now))
}

/// The same with its code, which is not stored.
pub fn with_code(mut confirmation: ChannelAlerts, code: &str) -> ChannelAlerts {
    let half = code.len() / 2;
    let shown = code.split_at_checked(half);
    let shown = shown.map_or_else(|| code.to_owned(), |(a, b)| format!("{a}-{b}"));
    if let Some(notice) = confirmation.notices.first_mut() {
        let line = format!("Code: {shown} (valid for 24 hours, if no later mail has another)");
        notice.lines.insert(0, line);
    }
    confirmation
}

fn of_no_alert(title: &str, lines: Vec<String>, now: Timestamp) -> ChannelNotice {
    ChannelNotice {
        monitor_id: None,
        alert_id: None,
        title: title.to_owned(),
        lines,
        price: None,
        currency: None,
        observed_at: None,
        verdict: None,
        priority: NoticePriority::Normal,
        links: Vec::new(),
        fired_at: now,
    }
}

/// One notice for a message: its only one, or the titles of all.
pub(super) fn of_message(alerts: &ChannelAlerts) -> ChannelNotice {
    match alerts.notices.as_slice() {
        [only] => only.clone(),
        notices => of_several(alerts, notices),
    }
}

fn of_several(alerts: &ChannelAlerts, notices: &[ChannelNotice]) -> ChannelNotice {
    let line = |notice: &ChannelNotice| plain(&format!("• {}", notice.title), MAX_LINE);
    let mut lines: Vec<_> = notices.iter().map(line).collect();
    if alerts.truncated {
        lines.push("… and older ones".to_owned());
    }
    let newest = notices.first();
    ChannelNotice {
        monitor_id: None,
        alert_id: None,
        title: format!("{} alerts", alerts.fired),
        lines,
        price: None,
        currency: None,
        observed_at: None,
        verdict: None,
        priority: notices
            .iter()
            .map(|notice| notice.priority)
            .max()
            .unwrap_or(NoticePriority::Low),
        links: newest.and_then(all_alerts).into_iter().collect(),
        fired_at: newest.map_or(Timestamp::UNIX_EPOCH, |notice| notice.fired_at),
    }
}

/// The page of all alerts, beside that of one.
fn all_alerts(notice: &ChannelNotice) -> Option<NoticeLink> {
    let page = notice.links.iter().find(|link| link.text == DETAILS)?;
    let (pages, _) = page.url.rsplit_once('/')?;
    Some(NoticeLink {
        text: "All alerts".to_owned(),
        url: pages.to_owned(),
    })
}
