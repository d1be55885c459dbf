//! The two channels that most people want, each with one button: a mail address, and a phone (channels.md,
//! rule 29). What a channel needs besides is chosen for them.

use farescan_sheets::phone as topics;
use maud::{Markup, html};

use super::{PATH, PHONE, origin_fields};
use crate::form::{FormFields, token_field};
use crate::once::once_field;
use crate::session::Session;
use farescan_core::contract::channels::{Channel, ChannelKind};

/// The field that says that a form of one step was sent.
const ONE_STEP: &str = "one_step";

/// Whether a form of one step was sent.
pub(super) fn was_sent(entered: &FormFields) -> bool {
    entered.text(ONE_STEP).is_some()
}

/// Says so without a mail server. A refused address stands in its field again.
pub(super) fn mail(session: &Session, entered: &FormFields, channels: &[Channel]) -> Markup {
    let guard = session.app().webhook_guard();
    let is_mail = entered.text("kind") == Some(ChannelKind::Email.as_str());
    let address = entered.text("url").filter(|_| was_sent(entered) && is_mail);
    html! {
        section class="card" {
            h2 { "Your mail" }
            @if guard.check_kind(ChannelKind::Email).is_err() {
                p class="sub" { "This server has no mail server. Its operator sets " code { "FARESCAN_SMTP_URL" } " and " code { "FARESCAN_SMTP_FROM" } "." }
            } @else {
                p class="sub" { "A code is mailed first, so that nobody else enters your address." }
                (mail_form(session, entered, channels, address))
            }
        }
    }
}

/// The form that mails a code to an address.
pub(super) fn mail_form(
    session: &Session,
    entered: &FormFields,
    channels: &[Channel],
    address: Option<&str>,
) -> Markup {
    html! {
        form class="actions" method="post" action=(PATH) {
            (fields(session, entered, channels, "My mail", ChannelKind::Email))
            input name="url" type="email" value=[address] required maxlength="254" aria-label="Mail address" placeholder="me@example.com" autocomplete="email";
            button class=[channels.is_empty().then_some("primary")] type="submit" { "Mail me a code" }
        }
    }
}

/// The form has the topic, so that a second press makes no second one; nothing uses the topic before the press.
pub(super) fn phone(session: &Session, entered: &FormFields, channels: &[Channel]) -> Markup {
    let url = topics::topic(rand::random());
    let guard = session.app().webhook_guard();
    html! {
        @if guard.check(&url).is_ok() {
            section class="card" {
                h2 { "Your phone" }
                p class="sub" { "Alerts come to the app ntfy, by the server " (topics::SERVER) ", which reads them." }
                form method="post" action=(PHONE) {
                    (fields(session, entered, channels, "My phone", ChannelKind::Ntfy))
                    input type="hidden" name="url" value=(url);
                    button class=[channels.is_empty().then_some("primary")] type="submit" { "Make a topic for my phone" }
                }
            }
        }
    }
}

/// The hidden fields of a new channel; its name is one that no other has: `My phone`, `My phone 2`.
fn fields(
    session: &Session,
    entered: &FormFields,
    channels: &[Channel],
    name: &str,
    kind: ChannelKind,
) -> Markup {
    let is_free = |name: &String| channels.iter().all(|channel| channel.name != *name);
    let numbered = (2..).map(|number| format!("{name} {number}"));
    let name = std::iter::once(name.to_owned())
        .chain(numbered)
        .find(is_free);
    html! {
        (token_field(session))
        (once_field())
        (origin_fields(entered))
        input type="hidden" name="name" value=[name];
        input type="hidden" name="kind" value=(kind.as_str());
        input type="hidden" name=(ONE_STEP) value="true";
    }
}
