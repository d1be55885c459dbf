//! The same as a request and as a command, for who wants to repeat a page in a program.

use farescan_sheets::draft::ScanDraft;
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::parts::curl;
use farescan_core::contract::scans::Scan;

/// The commands that make and read this scan.
pub(super) fn section(scan: &Scan) -> Markup {
    let draft = ScanDraft::from(scan);
    let path = format!("/v1/scans/{}", scan.id);
    html! {
        section class="card no-print" {
            details class="fold" {
                summary { "The same as curl and as a command" }
                div class="stack" {
                    p class="hint" { "The key comes from the environment variable " code { "FARESCAN_API_KEY" } "." }
                    h3 { "Submit this scan again" }
                    (submission(&draft.clone().into_body(), Some(draft)))
                    h3 { "Read it" }
                    pre tabindex="0" { code { (read_commands(&path, &scan.id.to_string())) } }
                }
            }
        }
    }
}

/// The commands that submit a body; `draft` has its parts.
pub(super) fn submission(body: &Map<String, Value>, draft: Option<ScanDraft>) -> Markup {
    let text = serde_json::to_string_pretty(body).unwrap_or_default();
    html! {
        pre tabindex="0" { code { (curl_post("/v1/scans", &text)) } }
        @if let Some(command) = draft.and_then(ScanDraft::command) {
            pre tabindex="0" { code { (command) } }
        } @else {
            p class="hint" { "With the body in a file: " code { "farescan scan file.json" } }
        }
    }
}

/// A quote in the body would end the shell's text.
fn curl_post(path: &str, body: &str) -> String {
    let body = body.replace('\'', r"'\''");
    format!("{} -d '{body}'", curl(path))
}

fn read_commands(path: &str, id: &str) -> String {
    [
        curl(path),
        curl(&format!("{path}/items?sort=price&limit=1")),
        curl(&format!("{path}/items?format=csv")),
        format!("farescan scans show {id}"),
        format!("farescan watch {id}"),
        format!("farescan export {id} -o fares.parquet"),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_does_not_end_the_shell_text() {
        assert_eq!(
            curl_post("/v1/scans", r#"{"label":"it's"}"#),
            r#"curl -s -H "x-api-key: $FARESCAN_API_KEY" "$FARESCAN_URL/v1/scans" -d '{"label":"it'\''s"}'"#
        );
    }
}
