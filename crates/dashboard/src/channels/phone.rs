//! A phone in one step: a new topic of ntfy, shown once with its codes (channels.md, rule 29).

use axum::response::{IntoResponse as _, Response};
use farescan_sheets::phone::{self, STEPS};
use maud::{PreEscaped, html};

use super::{PATH, back, created, joining, of_monitor, render, test_form};
use crate::failure::{PageFailure, correctable};
use crate::form::SessionForm;
use crate::layout::{NavItem, page};
use crate::parts;

/// Makes the channel. The answer is the only page with its topic, and is the same when it is loaded again.
pub(super) async fn add(form: SessionForm) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    let channel = match correctable(created(&session, &fields).await?)? {
        Ok(channel) => channel,
        Err(error) => return render(&session, &fields, None, Some(error)).await,
    };
    let monitor = of_monitor::origin(&fields);
    if let Some(monitor) = monitor {
        of_monitor::join(&session, &fields, monitor, channel.id).await?;
    }
    let url = fields.text("url").unwrap_or_default();
    let topic = url.rsplit('/').next().unwrap_or_default();
    let below = html! { "Shown once: whoever knows the topic reads your alerts." };
    let done = html! { (back(&fields, true)) a class="button" href=(PATH) { "Channels" } };
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
        @if monitor.is_none() { (joining::card(&session, &fields, &channel).await?) }
    };
    Ok(page(&session, &channel.name, NavItem::Channels, text).into_response())
}
