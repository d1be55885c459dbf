//! The same as a request and as a command, for who wants to repeat a page in a program.

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::scan_command;
use farescan_core::contract::scans::Scan;

/// The commands that make and read this scan.
pub(super) fn section(scan: &Scan) -> Markup {
    let path = format!("/v1/scans/{}", scan.id);
    html! {
        section class="card no-print" {
            details class="fold" {
                summary { "The same as curl and as a command" }
                div class="stack" {
                    p class="hint" { "The key comes from the environment variable " code { "FARESCAN_API_KEY" } "." }
                    h3 { "Submit this scan again" }
                    (submission(&submission_body(scan)))
                    h3 { "Read it" }
                    pre tabindex="0" { code { (read_commands(&path, &scan.id.to_string())) } }
                }
            }
        }
    }
}

/// The commands that submit a body.
pub(super) fn submission(body: &Map<String, Value>) -> Markup {
    let text = serde_json::to_string_pretty(body).unwrap_or_default();
    html! {
        pre tabindex="0" { code { (curl_post("/v1/scans", &text)) } }
        @if let Some(command) = scan_command::of(body) {
            pre tabindex="0" { code { (command) } }
        } @else {
            p class="hint" { "With the body in a file: " code { "farescan scan file.json" } }
        }
    }
}

/// The searches of a scan, as a submission or a monitor writes them.
pub(crate) fn searches_of(scan: &Scan) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("endpoint".to_owned(), json!(scan.endpoint));
    body.insert("request".to_owned(), Value::Object(scan.request.clone()));
    if !scan.sweep.is_empty() {
        body.insert("sweep".to_owned(), Value::Object(scan.sweep.clone()));
    }
    body
}

/// The body that submits a scan like this one.
pub(super) fn submission_body(scan: &Scan) -> Map<String, Value> {
    let mut body = searches_of(scan);
    if let Some(label) = &scan.label {
        body.insert("label".to_owned(), json!(label));
    }
    if !scan.tags.is_empty() {
        body.insert("tags".to_owned(), json!(scan.tags));
    }
    if let Some(max) = scan.requests.max {
        body.insert("max_requests".to_owned(), json!(max));
    }
    if let Some(age) = scan.max_age_seconds {
        body.insert("max_age_seconds".to_owned(), json!(age));
    }
    if let Some(strategy) = &scan.strategy {
        body.insert("strategy".to_owned(), strategy.request());
    }
    body
}

/// A quote in the body would end the shell's text.
fn curl_post(path: &str, body: &str) -> String {
    let body = body.replace('\'', r"'\''");
    format!("curl -s -H \"x-api-key: $FARESCAN_API_KEY\" \"$FARESCAN_URL{path}\" -d '{body}'")
}

fn read_commands(path: &str, id: &str) -> String {
    let curl =
        |path: &str| format!("curl -s -H \"x-api-key: $FARESCAN_API_KEY\" \"$FARESCAN_URL{path}\"");
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
