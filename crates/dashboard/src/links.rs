//! The paths of the pages, so that one page leads to another without importing it.

use farescan_core::ids::{AnyId, DeliveryId, Kind, MonitorId};

pub(super) const LOGIN: &str = "/login";
pub(super) const LOGOUT: &str = "/logout";
pub(super) const ASK: &str = "/ask";
/// The field of [`ASK`] and [`FIND`] with the text, and of [`CHANNELS`] with the question to come back to.
pub(super) const QUESTION: &str = "q";
/// The field of [`ASK`] that says so; see [`watch`].
pub(super) const WATCH: &str = "watch";
pub(super) const FIND: &str = "/find";
/// The question before everything is resumed: browsers open the panel that has the fragment.
pub(super) const RESUME_ALL: &str = "/usage#resume-all";
/// The same before everything is paused.
pub(super) const PAUSE_ALL: &str = "/usage#pause-all";
pub(super) const OVERVIEW: &str = "/overview";
pub(super) const ACTIVITY: &str = "/activity";
pub(super) const MONITORS: &str = "/monitors";
pub(super) const CHANNELS: &str = "/channels";
pub(super) const ALERTS: &str = "/alerts";
pub(super) const DELIVERIES: &str = "/deliveries";

/// The page of a resource; channels share one.
pub(super) fn of(id: impl Into<AnyId>) -> String {
    let id = id.into();
    match id.kind {
        Kind::Channel => CHANNELS.to_owned(),
        kind => format!("/{}/{id}", kind.plural()),
    }
}

pub(super) fn monitor(id: MonitorId) -> String {
    of(id)
}

/// The markets of a monitor over its runs.
pub(super) fn parity(id: MonitorId) -> String {
    format!("{}/parity", monitor(id))
}

pub(super) fn delivery(id: DeliveryId) -> String {
    of(id)
}

/// The page of a question in words.
pub(super) fn question(text: &str) -> String {
    with_query(ASK, QUESTION, text)
}

/// The same page for whoever has searched and now wants an alert: the cursor is in the amount.
pub(super) fn watch(text: &str) -> String {
    with_query(&question(text), WATCH, "true")
}

/// The page of channels, from which a person comes back to a question.
pub(super) fn channels_for(question: &str) -> String {
    with_query(CHANNELS, QUESTION, question)
}

/// The login page, which leads to `path` afterwards.
pub(super) fn login_then(path: &str) -> String {
    with_query(LOGIN, "next", path)
}

/// `path` with one more field in its query.
pub(super) fn with_query(path: &str, name: &str, value: &str) -> String {
    let pair = form_urlencoded::Serializer::new(String::new())
        .append_pair(name, value)
        .finish();
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}{pair}")
}
