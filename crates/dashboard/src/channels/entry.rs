//! The form of a channel of any kind.

use farescan_sheets::channel::kind_words;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::{PATH, one_step, origin_fields};
use crate::form::{FormFields, token_field};
use crate::once::once_field;
use crate::session::Session;
use farescan_core::contract::channels::{ChannelKind, NoticePriority};

/// Folded, unless it was sent and has to be corrected.
pub(super) fn form(session: &Session, entered: &FormFields) -> Markup {
    let was_sent = entered.text("kind").is_some() && !one_step::was_sent(entered);
    let given = |name: &str| entered.text(name).filter(|_| was_sent);
    let text = |name: &str| given(name).unwrap_or_default().to_owned();
    let guard = session.app().webhook_guard();
    let target = if guard.check_kind(ChannelKind::Email).is_ok() {
        "The URL of the topic or of the incoming webhook, or a mail address, which gets a code first. It is stored sealed."
    } else {
        "The URL of the topic, or of the incoming webhook. It is stored sealed."
    };
    html! {
        section class="card" {
            details class="fold" open[was_sent] {
                summary { "Another channel: a chat, a topic of your own, quiet hours" }
                form class="stack" method="post" action=(PATH) {
                    (token_field(session))
                    (once_field())
                    (origin_fields(entered))
                    (field("name", "Name", html! { input id="name" name="name" value=(text("name")) required maxlength="100" placeholder="my phone"; }, ""))
                    (field("kind", "Kind", html! {
                        select id="kind" name="kind" {
                            @for kind in ChannelKind::ALL.iter().filter(|kind| guard.check_kind(**kind).is_ok()) {
                                option value=(kind.as_str()) selected[text("kind") == kind.as_str()] { (kind_words(*kind)) }
                            }
                        }
                    }, "ntfy reaches a phone by its app. Slack's form also fits Mattermost, Rocket.Chat and Discord."))
                    (field("url", "Target", html! { input id="url" name="url" required maxlength="2000" autocomplete="off" spellcheck="false" placeholder="https://ntfy.sh/fares-3f9a2c71d0"; }, target))
                    details class="fold" {
                        summary { "Token, quiet hours, daily message" }
                        (field("token", "Access token of a protected topic", html! { input id="token" name="token" type="password" autocomplete="off" maxlength="500"; }, ""))
                        (field("least_priority", "Which alerts", html! {
                            select id="least_priority" name="least_priority" {
                                option value="" { "all" }
                                option value=(NoticePriority::Normal.as_str()) selected[text("least_priority") == "normal"] { "prices, not that something is gone" }
                                option value=(NoticePriority::High.as_str()) selected[text("least_priority") == "high"] { "only what you wait for" }
                            }
                        }, ""))
                        (field("quiet_from", "Quiet from", html! { input id="quiet_from" name="quiet_from" type="time" value=(text("quiet_from")); }, ""))
                        (field("quiet_until", "Quiet until", html! { input id="quiet_until" name="quiet_until" type="time" value=(text("quiet_until")); }, ""))
                        (field("digest_at", "One message a day at", html! { input id="digest_at" name="digest_at" type="time" value=(text("digest_at")); }, ""))
                        (field("timezone", "Time zone", html! { input id="timezone" name="timezone" value=(text("timezone")) placeholder="UTC"; }, ""))
                    }
                    button class="primary" type="submit" { "Add" }
                }
            }
        }
    }
}

fn field(name: &str, label: &str, input: Markup, hint: &str) -> Markup {
    html! {
        div class="field" {
            label for=(name) { (label) }
            (input)
            @if !hint.is_empty() { span class="hint" { (hint) } }
        }
    }
}

/// The body of the API, as it was entered.
pub(super) fn body(entered: &FormFields) -> Map<String, Value> {
    let given = |name: &str| entered.text(name).filter(|text| !text.is_empty());
    let names = ["name", "kind", "url", "token", "least_priority", "timezone"];
    let fields = names
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), json!(given(name)?))));
    let mut body: Map<String, Value> = fields.collect();
    let mut notify = Map::new();
    let quiet = [("from", "quiet_from"), ("until", "quiet_until")];
    let quiet: Map<String, Value> = quiet
        .into_iter()
        .filter_map(|(name, field)| Some((name.to_owned(), json!(given(field)?))))
        .collect();
    if !quiet.is_empty() {
        notify.insert("quiet_hours".to_owned(), quiet.into());
    }
    if let Some(at) = given("digest_at") {
        notify.insert("digest_at".to_owned(), json!(at));
    }
    if !notify.is_empty() {
        body.insert("notify".to_owned(), notify.into());
    }
    body
}
