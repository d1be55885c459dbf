//! Validates what a caller asks of a channel.

use reqwest::Url;
use serde_json::{Map, Value};

use crate::contract::channels::{ChannelKind, ChannelUrl};
use crate::contract::monitors::NotifySettings;
use crate::contract::{FieldValue as _, ValidationError, ValidationErrors};
use crate::notices;
use crate::webhooks::Guard;

/// How many of a target's last characters are shown, and how long the rest must be for that.
const SHOWN_CHARS: usize = 4;
const LEAST_HIDDEN: usize = 12;

/// The errors of the fields of a body that depend on each other or on a setting; each field alone was
/// checked when the body was read.
pub(super) fn errors_across(
    kind: Option<ChannelKind>,
    body: &Map<String, Value>,
    guard: Guard,
) -> ValidationErrors {
    let mut errors = ValidationErrors::default();
    let url = body.get("url").and_then(|url| ChannelUrl::read(url).ok());
    if let (Some(kind), Some(url)) = (kind, &url) {
        let is_set_up = guard.check_kind(kind);
        let is_by_http = !matches!(kind, ChannelKind::Email | ChannelKind::Apprise);
        let refused = is_by_http.then(|| guard.check_field("url", url.as_str()).err());
        let unfit = || {
            let expected = notices::check_target(kind, url.as_str()).err()?;
            Some(ValidationError::secret("url", expected))
        };
        let unfit = refused.flatten().or_else(unfit);
        for error in is_set_up.err().into_iter().chain(unfit) {
            errors.push(error);
        }
    }
    let has_token = body.get("token").is_some_and(|token| !token.is_null());
    if has_token && kind.is_some_and(|kind| kind != ChannelKind::Ntfy) {
        let expected = "no token: only a channel of kind `ntfy` has one";
        errors.push(ValidationError::secret("token", expected));
    }
    let notify = body.get("notify");
    if let Some(notify) = notify.and_then(|notify| NotifySettings::read(notify).ok()) {
        errors.merge(notify.cross_field_errors().prefix("notify"));
    }
    errors
}

/// A target without what may be a secret: `https://ntfy.sh/…71d0`, `m…@example.com`.
pub(super) fn masked(url: &str) -> String {
    if let Some((local, domain)) = url.split_once('@').filter(|_| !url.contains("://")) {
        let first = local.chars().next().map(String::from);
        return format!("{}…@{domain}", first.unwrap_or_default());
    }
    if let Some((scheme, _)) = url
        .split_once("://")
        .filter(|(scheme, _)| !scheme.starts_with("http"))
    {
        return format!("{scheme}://…");
    }
    let Ok(parsed) = Url::parse(url) else {
        return "…".to_owned();
    };
    let origin = parsed.origin().ascii_serialization();
    let hidden = parsed.path().len() + parsed.query().map_or(0, str::len);
    // The guard takes ASCII alone.
    let tail = url.len().saturating_sub(SHOWN_CHARS);
    let tail = url
        .get(tail..)
        .filter(|_| hidden >= SHOWN_CHARS + LEAST_HIDDEN);
    format!("{origin}/…{}", tail.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_shown_without_its_secret() {
        for (url, shown) in [
            ("https://ntfy.sh/fares-3f9a2c71d0", "https://ntfy.sh/…71d0"),
            ("https://ntfy.sh/short", "https://ntfy.sh/…"),
            ("http://127.0.0.1:8080/fares", "http://127.0.0.1:8080/…"),
            (
                "https://hooks.slack.com/services/T000/B000/abcdefghijkl",
                "https://hooks.slack.com/…ijkl",
            ),
            ("reader@example.com", "r…@example.com"),
            ("tgram://123456:AAF/987654", "tgram://…"),
            (
                "https://chat.example.com/hooks?token=hunter2hunter2",
                "https://chat.example.com/…ter2",
            ),
        ] {
            assert_eq!(masked(url), shown);
        }
    }
}
