//! The second step of a new scan: what it would search, how long it takes and what it costs, and
//! the button that submits exactly that.

use farescan_sheets::draft::ScanDraft;
use farescan_sheets::sheet::Sheet;
use farescan_sheets::trip::title;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::new_form::path_without_key;
use super::same_as;
use crate::form::{FormFields, token_field};
use crate::links;
use crate::once::{once_field_with, once_text_for};
use crate::parts;
use crate::session::Session;
use crate::sheet;
use farescan_core::app::error::ApiError;
use farescan_core::commands::IdempotencyKey;
use farescan_core::contract::scans::{Scan, ScanPreview, WarningKind};
use farescan_core::scans;

/// The field with the previewed body.
pub(super) const BODY_FIELD: &str = "body";

/// A scan that the button of a preview has started.
#[derive(Debug)]
pub(super) struct EarlierScan {
    scan: Scan,
    pub(super) is_deleted: bool,
}

impl EarlierScan {
    /// `scan`: as it was submitted.
    pub(super) async fn of(session: &Session, scan: Scan) -> Result<Self, ApiError> {
        let is_deleted = match session.tenant() {
            Some(tenant) => scans::read::scan(session.pool()?, tenant, scan.id)
                .await?
                .is_none(),
            // The first submission of the key, a moment ago.
            None => false,
        };
        Ok(Self { scan, is_deleted })
    }

    /// Says when it was started; `another`: the path of a preview that starts another one.
    pub(super) fn notice(&self, another: &str) -> Markup {
        let name = title(self.scan.endpoint, &self.scan.request, &self.scan.sweep);
        html! {
            div class="notice notice-action" role="status" {
                p {
                    b { "This scan was already started " (parts::time(self.scan.created_at)) ". " }
                    @if self.is_deleted { "It was deleted since." }
                    @else { "Its page: " a href=(links::of(self.scan.id)) { (name) } "." }
                }
                div class="actions" { a class="button" href=(another) { "Start another" } }
            }
        }
    }
}

/// The preview of a body, on the page with this query.
///
/// # Errors
/// Those of the API's preview, with every invalid field.
pub(super) async fn section(
    session: &Session,
    query: &FormFields,
    body: &Map<String, Value>,
) -> Result<Markup, ApiError> {
    let json = Value::Object(body.clone()).to_string();
    let once = once_text_for(query, &json);
    let key = IdempotencyKey::parse(once.as_bytes())?;
    let context = session.context()?;
    let earlier = scans::submit::find_submitted(context, body, &key).await?;
    let end = match earlier {
        Some(scan) => {
            let earlier = EarlierScan::of(session, scan).await?;
            PreviewEnd::AlreadyStarted(earlier.notice(&path_without_key(query)))
        }
        None => PreviewEnd::Button(once_field_with(&once)),
    };
    let _permits = session.submission_permits().await?;
    let pace = &session.custody()?.pace;
    let preview = match (scans::preview::preview(context, pace, body).await, &end) {
        (Ok(preview), _) => preview,
        // Its dates may have passed since; it was started all the same.
        (Err(_), PreviewEnd::AlreadyStarted(notice)) => return Ok(notice.clone()),
        (Err(error), PreviewEnd::Button(_)) => return Err(error.into()),
    };
    Ok(render(session, &end, body, &json, &preview))
}

/// What stands below the cost.
enum PreviewEnd {
    /// The button that starts the scan, with its key.
    Button(Markup),
    /// The notice that it was pressed before.
    AlreadyStarted(Markup),
}

fn render(
    session: &Session,
    end: &PreviewEnd,
    body: &Map<String, Value>,
    json: &str,
    preview: &ScanPreview,
) -> Markup {
    let sheet = farescan_sheets::preview::sheet(preview, body);
    html! {
        section class="card preview" {
            h2 { (sheet.title) }
            p class="sub" { (sheet::facts(&sheet)) }
            (sheet::figures(&sheet.figures))
            @for notice in &sheet.notices { (sheet::notice(notice, None)) }
            @match end {
                PreviewEnd::Button(once) => { (submit_form(session, once, json, preview, &sheet)) }
                PreviewEnd::AlreadyStarted(notice) => { (notice) }
            }
        }
        section class="card" {
            h2 { "On each plan of the marketplace" }
            p class="sub" { "Requests beyond a plan's quota are billed at its price, or the plan stops." }
            (sheet::plans(&preview.plans))
        }
        section class="card" {
            details class="fold" {
                summary { "The same as JSON, curl and command" }
                div class="stack" { (same_as::submission(body, ScanDraft::of(body))) }
            }
        }
    }
}

fn submit_form(
    session: &Session,
    once: &Markup,
    body: &str,
    preview: &ScanPreview,
    sheet: &Sheet,
) -> Markup {
    let is_refused = preview
        .warnings
        .iter()
        .any(|warning| warning.kind == WarningKind::TooMuchUnderway);
    html! {
        form method="post" action="/scans/submit" class="actions" {
            (token_field(session))
            (once)
            input type="hidden" name=(BODY_FIELD) value=(body);
            button class="primary" type="submit" disabled[is_refused] data-off[is_refused] {
                (sheet.action.as_deref().unwrap_or_default())
            }
            @if session.app().is_sandbox() { span class="hint" { "Sandbox: nothing is billed." } }
        }
    }
}
