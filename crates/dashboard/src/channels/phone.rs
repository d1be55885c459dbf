//! A phone in one step: a new topic of ntfy, shown once with its codes (channels.md, rule 29).

use axum::response::{IntoResponse as _, Response};
use farescan_sheets::phone::{self, STEPS};
use maud::{Markup, PreEscaped, html};

use super::{PATH, body, joining, render, test_form};
use crate::failure::{PageFailure, correctable};
use crate::form::{SessionForm, token_field};
use crate::layout::{NavItem, page};
use crate::once::{once_field, once_key};
use crate::parts;
use crate::session::Session;
use farescan_core::channels::create;
use farescan_core::contract::channels::{Channel, ChannelKind};

pub(super) const ACTION: &str = "/channels/phone";
const NAME: &str = "My phone";

/// The button. Its form has the topic, so that a second press makes no second one; nothing uses the topic
/// before the press.
pub(super) fn card(session: &Session, channels: &[Channel]) -> Markup {
    let url = phone::topic(rand::random());
    let guard = session.app().webhook_guard();
    let is_free = |name: &String| channels.iter().all(|channel| channel.name != *name);
    let numbered = (2..).map(|number| format!("{NAME} {number}"));
    let name = std::iter::once(NAME.to_owned())
        .chain(numbered)
        .find(is_free);
    html! {
        @if guard.check(&url).is_ok() {
            section class="card" {
                h2 { "Your phone" }
                p class="sub" { "Alerts come to the app ntfy, by the server " (phone::SERVER) ", which reads them." }
                form method="post" action=(ACTION) {
                    (token_field(session))
                    (once_field())
                    input type="hidden" name="name" value=[name];
                    input type="hidden" name="kind" value=(ChannelKind::Ntfy.as_str());
                    input type="hidden" name="url" value=(url);
                    button class="primary" type="submit" { "Make a topic for my phone" }
                }
            }
        }
    }
}

/// Makes the channel. The answer is the only page with its topic, and is the same when it is loaded again.
pub(super) async fn add(form: SessionForm) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    let key = once_key(&fields)?;
    let guard = session.app().webhook_guard();
    let added = create(session.context()?, guard, &body(&fields), key.as_ref()).await;
    let channel = match correctable(added)? {
        Ok(added) => added.response,
        Err(error) => return render(&session, &fields, None, Some(error)).await,
    };
    let url = fields.text("url").unwrap_or_default();
    let topic = url.rsplit('/').next().unwrap_or_default();
    let below = html! { "Shown once: whoever knows the topic reads your alerts." };
    let done = html! { a class="button" href=(PATH) { "Channels" } };
    let text = html! {
        (parts::head(&html! {}, &channel.name, &below, &done))
        section class="card" {
            ol class="steps" { @for step in STEPS { li { (step) } } }
            div class="phone" {
                a href=(phone::app_link(url)) { span class="qr" role="img" aria-label="QR code of the topic" { (PreEscaped(phone::picture(&phone::app_link(url)).unwrap_or_default())) } "Open in the app (Android)" }
                dl class="kv" {
                    dt { "Topic" } dd { code { (topic) } }
                    dt { "Server" } dd { code { (phone::SERVER) } }
                    dt { "Address" } dd { a href=(url) rel="noreferrer noopener external" { (url) } }
                }
            }
            p class="actions" { (test_form(&session, &channel)) }
        }
        (joining::card(&session, &channel).await?)
    };
    Ok(page(&session, &channel.name, NavItem::Channels, text).into_response())
}
